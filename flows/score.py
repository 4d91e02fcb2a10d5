"""Score a file of rows with the champion: class, margin, latent coordinates."""

from __future__ import annotations

import time
from collections.abc import Sequence

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from flows import ROOT
from flows._cli import experiment, key, production_section, run_name, tag_run, working
from flows.alarms import on_crashed, on_failure
from flows.in_shadow import in_shadow
from flows.scored_rows import after_scoring, compared
from ldsvm.datasets.table_schema import Check
from ldsvm.experiment.config.places import check_deployed
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.methods.memory_limit import watch as watch_memory
from ldsvm.production import scoring
from ldsvm.production.registry import Registry
from ldsvm.production.scoring_rows import Scoring
from ldsvm.tracking.client import Tracker


@flow(name="score", flow_run_name=run_name, on_failure=[on_failure], on_crashed=[on_crashed])
def score(config: str, overrides: Sequence[str] = ()) -> str:
    """Score the rows of production.score.input and return the outcome in one sentence."""
    settings = experiment(config, overrides)
    return score_file(settings, production_section(settings, "score"), str(flow_run.id))


@task(name="score", task_run_name="score", cache_policy=NO_CACHE)
def score_file(config: Config, wanted: ProductionConfig, pipeline: str) -> str:
    """Load the model version with the alias and score the rows with it, chunk by chunk."""
    asked = wanted.score
    assert asked is not None
    with working(f"score {asked.input}", key(config.name, "score")) as news:
        tracker = Tracker(config.paths.runs, config.name, pipeline)
        registry = Registry(tracker, wanted.model)
        version = registry.require(asked.alias)
        model = registry.model(version)
        check_deployed(config, ROOT)  # an archive is unpacked now
        job = Scoring.of(config, model, str(version), version.source, ROOT)
        with tracker.run(f"score · {version}", kind="score") as run:
            check_deployed(config, ROOT)  # once more, right before files are opened
            start, peak, check = time.perf_counter(), watch_memory(), Check(job.allowed, job.edited)
            beside = in_shadow(config, registry, version, run)
            with beside as shadow, compared(config, registry, version, model, job, run) as watch:
                rows = scoring.score(job, model, lambda done: news(f"{done:,} rows"), check, watch, shadow)
            seconds, mib = time.perf_counter() - start, peak()
            values = {"rows": rows, "score_s": seconds, "rows_per_s": rows / seconds, "peak_mib": mib}
            run.log({"model": str(version), "input": asked.input}, values)
            tag_run(model=str(version), mlflow=run.id)
            after_scoring(wanted, job, check, run)
        memory = "" if mib is None else f", at most {mib:.0f} MiB of memory"
        pace = f"{seconds:.1f} s ({rows / seconds:,.0f} rows/s{memory})"
    return f"{rows:,} rows scored by {version} in {pace}: {job.output}"
