"""MLflow's store: an SQLite file under the project, a parent run per problem, a child per method.

Where MLFLOW_TRACKING_URI names a server, that is the store instead.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldsvm.atomic import alone
from ldsvm.datasets.read_tables import reader_of
from ldsvm.experiment.storing import trusted
from ldsvm.tracking import run_owner
from ldsvm.tracking.pages import KIND, MODELS, PIPELINE, view
from ldsvm.tracking.pages import link as link
from ldsvm.tracking.provenance import source_tags
from ldsvm.tracking.server import Server, redacted, remote
from ldsvm.tracking.store import Guarded, StoreFile, tend_connections
from ldsvm.tracking.store import TrackingFailed as TrackingFailed
from ldsvm.tracking.store import store_uri as store_uri
from ldsvm.tracking.system import system_metrics
from ldsvm.tracking.wheel import wheel

FAILURE = "ldsvm.failure"
DATA = "ldsvm.dataset"  # of trials, to which an input of MLflow would add a quarter of their time
ITERATION = (
    "nested", "penalised", "distance", "mu", "train_error", "valid_error", "seconds_z", "seconds_g", "seconds_f",
)  # fmt: skip
# What is known of an iteration, and its metric: those of a fit over blocks of rows have a section of the page to
# themselves, so that the charts of all fits are the same.
STEP_METRICS = {key: f"iteration/{key}" for key in ITERATION} | {
    "calls": "workers/calls", "bytes_down": "workers/bytes_to_them", "bytes_up": "workers/bytes_from_them",
    "seconds_slowest": "workers/seconds_slowest", "seconds_mean": "workers/seconds_mean",
    "seconds_fastest": "workers/seconds_fastest", "lost": "workers/replaced_so_far",
}  # fmt: skip
# What a logged model needs, in these versions, beside the wheel of this package that comes with it.
NEEDED = ("mlflow", "numba", "numpy", "osqp", "qpsolvers", "scikit-learn", "scipy", "skops", "threadpoolctl")
BATCH = 1000  # MLflow refuses more metrics at once

Params = Mapping[str, Any]
Metrics = Mapping[str, float | None]
History = Sequence[Mapping[str, Any]]


class Run:
    """A handle on one run of the store. Methods raise TrackingFailed."""

    def __init__(self, client: Guarded, run_id: str, experiment_id: str) -> None:
        self.client, self.id, self.experiment_id = client, run_id, experiment_id
        self.failure: str | None = None
        self.data: dict[str, str] = {}  # a tag that names the data, for runs below this one

    def log(self, params: Params, metrics: Metrics, history: History = (), *, when: float | None = None) -> None:
        """Write parameters, final values and one point per training iteration and known quantity, in few calls.

        Values that are None or not finite are left out. when: seconds since 1970, now by default.
        """
        from mlflow.entities import Metric, Param

        at = _milliseconds(time.time() if when is None else when)
        points = [Metric(key, value, at, 0) for key, value in _known(metrics)]
        for row in reversed(history):  # MLflow looks for the last step: it is quicker when that comes first
            known = _known({name: row.get(key) for key, name in STEP_METRICS.items()})
            points += [Metric(name, value, at, int(row["iteration"])) for name, value in known]
        wanted = [Param(key, str(value)) for key, value in params.items()]
        self.client.log_batch(self.id, metrics=points[:BATCH], params=wanted)
        for start in range(BATCH, len(points), BATCH):
            self.client.log_batch(self.id, metrics=points[start : start + BATCH])

    def history(self, rows: History) -> None:
        """Write one point per training iteration for each known quantity."""
        self.log({}, {}, rows)

    def sample(self, values: Metrics, step: int) -> None:
        """Write one point of each quantity, such as those that are sampled while the run is open."""
        from mlflow.entities import Metric

        at = _milliseconds(time.time())
        self.client.log_batch(self.id, metrics=[Metric(key, value, at, step) for key, value in _known(values)])

    def tag(self, key: str, value: str) -> None:
        """Set a tag, which the pages show and filter by."""
        self.client.set_tag(self.id, key, value)

    def describe(self, *, name: str | None = None, note: str | None = None) -> None:
        """Set the run's name and the Markdown text that its page shows."""
        for key, value in (("mlflow.runName", name), ("mlflow.note.content", note)):
            if value is not None:
                self.tag(key, value)

    def files(self, paths: Sequence[Path], folder: str | None = None) -> None:
        """Attach files as artifacts, in a folder of the run's artifacts or at their top."""
        for path in paths:
            self.client.log_artifact(self.id, str(path), folder)

    def text(self, name: str, text: str) -> None:
        """Attach a text as the file `name`, such as "configuration.yaml"."""
        self.client.log_text(self.id, text, name)

    def table(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Attach a table that the run's page shows as one. name: of its file, such as "confusion.json"."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow's way with pandas is deprecated
            self.client.log_table(self.id, dict(columns), name)

    def dataset(self, name: str, digest: str, source: str, profile: Mapping[str, Any]) -> None:
        """Record which data the run used. profile: the summary that the dataset's page shows."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        text = json.dumps(profile)
        data = Dataset(name, digest, source_type="local", source=source, profile=text)
        self.client.log_inputs(self.id, [DatasetInput(data, [InputTag("mlflow.data.context", "training")])])
        self.data = {DATA: f"{name}, {digest}"}

    def model(self, fitted: Any, X: Any, name: str) -> str:
        """Keep a fitted classifier, loadable by `mlflow.sklearn.load_model`, with its signature and an example.

        Returns its address. name: of the model, letters, digits and underscores. X: a few rows (n, D) or texts (n,) of
        its input. `mlflow.pyfunc` takes tables with numbers of any type, see `served`. The model's folder holds this
        package too: `pip install -r requirements.txt` there makes an environment that predicts.
        Raises RuntimeError if MLflow could not infer the signature.
        """
        import mlflow
        from mlflow.models import Model

        from ldsvm.tracking import served

        answers = fitted.predict(X)
        X = X.astype("float64") if X.ndim == 2 and reader_of(fitted) is None else X
        with TemporaryDirectory() as folder, self.client.file.guard(), mlflow.start_run(run_id=self.id):
            own = wheel(Path(folder))  # and no `code_paths`, which would be imported wherever a model is loaded
            info = Model.log(
                artifact_path=None,
                flavor=served,
                flavor_name="sklearn",
                sk_model=fitted,
                name=name,
                signature=served.signature(X, answers, served.optional(fitted)),
                input_example=X,
                serialization_format="skops",
                skops_trusted_types=trusted(),
                extra_files=[str(own)],
                pip_requirements=[f"extra_files/{own.name}", *(f"{needed}=={version(needed)}" for needed in NEEDED)],
            )
        if info.signature is None:
            raise RuntimeError("the model was logged without a signature")
        return str(info.model_uri)


class Tracker:
    """The store of one project and one experiment in it. Make the first one before anything runs in parallel.

    pipeline: what its runs have in common, a tag on each; letters, digits and dashes. `link` can show these alone.
    """

    def __init__(self, runs: Path, experiment: str, pipeline: str | None = None) -> None:
        self.runs, self.experiment, self.pipeline = runs, experiment, pipeline

    @cached_property
    def client(self) -> Guarded:
        """The MLflow client; the first access creates the store. Raises TrackingFailed when that cannot be used."""
        # Without these MLflow reports usage to its makers, prints addresses, with a password that is in one, at the end
        # of each run, prints the creation of tables, and animates artifacts.
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        if (uri := remote()) is not None:
            return self._join(uri)
        file = StoreFile(self.runs)
        with file.guard():
            file.check()
            with alone(self.runs):  # two processes that create the tables at once break the store
                client = self._connect(file)
        file.remember()
        return Guarded(client, file)

    def _join(self, uri: str) -> Guarded:
        server = Server(uri)
        with server.guard():
            import mlflow

            mlflow.set_tracking_uri(uri)
            client = mlflow.MlflowClient()
            client.search_experiments(max_results=1)
        return Guarded(client, server)

    def _connect(self, file: StoreFile) -> Any:
        if file.path.exists():
            file.prepare()  # tells what is wrong before MLflow is imported
        import mlflow

        if not file.path.exists():
            file.create(_make_tables)
            file.prepare()
        tend_connections()
        mlflow.set_tracking_uri(store_uri(self.runs))
        try:
            client = mlflow.MlflowClient()
            client.search_experiments(max_results=1)
        except mlflow.MlflowException as error:
            if "schema" not in str(error):
                raise
            raise file.foreign() from None
        return client

    @cached_property
    def experiment_id(self) -> str:
        """Identifier of the experiment, created on first use with its artifacts beside the store.

        Raises TrackingFailed when somebody deleted it in MLflow, which keeps the name until it is removed for good.
        """
        own = (self.runs.resolve() / "artifacts" / self.experiment).as_uri()
        place = own if remote() is None else None  # a server has a place of its own
        views = dict([view(None), view(self.pipeline), MODELS])
        client = self.client
        with alone(self.runs):
            found = client.get_experiment_by_name(self.experiment)
            if found is None:
                return str(client.create_experiment(self.experiment, artifact_location=place, tags=views))
        if found.lifecycle_stage == "deleted":
            raise TrackingFailed(
                f"The experiment {self.experiment!r} was deleted in MLflow; restore it (mlflow experiments restore -x "
                f"{found.experiment_id}), remove it for good (mlflow gc), or choose another key name."
            )
        for key in [key for key in views if found.tags.get(key) != views[key]]:
            client.set_experiment_tag(found.experiment_id, key, views[key])
        return str(found.experiment_id)

    def get(self, run_id: str) -> Run:
        """Return the handle of an existing run."""
        return Run(self.client, run_id, self.experiment_id)

    def knows(self, run_id: str) -> bool:
        """Return whether this experiment has this run and nobody deleted it."""
        import mlflow

        try:
            info = self.client.get_run(run_id).info
            return bool(info.lifecycle_stage == "active" and info.experiment_id == self.experiment_id)
        except mlflow.MlflowException:
            return False

    @contextmanager
    def run(self, name: str, *, kind: str, parent: str | None = None, started: float | None = None) -> Iterator[Run]:
        """Open a run and close it: FINISHED, FAILED after an exception or a `failure` set on it, KILLED on Ctrl-C.

        kind: problem, method or trial, kept as a tag to filter by. parent: the run it is nested under. started: seconds
        since 1970, for work that is over; now by default, and the system's metrics are logged as long as it is open.
        """
        run = self._open(name, kind, parent, time.time() if started is None else started)
        try:
            with nullcontext() if started else system_metrics(run.sample):
                yield run
        except BaseException as error:
            run.failure = redacted(f"{type(error).__name__}: {error}")
            with suppress(TrackingFailed):  # the reason in hand is the one to hear of
                if not isinstance(error, TrackingFailed):
                    self._close(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        self._close(run, "FAILED" if run.failure else "FINISHED")

    def finished(
        self, name: str, *, kind: str, parent: str | None = None, params: Params, metrics: Metrics,
        history: History = (), started: float, seconds: float, failure: str | None = None, tags: Params | None = None,
    ) -> Run:  # fmt: skip
        """Write a run that is over, all at once, FAILED with a `failure` and else FINISHED, and return it.

        started: seconds since 1970. The other arguments are those of `run` and `Run.log`.
        """
        run = self._open(name, kind, parent, started, tags)
        run.failure = failure
        run.log(params, metrics, history, when=started + seconds)
        self._close(run, "FAILED" if failure else "FINISHED", started + seconds)
        return run

    def _open(self, name: str, kind: str, parent: str | None, started: float, more: Params | None = None) -> Run:
        tags = {**source_tags(), KIND: kind, **run_owner.tags(), **(more or {})}
        tags |= {} if parent is None else {"mlflow.parentRunId": parent}
        tags |= {} if self.pipeline is None else {PIPELINE: self.pipeline}
        begun = _milliseconds(started)
        created = self.client.create_run(self.experiment_id, start_time=begun, run_name=name, tags=tags)
        return Run(self.client, created.info.run_id, self.experiment_id)

    def _close(self, run: Run, status: str, ended: float | None = None) -> None:
        if run.failure:
            run.tag(FAILURE, run.failure[:500])
        self.client.set_terminated(run.id, status, None if ended is None else _milliseconds(ended))

    def sweep(self, *, own: bool = False) -> int:
        """Mark runs that a dead process of this machine left RUNNING as KILLED; return how many.

        own: also those of this tracker's pipeline, which is over, and whose runs a fault of the store left open.
        """
        rule = f"attributes.status = 'RUNNING' and tags.`{run_owner.HOST}` = '{run_owner.tags()[run_owner.HOST]}'"
        found = self.client.search_runs([self.experiment_id], rule)
        stale = [
            run for run in found
            if not run_owner.alive(run.data.tags) or (own and run.data.tags.get(PIPELINE) == self.pipeline)
        ]  # fmt: skip
        for run in stale:
            self.client.set_terminated(run.info.run_id, "KILLED")
        return len(stale)


def _make_tables(uri: str, artifacts: str) -> None:
    """Make a store at an address. artifacts: of the experiment Default, which MLflow makes too."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    SqlAlchemyStore(uri, artifacts).engine.dispose()  # type: ignore[no-untyped-call]


def sweep(runs: Path) -> int:
    """Mark runs that dead processes of this machine left RUNNING, in any experiment, as KILLED; return how many."""
    found = Tracker(runs, "Default").client.search_experiments()
    return sum(Tracker(runs, experiment.name).sweep() for experiment in found)


def download(uri: str, folder: str) -> Path:
    """Copy the files of a model to a folder and return it. uri: as `Run.model` returned it."""
    import mlflow

    return Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder))


def links(runs: Path, port: int) -> list[str]:
    """Return one line, name and address, for each experiment of the store that has runs of ours."""
    found = Tracker(runs, "Default").client.search_experiments(order_by=["last_update_time DESC"])
    names = [experiment.name for experiment in found if experiment.name != "Default"]
    return [f"{name}: {link(Tracker(runs, name).experiment_id, port)}" for name in names]


def _known(values: Metrics) -> list[tuple[str, float]]:
    return [(key, float(value)) for key, value in values.items() if value is not None and math.isfinite(value)]


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)
