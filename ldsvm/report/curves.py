"""The page of an experiment that varies one setting: curves, a table with a column for each value, and the claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ldsvm.datasets.words import slug
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.methods import METHODS, lookup
from ldsvm.report import build, claims, differences, html, metric_tables, publish, tables
from ldsvm.report.plotting.curves import Line, curves
from ldsvm.report.publish import Published


def publish_curves(config: Config, variants: Sequence[Config], splits: Sequence[Prepared]) -> Published:
    """Write curves and tables of every problem, and the page. splits: of the last variant, for the page's end."""
    assert config.vary is not None
    problems, files, verdicts = [], {}, {}
    for problem in config.problems:
        series = [
            (f"{config.vary.label} {value}", publish.collect(variant, problem))
            for value, variant in zip(config.vary.values, variants, strict=True)
        ]
        verdicts[problem.name] = claims.judge_claims(config, series)
        part, files[problem.name] = _problem(config, problem, variants, series, verdicts[problem.name])
        problems.append(part)
    claims.save(config.results, verdicts)
    shows = {"title": config.title, "problems": problems}
    build.write(config.results / publish.EXTRACT, html.render("curves_extract.html", **shows))
    page = html.render("curves.html", **shows, **build.closing(config, splits))
    return Published(
        build.write(config.results / publish.REPORT, page), {name: {"": those} for name, those in files.items()}
    )


def _problem(
    config: Config,
    problem: ProblemConfig,
    variants: Sequence[Config],
    series: claims.Series,
    verdicts: Sequence[claims.Claim],
) -> tuple[dict[str, Any], list[Path]]:
    """Return what a page shows of a problem, and the problem's files."""
    here = config.results / slug(problem.name)
    here.mkdir(parents=True, exist_ok=True)
    shown = [_picture(config, problem, [outcomes for _, outcomes in series]), *_projections(config, problem, variants)]
    header, rows = table(config, [outcomes for _, outcomes in series])
    files = [
        *(file for one in shown for file in publish.save(one, here)),
        build.write(here / "table.csv", tables.to_csv(header, rows)),
    ]
    text = [tables.markdown(header, rows)]
    if verdicts:
        text.append(tables.markdown(*claims.table(verdicts)))
    files.append(build.write(here / "table.md", "\n\n".join(text) + "\n"))
    part = {"name": problem.name, "series": series, "pictures": shown, "table": (header, rows)}
    return part | {"claims": claims.table(verdicts)}, files


def _projections(config: Config, problem: ProblemConfig, variants: Sequence[Config]) -> list[html.Picture]:
    """Return the figure of how each method reduces the training set, for the value that the file wants to see."""
    vary = config.vary
    if vary is None or vary.show is None:
        return []
    variant = variants[vary.values.index(vary.show)]
    prepared = preparation.read(variant.results / publish.FACTS)[0]
    where = f", {vary.label} {vary.show}"
    return build.projections(variant, problem, prepared, publish.collect(variant, problem), where)


def _by_name(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {outcome.method: outcome for outcome in outcomes}


def table(config: Config, series: Sequence[Sequence[Outcome]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and one row for each method: mean test error at each value, and its standard deviation."""
    assert config.vary is not None
    found = [_by_name(outcomes) for outcomes in series]
    header = [
        f"test error %, {config.vary.label}",
        *(f"{value:,}" if isinstance(value, int) else str(value) for value in config.vary.values),
    ]
    return header, [[name, *(_cell(those.get(name)) for those in found)] for name in config.methods]


def summary(
    folder: Path, config: Config | None, variants: Sequence[Config]
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield title, header and rows of the tables of an experiment, of any kind, then of the claims on it.

    folder: of the results. config: None for a study. variants: one for each value that it varies, else itself.
    """
    for problem in () if config is None else config.problems:
        series = [publish.collect(one, problem) for one in variants]
        if config is not None and (config.vary is not None or series[0]):
            found = table(config, series) if config.vary is not None else tables.main(series[0])
            yield (f"{problem.name}, test set", *found)
        if config is not None and config.vary is None and metric_tables.names(series[0]):
            title = ". ".join([f"{problem.name}, other metrics", *metric_tables.reasons(series[0])])
            yield (title, *metric_tables.metric_rows(series[0]))
        if config is not None and config.vary is None:
            header, rows = differences.difference_rows(config, series[0])
            if rows:
                yield (f"{problem.name}, differences between methods (test for overlapping splits)", header, rows)
    for name, verdicts in claims.read(folder).items():
        if verdicts:
            yield (f"{name}, claims", *claims.table(verdicts))


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "–"
    if not outcome.judged:
        return outcome.verdict
    spread = "" if outcome.spread is None else f" ({100 * outcome.spread:.2f})"
    return f"{100 * outcome.error:.2f}{spread}"


def _picture(config: Config, problem: ProblemConfig, series: Sequence[Sequence[Outcome]]) -> html.Picture:
    assert config.vary is not None
    found = [_by_name(outcomes) for outcomes in series]
    lines = [_line(config, name, [those.get(name) for those in found]) for name in config.methods]
    several = max((len(o.results) for those in found for o in those.values()), default=1)
    title, vary = build.title_of(config, problem), config.vary
    drawing = curves(vary.values, lines, title, vary.label, log=vary.log, several=several > 1)
    alt = f"Test error of {', '.join(config.methods)} against {config.vary.label}; the table below has the numbers."
    caption = f"{f'Means of {several} splits' if several > 1 else 'One split'}; our method is blue."
    return html.Picture("curves", drawing, alt, caption, wide=True)


def _line(config: Config, name: str, found: Sequence[Outcome | None]) -> Line:
    good = [outcome if outcome is not None and outcome.judged else None for outcome in found]
    estimator = config.methods[name].estimator
    family = 0 if lookup(estimator).iterative else 1 + [*METHODS, estimator].index(estimator)
    error = [None if o is None else 100 * o.error for o in good]
    low, high = ([None if o is None else 100 * o.bounds[k] for o in good] for k in (0, 1))
    return Line(name, family, error, low, high)
