"""A search that learns: the same trials for any number of workers and after a kill; better than chance; its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import StrategyConfig
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.learned import StudyFile
from ldsvm.experiment.search.search import run_search
from ldsvm.experiment.search.trial import Job, Trial

STRATEGY = {"sampler": "tpe", "n_candidates": 22, "batch": 4}
RANGES = {"gamma": {"log_uniform": [1e-4, 1e2]}, "C": {"log_uniform": [1e-3, 1e3]}}
Run = Callable[[Job], list[Trial]]


def method(strategy: dict[str, object], space: dict[str, object]) -> MethodConfig:
    return MethodConfig.model_validate({"estimator": "gaussian_svm", "strategy": strategy, "search": space})


def fit(job: Job) -> list[Trial]:
    """A bowl with its bottom at gamma = 0.1, C = 10, and a corner where fits fail."""
    found = []
    for point, order in zip(job.points, job.orders, strict=True):
        far = np.log10(point["gamma"] / 0.1) ** 2 + np.log10(point["C"] / 10) ** 2
        failed = Failure(Kind.FAULT, "ValueError: no") if point["gamma"] > 50 else None
        found.append(Trial(dict(point), order, valid_error=None if failed else float(far / 30), failure=failed))
    return found


def backwards(run: Run, jobs: Sequence[Job]) -> Iterable[list[Trial]]:
    """Several workers, the last job first."""
    return [run(job) for job in reversed(jobs)]


def search(strategy: dict[str, object] = STRATEGY, space: dict[str, object] = RANGES, **more: object) -> list[Trial]:
    return run_search(method(strategy, space), more.pop("run", fit), **{"seed": 0, "n_jobs": 1, **more})  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_trials_depend_on_the_seed_and_not_on_the_workers() -> None:
    found = search()
    assert [trial.order for trial in found] == list(range(22))
    assert found == search() == search(executor=backwards)
    assert [trial.params for trial in found] != [trial.params for trial in search(seed=1)]


@pytest.mark.slow
def test_a_killed_search_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    whole, calls = search(), 0

    def killed(job: Job) -> list[Trial]:
        nonlocal calls
        calls += 1
        if calls == 11:  # in the middle of a batch
            raise KeyboardInterrupt
        return fit(job)

    with pytest.raises(KeyboardInterrupt):
        search(run=killed, journal=Journal(tmp_path / "j"))
    done: list[int] = []

    def rest(job: Job) -> list[Trial]:
        done.extend(job.orders)
        return fit(job)

    assert search(run=rest, journal=Journal(tmp_path / "j")) == whole
    assert done == list(range(10, 22))


@pytest.mark.slow
def test_it_learns() -> None:
    # on a smooth bowl the later half of what TPE tries is nearer to the bottom than chance: the median of five seeds
    def later(sampler: str, seed: int) -> float:
        trials = search({**STRATEGY, "sampler": sampler, "n_candidates": 40}, seed=seed)[20:]
        return float(np.median([trial.valid_error for trial in trials if trial.valid_error is not None]))

    assert np.median([later("tpe", s) for s in range(5)]) < 0.5 * np.median([later("random", s) for s in range(5)])


def test_few_values_are_each_tried_once() -> None:
    found = search({**STRATEGY, "sampler": "random"}, {"gamma": [0.1, 1.0], "C": [1.0, 10.0, 100.0]})
    points = [tuple(trial.params.values()) for trial in found]
    assert len(set(points)) == len(points) == 6


@pytest.mark.slow
def test_the_study_lies_in_sqlite_and_a_second_search_replaces_it(tmp_path: Path) -> None:
    import optuna

    study_file = StudyFile(tmp_path / "studies" / "s.db", "parity, ours, split 0")
    plain = search({**STRATEGY, "n_candidates": 6})
    for _ in range(2):
        assert search({**STRATEGY, "n_candidates": 6}, study_file=study_file) == plain
        study = optuna.load_study(study_name=study_file.name, storage=f"sqlite:///{study_file.path}")
        assert [trial.params for trial in study.trials] == [trial.params for trial in plain]
        assert [trial.value for trial in study.trials] == [trial.valid_error for trial in plain]


def test_a_study_file_that_cannot_be_written_costs_the_view_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="optuna-dashboard will not show this search"):
        found = search({**STRATEGY, "n_candidates": 5}, study_file=StudyFile(tmp_path / "file" / "s.db", "s"))
    assert found == search({**STRATEGY, "n_candidates": 5})


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ({"sampler": "gp", "n_candidates": 9}, r"allowed: tpe, random \(gp and cmaes need packages"),
        ({"sampler": "tpe"}, "allowed: sampler only with n_candidates"),
        ({"batch": 4, "n_candidates": 9}, "allowed: batch only with sampler"),
    ],
)
def test_mistakes_are_named(strategy: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        StrategyConfig.model_validate(strategy)
