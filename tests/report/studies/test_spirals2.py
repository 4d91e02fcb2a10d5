"""Two spirals: a small run from parameters to page, and its figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldsvm.report.plotting import spirals as plotting
from ldsvm.report.studies import base, spirals, spirals2

SMALL = spirals2.Params(
    n_samples=60, noise=0.01, n_basis=(4, 120), gammas=(1.0, 30.0), penalties=(1.0, 10.0), pixels=30
)


@pytest.fixture(scope="module")
def found() -> base.Found:
    return spirals2.compute(SMALL, base.Context(seed=0, n_jobs=1, cache=Path("unused")))


@pytest.fixture(scope="module")
def page(found: base.Found) -> base.Page:
    return spirals2.show(SMALL, found)


@pytest.mark.slow
def test_a_basis_function_for_each_sample_separates_what_a_linear_map_cannot(found: base.Found) -> None:
    linear, _, every = found.facts["maps"]
    assert [fact["n_basis"] for fact in found.facts["maps"]] == [0, 4, 120]
    assert linear["train_error"] > 0.3
    assert every["train_error"] == every["test_error"] == every["neighbour_error"] == 0
    assert every["nc1"] < 0.1 < linear["nc1"]


def test_the_boundary_that_is_drawn_is_the_one_that_was_measured(found: base.Found) -> None:
    X, y, values = found.arrays["X"], found.arrays["y"], found.arrays["g_2"]
    assert values.shape == (30, 30)
    side = np.linspace(-spirals.EDGE, spirals.EDGE, 30)
    column, row = (np.abs(X[:, [i]] - side).argmin(axis=1) for i in (0, 1))
    near = values[row, column]  # the nearest pixel, half a pixel away at most
    sure = np.abs(near) > 0.5
    assert sure.mean() > 0.5
    assert np.array_equal(near[sure] > 0, y[sure] == 1)
    weights, bias = found.arrays["svm_2"][:2], found.arrays["svm_2"][2]
    assert np.array_equal(found.arrays["Z_2"] @ weights + bias > 0, y == 1)


@pytest.mark.slow
def test_the_page_tells_every_map_and_judges_every_observation(page: base.Page) -> None:
    assert [row[0] for row in page.tables[0].rows] == ["linear", "M = 4", "M = 120"]
    assert [len(row) for row in page.tables[0].rows] == 3 * [len(page.tables[0].header)]
    assert len(page.claims) == 5 and page.claims[0].holds and page.claims[2].holds
    assert "120 basis functions separate" in page.lede
    assert "60 samples" in page.protocol


@pytest.mark.slow
def test_the_error_at_the_width_that_was_chosen_is_the_maps_own(found: base.Found, page: base.Page) -> None:
    best = spirals.choice(found.facts["tried"])
    column = SMALL.gammas.index(best["gamma"])
    assert column == 1
    assert [errors[column] for errors in found.facts["widths"]] == [f["train_error"] for f in found.facts["maps"][1:]]
    assert [row[0] for row in page.tables[1].rows] == ["M = 4", "M = 120"]
    assert page.tables[1].header == ["map", "gamma = 1", "gamma = 30"]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_claim_that_fails_is_shown_with_what_was_measured(found: base.Found) -> None:
    linear, few, every = found.facts["maps"]
    worse = base.Found(
        {**found.facts, "maps": [linear, few, every | {"train_error": 0.125, "nc1": 99.0}]}, found.arrays
    )
    claims = spirals2.show(SMALL, worse).claims
    assert not claims[1].holds and "M = 120 99" in claims[1].measured
    assert not claims[2].holds and "M = 120 12.5 %" in claims[2].measured


@pytest.mark.slow
def test_the_same_outcome_gives_the_same_figure(found: base.Found, page: base.Page) -> None:
    first, second = page.pictures[0], spirals2.show(SMALL, found).pictures[0]
    assert first.drawing == second.drawing
    assert first.drawing.png.startswith(b"\x89PNG")
    a = found.arrays
    moved = plotting.MapPanel("", a["X"], a["y"], a["g_2"] + 0.3, a["Z_2"], a["svm_2"], spirals.EDGE)
    still = plotting.MapPanel("", a["X"], a["y"], a["g_2"], a["Z_2"], a["svm_2"], spirals.EDGE)
    assert plotting.by_map([moved]).svg != plotting.by_map([still]).svg


@pytest.mark.slow
def test_the_same_seed_gives_the_same_outcome_and_another_seed_other_spirals(found: base.Found) -> None:
    again, other = (spirals2.compute(SMALL, base.Context(seed, 1, Path("unused"))) for seed in (0, 1))
    assert again.facts == found.facts
    assert all(np.array_equal(again.arrays[name], array) for name, array in found.arrays.items())
    assert not np.array_equal(other.arrays["X"], found.arrays["X"])


def test_width_and_penalty_are_the_best_on_validation_and_then_the_smoothest() -> None:
    tried = [
        {"gamma": gamma, "C": C, "valid_error": error}
        for gamma, C, error in [(1.0, 1.0, 0.5), (3.0, 10.0, 0.0), (3.0, 1.0, 0.0), (10.0, 0.1, 0.0)]
    ]
    assert spirals.choice(tried) == {"gamma": 3.0, "C": 1.0, "valid_error": 0.0}
    errors = [[0.0, 0.5], [0.25, 0.0]]
    assert [point["valid_error"] for point in spirals.means(3.0, [1.0, 10.0], errors)] == [0.125, 0.25]


def test_training_choosing_and_testing_use_different_noise_on_the_same_spirals() -> None:
    rows = spirals.data(SMALL, 3, seed=0)
    parts = [rows.train[0], rows.valid[0], rows.test[0]]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert 0 < np.abs(parts[i] - parts[j]).max() < 0.1
    assert np.bincount(rows.train[1]).tolist() == [60, 60, 60]
