"""Jobs, rungs, ties, failures and the journal of a search."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import StrategyConfig, grid
from ldsvm.experiment.search.failure import Failure, Kind, failure_of
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.search import SearchFailed, best, jobs, plan, run_search
from ldsvm.experiment.search.trial import Data, Job, Trial, fit_point, run_job

SVM = MethodConfig(estimator="gaussian_svm", search={"gamma": [0.1, 1.0], "C": [1.0, 10.0, 100.0]})
OURS = MethodConfig(estimator="ldsvm", params={"n_basis": 10}, search={"C": [10.0, 1.0], "gamma": [0.1, 1.0]})
ROWS = SVM.model_copy(update={"strategy": StrategyConfig(factor=2, resource="n_samples", min_resources=12)})
STEPS = OURS.model_copy(update={"strategy": StrategyConfig(factor=2, resource="max_iter", min_resources=2)})


def planned(method: MethodConfig) -> list[Job]:
    points, halving = plan(method, seed=0)
    return jobs(method, points, halving.ask(), seed=0, n_jobs=1)


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return Data(X[:40], y[:40], X[40:], y[40:])


def test_points_that_differ_only_in_c_share_a_job_where_the_method_can_share() -> None:
    assert [len(job.points) for job in planned(SVM)] == [1] * 6
    ours = planned(OURS)
    assert [[(p["gamma"], p["C"]) for p in job.points] for job in ours] == [
        [(0.1, 10.0), (0.1, 1.0)],
        [(1.0, 10.0), (1.0, 1.0)],
    ]
    assert [job.orders for job in ours] == [(0, 2), (1, 3)]


def test_any_executor_gives_the_same_trials_in_grid_order(data: Data) -> None:
    here = run_search(SVM, partial(run_job, data=data), seed=0, n_jobs=1)
    there = run_search(SVM, partial(run_job, data=data), seed=0, n_jobs=1, executor=backwards)
    assert [(t.order, t.params, t.valid_error) for t in here] == [(t.order, t.params, t.valid_error) for t in there]


def test_progress_counts_to_the_size_of_the_grid(data: Data) -> None:
    seen: list[tuple[int, int]] = []
    run = partial(run_job, data=data)
    run_search(SVM, run, seed=0, n_jobs=1, on_trials=lambda done, total: seen.append((len(done), total)))
    assert seen == [(i, 6) for i in range(1, 7)]


def test_validation_error_equals_a_fit_by_hand(data: Data) -> None:
    from sklearn.svm import SVC

    trial = run_search(SVM, partial(run_job, data=data), seed=0, n_jobs=1)[4]
    model = SVC(gamma=1.0, C=10.0).fit(data.X, data.y)
    assert trial.valid_error == pytest.approx(1 - model.score(data.X_valid, data.y_valid))
    assert trial.n_basis == len(model.support_)


def test_a_trial_that_fails_is_a_row_with_its_reason_and_the_others_go_on(data: Data) -> None:
    method = MethodConfig(estimator="nearest_neighbour", search={"n_neighbors": [1, 400]})
    good, failed = run_search(method, partial(run_job, data=data), seed=0, n_jobs=1)
    assert good.failure is None
    assert failed.valid_error is None
    assert failed.failure is not None
    assert failed.failure.kind is Kind.FAULT
    assert failed.failure.sentence.startswith("ValueError: Expected n_neighbors <= n_samples_fit")
    assert best([good, failed]) is good
    with pytest.raises(SearchFailed, match=r"^ValueError: Expected n_neighbors"):
        best([failed])
    with pytest.raises(SearchFailed, match=r"^all 2 trials failed, the first: ValueError"):
        best([failed, failed])
    with pytest.raises(SearchFailed, match=r"^1 of 2 trials failed, the first: ValueError"):
        best([replace(good, resource=20), failed])


@pytest.mark.parametrize("count", [1, 2])
def test_a_search_that_failed_has_the_kind_of_its_first_failure(count: int) -> None:
    late = Trial({}, 0, failure=Failure(Kind.TIME_LIMIT, "over its time"))
    with pytest.raises(SearchFailed) as caught:
        best([late, Trial({}, 1, failure=Failure(Kind.FAULT, "bad"))][:count])
    words = "over its time" if count == 1 else "all 2 trials failed, the first: over its time"
    assert failure_of(caught.value) == Failure(Kind.TIME_LIMIT, words)


def test_a_path_of_ours_equals_single_fits_and_reports_its_iterations(data: Data) -> None:
    seen: list[dict[str, Any]] = []
    trials = run_search(OURS, partial(run_job, data=data, on_step=seen.append), seed=0, n_jobs=1)
    single = [run_job(Job(OURS, (t.params,), (0,), 0, 1), data)[0] for t in trials]
    assert [t.params for t in trials] == grid(OURS.space)
    assert [t.valid_error for t in trials] == [t.valid_error for t in single]
    assert [len(t.history) for t in trials] == [len(t.history) for t in single]
    assert len(seen) == sum(len(t.history) for t in trials)
    assert {row["C"] for row in seen} == {1.0, 10.0}


class Recorder:
    """A run that remembers which points it was asked for, and may be interrupted before one of its jobs."""

    def __init__(self, data: Data, stop_before: int = 10**9) -> None:
        self.data, self.stop_before, self.points = data, stop_before, list[int]()
        self.jobs, self.fits = 0, list[tuple[int, int]]()

    def __call__(self, job: Job) -> list[Trial]:
        if self.jobs == self.stop_before:
            raise KeyboardInterrupt
        self.jobs += 1
        self.points += job.orders
        self.fits += [(order, job.resource or 0) for order in job.orders]
        return run_job(job, self.data)


def timeless(trials: list[Trial]) -> list[Trial]:
    """The trials without what a clock or the system says, to compare."""
    return [
        replace(
            t,
            train_s=0.0,
            seconds=0.0,
            peak_mib=None,
            history=[{k: v for k, v in row.items() if "second" not in k} for row in t.history],
        )
        for t in trials
    ]


def backwards(function: Any, work: Any) -> Any:
    return map(function, reversed(work))


@pytest.fixture(scope="module", params=[SVM, OURS, ROWS, STEPS], ids=["points", "paths", "rows", "iterations"])
def searched(request: pytest.FixtureRequest, data: Data) -> tuple[MethodConfig, list[Trial], list[tuple[int, int]]]:
    """A method, its trials without interruption, and the fits that they took."""
    once = Recorder(data)
    return request.param, run_search(request.param, once, seed=0, n_jobs=1), once.fits


@pytest.mark.slow
@pytest.mark.parametrize("executor", [map, backwards])
@pytest.mark.parametrize("stop_before", [0, 1, 7, 10**9])
def test_an_interrupted_search_goes_on_to_the_same_trials(
    data: Data, tmp_path: Path, searched: Any, executor: Any, stop_before: int
) -> None:
    method, whole, fits = searched
    first, then = Recorder(data, stop_before), Recorder(data)
    seen: list[int] = []
    with suppress(KeyboardInterrupt):
        run_search(method, first, seed=0, n_jobs=1, executor=executor, journal=Journal(tmp_path / "a"), place="d")
    trials = run_search(
        method, then, seed=0, n_jobs=2, journal=Journal(tmp_path / "a"), place="d",
        on_trials=lambda done, total: seen.append(len(done)),
    )  # fmt: skip
    assert timeless(trials) == timeless(whole)
    assert sorted(first.fits + then.fits) == sorted(fits) == sorted(set(fits))
    rung = len(plan(method, seed=0)[1].ask())
    assert seen[0] == min(len(first.fits), rung) or not first.fits
    assert seen[-1] == len(whole)


@pytest.mark.slow
def test_trials_of_other_data_are_not_taken_from_the_journal(data: Data, tmp_path: Path, searched: Any) -> None:
    method, _, fits = searched
    for place in ("d", "other data"):
        other = Recorder(data)
        run_search(method, other, seed=0, n_jobs=1, journal=Journal(tmp_path / "a"), place=place)
        assert other.fits == fits


def test_only_the_missing_points_of_a_path_are_fitted_and_give_what_the_whole_path_gives(
    data: Data, tmp_path: Path
) -> None:
    fewer = OURS.model_copy(update={"search": {"gamma": [1.0], "C": [1.0, 5.0]}})
    journal, run = Journal(tmp_path / "a"), Recorder(data)
    run_search(fewer, run, seed=0, n_jobs=1, journal=journal)
    run.points.clear()
    trials = run_search(OURS, run, seed=0, n_jobs=1, journal=journal)
    assert run.points == [0, 2, 1]  # C = 10 and 1 of gamma 0.1, C = 10 of gamma 1
    assert timeless(trials) == timeless(run_search(OURS, Recorder(data), seed=0, n_jobs=1))
    assert [t.params for t in trials] == grid(OURS.space)


def test_a_failure_of_a_path_counts_only_when_the_path_is_whole(data: Data, tmp_path: Path) -> None:
    bad = OURS.model_copy(update={"search": {"C": [1.0, -1.0]}})  # one bad point fails both
    journal, run = Journal(tmp_path / "a"), Recorder(data)
    failed = run_search(bad, run, seed=0, n_jobs=1, journal=journal)
    assert [str(t.failure).partition(" ")[0] for t in failed] == ["InvalidParameterError:"] * 2
    assert run_search(bad, run, seed=0, n_jobs=1, journal=Journal(tmp_path / "a")) == failed
    assert run.points == [0, 1]
    (tmp_path / "a").write_text((tmp_path / "a").read_text().splitlines(keepends=True)[0])  # killed between two lines
    again = run_search(bad, run, seed=0, n_jobs=1, journal=Journal(tmp_path / "a"))
    assert [replace(trial, seconds=0.0) for trial in again] == [replace(trial, seconds=0.0) for trial in failed]
    assert run.points == [0, 1, 0, 1]


def test_trials_are_in_the_journal_before_they_are_told_and_before_the_next_job(data: Data, tmp_path: Path) -> None:
    def kept() -> int:
        return (tmp_path / "a").read_text().count("\n") if (tmp_path / "a").exists() else 0

    def run(job: Job) -> list[Trial]:
        assert kept() == job.orders[0]
        return run_job(job, data)

    counts: list[int] = []
    run_search(
        SVM, run, seed=0, n_jobs=1, journal=Journal(tmp_path / "a"), on_trials=lambda done, total: counts.append(kept())
    )
    assert counts == [1, 2, 3, 4, 5, 6]


def test_warnings_of_a_fit_are_kept_as_notes(data: Data) -> None:
    method = MethodConfig(estimator="linear_svm", params={"max_iter": 1, "dual": True})
    (trial,) = run_search(method, partial(run_job, data=data), seed=0, n_jobs=1)
    assert any(note.startswith("ConvergenceWarning") for note in trial.notes)


def test_ties_go_to_fewer_basis_functions_then_smaller_c_then_earlier() -> None:
    def trial(order: int, error: float, size: int, c: float) -> Trial:
        return Trial({"C": c}, order, valid_error=error, n_basis=size)

    rows = [trial(0, 0.2, 10, 1.0), trial(1, 0.1, 50, 1.0), trial(2, 0.1, 20, 9.0), trial(3, 0.1, 20, 5.0)]
    assert best([*rows, trial(4, 0.1, 20, 5.0)]) is rows[3]
    assert best(rows[:3]) is rows[2]
    assert best(rows[:2]) is rows[1]


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "sign"), [("balanced_accuracy", -1), ("average_precision", -1)])
@pytest.mark.parametrize("method", [SVM, OURS])
def test_the_objective_chooses(data: Data, method: MethodConfig, objective: str, sign: int) -> None:
    from sklearn.metrics import get_scorer

    found = run_search(method, partial(run_job, data=data), seed=0, n_jobs=1, objective=objective)
    values = []
    for trial in found:
        job = Job(method, (trial.params,), (0,), 0, 1)
        model = fit_point(job, trial.params, data).model
        values.append(sign * get_scorer(objective)(model, data.X_valid, data.y_valid))
    assert [trial.loss for trial in found] == pytest.approx(values)
    assert best(found).loss == pytest.approx(min(values))


def test_the_objective_is_in_the_key_and_rungs_are_ranked_by_it() -> None:
    error, other = (Job(SVM, ({"C": 1.0},), (0,), 0, 1, objective=name) for name in ("error", "roc_auc"))
    assert error.key(0) != other.key(0)
    good, bad = Trial({}, 0, valid_error=0.3, loss=-0.9), Trial({}, 1, valid_error=0.1, loss=-0.8)
    assert best([good, bad]) == good


def test_an_objective_without_a_value_fails_in_one_sentence(data: Data) -> None:
    (trial,) = run_job(Job(MethodConfig(estimator="linear_svm"), ({},), (0,), 0, 1, objective="log_loss"), data)
    assert trial.failure is not None
    assert "search.objective log_loss has no value on the validation rows: the method gives no probabilities" in str(
        trial.failure.sentence
    )


def test_labels_that_are_read_as_they_are_keep_decision_values(data: Data) -> None:
    # the parity of 0 and 1 is 0 and 1: the model itself is asked, which has decision values
    method = MethodConfig(estimator="linear_svm")
    read = replace(data, reading="parity")
    losses = [run_job(Job(method, ({},), (0,), 0, 1, objective="roc_auc"), d)[0].loss for d in (data, read)]
    assert losses[0] == losses[1] is not None
