"""The journal of trials: exact round trips, damaged files, what is believed, and several writers at once."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldsvm.datasets import DataError
from ldsvm.experiment import sources
from ldsvm.experiment.config.schema import MethodConfig, Scalar
from ldsvm.experiment.search import trial as module
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.trial import Job, Trial

GOOD = Trial({"C": 1.0}, 0, valid_error=0.25)


def job(order: int = 0, seed: int = 0, n_jobs: int = 1, estimator: str = "ldsvm", **point: Scalar) -> Job:
    return Job(MethodConfig(estimator=estimator, params={"n_basis": 10}), (point,), (order,), seed, n_jobs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "on the way" / "trials.jsonl"


def test_floats_come_back_to_the_last_bit(path: Path) -> None:
    rng = random.Random(0)
    numbers = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(5000)]
    numbers = [x for x in numbers if not math.isnan(x)] + [math.inf, -math.inf, -0.0, 5e-324, 0.1 + 0.2]
    history = [{"objective": x} for x in numbers]
    trial = Trial({"C": numbers[0]}, 3, 0.1 + 0.2, 7, train_s=1 / 3, history=history, notes=["é"])
    Journal(path).add("a", trial)
    found = Journal(path).find("a")
    assert found == trial
    assert [math.copysign(1, row["objective"]) for row in found.history] == [math.copysign(1, x) for x in numbers]
    Journal(path).add("b", replace(GOOD, train_s=math.nan))
    again = Journal(path).find("b")
    assert again is not None and math.isnan(again.train_s)


def test_numpy_values_become_plain_at_once_and_on_disk(path: Path) -> None:
    odd = Trial(
        {"C": np.float32(0.1), "n": np.int64(3), "flag": np.bool_(True), "none": None},
        0,
        valid_error=np.float64(0.1),
        history=[{"norms": np.array([1.0, 2.0])}],
    )
    for journal in (Journal(path), Journal(None)):
        journal.add("a", odd)
        for found in (journal.find("a"), Journal(path).find("a")):
            assert found is not None
            assert found.params == {"C": float(np.float32(0.1)), "n": 3, "flag": True, "none": None}
            assert [type(v) for v in found.params.values()] == [float, int, bool, type(None)]
            assert found.history == [{"norms": [1.0, 2.0]}] and type(found.valid_error) is float


def test_a_line_is_on_the_disk_before_the_search_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    Journal(path).add("a", GOOD)
    assert synced == [path.stat().st_size]
    assert json.loads(path.read_text())["key"] == "a"


@pytest.mark.parametrize("kept", [1, 40, -2, -1])
def test_a_last_line_that_a_kill_cut_is_left_out_silently_for_good(path: Path, kept: int) -> None:
    journal = Journal(path)
    journal.add("a", GOOD)
    whole = path.stat().st_size
    journal.add("b", GOOD)
    os.truncate(path, (whole if kept > 0 else path.stat().st_size) + kept)  # -1: only the end of the line is missing
    resumed = Journal(path)  # warnings are errors
    assert (resumed.find("a"), resumed.find("b")) == (GOOD, None)
    resumed.add("c", GOOD)
    again = Journal(path)
    assert [again.find(k) for k in "abc"] == [GOOD, None, GOOD]


def test_other_damaged_lines_are_named_and_left_out(path: Path) -> None:
    for name in "abcdefgh":
        Journal(path).add(name, GOOD)
    lines = path.read_bytes().splitlines()
    lines[0] = b"\x00" * 50
    lines[1] = lines[1].replace(b'"failure": null', b'"failure": {"kind": "of no sort", "sentence": "x"}')
    lines[2] = lines[2][:-4]
    lines[3] = lines[3].replace(b'"order": 0', b'"order": "0"')
    lines[4] = lines[4].replace(b'"params": {', b'"parms": {')
    lines[5] = b"[1, 2]"
    lines[6] = b'{"key": "g", "fit_s": null, "trial": {"params": {"a": ' + b"[" * 10**5 + b"]" * 10**5 + b"}}}"
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.warns(UserWarning, match=r"rows 0, 1, 2, 3, 4 and 2 more cannot be read; their trials are run again"):
        journal = Journal(path)
    assert [name for name in "abcdefgh" if journal.find(name)] == ["h"]


@pytest.mark.parametrize(
    ("kind", "same_limit", "other_limit"),
    [
        (None, True, True),
        (Kind.NOT_RUN, False, False),
        (Kind.TIME_LIMIT, True, False),
        (Kind.MEMORY_LIMIT, False, False),
        (Kind.ENDED, False, False),
        (Kind.FAULT, True, True),
        (Kind.ACCIDENT, False, False),
    ],
)
@pytest.mark.parametrize("sentence", ["ValueError: x", "stopped: time limit of 30 s", "other words"])
def test_failures_of_the_day_are_not_believed_whatever_the_words(
    path: Path, kind: Kind | None, sentence: str, same_limit: bool, other_limit: bool
) -> None:
    failure = None if kind is None else Failure(kind, sentence)
    trial = replace(GOOD, failure=failure, valid_error=0.5 if failure is None else None)
    Journal(path, fit_s=10).add("a", trial)
    assert Journal(path, fit_s=10.0).find("a") == (trial if same_limit else None)
    for limit in (11.0, 9.0, None):
        assert Journal(path, fit_s=limit).find("a") == (trial if other_limit else None)


def test_a_success_is_not_forgotten_for_a_failure_of_another_search(path: Path) -> None:
    failed = replace(GOOD, valid_error=None, failure=Failure(Kind.TIME_LIMIT, "stopped: time limit of 1 s"))
    better = replace(GOOD, valid_error=0.125)
    for limit, trial in ((1.0, failed), (10.0, GOOD), (1.0, failed)):
        Journal(path, limit).add("a", trial)
    assert Journal(path, 1.0).find("a") == Journal(path, 10.0).find("a") == GOOD
    Journal(path).add("a", better)
    assert Journal(path).find("a") == better


def test_the_key_holds_all_that_decides_a_trial_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    base = job(C=1.0, gamma=0.1).key(0, "data")
    same = [job(gamma=0.1, C=1.0).key(0, "data"), job(5, n_jobs=8, C=1.0, gamma=0.1).key(5, "data")]
    assert set(same) == {base}
    two = Job(job().method, ({"C": 9.0}, {"C": 1.0, "gamma": 0.1}), (4, 2), 0, 1)
    assert two.key(2, "data") == base != two.key(4, "data")
    others = [
        job(C=2.0, gamma=0.1).key(0, "data"),
        job(C=1.0).key(0, "data"),
        job(C=1.0, gamma=0.1, tol=0.5).key(0, "data"),
        job(seed=1, C=1.0, gamma=0.1).key(0, "data"),
        job(estimator="nystroem_svm", C=1.0, gamma=0.1).key(0, "data"),
        job(C=1.0, gamma=0.1).key(0, "data, parity"),
    ]
    monkeypatch.setattr(module, "LAYOUT", -1)
    others.append(job(C=1.0, gamma=0.1).key(0, "data"))
    monkeypatch.undo()
    monkeypatch.setattr(module, "code", lambda: ["other"])
    others.append(job(C=1.0, gamma=0.1).key(0, "data"))
    assert len({base, *others}) == 1 + len(others)


def test_a_file_that_the_disk_refuses_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the journal of trials cannot be read \(.*directory"):
        Journal(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="the journal of trials cannot be"):
        Journal(tmp_path / "file" / "below").add("a", GOOD)


def test_of_another_code_than_this_process_began_with_nothing_is_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.code()
    monkeypatch.setattr(sources, "_digest", lambda: "of files that were changed")
    with pytest.raises(sources.CodeChanged, match="was changed while it ran, so the result is not stored; run again"):
        Journal(path).add("a", GOOD)
    assert not path.exists()
    Journal(None).add("a", GOOD)  # which stores nothing


def test_a_full_disk_is_told_and_leaves_no_half_line_to_be_believed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, write = Journal(path), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:30]))
        with pytest.raises(DataError, match="cannot be written"):
            journal.add("a", GOOD)
    assert journal.find("a") is None
    journal.add("b", GOOD)
    assert [Journal(path).find(k) for k in "ab"] == [None, GOOD]


@pytest.mark.slow
def test_processes_that_append_at_once_keep_each_others_lines(path: Path) -> None:
    # Lines of two pages and more, 150 from each of two processes that wait for each other's start.
    code = (
        "import sys, time, pathlib\n"
        "from ldsvm.experiment.search.journal import Journal\n"
        "from ldsvm.experiment.search.trial import Trial\n"
        "me, other, path = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])\n"
        "path.with_name(me).touch()\n"
        "while not path.with_name(other).exists(): time.sleep(0.001)\n"
        "journal = Journal(path)\n"
        "for i in range(150): journal.add(f'{me}{i}', Trial({'i': i}, i, history=[{'x': me * 10_000}]))\n"
    )
    path.parent.mkdir(parents=True)
    writers = [subprocess.Popen([sys.executable, "-c", code, *names, str(path)]) for names in ("pq", "qp")]
    assert [writer.wait(200) for writer in writers] == [0, 0]
    journal = Journal(path)  # warnings are errors
    found = [journal.find(f"{name}{i}") for name in "pq" for i in range(150)]
    assert [trial.order for trial in found if trial is not None] == [*range(150)] * 2
    order = [json.loads(line)["key"][0] for line in path.read_text().splitlines() if line.startswith("{")]
    assert len(order) == 300
