"""What flows share while they run in Prefect: the processes that fit, the tasks, and the loop over methods.

Tasks hand over names, paths and digests, never arrays. Files that a task writes are named by a digest of all that they
depend on, so that a later run of any flow finds them again (unless `refresh=true`). Prefect retries only the tasks that
talk to the tracking store, which another process may have locked. Other work would fail the same way again, or has its
own retries, see `ldsvm.experiment.search.parallel`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Completed

from flows import ROOT
from flows._cli import key, note, say, working
from ldsvm.datasets.summary import sentences
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.judge import is_cold, warm
from ldsvm.experiment.compare.outcome import percent, standing
from ldsvm.experiment.compare.results import MethodFailed
from ldsvm.experiment.config.load import ConfigError, as_yaml
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.experiment.search.worker import Worker
from ldsvm.methods import lookup
from ldsvm.report import build, publish, tables
from ldsvm.report.marks import escape
from ldsvm.report.progress import Progress
from ldsvm.report.publish import FACTS, Published, Runs
from ldsvm.tracking import results
from ldsvm.tracking.client import Run, Tracker, TrackingFailed

WARM_SECONDS = 600.0
COMPILING = "compile the kernels (about a minute, once per machine)"


@dataclass
class _Workers:
    """The processes that fit models for this one.

    worker: fits and measures times. cluster: fits trials in parallel; None when one is fitted at a time. warm: whether
    the worker has loaded our compiled kernels.
    """

    worker: Worker
    cluster: Cluster | None = None
    warm: bool = False


WORKERS = _Workers(Worker())  # its process starts with the first fit


@contextmanager
def workers(config: Config) -> Iterator[None]:
    """Provide the processes that fit models, for the duration of the block."""
    if any(method.executor is not None and method.executor.starts_ray for method in config.methods.values()):
        # Ray sets this when it starts; the worker's process is older than that, and would be refused without it.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    search, limits = config.search, config.limits
    try:
        with WORKERS.worker:
            if search.workers == 1 and search.ray_address is None:  # one trial at a time
                yield
                return
            cluster = Cluster(search.workers, search.ray_address, config.trial_jobs, limits.fit_s, limits.fit_mib)
            with cluster as WORKERS.cluster:
                yield
    finally:
        # The worker's process has ended; the next one has to load the kernels again.
        WORKERS.cluster, WORKERS.warm = None, False


def compare(config: Config, facts: str, names: Sequence[str]) -> str:
    """Compare the methods called `names` on every problem, write the report and return its path.

    Neither a method that fails nor a tracking store that is lost stops the others: MethodFailed or TrackingFailed is
    raised at the end, after the report is written.
    """
    if not names:
        raise ConfigError(f"{config.name} has no method that this command runs; use python -m flows pipeline.")
    errors: list[str] = []
    with workers(config):
        runs = run_contests(config, facts, names, errors)
    return finish(config, write_report(config, facts), runs, errors, [config])


def run_contests(
    config: Config, facts: str, names: Sequence[str], errors: list[str], about: str = ""
) -> dict[str, Runs]:
    """Run every method on every problem and return the problems' runs.

    errors: gets a sentence on everything that could not be tracked. about: prefix of the name of each problem's run.
    """
    tracker = Tracker(config.paths.runs, config.name, str(flow_run.id))
    if swept := tracker.sweep():
        say(f"{swept} MLflow runs of a process that died are now marked KILLED")
    runs = {}
    for problem in config.problems:
        try:
            with tracker.run(f"{about}{problem.name}", kind="problem") as run:
                runs[problem.name] = Runs(run.id)
                try_tracking(errors, track_problem, config, facts, problem, run)
                try:
                    for name in names:
                        _compare_within_limit(config, facts, problem, name)
                        if found := try_tracking(errors, track_method, config, facts, problem, name, tracker, run):
                            runs[problem.name].methods[name] = found
                finally:  # also after Ctrl-C or an error
                    publish.describe(run, config, problem, names, about)
        except TrackingFailed as error:
            errors.append(str(error))
    with suppress(TrackingFailed):
        tracker.sweep(own=True)
    return runs


def finish(
    config: Config, published: Published, runs: dict[str, Runs], errors: list[str], variants: Sequence[Config]
) -> str:
    """Attach the report to its runs and return its path; raise the first error of the runs, if there was one."""
    try_tracking(errors, track_report, config, published, runs)
    if errors:
        raise TrackingFailed(f"{errors[0].removesuffix('.')}; the report is complete, run again to track it.")
    if failed := [sentence for variant in variants for sentence in publish.failures(variant)]:
        raise MethodFailed(f"{len(failed)} failed; the first: {failed[0]}")
    return str(published.page)


def _compare_within_limit(config: Config, facts: str, problem: ProblemConfig, name: str) -> None:
    """Compare one method within limits.task_s and store its result, or the reason why it has none."""
    since = time.time()
    compete = compare_method.with_options(timeout_seconds=config.limits.task_s)
    state = compete(config, facts, problem, name, return_state=True)
    if state.name == "TimedOut":
        failure = Failure(
            Kind.TIME_LIMIT, f"stopped: time limit of {config.limits.task_s:g} s for all trials (limits.task_s)"
        )
        record.give_up(config, preparation.read(Path(facts)), problem, name, failure, since)
        say(f"{problem.name} · {name} · {failure.sentence}")
        return
    found = state.result(raise_on_failure=False)
    if isinstance(found, BaseException) and not isinstance(found, MethodFailed):
        raise found


def try_tracking(errors: list[str], task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task that uses the tracking store; if the store fails, add the sentence to `errors` and return None."""
    found = task(*arguments, return_state=True).result(raise_on_failure=False)
    if isinstance(found, TrackingFailed):
        errors.append(str(found))
        return None
    if isinstance(found, BaseException):
        raise found
    return found


