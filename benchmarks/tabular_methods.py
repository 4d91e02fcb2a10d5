"""The classifiers that `tabular` compares, each as its users call it: defaults, and what they would search over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from ldsvm import LDSVMClassifier, RelevanceScaler


@dataclass(frozen=True)
class Rival:
    """A classifier: how it is made, the values to search, the optional package it needs, and its basis functions.

    ours: whether it is made of this project's own code.
    """

    make: Callable[[int], Any]
    space: Mapping[str, list[Any]] | Sequence[Mapping[str, list[Any]]] = field(default_factory=dict)
    package: str | None = None
    size: Callable[[Any], int | None] = lambda model: None
    ours: bool = False

    @property
    def absent(self) -> bool:
        return self.package is not None and find_spec(self.package) is None


def _ours(**given: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        return _relevant("passthrough", LDSVMClassifier(random_state=seed, n_jobs=1, **given))

    return make


def _svc(seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC()


def _svc_on_factors(seed: int) -> Any:
    return _relevant(RelevanceScaler(random_state=seed), _svc(seed))


def _relevant(scaler: Any, model: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return Pipeline([("relevance", scaler), ("model", model)])


def _nystroem(seed: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    return make_pipeline(Nystroem(n_components=300, random_state=seed), LinearSVC(random_state=seed))


def _from(module: str, name: str, **given: Any) -> Callable[[int], Any]:
    """Return a maker of a class that is imported when it is needed, with the seed as ``random_state``."""

    def make(seed: int) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(random_state=seed, **given)

    return make


def _neighbours(seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier()


def _support_vectors(model: Any) -> int:
    return int(model.n_support_.sum())


def _basis(model: Any) -> int:
    return int(model[-1].n_basis_)


FACTORS = ["passthrough", RelevanceScaler(random_state=0)]


RIVALS: dict[str, Rival] = {
    "ours": Rival(
        _ours(),
        [
            {
                "model__map": ["adaptive_rbf"], "model__n_basis": [100, "scale"], "relevance": FACTORS,
                "model__alpha": ["auto", 1.0, 10.0], "model__C": [1.0, 10.0],
            },
            {"relevance": FACTORS, "model__C": [0.3, 1.0, 10.0]},  # few basis functions are what ours is for
        ],
        size=_basis, ours=True,
    ),
    "ours, learned": Rival(
        _ours(map="adaptive_rbf", n_basis=100),
        {"relevance": FACTORS, "model__alpha": ["auto", 1.0, 10.0], "model__C": [1.0, 10.0]},
        size=_basis, ours=True,
    ),
    "SVC": Rival(_svc, {"C": [0.1, 1, 10, 100], "width": [0.1, 0.3, 1.0, 3.0]}, size=_support_vectors),
    "SVC on our factors": Rival(
        _svc_on_factors, {"model__C": [0.1, 1, 10, 100], "width": [0.1, 0.3, 1.0, 3.0]},
        size=lambda model: _support_vectors(model[-1]), ours=True,
    ),
    "Nystroem + linear": Rival(
        _nystroem, {"linearsvc__C": [0.1, 1, 10, 100], "width": [0.3, 1.0, 3.0]}, size=lambda model: 300
    ),
    "boosted trees": Rival(
        _from("sklearn.ensemble", "HistGradientBoostingClassifier"),
        {"learning_rate": [0.03, 0.1, 0.3], "max_leaf_nodes": [7, 15, 31], "l2_regularization": [0, 1]},
    ),
    "LightGBM": Rival(
        _from("lightgbm", "LGBMClassifier", n_jobs=1, verbose=-1),
        {"learning_rate": [0.03, 0.1, 0.3], "num_leaves": [7, 15, 31], "n_estimators": [100, 300]},
        "lightgbm",
    ),
    "XGBoost": Rival(
        _from("xgboost", "XGBClassifier", n_jobs=1, tree_method="hist"),
        {"learning_rate": [0.03, 0.1, 0.3], "max_depth": [3, 6, 9], "n_estimators": [100, 300]},
        "xgboost",
    ),
    "random forest": Rival(
        _from("sklearn.ensemble", "RandomForestClassifier", n_jobs=1),
        {"max_features": ["sqrt", 0.3, 0.7], "min_samples_leaf": [1, 3]},
    ),
    "MLP": Rival(
        _from("sklearn.neural_network", "MLPClassifier"),
        {"hidden_layer_sizes": [(100,), (300,)], "alpha": [1e-4, 1e-2, 1.0], "learning_rate_init": [1e-3, 1e-2]},
    ),
    "logistic regression": Rival(
        _from("sklearn.linear_model", "LogisticRegression", max_iter=1000), {"C": [0.01, 0.1, 1, 10, 100]}
    ),
    "nearest neighbours": Rival(
        _neighbours, {"n_neighbors": [1, 3, 5, 11, 21], "weights": ["uniform", "distance"]},
        size=lambda model: int(model.n_samples_fit_),
    ),
    "xRFM": Rival(
        _from("ldsvm.methods.recursive_features", "RecursiveFeatures", n_jobs=1),
        {"bandwidth": [3.0, 10.0, 30.0], "reg": [1e-3, 1e-2, 1e-1]},
        "xrfm",
    ),
    "RealMLP": Rival(_from("pytabkit", "RealMLP_TD_Classifier", n_threads=1), {}, "pytabkit"),
}  # fmt: skip


def with_width(name: str, params: Mapping[str, Any], width: float) -> dict[str, Any]:
    """Return parameters with gamma for ``width``, a multiple of the ``width`` that gamma="scale" stands for."""
    given = dict(params)
    if "width" in given:
        step = {"Nystroem + linear": "nystroem__", "SVC on our factors": "model__"}.get(name, "")
        given[f"{step}gamma"] = given.pop("width") * width
    return given
