"""Run a study: compute it once, write its page, and attach page and files to one MLflow run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Completed

from flows import ROOT
from flows._cli import key, working
from flows._runtime import TRACKING, try_tracking
from ldsvm.report.marks import escape
from ldsvm.report.studies import keep
from ldsvm.report.studies.base import Context, study
from ldsvm.report.studies.config import StudyConfig
from ldsvm.report.studies.publish import note, page_of, publish, track
from ldsvm.tracking.client import Tracker, TrackingFailed


def run_study(config: StudyConfig) -> str:
    """Compute the study unless an earlier run has, write its page, track it, and return the page's path."""
    compute(config, return_state=True).result()
    files = write_page(config)
    errors: list[str] = []
    try_tracking(errors, track_study, config, files)
    if errors:
        raise TrackingFailed(f"{errors[0].removesuffix('.')}; the page is complete, run again to track it.")
    return files[0]


@task(name="study", task_run_name="{config.name}", cache_policy=NO_CACHE)
def compute(config: StudyConfig) -> Any:
    """Compute the study; the state is called Cached when an earlier run has done so."""
    folder = keep.place(config)
    if not config.refresh and keep.read(folder) is not None:
        return Completed(name="Cached", data=str(folder))
    with working(config.title, key(config.name)) as news:
        context = Context(config.seed, config.n_jobs, config.paths.cache, news)
        keep.write(study(config.study).compute(config.settings, context), folder)
    return str(folder)


@task(name="study page", task_run_name="study page", cache_policy=NO_CACHE)
def write_page(config: StudyConfig) -> list[str]:
    """Write the page and its files."""
    with working("report") as news:
        page = page_of(config)
        files = publish(config, page)
        news(str(files[0]))
    about = f"{escape(config.title)}: claims and tables"
    create_markdown_artifact(note(config, page), key(config.name, "report"), about)
    return [str(file) for file in files]


@task(name="track study", task_run_name="track study", **TRACKING)
def track_study(config: StudyConfig, files: list[str]) -> None:
    """Log the claims, tables and files in one run."""
    tracker = Tracker(config.paths.runs, config.name, str(flow_run.id))
    track(config, page_of(config), [Path(file) for file in files], tracker, ROOT)
