"""Methods of other packages: boosted trees, which the extra `rivals` brings, and xRFM, which comes with PyTorch."""

from __future__ import annotations

from typing import Any

from ldsvm.methods.by_path import suited
from ldsvm.methods.packages import package


def lightgbm() -> Any:
    """Return unfitted gradient boosting of LightGBM: 100 rounds of trees of at most 31 leaves."""
    return suited(package("lightgbm").LGBMClassifier())


def xgboost() -> Any:
    """Return unfitted gradient boosting of XGBoost, 100 rounds on binned inputs, for labels of any kind."""
    return suited(package("xgboost").XGBClassifier(tree_method="hist", n_estimators=100))


def xrfm() -> Any:
    """Return unfitted recursive feature machines, with five iterations at most."""
    from ldsvm.methods.recursive_features import RecursiveFeatures

    return RecursiveFeatures()
