"""What a fit may allocate and what it took: limits that hold and end, estimates, sentences, peaks of known sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ldsvm import memory
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.trial import Data, Job, fit_point, run_job
from ldsvm.methods import memory_limit
from ldsvm.methods.memory_limit import MIB, MemoryLimit, OverLimit, apply_limit, available, noted, reached, watch

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts and bounds private memory")
SVM = MethodConfig(estimator="linear_svm", params={"C": 1.0})


def take(mib: int) -> None:
    np.ones(mib * MIB // 8)


def job(estimator: str, *points: dict[str, float]) -> Job:
    return Job(MethodConfig(estimator=estimator), points or ({},), tuple(range(max(len(points), 1))), 0, 1)


def small() -> Data:
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    return Data(X[:40], y[:40], X[40:], y[40:])


@pytest.mark.slow
@LINUX
def test_a_limit_holds_for_what_is_allocated_within_it_and_ends_with_it() -> None:
    import resource

    before, kept = resource.getrlimit(resource.RLIMIT_DATA), np.ones(200 * MIB // 8)
    with apply_limit(MemoryLimit(150)):
        take(120)
        take(120)  # what was given back may be taken again
        with pytest.raises(MemoryError):
            take(500)
        take(120)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    take(500)
    assert kept[-1] == 1


@LINUX
def test_too_much_is_one_sentence_and_other_errors_stay_what_they_are() -> None:
    with pytest.raises(OverLimit, match=r"^stopped: memory limit of 64\.5 MiB$"), apply_limit(MemoryLimit(64.5)):
        take(500)
    with pytest.raises(ValueError, match="no"), apply_limit(MemoryLimit(64)):
        raise ValueError("no")
    with pytest.raises(MemoryError, match="mine"), apply_limit(None):
        raise MemoryError("mine")


def test_only_a_refusal_of_memory_under_a_limit_is_told_as_one() -> None:
    refused = OSError(12, "Cannot allocate memory")
    with noted(MemoryLimit(64)):
        assert reached(refused) == reached(MemoryError()) == "stopped: memory limit of 64 MiB"
        assert reached(OSError(28, "No space left on device")) is reached(ValueError()) is None
    assert reached(refused) is reached(MemoryError()) is None


def test_a_large_limit_has_all_its_digits() -> None:
    assert str(MemoryLimit(1048577.0)) == "memory limit of 1048577 MiB"
    assert MemoryLimit(0.25).under == " under a memory limit of 0.25 MiB"
    assert MemoryLimit().under == ""


def test_without_a_number_it_is_what_the_machine_has_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 5 * MIB + 1)
    assert MemoryLimit(threads=2).here() == MemoryLimit(5, 2)
    assert MemoryLimit(7).here() == MemoryLimit(7)
    monkeypatch.setattr(memory, "available", lambda: None)
    assert MemoryLimit().here() == MemoryLimit()
    with apply_limit(MemoryLimit()):
        take(10)


def test_estimates_see_the_limit_or_the_machine_whichever_has_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 5 * MIB)
    assert available() == 5 * MIB
    with noted(MemoryLimit(3)):
        assert available() == 3 * MIB
    with noted(MemoryLimit(7)):
        assert available() == 5 * MIB
    with noted(MemoryLimit()):
        assert available() == 5 * MIB
    monkeypatch.setattr(memory, "available", lambda: None)
    assert available() is None
    with noted(MemoryLimit(3)):
        assert available() == 3 * MIB


@pytest.mark.parametrize("points", [[{"C": 1.0}], [{"C": 1.0}, {"C": 2.0}]], ids=["point", "path"])
def test_a_fit_that_needs_more_by_its_estimate_is_not_run(points: list[dict[str, float]]) -> None:
    X = np.zeros((3_000, 2), dtype=np.float32)
    with noted(MemoryLimit(1)):
        trials = run_job(job("ldsvm", *points), Data(X, np.arange(3_000) % 2, X[:1], np.zeros(1, dtype=int)))
    assert {trial.failure and trial.failure.kind for trial in trials} == {Kind.NOT_RUN}
    assert {str(trial.failure).partition(";")[0] for trial in trials} == {
        "not run: needs 34.3 MiB for its arrays of 3,000 rows, but 1.0 MiB are available"
    }
    assert [trial.failure for trial in run_job(job("ldsvm", *points), small())] == [None] * len(points)


@LINUX
def test_a_fit_that_takes_more_than_its_estimate_is_a_row_and_the_next_one_works() -> None:
    # Zeros that nobody has touched, which the SVM copies as float64: 1.8 GiB, far beyond what earlier tests have left
    # behind and what, freed on the way, is room beyond the limit (stacks of their threads, for one).
    X = np.zeros((60_000, 4_000), dtype=np.float32)
    large = Data(X, np.arange(60_000) % 2, X[:1], np.zeros(1, dtype=int))
    with apply_limit(MemoryLimit(100)):
        ((first,), (second,)) = (run_job(job("linear_svm", {"C": 1.0}), data) for data in (large, small()))
    assert first.failure == Failure(Kind.MEMORY_LIMIT, "stopped: memory limit of 100 MiB")
    assert second.failure is None and second.valid_error is not None


@pytest.mark.slow
@LINUX
def test_products_of_matrices_go_on_when_no_memory_is_left() -> None:
    # OpenBLAS that is refused a buffer asks for ever, or ends the process: here it has them already.
    code = """
