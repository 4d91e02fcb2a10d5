"""Successive halving: whom it promotes, how many it fits, and what a fit with less than everything is."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ldsvm import memory
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.schema import MethodConfig
from ldsvm.experiment.config.spaces import Point, Range, StrategyConfig
from ldsvm.experiment.search import trial as trial_module
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.halving import Halving, rungs
from ldsvm.experiment.search.journal import Journal
from ldsvm.experiment.search.nested_rows import nested_rows
from ldsvm.experiment.search.search import SearchFailed, best, plan, run_search
from ldsvm.experiment.search.trial import Data, Job, Trial, run_job
from ldsvm.report import tables

Run = Callable[[Job], list[Trial]]
WHOLE = 64  # iterations of a whole fit of the invented landscapes


def method(n: int = 27, factor: int = 3, least: int = 2) -> MethodConfig:
    """One whose points are told apart by C only, 0 to n - 1, with LinearSVC's max_iter as resource."""
    strategy = StrategyConfig(factor=factor, resource="max_iter", min_resources=least)
    values: list[Any] = [float(c) for c in range(n)]
    return MethodConfig(estimator="linear_svm", params={"max_iter": WHOLE}, search={"C": values}, strategy=strategy)


def landscape(error: Callable[[int, int], float], asked: list[tuple[int, int | None]] | None = None) -> Run:
    """A run whose validation error is a function of a point's place and of its resource."""

    def run(job: Job) -> list[Trial]:
        trials = []
        for point, order in zip(job.points, job.orders, strict=True):
            if asked is not None:
                asked.append((order, job.resource))
            trials.append(Trial(dict(point), order, valid_error=error(order, job.resource or WHOLE)))
        return trials

    return run


def backwards(function: Any, work: Sequence[Job]) -> Any:
    return map(function, reversed(work))


@pytest.mark.parametrize(
    ("n", "factor", "least", "most", "expected"),
    [
        (27, 3, 5, math.inf, [(27, 5), (9, 15), (3, 45), (1, None)]),
        (30, 3, 1, 1000, [(30, 1), (10, 3), (4, 9), (2, None)]),
        (27, 3, 5, 46, [(27, 5), (9, 15), (3, 45), (1, None)]),
        (27, 3, 5, 45, [(27, 5), (9, 15), (3, None)]),  # no rung before the last has everything
        (16, 2, 100, 150, [(16, 100), (8, None)]),
        (8, 4, 7, 7, [(8, None)]),
        (2, 3, 1, 100, [(2, None)]),
        (1, 2, 1, 100, [(1, None)]),
        (2, 2, 1, 100, [(2, 1), (1, None)]),
    ],
)
def test_rungs(n: int, factor: int, least: int, most: float, expected: list[tuple[int, int | None]]) -> None:
    assert rungs(n, factor, least, most) == expected


@pytest.mark.parametrize("executor", [map, backwards])
def test_each_rung_holds_the_best_of_the_one_before(executor: Any) -> None:
    rng = np.random.default_rng(0)
    table = rng.random((30, WHOLE + 1))  # unrelated errors at every resource
    asked: list[tuple[int, int | None]] = []
    totals: list[tuple[int, int]] = []
    trials = run_search(
        method(30), landscape(lambda i, r: table[i, r], asked), seed=0, n_jobs=1, executor=executor,
        on_trials=lambda done, total: totals.append((len(done), total)),
    )  # fmt: skip
    # The same in a line a rung: 30, 10, 4, 2 points with 2, 6, 18 and all iterations.
    left, expected = list(range(30)), []
    for amount, keep in ((2, 10), (6, 4), (18, 2), (WHOLE, 0)):
        expected += [(i, None if amount == WHOLE else amount, table[i, amount]) for i in sorted(left)]
        left = sorted(left, key=lambda i: table[i, amount])[:keep]
    assert [(t.order, t.resource, t.valid_error) for t in trials] == expected
    assert Counter(asked) == Counter((t.order, t.resource) for t in trials)
    assert totals == [(i + 1, 46) for i in range(46)]
    assert best(trials).order == min(expected[-2:], key=lambda row: row[2])[0]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 5, 27, 50])
