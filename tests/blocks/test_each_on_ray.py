"""What a function raises on Ray, and what Ray itself does; for real in experiment/test_prepared_large.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ldsvm.blocks.connection import ClusterFailed
from ldsvm.blocks.each_on_ray import _call, _result


@pytest.mark.slow  # the import of Ray
@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (
            lambda its: its.RayTaskError("call", "a traceback", ValueError("row 3 holds 7")),
            ValueError,
            "^row 3 holds 7$",
        ),
        (lambda its: its.WorkerCrashedError(), ClusterFailed, r"^Ray lost a block of rows \(WorkerCrashedError: .*"),
    ],
)
def test_the_users_error_is_raised_as_it_was_and_a_lost_worker_in_one_sentence(
    make: Callable[[Any], Exception], kind: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def get(reference: object) -> object:
        raise make(ray.exceptions)

    monkeypatch.setattr(ray, "get", get)
    with pytest.raises(kind, match=words) as caught:
        _result(None)
    assert "\n" not in str(caught.value)
    assert _call(len, "abc") == 3