def _is_transient(_: Any, __: Any, state: Any) -> bool:
    """Tell Prefect whether a failed task is worth another try."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, TrackingFailed) and error.transient


TRACKING: dict[str, Any] = {
    "cache_policy": NO_CACHE, "retries": 2, "retry_delay_seconds": [2, 10], "retry_condition_fn": _is_transient,
}  # fmt: skip


@task(name="prepare", task_run_name="prepare", cache_policy=NO_CACHE)
def prepare_data(config: Config) -> str:
    """Prepare the arrays of an experiment and return the path of the facts about them."""
    with working(f"prepare {config.dataset.name}", key(config.name, "prepare")) as news:
        n = config.split.count
        splits = preparation.prepare(config, lambda done: news(f"split {done} of {n}", (done - 1) / n))
        config.results.mkdir(parents=True, exist_ok=True)
        file = config.results / FACTS
        preparation.save(splits, file)
        first = splits[0]
        sizes = ", ".join(f"{part} {rows:,}" for part, rows in first.sizes.items())
        news(f"{sizes}, digest {first.digest}" + (f", {n} splits" if n > 1 else ""))
    for sentence in [*sentences(first.summary), *first.features]:
        say(f"  {sentence}")
    for remark in dict.fromkeys(remark for one in splits for remark in one.notes):
        say(f"  note: {remark}")
    return str(file)


@task(name="method", task_run_name="{problem.name}: {name}", cache_policy=NO_CACHE)
def compare_method(config: Config, facts: str, problem: ProblemConfig, name: str) -> Any:
    """Compare one method on every split. Raise MethodFailed when it failed, unless a limit of the file stopped it.

    Splits with a stored result are skipped; when all have one, the state is called Cached.
    """
    splits = preparation.read(Path(facts))
    missing = [prepared for prepared in splits if not record.known(config, prepared, problem, name)]
    if missing and lookup(config.methods[name].estimator).iterative and not WORKERS.warm:
        cold = is_cold()
        with working(COMPILING if cold else "load the compiled kernels", long=cold):
            WORKERS.worker.call(warm, limit_s=WARM_SECONDS)
        WORKERS.warm = True
    with working(f"{problem.name} · {name}", key(config.name, problem.name, name)) as news:
        for prepared in missing:
            progress = Progress(news, splits.index(prepared), len(splits))
            record.settle(
                config, prepared, problem, name, on_trials=progress.trials, on_step=progress.step,
                runner=WORKERS.worker, executor=WORKERS.cluster.map if WORKERS.cluster else None,
            )  # fmt: skip
        outcome = record.outcome(config, splits, problem, name)
        assert outcome is not None  # every split has a result now
        count = sum(len(result.trials) for result in outcome.results)
        mean = "mean " if len(splits) > 1 else ""
        again = "" if missing else "unchanged since an earlier run: "
        news(outcome.failure or f"{again}{count} trial{'s' * (count != 1)}, {mean}test error {percent(outcome.error)}")
    if outcome.failure and not outcome.foreseen:
        raise MethodFailed(f"{name} on {problem.name}: {outcome.failure}")
    return str(outcome.folder) if missing else Completed(name="Cached", data=str(outcome.folder))


@task(name="track data", task_run_name="{problem.name}: track data", **TRACKING)
def track_problem(config: Config, facts: str, problem: ProblemConfig, run: Run) -> None:
    """Log the data, split, configuration and environment of a problem's run."""
    results.track_data(run, preparation.read(Path(facts)), problem.name)
    results.track_circumstances(run, as_yaml(config), ROOT)


@task(name="track", task_run_name="{problem.name}: track {name}", **TRACKING)
def track_method(
    config: Config, facts: str, problem: ProblemConfig, name: str, tracker: Tracker, parent: Run
) -> str | None:
    """Log the stored result of one method and return the run, or None when there is no result."""
    splits = preparation.read(Path(facts))
    outcome = record.outcome(config, splits, problem, name)
    return None if outcome is None else results.track_method(tracker, parent, config, splits, problem, outcome).id


@task(name="report", task_run_name="report", cache_policy=NO_CACHE)
def write_report(config: Config, facts: str) -> Published:
    """Write the report (tables, figures, page), and show the tables on Prefect's pages."""
    with working("report") as news:
        published = publish.publish(config, preparation.read(Path(facts)))
        news(str(published.page))
    for problem in config.problems:
        if found := publish.collect(config, problem):
            note(f"{problem.name}, test error: {standing(found)}")
            header, rows = tables.main(found)
            table = [dict(zip(header, map(escape, row), strict=True)) for row in rows]  # Prefect's cells are Markdown
            about = escape(problem.name)
            create_table_artifact(table, key(config.name, problem.name, "results"), f"{about}, test set")
            text, place = build.note(config, problem, found), key(config.name, problem.name, "report")
            create_markdown_artifact(text, place, f"{about}: how it was measured")
    return published


@task(name="track report", task_run_name="track report", **TRACKING)
def track_report(config: Config, published: Published, runs: Mapping[str, Runs]) -> None:
    """Attach the report's files to the runs that they show."""
    publish.attach(config, published, runs)
