"""The methods of an experiment one after the other, on every problem, and the report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from flows.progress import say
from flows.stages import HANDS, compare_method, track_method, track_problem, track_report, write_report
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.outcome import standing
from ldsvm.experiment.compare.results import MethodFailed
from ldsvm.experiment.config.load import ConfigError
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.parallel import Cluster
from ldsvm.report.build import note
from ldsvm.report.publish import Published, Runs, collect, failures
from ldsvm.tracking.client import Run, Tracker, TrackingFailed


def compare(config: Config, facts: str, names: Sequence[str]) -> str:
    """Let the methods called `names` compete on every problem, write the report and return its path.

    A method that fails does not stop the others, nor does a tracking store that is lost on the way: MethodFailed or
    TrackingFailed is raised at the end, when the report is there.
    """
    if not names:
        raise ConfigError(f"{config.name} has no method that this flow runs; use the flow pipeline, or another file.")
    lost: list[str] = []
    with hands(config):
        runs = contests(config, facts, names, lost)
    return finish(config, write_report(config, facts), runs, lost, [config])


def finish(
    config: Config, published: Published, runs: dict[str, Runs], lost: list[str], variants: Sequence[Config]
) -> str:
    """Hang the report on its runs and return its path, unless something went wrong on the way, which is raised now."""
    _tracked(lost, track_report, config, published, runs)
    if lost:
        raise TrackingFailed(f"{lost[0].removesuffix('.')}; the report is complete, and the same command tracks it.")
    if failed := [sentence for variant in variants for sentence in failures(variant)]:
        raise MethodFailed(f"{len(failed)} failed, first {failed[0]}")
    return str(published.page)


@contextmanager
def hands(config: Config) -> Iterator[None]:
    """Provide the processes that fit, for the time of the block."""
    if any(method.executor is not None and method.executor.starts_ray for method in config.methods.values()):
        # What Ray does when it starts here; the process that fits is older, and would be refused without.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    with HANDS.worker, _cluster(config) as HANDS.cluster:
        yield
    HANDS.warm = False  # that process is gone, and the next one has to load the kernels again


def _cluster(config: Config) -> AbstractContextManager[Cluster | None]:
    """Return what runs trials in parallel, None where one at a time is asked for."""
    search = config.search
    if search.workers == 1 and search.ray_address is None:
        return nullcontext()
    return Cluster(search.workers, search.ray_address, config.trial_jobs, config.limits.fit_s, config.limits.fit_mib)


def contests(config: Config, facts: str, names: Sequence[str], lost: list[str], about: str = "") -> dict[str, Runs]:
    """Run every method on every problem and return the problems' runs.

    lost: gets what could not be tracked. about: words before the name of each problem's run.
    """
    tracker = Tracker(config.paths.runs, config.name, str(flow_run.id))
    if swept := tracker.sweep():
        say(f"{swept} runs of a process that died are now marked KILLED")
    runs = {}
    for problem in config.problems:
        try:
            with tracker.run(f"{about}{problem.name}", kind="problem") as run:
                runs[problem.name] = Runs(run.id)
                _tracked(lost, track_problem, config, facts, problem, run)
                try:
                    for name in names:
                        _settle(config, facts, problem, name)
                        if found := _tracked(lost, track_method, config, facts, problem, name, tracker, run):
                            runs[problem.name].methods[name] = found
                finally:
                    _describe(config, problem, names, run, about)
        except TrackingFailed as error:
            lost.append(str(error))
    with suppress(TrackingFailed):
        tracker.sweep(own=True)
    return runs


def _settle(config: Config, facts: str, problem: ProblemConfig, name: str) -> None:
    """Let a method compete within its time; what it gives, or the reason why it gives nothing, is on the disk then."""
    since = time.time()
    compete = compare_method.with_options(timeout_seconds=config.limits.task_s)
    state = compete(config, facts, problem, name, return_state=True)
    if state.name == "TimedOut":
        failure = Failure(Kind.TIME_LIMIT, f"stopped: time limit of {config.limits.task_s:g} s for all of it")
        record.give_up(config, preparation.read(Path(facts)), problem, name, failure, since)
        say(f"{problem.name} · {name} · {failure.sentence}")
        return
    found = state.result(raise_on_failure=False)
    if isinstance(found, BaseException) and not isinstance(found, MethodFailed):
        raise found


def _tracked(lost: list[str], task: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a task that talks to the tracking store returns; what it could not do is added to `lost`."""
    found = task(*arguments, return_state=True).result(raise_on_failure=False)
    if isinstance(found, TrackingFailed):
        lost.append(str(found))
        return None
    if isinstance(found, BaseException):
        raise found
    return found


def _describe(config: Config, problem: ProblemConfig, names: Sequence[str], run: Run, about: str) -> None:
    """Write the standing into the name and the page of a problem's run, also when it was stopped on the way."""
    found = [outcome for outcome in collect(config, problem) if outcome.method in names]
    stopped = "" if len(found) == len(names) else f"stopped after {len(found)} of {len(names)} · "
    run.describe(name=f"{about}{problem.name} · {stopped}{standing(found)}", note=note(problem, found))
    run.failure = "; ".join(f"{o.method}: {o.failure}" for o in found if o.failure and not o.foreseen) or None
