"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsvm import LDSVMClassifier

# Exemptions, each with its reason; test_estimator_fit.py shows the equality to the precision that the reason allows.
TOLERANCE = (
    "asks weights and repeated rows to agree to 1e-7: machines are solved to a relative duality gap of 1e-10, "
    "which fixes V to about 1e-5 only"
)


def exempt(estimator: Any) -> dict[str, str]:
    return {"check_sample_weight_equivalence_on_dense_data": TOLERANCE} if estimator.map == "rbf" else {}


pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # checks set max_iter to small values
    pytest.mark.filterwarnings("ignore:n_basis=.*is reduced:UserWarning"),  # checks have few rows
]


@parametrize_with_checks([LDSVMClassifier(n_basis=30)], expected_failed_checks=exempt)
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow  # all together
@parametrize_with_checks(
    [LDSVMClassifier(map="linear"), LDSVMClassifier(n_basis=30, multi_class="ovo")], expected_failed_checks=exempt
)
def test_scikit_learn_with_other_parameters(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
