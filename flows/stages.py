"""The tasks that the flows are made of. They hand over names, paths and digests, never arrays.

What a task leaves on the disk is named by the content of all that it depends on, so that a later run of any flow finds
it again (`refresh=true` does not look). Only the tasks that talk to the tracking store are tried again when they fail:
another process may have locked it. Elsewhere the same work would fail the same way, or is done again by its own means,
see `ldsvm.experiment.search.parallel`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from flows import ROOT
from flows.progress import News, key, note, say, time_left, working
from ldsvm.datasets.summary import sentences
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.contest import is_cold, warm
from ldsvm.experiment.compare.outcome import percent, standing
from ldsvm.experiment.compare.results import MethodFailed
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.experiment.search.trial import Trial
from ldsvm.experiment.search.worker import Worker
from ldsvm.methods import lookup
from ldsvm.report import build, publish, tables
from ldsvm.report.marks import escape
from ldsvm.report.publish import FACTS, Published, Runs
from ldsvm.tracking import results
from ldsvm.tracking.client import Run, Tracker, TrackingFailed


@dataclass
class _Hands:
    """Who does the work of this process: one process for fits and clocks, and perhaps several for trials."""

    worker: Worker
    cluster: Cluster | None = None
    warm: bool = False  # whether our kernels have been loaded, and so are compiled on this machine


HANDS = _Hands(Worker())  # started when there is something to fit


def _passing(_: Any, __: Any, state: Any) -> bool:
    """Tell Prefect whether what failed may go well in a moment."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, TrackingFailed) and error.transient


WARM_SECONDS = 600.0
COMPILING = "compile the kernels, once on this machine: about half a minute"
TRACKING: dict[str, Any] = {
    "cache_policy": NO_CACHE, "retries": 2, "retry_delay_seconds": [2, 10], "retry_condition_fn": _passing,
}  # fmt: skip


@task(name="prepare", task_run_name="prepare", cache_policy=NO_CACHE)
def prepare_data(config: Config) -> str:
    """Prepare the arrays of an experiment and return the path of the facts about them."""
    with working(f"prepare {config.dataset.name}", key(config.name, "prepare")) as news:
        n = config.split.repeats
        splits = preparation.prepare(config, lambda done: news(f"split {done} of {n}", (done - 1) / n))
        config.results.mkdir(parents=True, exist_ok=True)
        file = config.results / FACTS
        preparation.save(splits, file)
        news(_sizes(splits))
    for sentence in [*sentences(splits[0].summary), *splits[0].features]:
        say(f"  {sentence}")
    for remark in dict.fromkeys(remark for one in splits for remark in one.notes):
        say(f"  note: {remark}")
    return str(file)


def _sizes(splits: Sequence[Prepared]) -> str:
    first = splits[0]
    sizes = ", ".join(f"{part} {n:,}" for part, n in first.sizes.items())
    return f"{sizes}, digest {first.digest}" + (f", {len(splits)} splits" if len(splits) > 1 else "")


@task(name="method", task_run_name="{problem.name}: {name}", cache_policy=NO_CACHE)
def compare_method(config: Config, facts: str, problem: ProblemConfig, name: str) -> Any:
    """Let one method compete on every split; raise MethodFailed when it has no result to show for a fault of its own.

    Splits whose result is there already are left alone; when all are, the state is called Cached.
    """
    splits = preparation.read(Path(facts))
    missing = [prepared for prepared in splits if not record.known(config, prepared, problem, name)]
    if missing and lookup(config.methods[name].estimator).iterative and not HANDS.warm:
        with working(COMPILING if is_cold() else "load the compiled kernels"):
            HANDS.worker.call(warm, limit_s=WARM_SECONDS)
        HANDS.warm = True
    with working(f"{problem.name} · {name}", key(config.name, problem.name, name)) as news:
        for prepared in missing:
            telling = _Telling(news, splits.index(prepared), len(splits))
            record.settle(
                config, prepared, problem, name, on_trials=telling.trials, on_step=telling.step, runner=HANDS.worker,
                executor=HANDS.cluster.map if HANDS.cluster else None,
            )  # fmt: skip
        outcome = record.outcome(config, splits, problem, name)
        assert outcome is not None  # every split has a result now
        count = sum(len(result.trials) for result in outcome.results)
        mean = "mean " if len(splits) > 1 else ""
        again = "" if missing else "from an earlier run, nothing it depends on has changed: "
        news(outcome.failure or f"{again}trials {count}, {mean}test error {percent(outcome.error)}")
    if outcome.failure and not outcome.foreseen:
        raise MethodFailed(f"{name} on {problem.name}: {outcome.failure}")
    return str(outcome.folder) if missing else Completed(name="Cached", data=str(outcome.folder))


