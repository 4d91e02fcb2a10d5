"""K spirals: a small run from parameters to page, and its figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from ldsvm.report.studies import base, kspirals, kspirals_page
from ldsvm.report.studies.collapse import least_from_simplex

SMALL = kspirals.Params(
    n_samples=30, n_classes=(2, 4), n_latent=(1, 2, 3, 4), gammas=(30.0,), penalties=(0.1, 1.0), long_iter=40,
    pixels=20, shown=10,
)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> base.Found:
    return kspirals.compute(SMALL, base.Context(seed=0, n_jobs=1, cache=Path("unused")))


@pytest.fixture(scope="module")
def page(found: base.Found) -> base.Page:
    return kspirals_page.show(SMALL, found)


def fact(found: base.Found, K: int, L: int, start: str = "simplex") -> dict[str, float]:
    return next(f for f in found.facts["fits"] if (f["K"], f["L"], f["start"]) == (K, L, start))


def test_classes_collapse_on_a_simplex_without_error_in_one_dimension_less_than_classes(found: base.Found) -> None:
    for K in (2, 4):
        ideal = fact(found, K, K - 1)
        assert ideal["train_error"] == 0
        assert ideal["nc1"] < 0.1 and ideal["nc2"] < 0.1


def test_fewer_dimensions_cost_errors_or_the_simplex(found: base.Found) -> None:
    assert fact(found, 4, 1)["train_error"] > 0.1
    for start in SMALL.starts:
        for L in (1, 2):
            assert fact(found, 4, L, start)["nc2"] >= least_from_simplex(4, L) - 1e-9


@pytest.mark.slow
def test_dimensions_beyond_the_simplex_stay_empty_when_training_starts_from_it(found: base.Found) -> None:
    # theory: every step keeps a coordinate that is zero for all samples at zero
    ideal, more = fact(found, 4, 3), fact(found, 4, 4)
    assert more["nc2"] == pytest.approx(ideal["nc2"], abs=1e-6)
    assert more["nested"] == pytest.approx(ideal["nested"], rel=1e-6)


@pytest.mark.slow
def test_longer_training_lowers_the_objective(found: base.Found) -> None:
    stopped = [f for f in found.facts["fits"] if f["L"] == f["K"] - 1]
    assert len(found.facts["long"]) == len(stopped) == 4
    for before, after in zip(stopped, found.facts["long"], strict=True):
        assert (before["K"], before["start"]) == (after["K"], after["start"])
        assert after["nested"] < before["nested"] and after["iterations"] > before["iterations"]


def test_what_is_shown_are_whole_classes_in_their_order(found: base.Found) -> None:
    assert kspirals.some(SMALL, 2).tolist() == [
        0,
        3,
        6,
        9,
        12,
        16,
        19,
        22,
        25,
        29,
        *range(30, 40, 3),
        42,
        46,
        49,
        52,
        55,
        59,
    ]
    assert found.arrays["X 4"].shape == (40, 2)
    assert found.arrays["Z 4 random 1"].shape == (40, 1) and found.arrays["Z 4 random 4"].shape == (40, 2)
    assert found.arrays["g 2 simplex"].shape == (20, 20, 2) and found.arrays["g 4 simplex"].shape == (20, 20, 4)
    assert not any(np.isnan(array).any() for array in found.arrays.values())


@pytest.mark.slow
def test_the_page_has_a_line_for_each_start_and_number_of_classes(found: base.Found, page: base.Page) -> None:
    for table in page.tables[:3]:
        assert [row[:2] for row in table.rows] == [["simplex", "2"], ["simplex", "4"], ["random", "2"], ["random", "4"]]
        assert {len(row) for row in table.rows} == {len(table.header)} == {6}
    assert page.tables[0].rows[1][2] == f"{100 * fact(found, 4, 1)['train_error']:.2f}"
    assert page.tables[2].rows[2][3:] == ["0.000"] * 3  # two classes are always a simplex
    assert len(page.tables[3].rows) == 8
    assert [picture.name for picture in page.pictures] == ["latent-simplex", "latent-random", "errors", "collapse"]


@pytest.mark.slow
def test_claims_are_judged_for_each_start_by_the_numbers(found: base.Found) -> None:
    fits = [f | ({"nc2": 0.1} if (f["K"], f["L"], f["start"]) == (4, 3, "random") else {}) for f in found.facts["fits"]]
    claims = kspirals_page.claims(SMALL, fits)
    simplex = [claim for claim in claims if "simplex start" in claim.text]
    assert len(simplex) == 4 and all(claim.holds for claim in simplex)
    corners = next(claim for claim in claims if "random start" in claim.text and "corners" in claim.text)
    assert not corners.holds and "K = 4: 0.1" in corners.measured


@pytest.mark.slow
def test_the_same_outcome_gives_the_same_figures(found: base.Found, page: base.Page) -> None:
    first, second = page.pictures, kspirals_page.show(SMALL, found).pictures
    assert [picture.drawing for picture in first] == [picture.drawing for picture in second]
    assert first[0].drawing != first[1].drawing


def test_a_file_that_leaves_out_the_ideal_dimension_is_refused() -> None:
    with pytest.raises(ValidationError, match="allowed: n_latent that has 2 too, one less than n_classes 3"):
        kspirals.Params(n_classes=(2, 3), n_latent=(1, 3))
