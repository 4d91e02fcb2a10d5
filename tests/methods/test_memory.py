"""Memory: what the system tells in every form it has, estimates against real allocations, refusals in one sentence."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ldsvm import memory as machine
from ldsvm.memory import GIB, available
from ldsvm.methods import METHODS, check_memory, lookup, shared
from ldsvm.methods.memory import NotRun


def system(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    return root


def test_without_control_groups_it_is_what_linux_calls_available(tmp_path: Path) -> None:
    assert available(system(tmp_path, {})) == 8000 * 1024


def test_version_2_and_the_group_around(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/memory.current": "400\n",
        "sys/fs/cgroup/a/memory.max": "5000\n",
        "sys/fs/cgroup/a/memory.current": "3000\n",
        "sys/fs/cgroup/a/memory.stat": "anon 2600\ninactive_file 300\nactive_file 100\n",
    }
    assert available(system(tmp_path, files)) == 5000 - 3000 + 300  # pages of files make room


def test_version_1_in_its_own_folder(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "9:cpu:/x\n4:memory:/job\n0::/\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "7000\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "6500\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "123\n",
    }
    assert available(system(tmp_path, files)) == 500


def test_in_a_container_the_group_is_mounted_at_the_top(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/docker/0123\n",
        "sys/fs/cgroup/memory.max": "4096\n",
        "sys/fs/cgroup/memory.current": "5000\n",
    }
    assert available(system(tmp_path, files)) == 0  # never negative


def test_a_generous_group_does_not_add_memory(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": str(10**15),
        "sys/fs/cgroup/memory.current": "0",
    }
    assert available(system(tmp_path, files)) == 8000 * 1024


def test_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", known.__getitem__)
    assert available(tmp_path) == 40960

    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert available(tmp_path) is None
    monkeypatch.setattr(machine, "available", lambda: None)
    check_memory("kpca_nn", {}, 10**9, 1, 1)  # where nothing is known nothing is refused


def test_here_it_is_below_what_the_machine_has() -> None:
    left = available()
    assert left is not None and 0 < left <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", METHODS)
def test_more_rows_need_no_less(name: str) -> None:
    needs = [lookup(name).needs({}, n, 1000, 50) for n in (10, 100, 1000, 10_000, 100_000)]
    assert all(isinstance(size, int) for size in needs) and needs == sorted(needs)
    assert needs[-1] > needs[0] or not any(needs)


def test_refusal_is_one_sentence_before_anything_is_allocated() -> None:
    tracemalloc.start()
    with pytest.raises(NotRun) as caught:
        check_memory("kpca_nn", {"reduce__n_components": 40}, 60_000, 10_000, 784, available=24 * GIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value) == (
        "not run: needs 26.8 GiB for the kernel matrix of 60,000 rows, but 24.0 GiB are available; "
        "use fewer rows or nystroem_svm"
    )
    assert peak < 2**20


def test_refusals_name_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotRun, match=r"for matrices of all pairs of 60,000 rows, .* or nystroem_svm$"):
        check_memory("nca_nn", {}, 60_000, 10, 784, available=24 * GIB)
    monkeypatch.setattr(machine, "available", lambda: GIB)
    with pytest.raises(NotRun, match=r"for its arrays of 200,000 rows, but 1\.0 GiB are available; use fewer rows$"):
        check_memory("nystroem_svm", {"reduce__n_components": 3000}, 200_000, 10, 784)


def test_what_fits_is_not_refused() -> None:
    for name in METHODS:
        check_memory(name, {}, 10_000, 10_000, 784, available=16 * GIB)
    check_memory("gaussian_svm", {}, 60_000, 10_000, 784, available=2 * GIB)  # libsvm keeps a part of the kernel only
    check_memory("gaussian_svm", {}, 10_000, 10, 10**6, available=GIB)  # texts are sparse
    check_memory("ldsvm", {"map": "linear"}, 10**6, 10, 10**5, available=GIB)
    with pytest.raises(NotRun):
        check_memory("ldsvm", {"n_basis": None}, 60_000, 10, 10, available=24 * GIB)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("kpca_nn", {}),
        ("klda_nn", {}),
        ("nca_nn", {"reduce__max_iter": 1}),
        ("rbf_network", {"reduce__n_components": 700}),
        ("nystroem_svm", {"reduce__n_components": 400}),
    ],
)
def test_estimates_are_near_the_truth(name: str, params: dict[str, Any], dtype: Any) -> None:
    # NumPy's arrays are traced; what liblinear allocates is not, 16 bytes a feature.
    n, m, d = 2000, 300, 20
    X = np.random.default_rng(0).random((n + m, d)).astype(dtype)
    y = X[:n, 0] > 0.5
    model = shared(lookup(name).make(), seed=0, n_jobs=1).set_params(**params)
    tracemalloc.start()
    with threadpool_limits(1):
        model.fit(X[:n], y).predict(X[n:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if name == "nystroem_svm":
        peak += 16 * n * 400
    assert 1 / 1.5 < lookup(name).needs(params, n, m, d) / peak < 1.5
