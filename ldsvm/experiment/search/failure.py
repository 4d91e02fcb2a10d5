"""Why a trial or a result is missing: a kind, for code, and a sentence, for people only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ldsvm.methods.memory import NotRun
from ldsvm.methods.memory_limit import OverLimit, reached

# Exactly these types: what derives from them, such as an error on a file, may well have been of the day.
FAULTS = frozenset({
    FloatingPointError, np.linalg.LinAlgError, OverflowError, TypeError, ValueError, ZeroDivisionError,
})  # fmt: skip


class Kind(StrEnum):
    """The kind of a failure. The values are stored in files: new ones may be added, but none may change.

    NOT_RUN: never tried, for lack of memory or because the executor does not support such inputs. TIME_LIMIT,
    MEMORY_LIMIT: stopped by a limit of the file. ENDED: its process ended. FAULT: an error that every try of the same
    fit would raise. ACCIDENT: any other, perhaps temporary, such as a full disk or a package that was not installed.
    """

    NOT_RUN = "not run"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    ENDED = "ended"
    FAULT = "fault"
    ACCIDENT = "accident"


@dataclass(frozen=True)
class Failure:
    """Why something is missing. kind: for code; sentence: for people.

    Examples
    --------
    >>> print(Failure(Kind.TIME_LIMIT, "stopped: time limit of 5 s"))
    stopped: time limit of 5 s
    """

    kind: Kind
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class KnownFailure(RuntimeError):
    """An error that carries a failure; its message is the failure's sentence."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def failure_of(error: BaseException) -> Failure:
    """Return an exception as a failure, whose kind follows from its type alone.

    Examples
    --------
    >>> failure_of(ValueError("C must be positive"))
    Failure(kind=<Kind.FAULT: 'fault'>, sentence='ValueError: C must be positive')
    """
    if isinstance(error, KnownFailure):
        return error.failure
    over = reached(error)
    return Failure(_kind(error), sentence(error)) if over is None else Failure(Kind.MEMORY_LIMIT, over)


def _kind(error: BaseException) -> Kind:
    if isinstance(error, NotRun):
        return Kind.NOT_RUN
    if isinstance(error, OverLimit):
        return Kind.MEMORY_LIMIT
    from sklearn.utils._param_validation import InvalidParameterError

    return Kind.FAULT if type(error) in (*FAULTS, InvalidParameterError) else Kind.ACCIDENT


def sentence(error: BaseException) -> str:
    """Return an exception as one line: its type, unless it is one of ours, and its message."""
    lines = str(error).strip().splitlines() or ["no message"]
    own = type(error).__module__.startswith("ldsvm.")
    return lines[0] if own else f"{type(error).__name__}: {lines[0]}"
