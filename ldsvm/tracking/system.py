"""Samples of what a run uses of this computer, under MLflow's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event, Thread
from typing import Any

SECONDS = 10.0  # between two samples, as in MLflow


@contextmanager
def system_metrics(log: Callable[[Mapping[str, float], int], None]) -> Iterator[None]:
    """Sample the use of processors, memory, disk and network every ten seconds until the block ends.

    log: called from a thread with the values of a sample and its number; if it raises, sampling ends silently, since
    the next use of the store will raise the same error. GPUs are sampled if `nvidia-ml-py` is installed. MLflow's
    variables apply: MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false turns this off, MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL
    sets the seconds. MLflow's own thread is not used: it imports parts of MLflow, which can deadlock with the imports
    of the main thread.
    """
    from mlflow import environment_variables as variables

    enabled: Any = variables.MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
    monitors = [] if enabled.is_set() and not enabled.get() else _monitors()
    interval: Any = variables.MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL
    over = Event()
    thread = Thread(
        target=_sample, args=(monitors, log, interval.get() or SECONDS, over), name="system metrics", daemon=True
    )
    if monitors:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if monitors:
            thread.join()


def _monitors() -> list[Any]:
    """Return what can be measured here: in some containers there is no network, and seldom a GPU."""
    from mlflow.system_metrics.metrics import cpu_monitor, disk_monitor, gpu_monitor, network_monitor

    kinds: list[Any] = [
        cpu_monitor.CPUMonitor, disk_monitor.DiskMonitor, network_monitor.NetworkMonitor, gpu_monitor.GPUMonitor,
    ]  # fmt: skip
    found = []
    for kind in kinds:
        with suppress(Exception):  # psutil's and the GPU driver's are of many kinds
            monitor = kind()
            monitor.collect_metrics()
            found.append(monitor)
    return found


def _sample(monitors: list[Any], log: Callable[[Mapping[str, float], int], None], seconds: float, over: Event) -> None:
    with suppress(Exception):
        _values(monitors)  # the first use of processors, in this thread, is over no time at all
        for step in count():
            if over.wait(seconds):
                return
            log(_values(monitors), step)


def _values(monitors: list[Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for monitor in monitors:
        monitor.clear_metrics()
        monitor.collect_metrics()
        values |= {f"system/{key}": value for key, value in monitor.aggregate_metrics().items()}
    return values
