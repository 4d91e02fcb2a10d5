"""A function of blocks of rows, computed by the processes of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ldsvm.blocks.connection import ClusterFailed, Connection, interrupted


def each_on_ray(
    function: Callable[[Any], Any], items: Iterable[Any], *, address: str | None = None, workers: int = 2
) -> Iterator[Any]:
    """Yield function(item) for every item in their order, as `map` does.

    function: its results must not depend on who calls it. address: of a running Ray (see `Connection`); None starts one
    here, with as many processors as workers. workers: calls that are under way at a time; one more item waits for them.
    A call whose process is lost is made again. Raises ClusterFailed.

    Examples
    --------
    >>> list(each_on_ray(len, ["a", "bc"]))  # doctest: +SKIP
    [1, 2]
    """
    connection = Connection(address, workers, 1)
    connection.open()
    try:
        import ray

        call = ray.remote(num_cpus=1)(_call)
        known, under_way = ray.put(function), deque[Any]()
        for item in items:
            under_way.append(call.remote(known, item))
            if len(under_way) > workers:
                yield _result(under_way.popleft())
        while under_way:
            yield _result(under_way.popleft())
    finally:
        connection.close()


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _result(reference: Any) -> Any:
    import ray

    try:
        with interrupted():
            return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # what the function raised, with its words
    except ray.exceptions.RayError as error:
        raise ClusterFailed(f"Ray lost a block of rows ({type(error).__name__}: {error}).".splitlines()[0]) from error
