"""Ten classes in two dimensions: the nearest neighbour's error on fresh rows, by `ClassPlane` and by other maps.

Each map is fitted on the training rows and places the test rows; a test row gets the class of the training row nearest
to it in the plane. UMAP's documentation splits the digits as the first seed here does. Of its two numbers of neighbours
(the default, and the documentation's) and with or without labels, all four are shown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.harness import Bar, Result, components_of_mnist, progress
from ldsvm import ClassPlane, LDSVMClassifier

COMPONENTS = 50  # of MNIST


def run(quick: bool) -> Result:
    seeds = [42] if quick else [42, 0, 1]
    result = Result(settings={"seeds": seeds, "components": COMPONENTS, "UMAP": not quick})
    problems: dict[str, Callable[[int], tuple[Any, ...]]] = {"digits": _digits}
    if not quick:
        problems["MNIST"] = lambda seed: components_of_mnist(seed, quick, COMPONENTS)
    for data, parts in problems.items():
        for seed in seeds:
            for name, make in _maps(quick).items():
                progress(f"two_dimensions: {data}, seed {seed}, {name}")
                result.rows.append({"data": data, "seed": seed, "map": name, **_scored(make(seed), *parts(seed))})
        means = {name: result.mean("error %", data=data, map=name) for name in _maps(quick)}
        ours = means.pop("ClassPlane")
        result.bars.append(Bar(f"{data}_error_over_the_best_other_map", ours / min(means.values()), "<=", 1.0))
        result.bars.append(Bar(f"{data}_us_a_row", result.mean("us a row", data=data, map="ClassPlane"), "<=", 100))
    return result


def _maps(quick: bool) -> dict[str, Callable[[int], Any]]:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    def ours(n_components: int | str, seed: int) -> LDSVMClassifier:
        size: Any = 20 if quick else "scale"
        return LDSVMClassifier(n_components, map="adaptive_rbf", n_basis=size, random_state=seed)

    found: dict[str, Callable[[int], Any]] = {
        "ClassPlane": lambda seed: ClassPlane(ours("auto", seed)),
        "n_components=2": lambda seed: ours(2, seed),
        "LDA": lambda seed: LinearDiscriminantAnalysis(n_components=2),
        "PCA": lambda seed: PCA(2, random_state=seed),
    }
    if not quick:
        for neighbours in (15, 5):
            found[f"UMAP, {neighbours} neighbours, with labels"] = partial(_Umap, neighbours, True)
            found[f"UMAP, {neighbours} neighbours, without labels"] = partial(_Umap, neighbours, False)
    return found


class _Umap:
    """UMAP, to be fitted with labels or without."""

    def __init__(self, n_neighbors: int, labels: bool, seed: int) -> None:
        from umap import UMAP

        self.map, self.labels = UMAP(n_neighbors=n_neighbors, random_state=seed), labels

    def fit(self, X: Any, y: Any) -> _Umap:
        self.X, _ = X, self.map.fit(X, y if self.labels else None)
        return self

    def transform(self, X: Any) -> Any:
        return self.map.embedding_ if X is self.X else self.map.transform(X)


def _digits(seed: int) -> tuple[Any, ...]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=seed)
    return X_train, y_train, X_test, y_test


def _scored(fitted: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    from sklearn.neighbors import KNeighborsClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP's, about its threads
        begun = time.perf_counter()
        fitted.fit(X, y)
        seconds = time.perf_counter() - begun
        Z = fitted.transform(X)
        begun = time.perf_counter()
        Z_test = fitted.transform(X_test)
        us = 1e6 * (time.perf_counter() - begun) / len(y_test)
    nearest = KNeighborsClassifier(1).fit(Z, y)
    return {"error %": 100 - 100 * nearest.score(Z_test, y_test), "train s": seconds, "us a row": us}


def quoted(result: Result) -> list[tuple[str, str]]:
    """Return the lines of the table of results."""
    lines = []
    for data, what in (("digits", "digits, 1,347 training rows"), ("MNIST", "MNIST, 10,000 training images")):
        means = {name: result.mean("error %", data=data, map=name) for name in _maps(quick=False)}
        ours, two = means.pop("ClassPlane"), means["n_components=2"]
        rival = min((name for name in means if name.startswith("UMAP")), key=lambda name: means[name])
        lines.append(
            (
                f"{what}, in two dimensions: error of the nearest neighbour in `ClassPlane`",
                f"{ours:.1f} % (two latent dimensions {two:.1f}, LDA {means['LDA']:.1f}, {rival} {means[rival]:.1f})",
            )
        )
    return lines
