"""Centres that the user gives: the model is the one of k-means where they are those of k-means."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

import ldsvm
from ldsvm import LDSVMClassifier, RowBlocks
from ldsvm.blocks import Serial

GIVEN: dict[str, Any] = {"gamma": "scale", "alpha": 1e-3, "C": 1.0, "max_iter": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:MAC stopped at max_iter")


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(300, 4))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)


def same(a: LDSVMClassifier, b: LDSVMClassifier) -> bool:
    pairs = (
        (a.centers_, b.centers_),
        (a.map_.W, b.map_.W),
        (a.latent_coef_, b.latent_coef_),
        (a.intercept_, b.intercept_),
    )
    return all(np.array_equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("map", ["rbf", "adaptive_rbf"])
def test_an_array_of_kmeans_centres_gives_the_model_of_kmeans(map: str, rows: Any) -> None:
    X, y = rows
    steps: dict[str, Any] = {"map": map, "center_steps": 30}
    found = LDSVMClassifier(n_basis=20, **{**GIVEN, "map": "rbf"}).fit(X, y)
    wanted = LDSVMClassifier(n_basis=20, **GIVEN, **steps).fit(X, y)
    model = LDSVMClassifier(centers=found.centers_.tolist(), **GIVEN, **steps)
    assert same(model.fit(X, y), wanted) if map == "rbf" else model.fit(X, y).n_basis_ == 20
    assert same(clone(model).fit(X, y), model) and same(pickle.loads(pickle.dumps(model)), model)


def test_a_clone_of_an_estimator_finds_them(rows: Any) -> None:
    X, y = rows
    peer = KMeans(15, random_state=3, n_init=1)
    model = LDSVMClassifier(centers=peer, **GIVEN).fit(X, y)
    np.testing.assert_allclose(model.centers_, clone(peer).fit(X).cluster_centers_, rtol=1e-6)
    assert model.n_basis_ == 15 and not hasattr(peer, "cluster_centers_")
    drawn = [LDSVMClassifier(centers=MiniBatchKMeans(), n_basis=9, **GIVEN).fit(X, y) for _ in range(2)]
    assert drawn[0].n_basis_ == 9 and same(*drawn)  # their random_state is ours


def test_files_and_blocks(tmp_path: Path, rows: Any) -> None:
    X, y = rows
    for centers in (X[:12], KMeans(12, n_init=1)):
        model = LDSVMClassifier(centers=centers, **GIVEN).fit(X, y)
        again = ldsvm.load(ldsvm.save(model, tmp_path / "model.npz"))
        assert same(again, model) and np.array_equal(again.centers, model.centers_)
        assert same(again.fit(X, y), model)  # from what was saved
    blocks = RowBlocks.arrays([(X[:100], y[:100]), (X[100:], y[100:])])
    found = LDSVMClassifier(centers=X[:12], **GIVEN).fit(blocks, executor=Serial())
    memory = LDSVMClassifier(centers=X[:12], **GIVEN).fit(X, y)
    np.testing.assert_allclose(found.map_.W, memory.map_.W, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match=r"centers=KMeans.* needs all rows in one array"):
        LDSVMClassifier(centers=KMeans(12), **GIVEN).fit(blocks)


def test_a_warm_start_needs_the_same_centres(rows: Any) -> None:
    X, y = rows
    model = LDSVMClassifier(centers=X[:12], warm_start=True, **GIVEN).fit(X, y)
    assert np.array_equal(model.fit(X, y).centers_, X[:12].astype(np.float32)) and model.n_basis_ == 12
    assert np.array_equal(model.set_params(centers=X[20:25]).fit(X, y).centers_, X[20:25].astype(np.float32))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"centers": np.zeros((5, 3))}, r"centers has shape \(5, 3\) and type float64; allowed: .* \(M, 4\)"),
        ({"centers": np.zeros(4)}, r"shape \(4,\)"),
        ({"centers": np.full((5, 4), np.nan)}, "centers: "),
        (
            {"centers": np.zeros((5, 4)), "n_basis": 6},
            r"n_basis=6 .* centers=an array of 5 rows; .* or 5",
        ),
        ({"centers": np.zeros((5, 4)), "n_basis": "auto", "early_stopping": True}, r"n_basis='auto' does not match"),
        ({"centers": KMeans(5), "n_basis": None}, "n_basis=None does not match centers=KMeans"),
        ({"centers": GaussianMixture(3)}, "has no cluster_centers_ after fit"),
        ({"centers": GaussianMixture(3), "n_basis": 4}, "has no n_clusters"),
        ({"centers": "corners"}, "centers"),
    ],
)
def test_what_cannot_be_centres_is_one_sentence(given: dict[str, Any], words: str, rows: Any) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        LDSVMClassifier(**GIVEN, **given).fit(*rows)
    assert "\n" not in str(caught.value)
