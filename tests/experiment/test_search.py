"""Grids, jobs, ties and failures of the search."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from ldsvm.experiment.config import MethodConfig
from ldsvm.experiment.search import SearchFailed, best, grid, jobs, run_search
from ldsvm.experiment.trial import Data, Job, Trial, run_job

SVM = MethodConfig(estimator="gaussian_svm", search={"gamma": [0.1, 1.0], "C": [1.0, 10.0, 100.0]})
OURS = MethodConfig(estimator="ldsvm", params={"n_basis": 10}, search={"C": [10.0, 1.0], "gamma": [0.1, 1.0]})


@pytest.fixture
def data() -> Data:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return Data(X[:40], y[:40], X[40:], y[40:])


def test_grid_is_every_combination_in_the_order_of_the_file() -> None:
    assert [(p["gamma"], p["C"]) for p in grid(SVM)] == [
        (0.1, 1.0), (0.1, 10.0), (0.1, 100.0), (1.0, 1.0), (1.0, 10.0), (1.0, 100.0),
    ]  # fmt: skip
    assert grid(MethodConfig(estimator="linear_svm")) == [{}]


def test_points_that_differ_only_in_c_share_a_job_where_the_method_can_share() -> None:
    assert [len(job.points) for job in jobs(SVM, seed=0, n_jobs=1)] == [1] * 6
    ours = jobs(OURS, seed=0, n_jobs=1)
    assert [[(p["gamma"], p["C"]) for p in job.points] for job in ours] == [
        [(0.1, 10.0), (0.1, 1.0)],
        [(1.0, 10.0), (1.0, 1.0)],
    ]
    assert [job.orders for job in ours] == [(0, 2), (1, 3)]


def test_any_executor_gives_the_same_trials_in_grid_order(data: Data) -> None:
    def backwards(function: Any, work: Any) -> Any:
        return map(function, reversed(work))

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
    assert failed.failure.startswith("ValueError: Expected n_neighbors <= n_samples_fit")
    assert best([good, failed]) is good
    with pytest.raises(SearchFailed, match=r"^ValueError: Expected n_neighbors"):
        best([failed])
    with pytest.raises(SearchFailed, match=r"^all 2 trials failed, the first: ValueError"):
        best([failed, failed])


def test_a_path_of_ours_equals_single_fits_and_reports_its_iterations(data: Data) -> None:
    seen: list[dict[str, Any]] = []
    trials = run_search(OURS, partial(run_job, data=data, on_step=seen.append), seed=0, n_jobs=1)
    single = [run_job(Job(OURS, (t.params,), (0,), 0, 1), data)[0] for t in trials]
    assert [t.params for t in trials] == grid(OURS)
    assert [t.valid_error for t in trials] == [t.valid_error for t in single]
    assert [len(t.history) for t in trials] == [len(t.history) for t in single]
    assert len(seen) == sum(len(t.history) for t in trials)
    assert {row["C"] for row in seen} == {1.0, 10.0}


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
