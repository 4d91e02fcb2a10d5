"""Boosted trees of other packages, which the extra `rivals` brings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ldsvm.methods.by_path import suited


class MissingPackage(ImportError):
    """A method's package is not installed; the message is one sentence."""


def lightgbm() -> Any:
    """Return unfitted gradient boosting of LightGBM: 100 rounds of trees of at most 31 leaves."""
    return suited(_package("lightgbm").LGBMClassifier())


def xgboost() -> Any:
    """Return unfitted gradient boosting of XGBoost, 100 rounds on binned inputs, for labels of any kind."""
    return suited(_package("xgboost").XGBClassifier(tree_method="hist", n_estimators=100))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackage(f"not run: {name} is not installed; pip install 'ldsvm[rivals]' brings it") from error
