"""Write the report of the results in a folder, and attach it to their runs in the tracking store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldsvm.datasets.words import slug
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.outcome import Outcome, standing
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.config.split import CrossValidationConfig, SplitConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.report import build, claims, differences, html, metric_tables, tables
from ldsvm.report.build import write
from ldsvm.tracking.client import Run, Tracker

REPORT, FACTS = "report.html", "prepared.json"
EXTRACT = "extract.html"  # a part of the page that `paper.overview` shows


@dataclass(frozen=True)
class Runs:
    """The runs of one problem in the tracking store: its own, and by name those of its methods."""

    problem: str
    methods: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """The page, and by the names of problems and methods the files of each; the name "" has the problem's own."""

    page: Path
    files: dict[str, dict[str, list[Path]]]


def failures(config: Config) -> list[str]:
    """Return one sentence for each method that failed by a fault, and not by a limit that was set."""
    every = [(problem, outcome) for problem in config.problems for outcome in collect(config, problem)]
    return [f"{o.method} on {problem.name}: {o.failure}" for problem, o in every if o.failure and not o.foreseen]


def collect(config: Config, problem: ProblemConfig) -> list[Outcome]:
    """Return the complete outcomes of one problem on the data prepared last."""
    facts = config.results / FACTS
    return record.collect(config, preparation.read(facts), problem) if facts.is_file() else []


def publish(config: Config, splits: Sequence[Prepared]) -> Published:
    """Write tables and figures of every problem that has results, and the page."""
    found = {problem.name: collect(config, problem) for problem in config.problems}
    problems, files = [], {}
    for problem in config.problems:
        if outcomes := found[problem.name]:
            shown = [
                build.overview(config, problem, outcomes),
                *build.projections(config, problem, splits[0], outcomes),
                *build.answer_pictures(config, problem, outcomes),
            ]
            part, files[problem.name] = _problem(config, splits[0], problem, outcomes, shown)
            problems.append(part)
    claims.save(config.results, {name: claims.judge_claims(config, [(name, those)]) for name, those in found.items()})
    shows = {"title": config.title, "opening": _opening(config, found), "problems": problems}
    write(config.results / EXTRACT, html.render("contest_extract.html", **shows))
    page = html.render("contest.html", **shows, **build.closing(config, splits))
    return Published(write(config.results / REPORT, page), files)


def attach(config: Config, published: Published, runs: Mapping[str, Runs]) -> None:
    """Attach the files to the runs that they show. runs: by the name of the problem."""
    tracker = Tracker(config.paths.runs, config.name)
    for name, those in runs.items():
        files = published.files.get(name, {"": []})
        tracker.get(those.problem).files([*files[""], published.page])
        for method, run_id in those.methods.items():
            tracker.get(run_id).files(files.get(method, []))


def describe(run: Run, config: Config, problem: ProblemConfig, names: Sequence[str], about: str = "") -> None:
    """Set name and page of a problem's run to the results of the methods `names` so far. about: start of the name."""
    found = [outcome for outcome in collect(config, problem) if outcome.method in names]
    stopped = "" if len(found) == len(names) else f"stopped after {len(found)} of {len(names)} · "
    run.describe(name=f"{about}{problem.name} · {stopped}{standing(found)}", note=build.note(config, problem, found))
    run.failure = "; ".join(f"{o.method}: {o.failure}" for o in found if o.failure and not o.foreseen) or None


def _problem(
    config: Config, prepared: Prepared, problem: ProblemConfig, found: list[Outcome], overall: list[html.Picture]
) -> tuple[dict[str, Any], dict[str, list[Path]]]:
    """Return the page's part on one problem, and its files by method. overall: figures over all methods."""
    here = config.results / slug(problem.name)
    here.mkdir(parents=True, exist_ok=True)
    shown = {"": overall}
    shown |= {outcome.method: build.pictures(config, problem, prepared, outcome) for outcome in found}
    files = {name: [file for one in those for file in save(one, here)] for name, those in shown.items()}
    header, rows = tables.detail(found)
    files[""].append(write(here / "table.csv", tables.to_csv(header, rows)))
    files[""].append(write(here / "table.md", tables.markdown(header, rows) + "\n"))
    if metric_tables.names(found):
        files[""].append(write(here / "metrics.csv", tables.to_csv(*metric_tables.metric_rows(found))))
    if len(found[0].results) > 1:
        files[""].append(write(here / "splits.csv", tables.to_csv(*differences.split_rows(found))))
    header, rows = differences.difference_rows(config, found)
    if rows:
        files[""].append(write(here / "differences.csv", tables.to_csv(header, rows)))
    every = [picture for those in shown.values() for picture in those]
    return {**build.part(config, problem, found), "overall": overall, "pictures": every}, files


def save(picture: html.Picture, folder: Path) -> list[Path]:
    """Write a figure as PNG and SVG and return the files."""
    drawing = picture.drawing
    return [write(folder / f"{picture.name}.{kind}", getattr(drawing, kind)) for kind in ("png", "svg")]


def _splits(split: SplitConfig | CrossValidationConfig) -> str:
    """Return in words over what a mean is."""
    if isinstance(split, SplitConfig):
        return f"{split.repeats} splits"
    return f"{split.folds} folds" + (f", drawn {split.repeats} times" if split.repeats > 1 else "")


def _opening(config: Config, found: Mapping[str, list[Outcome]]) -> list[str]:
    lines = []
    for name, outcomes in found.items():
        if outcomes:
            mean = f", mean of {_splits(config.split)}" if config.split.count > 1 else ""
            lines.append(f"{name}, test error{mean}: {standing(outcomes)}.")
            if (chosen := config.search.objective) in metric_tables.names(outcomes):
                values = metric_tables.standing_in(chosen, outcomes)
                lines.append(f"{name}, {chosen} (by which parameters were chosen), test set{mean}: {values}.")
        if missing := [method for method in config.methods if method not in {o.method for o in outcomes}]:
            lines.append(f"{name}, not run or not finished: {', '.join(missing)}.")
    return lines
