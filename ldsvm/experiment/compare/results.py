"""What one method achieved on one problem, as plain values and as a folder that is complete or absent."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ldsvm.datasets import stored_arrays
from ldsvm.datasets.stored_arrays import plain
from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.trial import Trial
from ldsvm.metrics import Measured

FILE = "result.json"
LEFT_SECONDS = 3600.0  # nobody writes for so long


class MethodFailed(RuntimeError):
    """At least one method of an experiment failed; everything else is done and written. The message is one sentence."""


@dataclass(frozen=True)
class Result:
    """One row of the report: the winner of a search, judged on the test set, or the reason why there is none.

    split: the number of the split, from 0; data: digest of its prepared data. started: when, in seconds since 1970;
    seconds: how long all of it took. params: the estimator's parameters that the file fixed or searched.
    valid_error: fraction, of the judged model. train_s: seconds of the fit of exactly that model, train_alone_s:
    of the same on one thread, None where its time ran out; search_s: seconds of all trials together. peak_mib: memory
    that the fit took at its peak beyond what its process had before, in MiB, None where nothing tells. history: its
    training, one dict per iteration; best_iter: the iteration that gave the model. map, n_latent: kind and width of
    our map, None for others. importances: of our model by column, the most important first. failure: None if it
    succeeded.
    """

    problem: str
    method: str
    estimator: str
    trials: list[Trial]
    split: int = 0
    data: str = ""
    started: float = 0.0
    seconds: float = 0.0
    params: dict[str, Any] = field(default_factory=dict)
    valid_error: float | None = None
    train_s: float | None = None
    train_alone_s: float | None = None
    search_s: float | None = None
    peak_mib: float | None = None
    score: Score | None = None
    stop_reason: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    best_iter: int | None = None
    map: str | None = None
    n_latent: int | None = None
    importances: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    notes: list[str] = field(default_factory=list)


def write(result: Result, folder: Path, more: Callable[[Path], None] = lambda folder: None) -> Path:
    """Write a result, and whatever `more` adds, to `folder` at once; an older result there is replaced."""
    _sweep(folder)
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    temporary.mkdir(parents=True)
    try:
        text = json.dumps(asdict(result), indent=1, default=plain)
        (temporary / FILE).write_text(text, encoding="utf-8")
        more(temporary)
        stored_arrays.seal(temporary)
        for file in temporary.iterdir():
            _to_disk(file)  # else a power failure may leave a name without its content
        move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def read(folder: Path) -> Result:
    """Read what `write` wrote."""
    facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
    trials = [Trial(**{**trial, "failure": _failure(trial["failure"])}) for trial in facts.pop("trials")]
    score, failure = facts.pop("score"), _failure(facts.pop("failure"))
    return Result(**facts, trials=trials, score=_score(score) if score else None, failure=failure)


def find(folder: Path) -> Result | None:
    """Return the result in a folder, None when there is none; a damaged one raises a UserWarning."""
    if not (folder / FILE).is_file():
        return None
    try:
        if not stored_arrays.intact(folder):
            raise ValueError("its files have changed since they were written")
        return read(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        text = f"{folder / FILE} is left out, since it cannot be read ({error}); run it again."
        warnings.warn(text, UserWarning, stacklevel=2)
        return None


def move(new: Path, folder: Path) -> None:
    """Put a finished folder in its place; an older one there goes."""
    for attempt in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rename(new, folder)
            return
        except OSError as error:  # another process has put the same result there meanwhile
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == 4:
                raise


def _score(facts: dict[str, Any]) -> Score:
    return Score(**{**facts, "metrics": {name: Measured(**one) for name, one in facts["metrics"].items()}})


def _failure(facts: dict[str, str] | None) -> Failure | None:
    return None if facts is None else Failure(Kind(facts["kind"]), facts["sentence"])


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left beside a folder."""
    for left in folder.parent.glob(f".{folder.name}.*"):
        if time.time() - left.stat().st_mtime > LEFT_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def _to_disk(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