def test_the_best_point_survives_where_every_resource_ranks_alike(n: int, factor: int) -> None:
    for seed in range(10):
        quality = np.random.default_rng(seed).permutation(n) / (2 * n)
        run = landscape(lambda i, r, quality=quality: quality[i] + 0.5 / r)
        found = best(run_search(method(n, factor), run, seed=0, n_jobs=1))
        assert (found.order, found.resource) == (int(np.argmin(quality)), None)


def test_ties_are_promoted_as_the_best_is_chosen() -> None:
    strategy = StrategyConfig(factor=2, resource="max_iter", min_resources=1)
    points: list[Point] = [{"C": 9.0}, {"C": 5.0}, {"C": 1.0}, {"C": 5.0}]
    halving = Halving(len(points), strategy, most=100)
    halving.tell([Trial(points[i], i, valid_error=0.5, n_basis=10 + (i == 2)) for i, _ in halving.ask()])
    assert halving.ask() == [(1, 2), (3, 2)]
    halving.tell([Trial(points[i], i, valid_error=0.5) for i, _ in reversed(halving.ask())])
    assert halving.ask() == [(1, None)]
    halving.tell([Trial(points[i], i, valid_error=0.5) for i, _ in halving.ask()])
    assert halving.ask() == []


def test_a_failed_trial_is_not_promoted_and_one_with_less_is_not_chosen() -> None:
    def run(job: Job) -> list[Trial]:
        (order,) = job.orders
        if order < 20 or job.resource is None:
            return [Trial({}, order, failure=Failure(Kind.FAULT, f"{order}, {job.resource}"))]
        return [Trial({}, order, valid_error=0.1 * order)]

    trials = run_search(method(), run, seed=0, n_jobs=1)
    assert [t.order for t in trials if t.resource == 6] == list(range(20, 27))  # seven where nine had a place
    assert [(t.order, t.resource) for t in trials[-4:]] == [(20, 18), (21, 18), (22, 18), (20, None)]
    with pytest.raises(SearchFailed, match=r"^21 of 38 trials failed, the first: 0, 2$"):
        best(trials)
    better = Trial({}, 9, valid_error=0.0, resource=5)
    assert best([better, Trial({}, 3, valid_error=0.9)]).order == 3


def test_a_rung_that_fails_whole_is_the_last() -> None:
    no = Failure(Kind.FAULT, "no")
    trials = run_search(method(), lambda job: [Trial({}, o, failure=no) for o in job.orders], seed=0, n_jobs=1)
    assert len(trials) == 27
    with pytest.raises(SearchFailed, match=r"^all 27 trials failed, the first: no$"):
        best(trials)


def test_a_halving_of_random_points_is_decided_by_the_seed() -> None:
    wanted = method().model_copy(
        update={
            "search": {"C": Range(log_uniform=[1e-3, 1e3]), "tol": [1e-4, 1e-3]},
            "strategy": StrategyConfig(n_candidates=9, factor=3, resource="max_iter", min_resources=2),
        }
    )
    run = landscape(lambda i, r: 1 / (i + r))
    first, again, other = (run_search(wanted, run, seed=seed, n_jobs=1) for seed in (1, 1, 2))
    assert first == again and len(first) == 9 + 3 + 1
    assert not {t.params["C"] for t in first} & {t.params["C"] for t in other}
    plain = wanted.model_copy(update={"strategy": StrategyConfig(n_candidates=9)})
    assert [t.params for t in run_search(plain, run, seed=1, n_jobs=1)] == [t.params for t in first[:9]]


@pytest.fixture
def data() -> Data:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(130, 2)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, "plus", "minus")
    return Data(X[:100], y[:100], X[100:], y[100:])


def limited(estimator: str, resource: str, least: int, **search: list[Any]) -> MethodConfig:
    strategy = StrategyConfig(factor=2, resource=resource, min_resources=least)
    return MethodConfig(estimator=estimator, search=search, strategy=strategy)