class _Telling:
    """Makes news of what a search and a training report on split number i of n."""

    def __init__(self, news: News, i: int, n: int) -> None:
        self._news, self._i, self._n = news, i, n
        self._where = f"split {i + 1} of {n}, " if n > 1 else ""
        self._standing = f"{self._where}first trials"
        self._first, self._since = -1, 0.0

    def trials(self, done: list[Trial], total: int) -> None:
        """Tell how far the search is, its best so far, and how long it will take at this pace."""
        whole = [t for t in done if t.resource is None] or done  # until then, those of the first rungs
        good = [t.valid_error for t in whole if t.valid_error is not None]
        best = f"best on validation {percent(min(good))}" if good else "none succeeded yet"
        if self._first < 0:  # from the journal, or after the start of some process: the pace is that of the later ones
            self._first, self._since = len(done), time.monotonic()
        new, passed = len(done) - self._first, time.monotonic() - self._since
        left = f", {time_left(passed / new * (total - len(done)))}" if new and total > len(done) else ""
        self._standing = f"{self._where}trials {len(done)}/{total}, {best}{left}"
        self._news(self._standing, (self._i + len(done) / (total + 1)) / self._n)  # the fit that is judged is one more

    def step(self, row: dict[str, Any]) -> None:
        """Tell how far one training is: what it does before it iterates, or the last iteration."""
        if "doing" in row:
            self._news(f"{self._standing}; {row['doing']}")
            return
        point = f"C={row['C']:g} " if "C" in row else ""
        self._news(f"{self._standing}; {point}iteration {row['iteration']}, validation {percent(row['valid_error'])}")


@task(name="track data", task_run_name="{problem.name}: track data", **TRACKING)
def track_problem(config: Config, facts: str, problem: ProblemConfig, run: Run) -> None:
    """Log what a problem's run is about: data, split, configuration, environment."""
    results.track_data(run, preparation.read(Path(facts)), problem.name)
    results.track_circumstances(run, build.settings(config), ROOT)


@task(name="track", task_run_name="{problem.name}: track {name}", **TRACKING)
def track_method(
    config: Config, facts: str, problem: ProblemConfig, name: str, tracker: Tracker, parent: Run
) -> str | None:
    """Log the result of one method, which is on the disk, and return the run; None when there is no result."""
    splits = preparation.read(Path(facts))
    outcome = record.outcome(config, splits, problem, name)
    if outcome is None:
        return None
    return results.track_method(tracker, parent, config, splits, problem, outcome).id


@task(name="report", task_run_name="report", cache_policy=NO_CACHE)
def write_report(config: Config, facts: str) -> Published:
    """Write tables, figures and the page, and show the tables on Prefect's pages too."""
    with working("report") as news:
        published = publish.publish(config, preparation.read(Path(facts)))
        news(str(published.page))
    for problem in config.problems:
        if found := publish.collect(config, problem):
            note(f"{problem.name}, test error: {standing(found)}")
            header, rows = tables.main(found)
            table = [dict(zip(header, map(escape, row), strict=True)) for row in rows]  # Prefect's cells are Markdown
            about = f"{escape(problem.name)}, test set"
            create_table_artifact(table, key(config.name, problem.name, "results"), about)
            text, place = build.note(problem, found), key(config.name, problem.name, "report")
            create_markdown_artifact(text, place, f"{escape(problem.name)}: what was measured, and how")
    return published


@task(name="track report", task_run_name="track report", **TRACKING)
def track_report(config: Config, published: Published, runs: Mapping[str, Runs]) -> None:
    """Hang the report's files on the runs that they show."""
    publish.attach(config, published, runs)
