"""A fit that is ended, by whatever, and goes on from its checkpoint to the same model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ldsvm.blocks import Serial, Threads
from ldsvm.blocks.checkpoint import Checkpoint, CheckpointError
from tests.blocks.conftest import cut, far, model

Data = tuple[np.ndarray, np.ndarray]
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
MAPS: dict[str, dict[str, Any]] = {
    "rbf": {},
    "linear": {"map": "linear"},
    "adaptive": {"map": "adaptive_rbf", "center_steps": 60, "n_basis": 20},
    "following": {"map": "adaptive_rbf", "center_steps": 60, "n_basis": 20, "z_follows": True},
}


class Ended(Exception):
    pass


def ending(at: int) -> Any:
    def end(info: dict[str, Any]) -> None:
        if info["iteration"] == at:
            raise Ended

    return end


def noting(seen: list[int]) -> Any:
    return lambda info: seen.append(info["iteration"])


@pytest.mark.parametrize("params", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("at", [1, 4])
def test_a_fit_goes_on_to_the_same_model(
    params: dict[str, Any], at: int, train: Data, valid: Data, tmp_path: Path
) -> None:
    rows, file = cut(train, 400), tmp_path / "fit.npz"
    whole = model(**params).fit(rows, eval_set=valid)
    with pytest.raises(Ended):
        model(**params).fit(rows, eval_set=valid, checkpoint=file, callback=ending(at))
    assert file.exists()
    seen: list[int] = []
    again = model(**params).fit(
        rows, eval_set=valid, checkpoint=file, callback=lambda info: seen.append(info["iteration"])
    )
    assert seen == list(range(at, 7))  # what was done is not done again
    assert far(again, whole) < (1e-3 if params.get("map") == "adaptive_rbf" else 1e-8)
    assert [h["iteration"] for h in again.history_] == list(range(7))
    for a, b in zip(again.history_, whole.history_, strict=True):
        np.testing.assert_allclose(a["penalised"], b["penalised"], rtol=1e-4)
    assert again.best_iter_ == whole.best_iter_


def test_early_stopping_remembers_how_long_it_has_waited(train: Data, valid: Data, tmp_path: Path) -> None:
    file, params = tmp_path / "fit.npz", {"n_iter_no_change": 3, "max_iter": 60, "C": 5.0}
    whole = model(**params).fit(cut(train), eval_set=valid)
    assert whole.stop_reason_ == "early_stopping"
    with pytest.raises(Ended):
        model(**params).fit(cut(train), eval_set=valid, checkpoint=file, callback=ending(whole.n_iter_ - 1))
    again = model(**params).fit(cut(train), eval_set=valid, checkpoint=file)
    assert (again.stop_reason_, again.n_iter_, again.best_iter_) == ("early_stopping", whole.n_iter_, whole.best_iter_)
    assert not file.exists()
    assert far(again, whole) < 1e-8


def test_more_iterations_may_be_asked_for_and_another_executor_may_go_on(train: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    with pytest.raises(Ended):
        model().fit(cut(train, 300), checkpoint=file, callback=ending(3))
    again = model(max_iter=8, n_jobs=2).fit(cut(train, 100, 500), checkpoint=file, executor=Threads(2))
    assert far(again, model(max_iter=8).fit(cut(train))) < 1e-8


@pytest.mark.parametrize(
    ("params", "rows", "words"),
    [
        ({"C": 2.0}, 900, "params: C"),
        ({}, 800, "labels; inputs"),
        ({"C": 2.0, "alpha": 0.1}, 800, "params: C, alpha; labels; inputs"),
    ],
)
def test_another_fit_does_not_go_on_from_it(params: Any, rows: int, words: str, train: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    with pytest.raises(Ended):
        model().fit(cut(train), checkpoint=file, callback=ending(2))
    kept = file.read_bytes()
    with pytest.raises(CheckpointError, match=rf"fit\.npz belongs to another fit \({words} differ\); remove it"):
        model(**params).fit(cut((train[0][:rows], train[1][:rows])), checkpoint=file)
    assert file.read_bytes() == kept


@pytest.mark.parametrize(
    ("rows", "held", "words"),
    [("scaled", 400, "inputs"), ("turned", 400, "inputs"), ("same", 300, "eval_set"), ("same", 0, "eval_set")],
)
def test_other_rows_of_the_same_classes_are_told(
    rows: str, held: int, words: str, train: Data, valid: Data, tmp_path: Path
) -> None:
    (X, y), file = train, tmp_path / "fit.npz"
    with pytest.raises(Ended):
        model().fit(cut(train), eval_set=valid, checkpoint=file, callback=ending(2))
    other = {"scaled": X * 3, "turned": X[:, ::-1], "same": X}[rows]
    rest = (valid[0][:held], valid[1][:held]) if held else None
    with pytest.raises(CheckpointError, match=rf"\({words} differ\)"):
        model().fit(cut((other, y)), eval_set=rest, checkpoint=file)


def test_parameters_that_are_equal_are_the_same_fit(train: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    weight = {0: 1.0, 1: 2.0, **dict.fromkeys(range(2, 10), 1.0)}
    with pytest.raises(Ended):
        model(class_weight=weight).fit(cut(train), checkpoint=file, callback=ending(2))
    seen: list[int] = []
    same = {"C": np.float64(0.5), "class_weight": dict(reversed(weight.items()))}
    model(**same).fit(cut(train), checkpoint=file, callback=noting(seen))
    assert seen[0] == 2


def test_a_fit_that_ran_out_of_iterations_or_time_can_go_on(train: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    short = model(max_iter=2).fit(cut(train), checkpoint=file)
    assert short.n_iter_ == 2 and file.exists()
    same = model(max_iter=2).fit(cut(train), checkpoint=file)
    assert same.n_iter_ == 2 and same.stop_reason_ == "max_iter" and far(same, short) == 0.0
    hurried = model(max_iter=6, time_limit=1e-9).fit(cut(train), checkpoint=file)
    assert hurried.n_iter_ == 3 and hurried.stop_reason_ == "time_limit"
    seen: list[int] = []
    whole = model(max_iter=6).fit(cut(train), checkpoint=file, callback=noting(seen))
    assert seen == [4, 5, 6] and far(whole, model(max_iter=6).fit(cut(train))) < 1e-8


def test_a_folder_is_no_checkpoint(train: Data, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a regular file; name a file"):
        model().fit(cut(train), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="checkpoint=5 must be the name of a file"):
        model().fit(cut(train), checkpoint=5)


@pytest.mark.parametrize("damage", [b"", b"PK nonsense", "cut"])
def test_a_damaged_checkpoint_is_one_sentence(damage: Any, train: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    with pytest.raises(Ended):
        model().fit(cut(train), checkpoint=file, callback=ending(2))
    file.write_bytes(file.read_bytes()[:-300] if damage == "cut" else damage)
    with pytest.raises(
        CheckpointError, match=r"fit\.npz is not a checkpoint, or is damaged .*; remove it to start again"
    ):
        model().fit(cut(train), checkpoint=file)


def test_a_checkpoint_with_what_no_fit_gives_is_one_sentence(train: Data, valid: Data, tmp_path: Path) -> None:
    file = tmp_path / "fit.npz"
    with pytest.raises(Ended):
        model().fit(cut(train), eval_set=valid, checkpoint=file, callback=ending(2))
    with np.load(file) as kept:
        arrays = dict(kept)
    facts = json.loads(arrays["facts"].tobytes())
    M = len(arrays["best.W"])
    changes: list[tuple[str, Any]] = [
        ("best.W", np.ones((M, 3))), ("best.W", np.ones((M - 1, 9))), ("now.W", np.full((M, 9), np.nan)),
        ("now.W", np.full((M, 9), 1e200)), ("now.V", np.ones((9, 9))), ("best.V", np.full((10, 9), np.inf)),
        ("now.b", np.ones(3)), ("best.b", np.full(10, "x")), ("best.centers", np.ones((M, 63), np.float32)),
        ("best.gamma", np.array(-1.0)), ("best.gamma", np.ones(M - 1)), ("other", np.ones(1)), ("mu", -1.0),
        ("mu", float("nan")), ("mu", "1"), ("before", float("nan")), ("history", []), ("history", facts["history"][1:]),
        ("watched", facts["watched"] | {"best": [float("nan"), 0.0]}), ("watched", facts["watched"] | {"best_iter": 9}),
    ]  # fmt: skip
    found = Checkpoint(file, facts["fit"], (10, 9, 64), linear=False)
    assert found.load() is not None
    for name, value in changes:
        other = {name: value} if isinstance(value, np.ndarray) else {}
        text = json.dumps(facts if other else facts | {name: value}).encode()
        np.savez(file, **arrays | other | {"facts": np.frombuffer(text, dtype=np.uint8)})
        with pytest.raises(
            CheckpointError, match=r"is not a checkpoint, or is damaged \(.*\); remove it to start again"
        ):
            found.load()
    with pytest.raises(CheckpointError, match="its history is not that of a fit"):
        model().fit(cut(train), eval_set=valid, checkpoint=file)


def test_a_checkpoint_that_cannot_be_written_is_told(train: Data, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        model().fit(cut(train), checkpoint=tmp_path / "file" / "fit.npz", executor=Serial())


def test_a_killed_process_is_gone_on_from(train: Data, tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", train[0])
    np.save(tmp_path / "y.npy", train[1])
    code = """
