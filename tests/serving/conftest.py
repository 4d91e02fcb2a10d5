"""Small fitted models, and a folder of a server that answers with them, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_schema import Allowed
from ldsvm.datasets.table_step import TableFeatures
from ldsvm.datasets.text import DensifyingPCA
from ldsvm.experiment.storing import dumps
from ldsvm.serving.app import application
from ldsvm.serving.folder import Folder, Settings, State

COLUMNS = ["height", "age"]


def rows(count: int = 60, seed: int = 0) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(rng.uniform(1, 90, size=(count, 2)), columns=COLUMNS)


@pytest.fixture(scope="session")
def people() -> Any:
    """A scaler and a classifier of two columns, with a schema."""
    table = rows()
    model = make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=5, random_state=0))
    model.fit(table, np.where(table["height"] > table["age"], "tall", "old"))
    model.schema_ = [asdict(Allowed(name, "number", least=1, largest=90, gaps=0.0)) for name in COLUMNS]
    return model


@pytest.fixture(scope="session")
def plain() -> Any:
    """A classifier of two numbers without names, whose classes are whole numbers, and which has no probabilities."""
    table = rows()
    model = LDSVMClassifier(n_basis=5, random_state=0, calibration=None, n_jobs=1)
    return model.fit(table.to_numpy(), 3 * (table["height"] > table["age"]).to_numpy() - 1)


@pytest.fixture(scope="session")
def shop() -> Any:
    """A classifier of a mixed table, where a town may be a gap."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"age": 20.0 + np.arange(100) % 50, "town": rng.choice(["Bonn", "Ulm", None], 100)})
    roles = {"age": "number", "town": "category"}
    schema = [Allowed("age", "number", least=20, largest=69, gaps=0.0), Allowed("town", "category", gaps=0.3)]
    steps = RawTable(roles, schema=[asdict(one) for one in schema]), TableFeatures(roles)
    labels = np.where(table["age"] < 40, "young", "old")
    return make_pipeline(*steps, LDSVMClassifier(n_basis=5, random_state=0)).fit(table, labels)


@pytest.fixture(scope="session")
def letters() -> Any:
    """A classifier of texts."""
    texts = [f"{word} {place}" for place in range(20) for word in ("disk drive", "cat dog", "disk cat")]
    steps = TfidfVectorizer(dtype=np.float32), DensifyingPCA(2, random_state=0)
    return make_pipeline(*steps, LDSVMClassifier(n_basis=5, random_state=0)).fit(texts, ["pc", "pet", "both"] * 20)


class Client:
    """Sends requests to an ASGI application in this process, while it lives."""

    def __init__(self, app: Any) -> None:
        self.app, self.runner = app, asyncio.Runner()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://server")

    def __enter__(self) -> Client:
        self.life = self.app.app.router.lifespan_context(self.app.app)
        self.runner.run(self.life.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.run(self.life.__aexit__(None, None, None))
        self.runner.run(self.client.aclose())
        self.runner.close()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.runner.run(self.client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("POST", path, **more)

    def wait(self, seconds: float) -> None:
        """Let the application do what it does by itself."""
        self.runner.run(asyncio.sleep(seconds))


def put(folder: Folder, model: Any, version: int, problem: str = "") -> None:
    """Let a version be the one that answers; None: one whose file is damaged."""
    file = folder.path / f"{version}.skops"
    file.write_bytes(b"no model" if model is None else dumps(model))
    folder.say(State(version, file.name, problem))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path)
    found.keep(Settings("people", schema="warn", workers=1))
    return found


@pytest.fixture
def serving(folder: Folder) -> Callable[..., Any]:
    """A client of the application that answers with a model, if there is one. settings: see `Settings`."""

    @contextmanager
    def start(model: Any = None, **settings: Any) -> Iterator[Client]:
        folder.keep(Settings("people", workers=1, **settings))
        if model is not None:
            put(folder, model, 1)
        with Client(application(folder)) as client:
            yield client

    return start
