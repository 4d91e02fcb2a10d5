"""A file of rows scored by the champion: class, margin, latent coordinates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from prefect import flow, task
from prefect.runtime import flow_run

from flows import ROOT
from flows.environment import experiment
from flows.progress import key, working
from flows.stages import TRACKING
from ldsvm.experiment import scoring
from ldsvm.experiment.config import Config
from ldsvm.experiment.load import ConfigError
from ldsvm.experiment.production import ScoreConfig
from ldsvm.experiment.registry import Registry
from ldsvm.experiment.tracking import Tracker


@flow(name="score")
def score(config: str, overrides: Sequence[str] = ()) -> str:
    """Score the rows of production.score.input and return the outcome in one sentence."""
    settings = experiment(config, overrides)
    if settings.production is None or settings.production.score is None:
        raise ConfigError(f"{config} has no section production.score; allowed: one with input and output.")
    return score_file(settings, settings.production.score, str(flow_run.id))


@task(name="score", cache_policy=TRACKING["cache_policy"])
def score_file(config: Config, asked: ScoreConfig, pipeline: str) -> str:
    """Load the version with the alias and let it score, chunk by chunk."""
    assert config.production is not None
    with working(f"score {asked.input}", key(config.name, "score")) as news:
        tracker = Tracker(config.paths.runs, config.name, pipeline)
        registry = Registry(tracker, config.production.model)
        version = registry.needed(asked.alias)
        model = registry.model(version)
        names = getattr(model, "feature_names_in_", None)
        job = scoring.Scoring(
            input=str(ROOT / Path(asked.input).expanduser()), output=ROOT / Path(asked.output).expanduser(),
            columns=None if names is None else tuple(map(str, names)), text=config.dataset.text,
            keep=asked.keep, rows=asked.rows, model=str(version), missing=config.dataset.missing == "impute",
        )  # fmt: skip
        with tracker.run(f"score · {version}", kind="score") as run:
            start = time.perf_counter()
            rows = scoring.score(job, model, lambda done: news(f"{done:,} rows"))
            seconds = time.perf_counter() - start
            run.log({"model": str(version), "input": asked.input}, {"rows": rows, "score_s": seconds})
        said = f"{rows:,} rows scored by {version} in {seconds:.1f} s, {rows / seconds:,.0f} a second: {job.output}"
        news(said)
    return said