def test_a_rung_of_rows_fits_a_nested_part_and_validates_on_everything(data: Data) -> None:
    from sklearn.svm import SVC

    wanted = limited("gaussian_svm", "n_samples", 30, gamma=[0.1, 1.0, 3.0, 9.0])
    trials = run_search(wanted, partial(run_job, data=data), seed=4, n_jobs=1, rows=100)
    assert [t.resource for t in trials] == [30] * 4 + [60] * 2 + [None]
    for trial in trials:
        rows = nested_rows(data.y, trial.resource or 100, seed=4)
        model = SVC(gamma=trial.params["gamma"], cache_size=500).fit(data.X[rows], data.y[rows])
        assert trial.valid_error == pytest.approx(1 - model.score(data.X_valid, data.y_valid))
        assert trial.n_basis == len(model.support_) <= len(rows)


@pytest.mark.filterwarnings("ignore:strategy.min_resources is 60")
def test_rows_that_are_no_fewer_than_all_are_the_last_rung(data: Data) -> None:
    wanted = limited("gaussian_svm", "n_samples", 60, gamma=[0.1, 1.0, 3.0, 9.0])
    for rows, resources in ((100, [60] * 4 + [None] * 2), (60, [None] * 4), (None, [60] * 4 + [120] * 2 + [None])):
        trials = run_search(wanted, partial(run_job, data=data), seed=4, n_jobs=1, rows=rows)
        assert [t.resource for t in trials] == resources
    assert data.subset(100, 0) is data


@pytest.mark.slow
def test_a_rung_of_iterations_is_a_fit_with_so_many_and_paths_stay_together(data: Data) -> None:
    wanted = limited("ldsvm", "max_iter", 2, gamma=[0.1, 1.0], C=[1.0, 10.0]).model_copy(
        update={"params": {"n_basis": 10, "max_iter": 9}}
    )
    work: list[Job] = []

    def run(job: Job) -> list[Trial]:
        work.append(job)
        return run_job(job, data)

    trials = run_search(wanted, run, seed=0, n_jobs=1)
    assert [t.resource for t in trials] == [2] * 4 + [4] * 2 + [None]
    assert [len(job.points) for job in work[:2]] == [2, 2]
    assert all(set(t.params) == {"gamma", "C"} for t in trials)
    for trial in trials:
        fixed = wanted.model_copy(update={"params": {"n_basis": 10, "max_iter": trial.resource or 9}})
        (alone,) = run_job(Job(fixed, (trial.params,), (0,), 0, 1), data)
        assert (trial.valid_error, len(trial.history)) == (alone.valid_error, len(alone.history))
    assert max(len(t.history) for t in trials if t.resource == 2) == 3  # the start, and two iterations


def test_too_few_rows_for_the_classes_is_a_row_with_that_reason(data: Data) -> None:
    wanted = limited("gaussian_svm", "n_samples", 3, gamma=[0.1, 1.0])
    trials = run_search(wanted, partial(run_job, data=data), seed=0, n_jobs=1, rows=100)
    assert [str(t.failure) for t in trials] == [
        "ValueError: n_samples=3 leaves fewer than two rows for each of 2 classes"
    ] * 2


