"""What Prometheus reads. With several processes each keeps its numbers in a file; the one that is asked adds them up.

prometheus_client does that where the environment variable PROMETHEUS_MULTIPROC_DIR is set before its first import; the
numbers of processes that have ended still count, except what only a living process has, such as its version.
"""

from __future__ import annotations

import os

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from ldsvm.serving.folder import METRICS

SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

REQUESTS = Counter("ldsvm_requests", "Requests, by path and status.", ["path", "status"])
LATENCY = Histogram("ldsvm_request_seconds", "Seconds from the request to its answer.", ["path"], buckets=SECONDS)
ROWS = Counter("ldsvm_rows", "Rows predicted.")
ODD = Counter("ldsvm_odd_requests", "Requests with cells that the schema does not allow, answered anyway.")
VERSION = Gauge("ldsvm_version", "Version that a process has loaded, 0 without one.", multiprocess_mode="liveall")
LOADED = Gauge(
    "ldsvm_loaded_timestamp_seconds", "Time at which a process loaded its version.", multiprocess_mode="liveall"
)
LOAD_FAILURES = Counter("ldsvm_load_failures", "Number of versions that a process could not load.")
FAILURES = Gauge("ldsvm_registry_failures", "Number of looks at the registry that failed.", multiprocess_mode="livemax")
LOOKED = Gauge(
    "ldsvm_registry_timestamp_seconds", "Time of the last look at the registry.", multiprocess_mode="livemax"
)


def text() -> bytes:
    """Return all numbers in Prometheus's text format."""
    if METRICS not in os.environ:
        return generate_latest(REGISTRY)
    whole = CollectorRegistry()
    multiprocess.MultiProcessCollector(whole)  # type: ignore[no-untyped-call]
    return generate_latest(whole)


def ended(pid: int) -> None:
    """Forget what only a living process has."""
    multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
