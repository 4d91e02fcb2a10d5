"""Spirals against their formula computed point by point, their symmetry, and what the seed decides."""

from __future__ import annotations

import cmath
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldsvm.datasets import DataError, load
from ldsvm.datasets.spirals import make


def test_every_point_is_where_the_formula_says() -> None:
    # complex numbers, one point at a time: no code or idea shared with the vectorised way
    X, y = make(n_classes=3, n_samples=11, turns=1.5)
    expected = [
        (0.1 + 0.9 * i / 10) * cmath.exp(2j * math.pi * (1.5 * i / 10 + k / 3)) for k in range(3) for i in range(11)
    ]
    np.testing.assert_allclose(X, [[point.real, point.imag] for point in expected], atol=1e-7)
    assert y.tolist() == [k for k in range(3) for _ in range(11)]
    assert X.dtype == np.float32 and y.dtype == np.int64


@pytest.mark.parametrize("n_classes", [2, 5])
def test_arms_are_rotations_of_each_other_and_stay_in_the_square(n_classes: int) -> None:
    X, y = make(n_classes=n_classes)
    turn = 2 * np.pi / n_classes
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    for k in range(n_classes):
        np.testing.assert_allclose(X[y == k] @ rotation.T, X[y == (k + 1) % n_classes], atol=1e-6)
    assert np.abs(X).max() <= 1


def test_radius_grows_with_the_angle() -> None:
    X, y = make(turns=2.0)
    for k in range(2):
        radius = np.hypot(*X[y == k].T)
        angle = np.unwrap(np.arctan2(*X[y == k].T[::-1]))
        assert np.all(np.diff(radius) > 0) and np.all(np.diff(angle) > 0)
        assert radius[[0, -1]] == pytest.approx([0.1, 1.0]) and angle[-1] - angle[0] == pytest.approx(4 * np.pi)


def test_no_line_separates_them_and_their_nearest_points_do() -> None:
    # What the data set is for: near chance for a linear model, easy for a local one.
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    X, y = make()
    assert LogisticRegression().fit(X, y).score(X, y) < 0.7
    assert KNeighborsClassifier(1).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) == 1.0


def test_noise_is_gaussian_of_the_given_size() -> None:
    clean, _ = make(n_samples=5000)
    noisy, _ = make(n_samples=5000, noise=0.05, seed=3)
    z = (noisy.astype(np.float64) - clean) / 0.05
    assert stats.kstest(z.ravel(), "norm").pvalue > 0.01
    # Kolmogorov's test cannot see an order: coordinates and neighbours must know nothing of each other either.
    for one, other in ((z[:, 0], z[:, 1]), (z[1:, 0], z[:-1, 0])):
        assert abs(float(stats.pearsonr(one, other).statistic)) < 0.04


def test_the_seed_decides_the_noise_and_nothing_else() -> None:
    (a, _), (b, _), (c, _) = (make(noise=0.1, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.all(np.mean(a != c, axis=0) > 0.99)
    np.testing.assert_array_equal(make(seed=1)[0], make(seed=2)[0])


def test_load_wraps_them_and_names_the_options(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_classes": 3, "n_samples": 20, "noise": 0.1, "seed": 4}
    data = load("spirals", cache_dir=tmp_path, options=options)
    X, y = make(**options)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.source.endswith("generated (n_classes=3, n_samples=20, noise=0.1, turns=2.0, seed=4).")
    assert data.test is None and data.image_shape is None
    assert not list(tmp_path.iterdir()), "what is generated needs no cache"


@pytest.mark.parametrize(
    ("options", "digest"), [({}, "46121224be75aca4"), ({"noise": 0.1, "seed": 4}, "acd8765f71d660ec")]
)
def test_the_digest_is_the_same_on_every_machine(tmp_path: Path, options: dict[str, Any], digest: str) -> None:
    assert load("spirals", cache_dir=tmp_path, options=options).sha256.startswith(digest)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"nois": 1},
            r"'nois' is not an option: use one of n_classes, n_samples, noise, turns, seed \(did you mean noise",
        ),
        ({"zzz": 1}, r"'zzz' is not an option: use one of .* turns, seed\.$"),
        ({"n_classes": 1}, "n_classes=1 must be a whole number from 2 to 256"),
        ({"n_classes": 2.0}, "n_classes=2.0 must be a whole number"),
        ({"n_samples": 100_001}, "n_samples=100001 must be a whole number from 1 to 100,000"),
        ({"n_samples": True}, "n_samples=True must be a whole number"),
        ({"noise": -0.1}, r"noise=-0.1 must be a number from 0.0 to 10.0"),
        ({"noise": math.nan}, "noise=nan must be a number"),
        ({"noise": "0.1"}, "noise='0.1' must be a number"),
        ({"turns": None}, "turns=None must be a number"),
        ({"turns": math.inf}, "turns=inf must be a number from 0.0 to 100.0"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0 to 4,294,967,295"),
    ],
)
def test_wrong_options_are_one_sentence(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^spirals: {message}"):
        load("spirals", cache_dir=tmp_path, options=options)


def test_whole_numbers_do_for_noise_and_turns_and_one_point_is_an_arm() -> None:
    X, y = make(n_samples=1, turns=0, noise=0)
    np.testing.assert_allclose(X, [[0.1, 0], [-0.1, 0]], atol=1e-7)
    assert y.tolist() == [0, 1]
