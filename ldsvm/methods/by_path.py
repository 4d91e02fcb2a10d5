"""Any classifier as a method: a class by its import path, such as ``my_package.MyClassifier``."""

from __future__ import annotations

import sys
from typing import Any

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.transformers import digest_of, imported
from ldsvm.datasets.words import shown


class NotAClassifier(ValueError):
    """An import path that leads to no class which can compete; the message is one sentence."""


def make(path: str) -> Any:
    """Return the unfitted classifier of an import path that this process may use, with the parameters it has by itself.

    Raises `NotAClassifier` where nothing can be imported, or what is found is not a classifier.
    """
    try:
        found = imported(path, f"estimator {path}")
    except DataError as error:
        raise NotAClassifier(str(error)) from error
    methods = ("fit", "predict", "get_params", "set_params")
    if not isinstance(found, type) or not all(hasattr(found, name) for name in methods):
        raise NotAClassifier(f"estimator {path} is {shown(str(found))}; allowed: a class with {', '.join(methods)}.")
    try:
        made = found()
    except TypeError as error:
        raise NotAClassifier(
            f"estimator {path} cannot be made without parameters ({error}); allowed: a class whose parameters all have "
            "defaults."
        ) from error
    except (Exception, SystemExit) as error:  # whatever a class of somebody's does when it is made
        reason = " ".join(str(error).split())[:200]
        raise NotAClassifier(f"estimator {path} cannot be made ({type(error).__name__}: {reason}).") from error
    if not _classifies(made):
        raise NotAClassifier(
            f"estimator {path} is not a classifier; allowed: a class with scikit-learn's ClassifierMixin."
        )
    return suited(made)


def suited(estimator: Any) -> Any:
    """Return a classifier that takes any labels and is silent.

    XGBoost wants the labels 0 to K - 1, so it is wrapped; LightGBM writes to the screen, so it is told not to.
    """
    packages = {kind.__module__.split(".")[0] for kind in type(estimator).__mro__}
    if "lightgbm" in packages:
        return estimator.set_params(verbose=-1)
    if "xgboost" in packages:
        from ldsvm.methods.coded_labels import CodedLabels

        return CodedLabels(estimator)
    return estimator


def version(path: str) -> str:
    """Return what changes when a class changes: its file's digest and its package's version."""
    try:
        digest = digest_of(imported(path, path))
    except (DataError, AttributeError):
        return ""
    return f"{digest} {getattr(sys.modules.get(path.split('.')[0]), '__version__', '')}"


def _classifies(made: Any) -> bool:
    from sklearn.base import is_classifier

    try:
        return bool(is_classifier(made))
    except (AttributeError, TypeError):  # without scikit-learn's tags
        return False
