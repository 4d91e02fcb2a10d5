"""One method against the clock and the memory: what goes wrong is a row with its reason, and the next one is served."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ldsvm import LDSVMClassifier, memory
from ldsvm.blocks.connection import ClusterFailed
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare.judge import is_cold
from ldsvm.experiment.compare.record import compete
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config, MethodConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.trial import Job, Trial, fit_again, fit_point, training_data
from ldsvm.experiment.search.worker import Here, Runner, Worker
from ldsvm.experiment.storing import dumps, loads
from ldsvm.report.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
METHODS = (
    "methods={ours: {estimator: ldsvm, params: {n_basis: 20, gamma: 0.1, max_iter: 3}, search: {C: [1, 10]}},"
    " kernels: {estimator: kpca_nn}, boosting: {estimator: hist_gradient_boosting},"
    " machines: {estimator: gaussian_svm_ovr, params: {estimator__gamma: 0.1}, search: {estimator__C: [1, 10]}},"
    " odd: {estimator: nearest_neighbour, search: {n_neighbors: [1, 500]}}}"
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    sizes = "split={kind: stratified, train: 300, validation: 100, test: 200}"
    given = [
        f"paths.cache={tmp_path / 'cache'}",
        f"paths.runs={tmp_path / 'default'}",
        METHODS,
        sizes,
        "judge.repeats=1",
    ]
    return load_config("conf/digits.yaml", given, root=ROOT)


@pytest.fixture
def data(config: Config) -> Prepared:
    (found,) = preparation.prepare(config)
    return found


def outcome(config: Config, data: Prepared, name: str, runner: Runner) -> Result:
    return compete(config, data, config.problems[0], name, runner, lambda done, total: None, lambda row: None)[0]


@pytest.mark.slow
def test_a_method_is_searched_judged_and_timed(config: Config, data: Prepared) -> None:
    result, judged = compete(
        config, data, config.problems[0], "ours", Here(), lambda done, total: None, lambda row: None
    )
    assert judged is not None and result.score is not None and result.failure is None
    X, y = data.arrays("test", "original")
    assert result.score.error == pytest.approx(np.mean(judged.model.predict(X) != y))
    assert judged.latent.shape == (300, result.n_latent)
    assert (result.map, result.data, len(result.trials)) == ("rbf", data.digest, 2)
    assert min(result.train_s or 0, result.train_alone_s or 0, result.search_s or 0) > 0
    assert result.search_s is not None and result.search_s > sum(trial.train_s for trial in result.trials)


@pytest.mark.slow
def test_a_method_may_learn_finer_labels_and_is_judged_by_the_problems(config: Config, data: Prepared) -> None:
    digits = config.methods["ours"].model_copy(update={"labels": "original"})
    parity = config.problems[0].model_copy(update={"labels": "parity"})
    both = {"ours": digits, "kernels": config.methods["kernels"].model_copy(update={"labels": "original"})}
    changed = config.model_copy(update={"methods": {**config.methods, **both}, "problems": [parity]})
    result, judged = compete(changed, data, parity, "ours", Here(), lambda done, total: None, lambda row: None)
    as_digits, other = compete(config, data, config.problems[0], "ours", Here(), lambda *_: None, lambda row: None)
    assert judged is not None and other is not None and result.score is not None and as_digits.score is not None
    X, y = data.arrays("test", "original")
    assert np.array_equal(judged.model.predict(X), other.model.predict(X) % 2)  # the same fit, kept as it answers here
    assert np.array_equal(judged.model.transform(X), other.model.transform(X))
    assert max(t.valid_error or 1 for t in result.trials) < min(t.valid_error or 0 for t in as_digits.trials)
    assert result.score.error == np.mean(judged.model.predict(X) != y % 2) < as_digits.score.error
    assert (result.score.classes, len(result.score.confusion)) == ([0, 1], 2)
    X, y = data.arrays("validation", "original")
    assert result.valid_error == np.mean(judged.model.predict(X) != y % 2)
    kept = loads(dumps(judged.model))
    assert np.array_equal(kept.predict(X), judged.model.predict(X)) and kept.classes_.tolist() == [0, 1]
    one_shot = outcome(changed, data, "kernels", Here())
    assert one_shot.score is not None and one_shot.score.classes == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("ours", (300, 9)), ("kernels", (300, 2)), ("odd", None)])
def test_latent_spaces_that_can_be_looked_at_are_kept(
    config: Config, data: Prepared, name: str, shape: tuple[int, int] | None
) -> None:
    _, judged = compete(config, data, config.problems[0], name, Here(), lambda *_: None, lambda row: None)
    assert judged is not None
    assert (judged.latent is None) if shape is None else (judged.latent.shape == shape)
    assert (judged.plane is None) if name != "ours" else (judged.plane.shape == (300, 2))


@pytest.mark.slow
def test_reductions_to_more_than_two_dimensions_are_not(config: Config, data: Prepared) -> None:
    wide = config.methods["kernels"].model_copy(update={"params": {"reduce__n_components": 3}})
    changed = config.model_copy(update={"methods": {"kernels": wide}})
    _, judged = compete(changed, data, config.problems[0], "kernels", Here(), lambda *_: None, lambda row: None)
    assert judged is not None and judged.latent is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ours", "machines", "reduced"])
def test_the_last_fit_may_have_training_and_validation_rows_together(config: Config, data: Prepared, name: str) -> None:
    reduced = MethodConfig(
        estimator="pca_ldsvm", params={"reduce__n_components": 5, "classify__max_iter": 3, "classify__n_basis": 20}
    )
    config = config.model_copy(update={"methods": {**config.methods, "reduced": reduced}})
    again = config.model_copy(update={"judge": config.judge.model_copy(update={"refit": True})})
    without, with_it = (
        compete(one, data, config.problems[0], name, Here(), lambda *_: None, lambda row: None)[0]
        for one in (config, again)
    )
    assert with_it.score is not None and without.score is not None
    assert with_it.score.confusion != without.score.confusion
    # What chose, and what the course of the training says, is of the fit to the training rows.
    same = ("valid_error", "params", "best_iter", "stop_reason", "notes")
    assert [getattr(with_it, key) for key in same] == [getattr(without, key) for key in same]
    # By scikit-learn's means alone, from the same parameters:
    method, point = config.methods[name], dict(with_it.params)
    if with_it.best_iter is not None:
        step = "" if name == "ours" else "classify__"
        point |= {f"{step}max_iter": max(1, with_it.best_iter), f"{step}mu_max": 1e6}
    parts = [data.arrays(part, "original") for part in ("train", "validation")]
    X, y = (np.concatenate(two) for two in zip(*parts, strict=True))
    X_test, y_test = data.arrays("test", "original")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it ends where the first fit was best
        model = method.make(point, seed=data.seed, n_jobs=config.n_jobs).fit(X, y)
    assert with_it.score.n_wrong == int(np.sum(model.predict(X_test) != y_test))


@pytest.mark.slow
def test_a_last_fit_keeps_the_number_of_basis_functions_that_the_first_found(config: Config, data: Prepared) -> None:
    auto = MethodConfig(estimator="ldsvm", params={"n_basis": "auto", "gamma": 0.1, "max_iter": 2})
    job, rows = Job(auto, ({},), (0,), 0, 1), training_data(data, "original")
    first = fit_point(job, {}, rows)
    assert fit_again(job, first, rows).model.n_basis_ == first.model.n_basis_


@pytest.mark.slow
def test_a_last_fit_does_as_many_iterations_as_the_first_kept(config: Config, data: Prepared) -> None:
    method = MethodConfig(estimator="ldsvm", params={"n_basis": 20, "gamma": 0.1, "C": 0.3, "tol": 0.1})
    job, rows = Job(method, ({},), (0,), 0, 1), training_data(data, "original")
    first, said = fit_point(job, {}, rows), []
    news = Progress(lambda text, share: said.append(text), 0, 1)
    assert LDSVMClassifier(**method.params, random_state=0).fit(rows.X, rows.y).n_iter_ < first.model.best_iter_
    assert fit_again(job, first, rows, news.step).model.n_iter_ == first.model.best_iter_
    assert said[-1] == f"first trials; iteration {first.model.best_iter_}"  # no rows are left to validate on


def test_trials_have_their_own_number_of_threads(config: Config, data: Prepared) -> None:
    seen: list[int] = []

    def executor(function: Any, jobs: Sequence[Job]) -> Iterator[list[Trial]]:
        seen.extend(job.n_jobs for job in jobs)
        return map(function, jobs)

    changed = config.model_copy(update={"n_jobs": 2, "search": config.search.model_copy(update={"n_jobs": 1})})
    result, _ = compete(changed, data, config.problems[0], "odd", Here(), lambda *_: None, lambda row: None, executor)
    assert (seen, result.failure, config.trial_jobs) == ([1, 1], None, config.n_jobs)


@pytest.mark.slow
def test_basis_functions_of_machines_are_counted_once_and_summed(config: Config, data: Prepared) -> None:
    from sklearn.svm import SVC

    result = outcome(config, data, "machines", Here())
    assert result.score is not None
    X, y = data.arrays("train", "original")
    C = result.params["estimator__C"]
    machines = [SVC(gamma=0.1, C=C).fit(X, y == k).support_ for k in range(10)]
    assert result.score.n_basis_sum == sum(map(len, machines))
    assert result.score.n_basis == len(set(np.concatenate(machines)))


def test_too_little_memory_is_told_before_anything_is_allocated(
    config: Config, data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    result = outcome(config, data, "kernels", Here())
    assert result.failure is not None and result.failure.kind is Kind.NOT_RUN
    assert result.failure.sentence.startswith("not run: needs ")
    assert result.score is None


def test_a_failed_point_is_no_failed_method(config: Config, data: Prepared) -> None:
    result = outcome(config, data, "odd", Here())
    assert result.failure is None and result.params == {"n_neighbors": 1}
    failure = result.trials[1].failure
    assert failure is not None and failure.kind is Kind.FAULT
    assert failure.sentence.startswith("ValueError: Expected n_neighbors")


@pytest.mark.slow
def test_a_second_search_takes_its_trials_from_the_journal(
    config: Config, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = config.model_copy(update={"paths": config.paths.model_copy(update={"runs": tmp_path / "runs"})})
    older = tmp_path / "runs" / "journal" / f"{kept.name}.jsonl"
    older.parent.mkdir(parents=True)
    older.write_text('{"key": "a", "trial": {"failure": "ValueError: x"}}\n')  # of an older form, which is no damage
    first = outcome(kept, data, "machines", Here())
    monkeypatch.setattr("ldsvm.experiment.search.trial.run_job", lambda *_: pytest.fail("fitted again"))
    again = outcome(kept, data, "machines", Here())
    assert (again.trials, again.search_s, again.params) == (first.trials, first.search_s, first.params)
    anew = kept.model_copy(update={"search": kept.search.model_copy(update={"resume": False})})
    with pytest.raises(pytest.fail.Exception, match="fitted again"):
        outcome(anew, data, "machines", Here())


@pytest.mark.slow
def test_without_ray_trials_run_here_or_the_file_says_fail(config: Config, data: Prepared) -> None:
    def gone(*_: object) -> list[list[Trial]]:
        raise ClusterFailed("Ray did not start.")

    arguments = (config.problems[0], "machines", Here(), lambda done, total: None, lambda row: None)
    with pytest.warns(UserWarning, match=r"^Ray did not start\. Trials run one after the other instead\.$"):
        result, _ = compete(config, data, *arguments, executor=gone)
    assert result.failure is None
    strict = config.model_copy(update={"search": config.search.model_copy(update={"without_ray": "fail"})})
    with pytest.raises(ClusterFailed):
        compete(strict, data, *arguments, executor=gone)


@pytest.mark.slow
def test_a_fit_over_its_time_is_a_row_and_the_next_method_is_served(config: Config, data: Prepared) -> None:
    short = config.model_copy(update={"limits": config.limits.model_copy(update={"fit_s": 0.01})})
    with Worker() as worker:
        late = Failure(Kind.TIME_LIMIT, "stopped: time limit of 0.01 s")
        assert outcome(short, data, "boosting", worker).failure == late
        there = outcome(config, data, "machines", worker)
    here = outcome(config, data, "machines", Here())
    assert there.score is not None and here.score is not None
    assert (there.score.confusion, there.params) == (here.score.confusion, here.params)


def test_kernels_are_said_to_be_compiled_only_where_that_is_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("ldsvm.experiment.compare.judge.solvers.__file__", str(tmp_path / "__init__.py"))
    assert is_cold()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "box_qp._solve_rows-244.py27.nbi").touch()  # of another Python
    assert is_cold()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not is_cold()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    (tmp_path / "__pycache__" / f"a.f-1.py{sys.version_info.major}{sys.version_info.minor}.nbi").touch()
    assert not is_cold()