def test_memory_is_estimated_for_the_rows_of_the_rung(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = limited("kpca_nn", "n_samples", 40, reduce__gamma=[0.1, 1.0])
    monkeypatch.setattr(memory, "available", lambda: 8 * 90 * 90)
    trials = run_search(wanted, partial(run_job, data=data), seed=0, n_jobs=1, rows=100)
    assert [t.failure is None for t in trials] == [True, True, False]
    assert trials[2].failure is not None and trials[2].failure.kind is Kind.NOT_RUN
    assert trials[2].failure.sentence.startswith("not run: needs")


def test_sparse_rows_can_be_taken_in_part(data: Data) -> None:
    thin = replace(data, X=sparse.csr_matrix(data.X), X_valid=sparse.csr_matrix(data.X_valid))
    wanted = limited("linear_svm", "n_samples", 30, C=[0.1, 1.0])
    trials = run_search(wanted, partial(run_job, data=thin), seed=0, n_jobs=1, rows=100)
    assert [t.failure for t in trials] == [None] * 3


def test_parts_of_the_rows_are_nested_stratified_and_drawn_by_the_seed() -> None:
    y = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c", "rare", "once"], [500, 300, 195, 4, 1]))
    smaller: set[int] = set()
    for n in (10, 11, 50, 200, 999, 1000):
        rows = nested_rows(y, n, seed=2)
        assert len(rows) == n and list(rows) == sorted(set(rows.tolist()))
        assert smaller <= set(rows.tolist())
        smaller = set(rows.tolist())
        counts = Counter(y[rows].tolist())
        assert counts["rare"] >= 2 and counts["once"] == 1
        if n >= 50:
            assert all(abs(counts[c] - n * share) <= 3 for c, share in (("a", 0.5), ("b", 0.3), ("c", 0.195)))
    assert nested_rows(y, 50, seed=2).tolist() != nested_rows(y, 50, seed=3).tolist()
    with pytest.raises(ValueError, match="n_samples=9 leaves fewer than two rows for each of 5 classes"):
        nested_rows(y, 9, seed=0)


@pytest.mark.slow
def test_keys_of_whole_fits_are_what_they_always_were_and_a_resource_is_part_of_the_key() -> None:
    wanted = method(1)
    facts = [
        trial_module.LAYOUT, trial_module.code(), "linear_svm", {"max_iter": WHOLE, "C": 1.0}, 3, "place",
    ]  # fmt: skip
    whole = Job(wanted, ({"C": 1.0},), (5,), 3, 1)
    assert whole.key(5, "place") == hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    rows = wanted.model_copy(update={"strategy": StrategyConfig(factor=2, resource="n_samples", min_resources=8)})
    less = [replace(whole, resource=8), replace(whole, resource=16), replace(whole, resource=8, method=rows)]
    assert len({job.key(5, "place") for job in [whole, *less]}) == 4
    steps = MethodConfig(estimator="linear_svm", params={"max_iter": 8, "C": 1.0})
    assert less[0].key(5, "place") == Job(steps, ({},), (0,), 3, 1).key(0, "place")  # the same fit


def test_a_trial_that_another_search_left_has_the_resource_it_has_here(data: Data) -> None:
    halved = limited("linear_svm", "max_iter", 5, C=[0.1, 1.0])
    plain = MethodConfig(estimator="linear_svm", params={"max_iter": 5}, search={"C": [0.1, 1.0]})
    for first, then in ((halved, plain), (plain, halved)):
        journal = Journal(None)
        run_search(first, partial(run_job, data=data), seed=0, n_jobs=1, journal=journal)
        left: list[tuple[int, int | None]] = []
        trials = run_search(then, landscape(lambda i, r: 0.0, left), seed=0, n_jobs=1, journal=journal)
        assert [t.resource for t in trials] == ([None] * 2 if then is plain else [5, 5, None])
        assert [resource for _, resource in left] == ([] if then is plain else [None])


def test_the_table_of_trials_shows_a_resource_only_where_one_was_limited() -> None:
    notes = ["ConvergenceWarning: stopped at max_iter", "UserWarning: else"]
    trials = [Trial({"C": 1.0}, 0, 0.1, resource=1500, notes=notes), Trial({"C": 1.0}, 0, 0.2, notes=notes)]
    header, rows = tables.trial_rows(Result("p", "m", "linear_svm", trials))
    shown = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["resource"], row["remark"]) for row in shown] == [("1,500", notes[1]), ("all", "; ".join(notes))]
    header, rows = tables.trial_rows(Result("p", "m", "linear_svm", trials[1:]))
    assert "resource" not in header and len(rows[0]) == len(header)


def test_rows_that_are_too_few_to_halve_are_told() -> None:
    strategy = {"factor": 3, "resource": "n_samples", "min_resources": 500}
    method = MethodConfig(estimator="linear_svm", search={"C": [1.0, 2.0, 3.0]}, strategy=strategy)
    with pytest.warns(UserWarning, match=r"min_resources is 500, but there are only 341 training rows"):
        assert [resource for _, resource in plan(method, seed=0, rows=341)[1].ask()] == [None] * 3
    assert [resource for _, resource in plan(method, seed=0, rows=5000)[1].ask()] == [500] * 3
