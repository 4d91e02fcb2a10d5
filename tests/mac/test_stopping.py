"""The schedule of mu and the reasons to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ldsvm.mac.schedule import next_mu
from ldsvm.mac.state import Reason
from ldsvm.mac.stopping import Stopping


def info(iteration: int, valid: float | None = None, nested: float = 1.0, distance: float = 5.0) -> dict[str, Any]:
    return {"iteration": iteration, "valid_error": valid, "nested": nested, "distance": distance}


@pytest.mark.parametrize(
    ("before", "after", "mu"),
    [
        (None, 1.0, 2.0),
        (100.0, 98.9, 2.0),
        (100.0, 99.1, 5.0),
        (100.0, 100.0, 5.0),
        (100.0, 101.0, 5.0),
        (0.0, 0.0, 5.0),
    ],
    ids=["first at this mu", "still falling", "converged", "no change", "rose", "zero"],
)
def test_mu_grows_when_the_relative_fall_is_small(before: float | None, after: float, mu: float) -> None:
    assert next_mu(2.0, 2.5, 0.01, before, after) == mu


def test_best_is_the_lowest_error_then_the_lower_objective(options: Callable[..., Any]) -> None:
    stopping = Stopping(options())
    seen = [(0.3, 9.0), (0.2, 8.0), (0.2, 8.5), (0.2, 7.0), (0.25, 1.0)]
    assert [stopping.improved(info(i, e, n)) for i, (e, n) in enumerate(seen)] == [True, True, False, True, False]
    assert stopping.best_iter == 3


def test_patience_counts_iterations_without_a_lower_error(options: Callable[..., Any]) -> None:
    # a tie with a lower objective is kept but is not progress of the error
    stopping = Stopping(options(patience=3))
    reasons = []
    for i, (error, nested) in enumerate([(0.3, 9.0), (0.2, 8.0), (0.2, 7.0), (0.4, 6.0), (0.3, 5.0)]):
        stopping.improved(info(i, error, nested))
        reasons.append(stopping.reason(info(i, error, nested), 1.0, settled=True))
    assert reasons == [None] * 4 + [Reason.EARLY_STOPPING] and stopping.best_iter == 2


def test_without_validation_the_last_is_kept(options: Callable[..., Any]) -> None:
    stopping = Stopping(options(patience=1))
    assert all(stopping.improved(info(i, None, nested=float(i))) for i in range(4))
    assert stopping.best_iter == 3 and stopping.reason(info(3), 1.0, settled=True) is None


@pytest.mark.parametrize(
    ("changes", "at", "scale", "reason"),
    [
        ({}, info(3, distance=0.9), 100.0, Reason.CONVERGED),
        ({}, info(3, distance=1.1), 100.0, None),
        ({"max_iter": 3}, info(3), 1.0, Reason.MAX_ITER),
        ({"max_iter": 4}, info(3), 1.0, None),
        ({"time_limit": 1e-9}, info(3), 1.0, Reason.TIME_LIMIT),
        ({"time_limit": 1e9}, info(3), 1.0, None),
    ],
)
def test_reasons(changes: dict[str, Any], at: dict[str, Any], scale: float, reason: Reason | None,
                 options: Callable[..., Any]) -> None:  # fmt: skip
    # the distance is relative to |F(X)|: 1 % of 100 is 1
    assert Stopping(options(**changes)).reason(at, scale, settled=True) is reason
