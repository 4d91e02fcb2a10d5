"""Search with Optuna's samplers, which choose each batch of points from the trials before it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldsvm.experiment.config.spaces import Point, Range, Space, StrategyConfig
from ldsvm.experiment.search.halving import Ask, rank
from ldsvm.experiment.search.trial import Trial

BATCH = 4
TRIES = 20  # to find a point that is new, where values are few


@dataclass(frozen=True)
class StudyFile:
    """Where optuna-dashboard finds the study of a search: an SQLite file, and the study's name in it."""

    path: Path
    name: str


class Learned:
    """Which points to fit next: call `ask` and `tell` in turn as with `Halving`; `points` grows with every batch.

    What `ask` returns depends only on the seed and on the trials given to `tell`, in whole batches and in order. So
    neither the number of workers nor a resume from a journal changes a search. The study is in memory; the study file,
    for optuna-dashboard, gets a copy of each batch and is never read here.

    Examples
    --------
    >>> strategy = StrategyConfig(sampler="tpe", n_candidates=6, batch=4)
    >>> search = Learned({"C": Range(log_uniform=[0.1, 10])}, strategy, seed=0)
    >>> while asked := search.ask():
    ...     print([place for place, _ in asked])
    ...     search.tell([Trial({}, place, valid_error=search.points[place]["C"]) for place, _ in asked])
    [0, 1, 2, 3]
    [4, 5]
    """

    def __init__(self, space: Space, strategy: StrategyConfig, seed: int, study_file: StudyFile | None = None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.total = strategy.n_candidates or 0
        if not any(isinstance(values, Range) for values in space.values()):
            self.total = min(self.total, math.prod(len(v) for v in space.values() if isinstance(v, list)))
        self.points: list[Point] = []
        self._space, self._batch = space, strategy.batch or BATCH
        self._distributions = {name: _distribution(values) for name, values in space.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study = optuna.create_study(sampler=_sampler(strategy.sampler, seed))
        self._study_file, self._copied = _cleared(study_file), 0
        self._values: dict[str, float] = {}  # of points that were told
        self._pending: dict[int, Any] = {}
        self._draw()

    def ask(self) -> list[Ask]:
        """Return what to fit now, nothing when the search is over."""
        return [(place, None) for place in self._pending]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Take the trials of what was asked, in any order."""
        for trial in sorted(trials, key=lambda trial: trial.order):
            value = rank(trial)[0]
            self._values[repr(self.points[trial.order])] = value
            self._tell(self._pending.pop(trial.order), value)
        self._copy()
        self._draw()

    def _draw(self) -> None:
        """Ask for a batch of points that are new; fewer if Optuna proposes old ones again."""
        end = min(len(self.points) + self._batch, self.total)
        waiting: set[str] = set()
        for _ in range(self._batch * TRIES):
            if len(self.points) >= end:
                return
            asked = self._study.ask(self._distributions)
            point = {k: v.value(asked.params[k]) if isinstance(v, Range) else asked.params[k]
                     for k, v in self._space.items()}  # fmt: skip
            if (known := repr(point)) in self._values or known in waiting:
                self._tell(asked, self._values.get(known, math.inf))
                continue
            waiting.add(known)
            self._pending[len(self.points)] = asked
            self.points.append(point)

    def _tell(self, asked: Any, value: float) -> None:
        from optuna.trial import TrialState

        if math.isfinite(value):
            self._study.tell(asked, value)
        else:
            self._study.tell(asked, state=TrialState.FAIL)

    def _copy(self) -> None:
        """Add what is new to the study file; where it cannot be written, the search goes on without it."""
        if self._study_file is None:
            return
        done = [trial for trial in self._study.get_trials(deepcopy=False) if trial.state.is_finished()]
        try:
            self._study_file.add_trials(done[self._copied :])
        except Exception as error:  # whatever a database says
            warnings.warn(f"optuna-dashboard will not show the rest of this search ({error!s:.200}).", stacklevel=2)
            self._study_file = None
        self._copied = len(done)


def _distribution(values: list[Any] | Range) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Range):
        return CategoricalDistribution(tuple(values))
    low, high = values.ends
    return (
        IntDistribution(int(low), int(high), log=values.log)
        if values.whole
        else FloatDistribution(low, high, log=values.log)
    )


def _sampler(name: str | None, seed: int) -> Any:
    from optuna.samplers import RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    return TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _cleared(study_file: StudyFile | None) -> Any:
    """Return an empty study in the file, None if that is impossible."""
    if study_file is None:
        return None
    import optuna

    try:
        study_file.path.parent.mkdir(parents=True, exist_ok=True)
        address = f"sqlite:///{study_file.path}"
        if study_file.name in optuna.get_all_study_names(address):
            optuna.delete_study(study_name=study_file.name, storage=address)
        return optuna.create_study(study_name=study_file.name, storage=address)
    except Exception as error:
        warnings.warn(f"optuna-dashboard will not show this search ({error!s:.200}).", stacklevel=2)
        return None
