"""Every benchmark from its beginning to its bars, as `--quick` does it: with what is installed, and no network.

Not here are the parts that start servers and take a minute or more even so: in `shards` those on Ray, in `pipeline` all
but the logging, in `large_table` the stages, in `story` all but what it sends and how it judges the answers.
"""

from __future__ import annotations

import json
import math
import threading
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

from benchmarks import customers, distorted, story
from benchmarks.harness import Result, everything, mnist
from benchmarks.names import NAMES

PARTS = {
    "shards": {"parts": ["same", "large", "distorted"]},
    "pipeline": {"parts": ["logging"]},
    "large_table": {"parts": ["same"]},
    "tabular": {"names": ["ours", "SVC", "boosted trees"]},
}
pytestmark = pytest.mark.slow
# What must hold at any size, however busy the machine: these are no times.
EXACT = {
    "worst_kkt_residual",
    "worst_relative_duality_gap",
    "our_objective_over_LIBSVM",
    "largest_relative_difference_of_models",
}


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    """No raw data, distorted images that no earlier run has written, and customers in small files."""
    monkeypatch.setenv("LDSVM_DATA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(distorted, "ROOT", tmp_path)
    monkeypatch.setattr(customers, "FILE", 2_000)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"story", "serve"}))
def test_a_benchmark_runs(name):
    benchmark: ModuleType = import_module(f"benchmarks.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge, OSQP's and SciPy's own
        result = benchmark.run(quick=True, **PARTS.get(name, {}))
    assert result.table()
    assert result.bars
    assert all(math.isfinite(bar.value) for bar in result.bars), list(map(str, result.bars))
    assert all(bar.holds for bar in result.bars if bar.name in EXACT), list(map(str, result.bars))


def test_the_small_images():
    data, (X, y, X_test, y_test) = mnist(0, quick=True), everything(quick=True)
    assert [part[0].shape for part in (data.train, data.valid, data.test)] == [(600, 784), (600, 784), (597, 784)]
    # The training and validation rows are all of the training images, each once.
    both = np.concatenate([data.train[0], data.valid[0]])
    np.testing.assert_array_equal(np.unique(both, axis=0), np.unique(X, axis=0))
    # A pixel is nine pixels: squared distances are those of the 8 x 8 images times nine.
    from sklearn.datasets import load_digits

    small, labels = load_digits(return_X_y=True)
    near, far = (np.linalg.norm(rows[0] - rows[1:9], axis=1) for rows in (small / 16, X))
    np.testing.assert_allclose(far**2, 9 * near**2, rtol=1e-5)
    np.testing.assert_array_equal(np.concatenate([y, y_test]), labels)
    assert X.min() == X_test.min() == 0 and X.max() == X_test.max() == 1


KNOWN = {tuple(row[:-1]): int(row[-1]) for row in story.table(slice(0, 1797)).to_numpy().tolist()}


class Served(BaseHTTPRequestHandler):
    """Answers like MLflow's server, with the true label but for every fourth row."""

    asked = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            rows = json.loads(body)["dataframe_split"]["data"]
            labels = [KNOWN.get(tuple(row), -1) for row in rows]
        except (ValueError, KeyError):
            self.send_response(400)
            self.end_headers()
            return
        Served.asked += 1
        whole = len(rows[0]) == 64
        self.send_response(200 if whole else 400)
        self.end_headers()
        if whole:
            self.wfile.write(json.dumps({"predictions": [-1] if Served.asked % 4 == 0 else labels}).encode())

    def log_message(self, *_):
        pass


def test_what_the_story_asks_and_how_it_judges(tmp_path):
    with HTTPServer(("127.0.0.1", 0), Served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = story.Story(tmp_path, Result())
        url = f"http://127.0.0.1:{server.server_port}/invocations"
        told.tell("serve 8 requests", lambda: story.ask(url, 8), "8 answered, 75.0 % right")
        told.tell("the wrong end", lambda: "Refused", "Promoted")
        server.shutdown()
    outcome = told.result.rows[0]["outcome"]
    assert "malformed: [400, 400, 400], 2 MB: 200, afterwards: 200" in outcome
    assert [bar.holds for bar in told.result.bars] == [True, False]
    assert (tmp_path / "incoming" / "0.parquet").is_file()
