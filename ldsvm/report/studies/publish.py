"""The page of a study, its tables as Markdown and CSV, and its figures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from ldsvm.datasets.words import slug
from ldsvm.report import build, claims, html, tables
from ldsvm.report.marks import escape
from ldsvm.report.publish import EXTRACT, REPORT, save
from ldsvm.report.studies import keep
from ldsvm.report.studies.base import Page, study
from ldsvm.report.studies.config import StudyConfig
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.results import track_circumstances


def page_of(config: StudyConfig) -> Page:
    """Return the page of what has been computed."""
    found = keep.read(keep.place(config))
    assert found is not None
    return study(config.study).show(config.settings, found)


def publish(config: StudyConfig, page: Page) -> list[Path]:
    """Write the page and all files; return them, the page first."""
    config.results.mkdir(parents=True, exist_ok=True)
    settings = {"study": config.study, "seed": config.seed, "params": config.settings.model_dump(mode="json")}
    shows = {
        "title": config.title,
        "page": page,
        "claims": claims.table(page.claims),
        "machine": build.circumstances(config.n_jobs),
        "configuration": yaml.safe_dump(settings, sort_keys=False),
    }
    files, texts = [], [note(config, page)]
    for picture in page.pictures:
        files += save(picture, config.results)
    files.append(build.write(config.results / EXTRACT, html.render("study_extract.html", **shows)))
    for table in page.tables:
        name = config.results / f"{slug(table.title)}.csv"
        files.append(build.write(name, tables.to_csv(table.header, table.rows)))
        rows = tables.markdown(table.header, table.rows)
        texts.append(f"## {escape(table.title)}\n\n{rows}\n\n{escape(table.note)}".rstrip())
    files.append(build.write(config.results / "tables.md", "\n\n".join(texts) + "\n"))
    files.append(claims.save(config.results, {config.title: page.claims}))
    return [build.write(config.results / REPORT, html.render("study.html", **shows)), *files]


def note(config: StudyConfig, page: Page) -> str:
    """Return the answer and the claims as Markdown."""
    rows = tables.markdown(*claims.table(page.claims)) if page.claims else ""
    return f"# {escape(config.title)}\n\n{escape(page.lede)}\n\n{rows}".rstrip()


def track(config: StudyConfig, page: Page, files: Sequence[Path], tracker: Tracker, home: Path) -> None:
    """Log the claims, tables and files in one run. home: folder of the checkout."""
    tracker.sweep()
    kept = sum(claim.holds for claim in page.claims)
    with tracker.run(f"{config.title} · {kept} of {len(page.claims)} claims hold", kind="method") as run:
        run.log({"study": config.study, "seed": config.seed}, {"claims": len(page.claims), "claims_that_hold": kept})
        run.describe(note=note(config, page))
        run.files(files)
        for table in page.tables:
            columns = {head: [row[i] for row in table.rows] for i, head in enumerate(table.header)}
            run.table(f"{slug(table.title)}.json", columns)
        track_circumstances(run, config.model_dump_json(indent=1, exclude={"paths"}), home)
