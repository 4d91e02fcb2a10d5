"""Write the report of the results in a folder, and hang it on their runs in the tracking store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ldsvm.baselines import lookup
from ldsvm.experiment import results
from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.record import standing
from ldsvm.experiment.results import Result, slug
from ldsvm.experiment.tracking import Tracker
from ldsvm.report import build, html, tables
from ldsvm.report.build import write

REPORT = "report.html"


def failures(config: Config) -> list[str]:
    """Return one sentence for each method that failed."""
    every = [r for problem in config.problems for r in collect(config, problem).values()]
    return [f"{r.method} on {r.problem}: {r.failure}" for r in every if r.failure]


def collect(config: Config, problem: ProblemConfig) -> dict[Path, Result]:
    """Return the results of one problem that are there, by their folders, in the order of the file."""
    places = [place(config, problem, name) for name in config.methods]
    return {folder: results.read(folder) for folder in places if (folder / results.FILE).is_file()}


def place(config: Config, problem: ProblemConfig, name: str) -> Path:
    """Return the folder of one method's result on one problem."""
    return config.results / slug(problem.name) / slug(name)


def publish(config: Config, prepared: Prepared, runs: Mapping[str, str]) -> Path:
    """Write tables and figures of every problem that has results, and the page; return the page's path.

    runs: problem name -> run of the tracking store that receives the files; empty when only the files are wanted.
    """
    found = {problem.name: collect(config, problem) for problem in config.problems}
    parts, files = [], {}
    for problem in config.problems:
        if found[problem.name]:
            part, files[problem.name] = _problem(config, prepared, problem, found[problem.name])
            parts.append(part)
    content = [*_opening(config, found), *parts, build.closing(config, prepared)]
    page = write(config.results / REPORT, html.page(config.title, content))
    tracker = Tracker(config.paths.runs, config.name)
    for name, run_id in runs.items():
        tracker.get(run_id).files([*files[name], page])
    return page


def _problem(
    config: Config, prepared: Prepared, problem: ProblemConfig, places: dict[Path, Result]
) -> tuple[str, list[Path]]:
    shown = build.pictures(prepared, problem, places)
    here, found = config.results / slug(problem.name), list(places.values())
    files = [write(here / f"{picture.name}.png", picture.png) for picture in shown]
    rows = tables.detail_rows(found)
    files.append(write(here / "table.csv", tables.to_csv(tables.DETAIL, rows)))
    files.append(write(here / "table.md", tables.markdown(tables.DETAIL, rows) + "\n"))
    return build.problem_part(problem, found, shown, _ours(found)), files


def _ours(found: list[Result]) -> str:
    return next((r.method for r in found if lookup(r.estimator).iterative), "")


def _opening(config: Config, found: Mapping[str, dict[Path, Result]]) -> list[str]:
    lines = [html.heading(config.title, 1)]
    for name, places in found.items():
        if places:
            lines.append(html.paragraph(f"{name}, test error: {standing(list(places.values()))}.", "lede"))
    return lines
