"""What a function raises on Ray, and what Ray itself does; for real in experiment/test_prepared_large.py."""

from __future__ import annotations

import pytest
import ray

from ldsvm.blocks.connection import ClusterFailed
from ldsvm.blocks.each_on_ray import _call, _result

RAISED = ray.exceptions.RayTaskError("call", "a traceback", ValueError("row 3 holds 7"))


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (RAISED, ValueError, "^row 3 holds 7$"),
        (ray.exceptions.WorkerCrashedError(), ClusterFailed, r"^Ray lost a block of rows \(WorkerCrashedError: .*"),
    ],
)
def test_the_users_error_is_raised_as_it_was_and_a_lost_worker_in_one_sentence(
    raised: Exception, kind: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(reference: object) -> object:
        raise raised

    monkeypatch.setattr(ray, "get", get)
    with pytest.raises(kind, match=words) as caught:
        _result(None)
    assert "\n" not in str(caught.value)
    assert _call(len, "abc") == 3
