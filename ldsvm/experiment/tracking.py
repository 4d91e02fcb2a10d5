"""The only file that knows MLflow: an SQLite store under the project, a parent run per problem, a child per method."""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ldsvm.datasets.atomic import alone
from ldsvm.experiment.storing import dumps, trusted

HOST, PID = "ldsvm.host", "ldsvm.pid"
STEP_METRICS = ("nested", "penalised", "distance", "mu", "train_error", "valid_error")


def store_uri(runs: Path) -> str:
    """Return the absolute address of the store in the folder `runs`."""
    return f"sqlite:///{runs.resolve() / 'mlflow.db'}"


class Run:
    """A handle on one run of the store: what it was given, what came out."""

    def __init__(self, client: Any, run_id: str, experiment_id: str) -> None:
        self.client, self.id, self.experiment_id = client, run_id, experiment_id
        self.failure: str | None = None

    def log(self, params: Mapping[str, Any], metrics: Mapping[str, float | None]) -> None:
        """Write parameters and final values in one batch; values that are None or not finite are left out."""
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        kept = {k: float(v) for k, v in metrics.items() if v is not None and math.isfinite(v)}
        self.client.log_batch(
            self.id,
            metrics=[Metric(k, v, now, 0) for k, v in kept.items()],
            params=[Param(k, str(v)) for k, v in params.items()],
        )

    def history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write one point per training iteration for each known quantity."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        points = [
            Metric(f"iteration_{key}", float(row[key]), now, int(row["iteration"]))
            for row in rows
            for key in STEP_METRICS
            if row.get(key) is not None and math.isfinite(row[key])
        ]
        for start in range(0, len(points), 1000):  # MLflow refuses larger batches
            self.client.log_batch(self.id, metrics=points[start : start + 1000])

    def describe(self, *, name: str | None = None, note: str | None = None) -> None:
        """Set the run's name and the Markdown text that its page shows."""
        for key, value in (("mlflow.runName", name), ("mlflow.note.content", note)):
            if value is not None:
                self.client.set_tag(self.id, key, value)

    def files(self, paths: Sequence[Path], folder: str | None = None) -> None:
        """Attach files as artifacts, in a folder of the run's artifacts or at their top."""
        for path in paths:
            self.client.log_artifact(self.id, str(path), folder)

    def dataset(self, name: str, digest: str, source: str, profile: Mapping[str, Any]) -> None:
        """Record which data the run used. profile: the summary that the dataset's page shows."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        text = json.dumps(profile)
        data = Dataset(name, digest, source_type="local", source=source, profile=text)
        self.client.log_inputs(self.id, [DatasetInput(data, [InputTag("mlflow.data.context", "training")])])

    def model(self, fitted: Any, X: Any) -> None:
        """Keep a fitted classifier, loadable by `mlflow.sklearn.load_model`, with its signature and an example.

        X: a few rows (n, D) or texts (n,) of its input. Raises RuntimeError if MLflow could not infer the signature.
        """
        import mlflow
        from mlflow.models import infer_signature

        signature = infer_signature(X, fitted.predict(X))
        with mlflow.start_run(run_id=self.id):
            info = mlflow.sklearn.log_model(
                fitted,
                name="model",
                signature=signature,
                input_example=X,
                serialization_format="skops",
                skops_trusted_types=trusted(dumps(fitted)),
                pip_requirements=["ldsvm"],
            )
        if info.signature is None:
            raise RuntimeError("the model was logged without a signature")


class Tracker:
    """The store of one project and one experiment in it. Make the first one before anything runs in parallel."""

    def __init__(self, runs: Path, experiment: str) -> None:
        self.runs, self.experiment = runs, experiment

    @cached_property
    def client(self) -> Any:
        """The MLflow client; the first access creates the store."""
        # Without these MLflow reports usage to its makers, prints the creation of tables, and animates artifacts.
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        import mlflow

        self.runs.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(store_uri(self.runs))
        client = mlflow.MlflowClient()
        with alone(self.runs):  # two processes that create the tables at once break the store
            client.search_experiments(max_results=1)
        return client

    @cached_property
    def experiment_id(self) -> str:
        """Identifier of the experiment, created on first use with its artifacts beside the store."""
        found = self.client.get_experiment_by_name(self.experiment)
        if found is not None:
            return str(found.experiment_id)
        place = (self.runs.resolve() / "artifacts" / self.experiment).as_uri()
        return str(self.client.create_experiment(self.experiment, artifact_location=place))

    def get(self, run_id: str) -> Run:
        """Return the handle of an existing run."""
        return Run(self.client, run_id, self.experiment_id)

    @contextmanager
    def run(self, name: str, *, kind: str, parent: str | None = None) -> Iterator[Run]:
        """Open a run and close it: FINISHED, FAILED after an exception or a `failure` set on it, KILLED on Ctrl-C.

        kind: problem, method or trial, kept as a tag to filter by. parent: the run it is nested under.
        """
        tags = {"ldsvm.kind": kind, HOST: socket.gethostname(), PID: str(os.getpid())}
        if parent is not None:
            tags["mlflow.parentRunId"] = parent
        created = self.client.create_run(self.experiment_id, run_name=name, tags=tags)
        run = Run(self.client, created.info.run_id, self.experiment_id)
        status = "FAILED"
        try:
            yield run
            status = "FAILED" if run.failure else "FINISHED"
        except BaseException as error:
            status = "FAILED" if isinstance(error, Exception) else "KILLED"
            run.failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            if run.failure:
                self.client.set_tag(run.id, "ldsvm.failure", run.failure[:500])
            self.client.set_terminated(run.id, status)

    def sweep(self) -> int:
        """Mark runs that a dead process of this machine left RUNNING as KILLED; return how many."""
        rule = f"attributes.status = 'RUNNING' and tags.`{HOST}` = '{socket.gethostname()}'"
        stale = [
            run
            for run in self.client.search_runs([self.experiment_id], rule)
            if not _alive(int(run.data.tags.get(PID, 0)))
        ]
        for run in stale:
            self.client.set_terminated(run.info.run_id, "KILLED")
        return len(stale)


def link(experiment_id: str, port: int) -> str:
    """Return the address of an experiment's table: methods only, smallest error first.

    The bare address opens on a view for language models, and the table's filter and order are lost there.
    """
    query = {
        "workflowType": "machine_learning",
        "searchFilter": "tags.`ldsvm.kind` = 'method'",
        "orderByKey": "metrics.`error_percent`",
        "orderByAsc": "true",
    }
    return f"http://127.0.0.1:{port}/#/experiments/{experiment_id}/runs?{urlencode(query)}"


def sweep(runs: Path) -> int:
    """Mark runs that dead processes of this machine left RUNNING, in any experiment, as KILLED; return how many."""
    found = Tracker(runs, "Default").client.search_experiments()
    return sum(Tracker(runs, experiment.name).sweep() for experiment in found)


def links(runs: Path, port: int) -> list[str]:
    """Return one line, name and address, for each experiment of the store that has runs of ours."""
    tracker = Tracker(runs, "Default")
    found = tracker.client.search_experiments(order_by=["last_update_time DESC"])
    return [f"{e.name}: {link(e.experiment_id, port)}" for e in found if e.name != "Default"]


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True
