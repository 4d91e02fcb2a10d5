"""Real data small enough to be quick, and MAC problems built by hand."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from ldsvm.atomic import alone, replacing
from ldsvm.mac.problem import Problem
from ldsvm.mac.scheme import Scheme
from ldsvm.mac.start import simplex_points
from ldsvm.mac.state import Options, Start
from ldsvm.maps import RBF, Family
from ldsvm.tracking import client

Floats = NDArray[np.float64]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what starts servers and then what is slow, in whatever order: so no half waits long for the other."""
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in ("server", "slow")])


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all processes of this run of the tests, which pytest-xdist divides among several."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def make_tables(shared: Path) -> Iterator[Callable[[str, str], None]]:
    """Lets MLflow make the tables of a store once, in seconds, and later ones be copies; yields what makes them."""
    make, made = client._make_tables, shared / "stores" / "mlflow.db"

    def copy(uri: str, artifacts: str) -> None:
        with alone(made.parent):
            if not made.exists():
                with replacing(made) as new, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # MLflow uses what its own dependencies have deprecated
                    make(f"sqlite:///{new}", "file:///none")
        store = Path(uri.removeprefix("sqlite:///"))
        shutil.copy(made, store)
        with closing(sqlite3.connect(store)) as connection, connection:
            connection.execute("update experiments set artifact_location = ? || '/0'", [artifacts])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_make_tables", copy)
        yield make


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the files of figures empty, for tests of what a page says: drawing takes most of its time."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)


@pytest.fixture(scope="session")
def digits() -> tuple[Floats, NDArray[np.intp]]:
    """The first 400 rows of scikit-learn's digits in [0, 1], read-only so that no test can change another's data."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture
def problem_of() -> Callable[..., tuple[Problem, Start]]:
    """A MAC problem and its simplex start from X (N, D) and class indices y (N,)."""

    def build(
        X: Any, y: Any, *, C: Any = 1.0, kind: str = "ovr", weight: Any = None, family: Family | None = None, L: int = 0
    ) -> tuple[Problem, Start]:
        lam = 1e-3
        K = int(y.max()) + 1
        scheme = Scheme(K, kind)
        Y, part = scheme.signs(y)
        w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        chosen = RBF(25, "random", "scale", lam) if family is None else family
        regression = chosen.prepare(X, weight, np.random.RandomState(0), 1)
        problem = Problem(regression, y, scheme, Y, C * part * w[:, None], w, lam)
        return problem, Start(simplex_points(K, L or K - 1)[y])

    return build


@pytest.fixture
def options() -> Callable[..., Options]:
    """Options of the loop: the estimator's defaults with changes by name."""

    def build(**changes: Any) -> Options:
        defaults: dict[str, Any] = {
            "mu": 2.0, "mu_factor": 1.5, "mu_max": 1e6, "max_iter": 200, "tol": 1e-2, "patience": 10,
            "time_limit": None, "z_solver": "batched", "g_solver": "ipm",
        }  # fmt: skip
        return Options(**(defaults | changes))

    return build