import sys, time
from ldsvm import LDSVMClassifier, RowBlocks
folder = sys.argv[1]
rows = RowBlocks.mapped(folder + "/X.npy", folder + "/y.npy", rows=300)
fit = MODEL
fit.fit(rows, checkpoint=folder + "/fit.npz", callback=lambda info: time.sleep(300) if info["iteration"] == 3 else None)
""".replace("MODEL", repr(model()))
    started = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    try:
        end = time.monotonic() + 200
        while time.monotonic() < end and started.poll() is None:
            found = list(tmp_path.glob("fit.npz"))
            if found and np.load(found[0])["facts"].tobytes().count(b'"iteration"') == 3:
                break
            time.sleep(0.05)
        os.kill(started.pid, signal.SIGKILL)
    finally:
        started.kill()
        started.wait()
    seen: list[int] = []
    rows = cut(train, 300, 600)
    again = model().fit(rows, checkpoint=tmp_path / "fit.npz", callback=noting(seen))
    assert seen == [3, 4, 5, 6] and far(again, model().fit(rows)) < 1e-8


def test_a_fit_that_goes_on_makes_the_same_choices(train: Data, tmp_path: Path) -> None:
    given: dict[str, Any] = {"gamma": "auto", "alpha": "auto", "init": "random"}
    rows, file = cut(train, 300), tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model(**given, max_iter=2).fit(rows, checkpoint=file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again, whole = model(**given).fit(rows, checkpoint=file), model(**given).fit(rows)
    assert again.n_iter_ == whole.n_iter_ > 2 and again.alpha_ == whole.alpha_ and far(again, whole) < 1e-8
