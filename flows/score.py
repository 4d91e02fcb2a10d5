"""A file of rows scored by the champion: class, margin, latent coordinates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from prefect import flow, task
from prefect.runtime import flow_run

from flows import ROOT
from flows.environment import experiment, produced
from flows.progress import key, run_name, working
from flows.stages import TRACKING
from ldsvm.datasets import DataError
from ldsvm.experiment.config.production import ProductionConfig, ScoreConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.config.yaml_merge import found
from ldsvm.methods.memory_limit import watch
from ldsvm.production import scoring
from ldsvm.production.registry import Registry
from ldsvm.production.scoring_rows import Scoring
from ldsvm.tracking.client import Tracker


@flow(name="score", flow_run_name=run_name)
def score(config: str, overrides: Sequence[str] = ()) -> str:
    """Score the rows of production.score.input and return the outcome in one sentence."""
    settings = experiment(config, overrides)
    return score_file(settings, produced(settings, "score"), str(flow_run.id))


def places(asked: ScoreConfig) -> tuple[str, Path]:
    """Return input and output: the input is looked for like dataset.path, in the working directory and then in the
    project's folder; the output is written below the working directory.
    """
    given = str(Path(asked.input).expanduser())
    return found(given, ROOT) or given, Path.cwd() / Path(asked.output).expanduser()


@task(name="score", task_run_name="score", cache_policy=TRACKING["cache_policy"])
def score_file(config: Config, wanted: ProductionConfig, pipeline: str) -> str:
    """Load the version with the alias and let it score, chunk by chunk."""
    asked = wanted.score
    assert asked is not None
    where, output = places(asked)
    with working(f"score {asked.input}", key(config.name, "score")) as news:
        tracker = Tracker(config.paths.runs, config.name, pipeline)
        registry = Registry(tracker, wanted.model)
        version = registry.needed(asked.alias)
        model = registry.model(version)
        names = getattr(model, "feature_names_in_", None)
        if names is None and config.dataset.text is None:
            raise DataError(f"{version} was trained on inputs without names; a file can be scored by names only.")
        job = Scoring(
            input=where, output=output,
            columns=None if names is None else tuple(map(str, names)), text=config.dataset.text,
            keep=asked.keep, rows=asked.rows, model=str(version), missing=config.dataset.missing == "impute",
            source=version.source, format=asked.format or config.dataset.format,
            escape_formulas=asked.escape_formulas,
            spelling=asked.spelling(config.dataset.decimal, config.dataset.missing_values),
        )  # fmt: skip
        with tracker.run(f"score · {version}", kind="score") as run:
            start, peak = time.perf_counter(), watch()
            rows = scoring.score(job, model, lambda done: news(f"{done:,} rows"))
            seconds = time.perf_counter() - start
            mib = peak()
            values = {"rows": rows, "score_s": seconds, "rows_per_s": rows / seconds, "peak_mib": mib}
            run.log({"model": str(version), "input": asked.input}, values)
        memory = "" if mib is None else f", {mib:.0f} MiB at the peak"
        pace = f"{seconds:.1f} s ({rows / seconds:,.0f} a second{memory})"
        said = f"{rows:,} rows scored by {version} in {pace}: {job.output}"
        news(said)
    return said