from concurrent.futures import ThreadPoolExecutor
import threading
import numpy as np
from scipy.linalg import blas
from ldsvm.methods.memory_limit import MIB, MemoryLimit, apply_limit
gate, a, c, d = threading.Barrier(2), np.ones((500, 500)), np.ones((500, 500), order="F"), np.empty((500, 500))
def products(limited):
    gate.wait()
    if limited:
        np.matmul(a, a, out=d)
        blas.dgemm(1.0, c, c, c=c, overwrite_c=True)
with ThreadPoolExecutor(2) as pool:
    list(pool.map(products, [False, False]))
    with apply_limit(MemoryLimit(1, threads=2)):
        kept = []
        try:
            while True:
                kept.append(np.ones(MIB // 8))
        except MemoryError:
            del kept[-8:]
        list(pool.map(products, [True, True]))
        print(len(kept))
"""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=200)
    assert found.returncode == 0 and 50 < int(found.stdout) < 150, found.stderr


@LINUX
def test_results_do_not_depend_on_a_limit_that_is_not_reached() -> None:
    def found() -> list[tuple[object, ...]]:
        trials = run_job(job("ldsvm", {"C": 1.0}, {"C": 2.0}), small())
        return [(t.params, t.valid_error, t.n_basis, t.stop_reason, t.failure, t.notes) for t in trials]

    free = found()
    with apply_limit(MemoryLimit(500)):
        assert found() == free


@pytest.mark.slow
@LINUX
def test_the_peak_counts_what_was_given_back_but_not_what_was_there_or_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(50 * MIB // 8))
    there, mapped = np.ones(100 * MIB // 8), np.load(tmp_path / "a.npy", mmap_mode="r")
    peak = watch()
    assert float(mapped.sum()) == mapped.size
    take(200)
    found = peak()
    assert found is not None and 195 < found < 220
    peak = watch()
    assert there.sum() == there.size
    found = peak()
    assert found is not None and found < 20  # a new watch knows nothing of the last


@pytest.mark.slow
@LINUX
def test_the_peak_of_a_fit_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hungry:
        def fit(self, X: object, y: object) -> None:
            take(200)

    data, one = small(), Job(SVM, ({},), (0,), 0, 1)
    fit_point(one, {}, data)
    before = fit_point(one, {}, data).peak_mib
    monkeypatch.setattr(MethodConfig, "make", lambda *_, **__: Hungry())
    hungry: list[float | None] = [fit_point(one, {}, data).peak_mib]
    thread = threading.Thread(target=lambda: hungry.append(fit_point(one, {}, data).peak_mib))
    thread.start()
    thread.join()
    assert before is not None and before < 20
    assert len(hungry) == 2 and all(peak is not None and 195 < peak < 220 for peak in hungry)


def test_where_the_system_does_not_tell_there_is_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "_sizes", lambda: {"VmData": 1})
    assert watch()() is None


@pytest.mark.parametrize(("value", "words"), [("0", "greater than 0"), (".inf", "finite"), ("much", "valid number")])
def test_a_limit_that_is_none_is_one_sentence(value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf'key "limits\.fit_mib" has value .*{words}') as caught:
        load_config("conf/digits.yaml", [f"limits.fit_mib={value}"], root=ROOT)
    assert "\n" not in str(caught.value)


def test_the_file_may_set_a_limit_and_sets_none_by_itself() -> None:
    assert load_config("conf/digits.yaml", [], root=ROOT).limits.fit_mib is None
    assert load_config("conf/digits.yaml", ["limits.fit_mib=500"], root=ROOT).limits.fit_mib == 500
    with pytest.raises(ConfigError, match=r'key "limits\.fit_mb"'):
        load_config("conf/digits.yaml", ["limits.fit_mb=500"], root=ROOT)
