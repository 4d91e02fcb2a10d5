"""Write the report of the results in a folder, and hang it on their runs in the tracking store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ldsvm.baselines import lookup
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.outcome import Outcome, read
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.record import standing
from ldsvm.experiment.results import slug
from ldsvm.experiment.tracking import Tracker
from ldsvm.report import build, html, tables
from ldsvm.report.build import write

REPORT, FACTS = "report.html", "prepared.json"


def failures(config: Config) -> list[str]:
    """Return one sentence for each method that failed by a fault, and not by a limit that was set."""
    every = [(problem, outcome) for problem in config.problems for outcome in collect(config, problem)]
    return [f"{o.method} on {problem.name}: {o.failure}" for problem, o in every if o.failure and not o.foreseen]


def collect(config: Config, problem: ProblemConfig) -> list[Outcome]:
    """Return the outcomes of one problem that are there, complete, and of the data prepared last."""
    facts = config.results / FACTS
    if not facts.is_file():
        return []
    digests = [prepared.digest for prepared in preparation.read(facts)]
    found = [read(place(config, problem, name), digests) for name in config.methods]
    return [outcome for outcome in found if outcome is not None]


def place(config: Config, problem: ProblemConfig, name: str) -> Path:
    """Return the folder of one method's results on one problem."""
    return config.results / slug(problem.name) / slug(name)


def publish(config: Config, splits: Sequence[Prepared], runs: Mapping[str, str]) -> Path:
    """Write tables and figures of every problem that has results, and the page; return the page's path.

    runs: problem name -> run of the tracking store that receives the files; empty when only the files are wanted.
    """
    found = {problem.name: collect(config, problem) for problem in config.problems}
    parts, files = [], {}
    for problem in config.problems:
        if found[problem.name]:
            part, files[problem.name] = _problem(config, splits[0], problem, found[problem.name])
            parts.append(part)
    content = [*_opening(config, found), *parts, build.closing(config, splits)]
    page = write(config.results / REPORT, html.page(config.title, content))
    tracker = Tracker(config.paths.runs, config.name)
    for name, run_id in runs.items():
        tracker.get(run_id).files([*files[name], page])
    return page


def _problem(
    config: Config, prepared: Prepared, problem: ProblemConfig, found: list[Outcome]
) -> tuple[str, list[Path]]:
    shown = build.pictures(prepared, problem, found)
    here = config.results / slug(problem.name)
    files = [write(here / f"{picture.name}.png", picture.png) for picture in shown]
    header, rows = tables.detail(found)
    files.append(write(here / "table.csv", tables.to_csv(header, rows)))
    files.append(write(here / "table.md", tables.markdown(header, rows) + "\n"))
    return build.problem_part(config, problem, found, shown, _ours(found)), files


def _ours(found: list[Outcome]) -> str:
    return next((o.method for o in found if lookup(o.first.estimator).iterative), "")


def _opening(config: Config, found: Mapping[str, list[Outcome]]) -> list[str]:
    lines = [html.heading(config.title, 1)]
    for name, outcomes in found.items():
        if outcomes:
            mean = f", mean of {config.split.repeats} splits" if config.split.repeats > 1 else ""
            lines.append(html.paragraph(f"{name}, test error{mean}: {standing(outcomes)}.", "lede"))
    return lines
