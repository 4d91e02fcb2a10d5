"""The tasks that the flows are made of. They hand over names, paths and digests, never arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.progress import say, working
from ldsvm.datasets.summary import sentences
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.load import ConfigError
from ldsvm.experiment.parallel import Cluster
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.record import percent, run_method, standing, track_data
from ldsvm.experiment.results import MethodFailed
from ldsvm.experiment.tracking import Tracker
from ldsvm.experiment.trial import Trial
from ldsvm.experiment.worker import Worker
from ldsvm.report.build import note
from ldsvm.report.publish import FACTS, collect, failures, place, publish


@dataclass
class _Hands:
    """Who does the work of this process: one process for fits and clocks, and perhaps several for trials."""

    worker: Worker
    cluster: Cluster | None = None


HANDS = _Hands(Worker())  # started when there is something to fit


@task(name="prepare", cache_policy=NO_CACHE)
def prepare_data(config: Config) -> str:
    """Prepare the arrays of an experiment and return the path of the facts about them."""
    with working(f"prepare {config.dataset.name}") as news:
        splits = preparation.prepare(config, lambda done: news(f"split {done} of {config.split.repeats}"))
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
def compare_method(config: Config, facts: str, problem: ProblemConfig, name: str, parent: str) -> str:
    """Let one method compete and return the folder of its result; raise MethodFailed when it has none to show."""
    with working(f"{problem.name} · {name}") as news:
        standings, where = ["first trials"], [""]

        def on_trials(done: list[Trial], total: int) -> None:
            good = [t.valid_error for t in done if t.valid_error is not None]
            best = f"best on validation {percent(min(good))}" if good else "none succeeded yet"
            standings[0] = f"{where[0]}trials {len(done)}/{total}, {best}"
            news(standings[0])

        def on_split(i: int) -> None:
            if config.split.repeats > 1:
                where[0] = f"split {i} of {config.split.repeats}, "

        def on_step(row: dict[str, Any]) -> None:
            point = f"C={row['C']:g} " if "C" in row else ""
            news(f"{standings[0]}; {point}iteration {row['iteration']}, validation {percent(row['valid_error'])}")

        folder = place(config, problem, name)
        splits = preparation.read(Path(facts))
        outcome = run_method(
            config, splits, problem, name,
            folder=folder, parent=parent, on_trials=on_trials, on_step=on_step, on_split=on_split,
            runner=HANDS.worker, executor=HANDS.cluster.map if HANDS.cluster else None,
        )  # fmt: skip
        count = sum(len(result.trials) for result in outcome.results)
        mean = "mean " if len(splits) > 1 else ""
        end = f"trials {count}, {mean}test error {percent(outcome.error)}" if outcome.judged else ""
        news(outcome.failure or end)
    if outcome.failure and not outcome.foreseen:
        raise MethodFailed(f"{name} on {problem.name}: {outcome.failure}")
    return str(folder)


@task(name="report", cache_policy=NO_CACHE)
def write_report(config: Config, facts: str, runs: dict[str, str]) -> str:
    """Write tables, figures and the page, attach them to the problems' runs, and return the page's path."""
    with working("report") as news:
        page = publish(config, preparation.read(Path(facts)), runs)
        news(str(page))
    return str(page)


def compare(config: Config, facts: str, names: Sequence[str]) -> str:
    """Let the methods called `names` compete on every problem, write the report and return its path.

    A method that fails does not stop the others; MethodFailed is raised at the end, when the report is there.
    """
    if not names:
        raise ConfigError(f"methods of {config.name}: none is left to run; allowed: a file with methods of this kind.")
    with HANDS.worker, _cluster(config) as HANDS.cluster:
        runs = _contest(config, facts, names)
    page = write_report(config, facts, runs)
    if failed := failures(config):
        raise MethodFailed(f"{len(failed)} failed, first {failed[0]}")
    return page


def _cluster(config: Config) -> AbstractContextManager[Cluster | None]:
    """Return what runs trials in parallel, None where one at a time is asked for."""
    search = config.search
    if search.workers == 1 and search.ray_address is None:
        return nullcontext()
    return Cluster(search.workers, search.ray_address, config.n_jobs, config.limits.fit_s)


def _contest(config: Config, facts: str, names: Sequence[str]) -> dict[str, str]:
    """Run every method on every problem; return the tracking run of each problem."""
    tracker = Tracker(config.paths.runs, config.name)
    if swept := tracker.sweep():
        say(f"{swept} runs of a process that died are now marked KILLED")
    runs = {}
    splits = preparation.read(Path(facts))
    for problem in config.problems:
        with tracker.run(problem.name, kind="problem") as run:
            track_data(run, splits, problem.name)
            for name in names:
                state = compare_method(config, facts, problem, name, run.id, return_state=True)
                outcome = state.result(raise_on_failure=False)
                if isinstance(outcome, BaseException) and not isinstance(outcome, MethodFailed):
                    raise outcome
            found = [outcome for outcome in collect(config, problem) if outcome.method in names]
            run.describe(name=f"{problem.name} · {standing(found)}", note=note(problem, found))
            run.failure = "; ".join(f"{o.method}: {o.failure}" for o in found if o.failure and not o.foreseen) or None
            runs[problem.name] = run.id
    return runs
