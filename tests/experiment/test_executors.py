"""A method that is fitted over blocks of rows: from the file to the judged result, here and on Ray."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ldsvm.blocks.connection import ClusterFailed
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare.record import compete
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.executors import ExecutorConfig
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.search import jobs, plan
from ldsvm.experiment.search.trial import RESUMED, Job, fit_again, fit_point, run_job, training_data
from ldsvm.experiment.search.worker import Here, Runner, Worker
from ldsvm.methods.memory import NotRun
from ldsvm.tracking.results import _workers

ROOT = Path(__file__).resolve().parents[2]
METHOD = "{estimator: ldsvm, params: {n_basis: 30, gamma: 0.1, centers: random, max_iter: 6}, search: {C: [1, 10]}}"


def config(place: Path, executor: str = "null", *overrides: str) -> Config:
    given = [
        f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}", f"methods={{ours: {METHOD}}}",
        f"methods.ours.executor={executor}", "split={kind: stratified, train: 300, validation: 100, test: 200}",
        "judge.repeats=1", "n_jobs=1", *overrides,
    ]  # fmt: skip
    return load_config("conf/digits.yaml", given, root=ROOT)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture(scope="module")
def data(place: Path) -> Prepared:
    (found,) = preparation.prepare(config(place))
    return found


def judged(found: Config, data: Prepared, runner: Runner, news: list[Any] | None = None) -> Result:
    tell = [].append if news is None else news.append
    return compete(found, data, found.problems[0], "ours", runner, lambda done, total: None, tell)[0]


def one(found: Config, seed: int = 0) -> Job:
    method = found.methods["ours"]
    points, halving = plan(method, seed=seed)
    return jobs(method, points, halving.ask(), seed=seed, n_jobs=1)[0]


WRONG = {
    "executor={kind: spark}": ["executor.kind", "'spark'", "'serial', 'threads' or 'ray'"],
    "executor={kind: serial, workers: 2}": ["executor", "allowed: workers with kind threads or ray"],
    "executor={kind: threads, address: auto}": ["executor", "allowed: address and threads with kind ray"],
    "executor={kind: serial, threads: 2}": ["executor", "allowed: address and threads with kind ray"],
    "executor={kind: serial, rows: 0}": ["executor.rows", "greater than or equal to 1"],
    "executor={kind: serial, row: 9}": ["executor.row", '"rows"'],
    "estimator=pca_ldsvm": ["methods.ours", "allowed: executor with the estimator ldsvm only"],
    "params.early_stopping=true": ["methods.ours", "early_stopping=True needs all rows in one array"],
    "params.n_basis=auto": ["methods.ours", "n_basis='auto' needs all rows", "'scale' and whole numbers"],
    "search.init=[pca, simplex]": ["methods.ours", "init='pca' needs all rows", "'simplex' and 'random'"],
    "strategy={factor: 2, resource: n_samples, min_resources: 50}": ["strategy.resource", '"n_samples"', "max_iter"],
}


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_what_blocks_of_rows_cannot_have_is_one_sentence(tmp_path: Path, change: str) -> None:
    more = ["methods.ours.params={}", "methods.ours.search={}"] if change.startswith("estimator") else []
    kind = "ray" if change.startswith("strategy") else "serial"
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, f"{{kind: {kind}}}", *more, f"methods.ours.{change}")
    assert "\n" not in str(caught.value)
    for part in WRONG[change]:
        assert part in str(caught.value)


def test_a_search_may_begin_with_few_rows_in_blocks_here(tmp_path: Path, data: Prepared) -> None:
    strategy = "methods.ours.strategy={factor: 2, resource: n_samples, min_resources: 50}"
    job = replace(one(config(tmp_path, "{kind: serial, rows: 20}", strategy)), resource=50)
    arrays = training_data(data, "original")
    [few], [same] = (run_job(each, rows) for each, rows in ((job, arrays), (job, arrays.subset(50, job.seed))))
    assert few.failure is None and few.valid_error == same.valid_error
    assert few.history[-1]["nested"] == same.history[-1]["nested"]


@pytest.mark.slow
def test_a_last_fit_over_blocks_has_the_validation_rows_too(tmp_path: Path, data: Prepared) -> None:
    arrays, models = training_data(data, "original"), []
    for executor in ("null", "{kind: serial, rows: 90}"):  # blocks of 90, 90, 90, 30, and 90, 10 of the validation
        job = one(config(tmp_path, executor))
        job = replace(job, points=job.points[:1], orders=(0,))
        models.append(fit_again(job, fit_point(job, job.points[0], arrays), arrays).model)
    assert [len(model.history_) for model in models] == [models[0].history_[-1]["iteration"] + 1] * 2
    nested = [model.history_[-1]["nested"] for model in models]
    assert nested[1] == pytest.approx(nested[0], rel=1e-5)  # the same sums in another order


@pytest.mark.parametrize("search", ["search.workers=2", "search.ray_address=head:6379"])
def test_ray_fits_on_ray_or_searches_on_it(tmp_path: Path, search: str) -> None:
    assert config(tmp_path, "{kind: threads, workers: 3}", search).methods["ours"].executor is not None
    with pytest.raises(ConfigError, match=r'ours\.executor\.kind is "ray" while the trials already run on Ray'):
        config(tmp_path, "{kind: ray}", search)


def test_prepared_rows_travel_as_the_name_of_their_file_and_row_numbers(place: Path, data: Prepared) -> None:
    arrays = training_data(data, "parity")
    rows = ExecutorConfig(kind="ray", rows=120).blocks(arrays.X, arrays.y)
    assert [block.rows for block in rows.blocks] == [120, 120, 60]
    assert (
        max(len(pickle.dumps(block)) for block in rows.blocks) < 120 * arrays.y.itemsize + 1000 < arrays.X[:120].nbytes
    )
    X, y = (np.concatenate(parts) for parts in zip(*(rows.read(i) for i in range(3)), strict=True))
    assert np.array_equal(X, arrays.X) and np.array_equal(y, arrays.y) and set(y) == {0, 1}
    as_they_are = ExecutorConfig(kind="serial", rows=120).blocks(np.array(arrays.X), arrays.y)
    assert [len(block.read()[1]) for block in as_they_are.blocks] == [120, 120, 60]


def test_sparse_features_are_a_row_with_that_reason(place: Path, data: Prepared) -> None:
    arrays = training_data(data, "original")
    (trial,) = run_job(one(config(place, "{kind: serial}")), replace(arrays, X=csr_matrix(arrays.X)))
    assert trial.failure is not None and trial.failure.kind is Kind.NOT_RUN
    assert trial.failure.sentence.startswith("not run: sparse features cannot be divided")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["{kind: serial, rows: 120}", "{kind: threads, workers: 2, rows: 50}"])
def test_it_is_searched_judged_and_timed_as_in_memory(place: Path, data: Prepared, executor: str) -> None:
    news: list[dict[str, Any]] = []
    found = config(place, executor)
    result, whole = judged(found, data, Here(), news), judged(config(place), data, Here())
    assert result.score is not None and whole.score is not None and result.failure is None
    assert result.score.error == whole.score.error and result.valid_error == whole.valid_error
    assert [len(trial.history) for trial in result.trials] == [len(trial.history) for trial in whole.trials]
    assert result.history[-1]["nested"] == pytest.approx(whole.history[-1]["nested"], rel=1e-3)
    assert (result.train_alone_s == result.train_s) is ("serial" in executor)  # there it is on one thread anyway
    assert news[0] == {"doing": f"reading the rows, blocks: {3 if 'serial' in executor else 6}"}
    assert {row["iteration"] for row in news if "iteration" in row} == set(range(7))
    assert list(found.results.glob("checkpoint*")) == []


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_inside_a_fit(tmp_path: Path, data: Prepared) -> None:
    def killed(row: dict[str, Any]) -> None:
        seen.append(row)
        if row.get("iteration") == 4:
            raise KeyboardInterrupt

    seen: list[dict[str, Any]] = []
    found = config(tmp_path, "{kind: serial, rows: 120}")
    with pytest.raises(KeyboardInterrupt):
        compete(found, data, found.problems[0], "ours", Here(), lambda done, total: None, killed)
    assert len(list(found.results.glob("checkpoint-*.npz"))) == 1
    news: list[dict[str, Any]] = []
    again, whole = judged(found, data, Here(), news), judged(config(tmp_path / "anew"), data, Here())
    assert next(row["iteration"] for row in news if "iteration" in row) == 4
    assert [RESUMED in trial.notes for trial in again.trials] == [True, False] and RESUMED not in again.notes
    assert again.score is not None and whole.score is not None and again.score.error == whole.score.error
    assert [row["iteration"] for row in again.trials[0].history] == list(range(7))
    assert list(found.results.glob("checkpoint*")) == []


@pytest.mark.parametrize("override", ["search.resume=false", "refresh=true"])
def test_nothing_is_kept_where_nothing_is_to_be_gone_on_with(tmp_path: Path, override: str) -> None:
    assert config(tmp_path, "{kind: serial}", override).checkpoints is None


def test_each_point_is_a_job_and_its_trial_depends_on_the_blocks_but_not_on_the_place(tmp_path: Path) -> None:
    executors = ("null", "{kind: ray}", "{kind: ray, address: auto}", "{kind: ray, rows: 9}")
    points = [one(config(tmp_path, executor)) for executor in executors]
    assert [len(job.points) for job in points] == [2, 1, 1, 1]
    memory, here, there, small = (job.key(job.orders[0]) for job in points)
    assert here == there and len({memory, here, small}) == 3


@pytest.mark.slow
def test_memory_is_estimated_for_a_block(tmp_path: Path, data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "ldsvm.experiment.search.trial.check_memory", lambda name, params, n, m, d, available: asked.append(n)
    )
    for executor in ("null", "{kind: serial, rows: 120}"):
        fit_point(one(config(tmp_path, executor)), {"C": 1.0}, training_data(data, "original"))
    assert asked == [300, 120]


@pytest.mark.slow
def test_rows_that_are_too_many_for_one_thread_here_have_no_such_time(
    place: Path, data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*args: Any, available: int | None) -> None:
        calls.append(args)
        if len(calls) == 2:  # the one that is judged was the first
            raise NotRun("not run: needs 9 GiB")

    calls: list[Any] = []
    found = config(place, "{kind: threads, rows: 50}", "methods.ours.search={}")
    judged(found, data, Here())  # the search is in the journal from now on
    monkeypatch.setattr("ldsvm.experiment.search.trial.check_memory", check)
    result = judged(found, data, Here())
    assert result.failure is None and result.train_s is not None and result.train_alone_s is None


def test_rows_are_kept_in_half_of_what_a_fit_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldsvm.experiment.config.executors.available", lambda: 3 * 2**20)
    made = [ExecutorConfig(kind=kind).make(print) for kind in ("serial", "threads", "ray")]
    assert [executor.memory for executor in made] == [3 * 2**19, 3 * 2**19, None]
    assert ExecutorConfig(kind="ray", memory_mib=0.5).make(print).memory == 2**19


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


@pytest.mark.server
@pytest.mark.timeout(300)
def test_on_ray_it_is_the_same_and_one_ray_is_started_for_all_fits(
    place: Path, data: Prepared, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tempfile.mkdtemp(prefix="t")  # sockets have short names only
    monkeypatch.setenv("TMPDIR", short)
    monkeypatch.setattr(tempfile, "tempdir", None)
    folders: set[str] = set()
    look = lambda row: folders.update(p.name for p in Path(short).glob("ray-*"))  # noqa: E731
    point = ("methods.ours.search={}", "methods.ours.params.C=1", "limits.fit_mib=50")  # which is of fits here
    found = config(place, "{kind: ray, workers: 2, rows: 120}", *point)
    result = compete(found, data, found.problems[0], "ours", worker, lambda done, total: None, look)[0]
    whole = judged(config(place, "null", *point), data, Here())
    assert result.score is not None and whole.score is not None and result.failure is None
    assert result.score.error == whole.score.error and result.valid_error == whole.valid_error
    assert all(row["bytes_down"] > 0 and row["bytes_up"] > 0 for row in result.history)
    assert result.peak_mib is None and result.train_s != result.train_alone_s
    assert len(folders) == 1 and list(Path(short).iterdir()) == []
    shutil.rmtree(short)


@pytest.mark.slow
def test_a_ray_that_cannot_be_had_is_the_reason(place: Path, data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise ClusterFailed("Ray is not installed.")

    monkeypatch.setattr("ldsvm.blocks.connection.Connection.open", refuse)
    for executor, search in (("{kind: ray}", []), ("{kind: ray, address: 'localhost:9'}", ["methods.ours.search={}"])):
        result = judged(config(place, executor, *search, "search.resume=false"), data, Here())
        assert result.failure == Failure(Kind.ACCIDENT, "Ray is not installed.")


def test_what_moved_and_who_waited_is_told_in_a_few_numbers() -> None:
    assert ExecutorConfig(kind="ray", address="a:1", workers=4, rows=100).facts(250) == {
        "executor": "ray", "workers": 3, "executor_address": "a:1", "blocks": 3, "rows_per_block": 100,
    }  # fmt: skip
    assert ExecutorConfig(kind="serial").facts(250)["workers"] == 1
    assert _workers([]) == {}
    quick = {"bytes_down": 0, "bytes_up": 0, "seconds_slowest": 0.0, "seconds_mean": 0.0, "lost": 0}
    assert _workers([quick])["straggler_ratio"] is None
