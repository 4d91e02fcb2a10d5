"""Real tables as their publishers give them: without a header, with words, codes, gaps and rare classes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from flows import new
from ldsvm import LDSVMClassifier
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config.load import load_config
from ldsvm.production.registry import Registry
from ldsvm.tracking.client import Tracker

HOME = Path(os.environ.get("LDSVM_DATA_HOME", "nowhere")).resolve() / "tables"
ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.slow,
    pytest.mark.skipif(not HOME.is_dir(), reason="LDSVM_DATA_HOME has no folder of tables"),
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),
]
# What people know of each: rows that are read, numbers, categories and yes/no, left out, and the rarest class.
TABLES = {
    "adult.csv": (3000, 6, 8, 0, 0.24),
    "german.csv": (1000, 7, 13, 0, 0.3),
    "mammography.csv": (11183, 6, 0, 0, 0.023),
    "keel/mushroom.dat": (5644, 0, 21, 1, 0.38),
    "keel/saheart.dat": (462, 8, 1, 0, 0.34),
    "keel/tic-tac-toe.dat": (958, 0, 9, 0, 0.34),
    "keel/contraceptive.dat": (1473, 9, 0, 0, 0.22),
}


def first_rows(name: str, n: int, place: Path) -> Path:
    """The first rows of a table, in a file of the same name."""
    lines = (HOME / name).read_text("utf-8").splitlines(keepends=True)
    file = place / Path(name).name
    file.write_text("".join(lines[:n]), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", TABLES)
def test_new_finds_out_what_is_there_and_we_are_as_good_as_the_gaussian_svm(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, numbers, categories, out, rarest = TABLES[name]
    file = first_rows(name, rows, tmp_path)
    new.main([str(file), "--output", str(tmp_path / "it.yaml")])
    assert "holds values, not names" in capsys.readouterr().out
    config = load_config(tmp_path / "it.yaml", [f"paths.cache={tmp_path / 'cache'}"], root=ROOT)
    (found,) = preparation.prepare(config)
    roles = [column["role"] for column in found.table or ()] or ["number"] * len(found.columns or ())
    assert sum(found.sizes.values()) == rows
    assert (roles.count("number"), roles.count("category") + roles.count("yes/no")) == (numbers, categories)
    assert len(roles) - numbers - categories == out
    (X, y), (X_test, y_test) = found.arrays("train", "original"), found.arrays("validation", "original")
    X, y = X[:2000], y[:2000]
    assert abs(np.unique(y_test, return_counts=True)[1].min() / len(y_test) - rarest) < 0.03
    assert not any(str(label).startswith(" ") for label in y)
    gamma = 1 / X.shape[1]
    ours = LDSVMClassifier(n_basis=min(200, len(X) // 3), gamma=gamma, random_state=0, n_jobs=1).fit(X, y)
    theirs = SVC(gamma=gamma).fit(X, y)
    assert ours.score(X_test, y_test) > theirs.score(X_test, y_test) - 0.03


@pytest.mark.server
def test_german_credit_all_the_way(tmp_path: Path, command: Callable[..., tuple[int, str, str]], undrawn: None) -> None:
    file, config = first_rows("german.csv", 900, tmp_path), tmp_path / "german.yaml"
    assert command("new", str(file), "--output", str(config))[0] == 0
    places = [f"paths.runs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}"]
    quick = ["methods.ours.search={C: [1], n_basis: [100], gamma: [0.02]}", "methods.boosted trees.search={}"]
    code, said, errors = command("check", str(config), *places, *quick)
    assert code == 0 and "ready: python -m flows pipeline" in said, errors
    code, said, errors = command("retrain", str(config), *places, *quick)
    assert code == 0, errors
    registry = Registry(Tracker(tmp_path / "runs", "german"), "german")
    table = pd.read_csv(HOME / "german.csv", header=None)[900:]
    rows = table.set_axis([f"c{i}" for i in range(21)], axis=1)
    answers = registry.model(registry.require()).predict(rows)
    assert (answers == rows["c20"]).mean() > 0.65  # 0.7 are good risks
    table[20:].drop(columns=20).to_csv(tmp_path / "new.csv", header=False, index=False)
    score = [f"production.score={{input: {tmp_path / 'new.csv'}, output: {tmp_path / 'out.csv'}}}"]
    code, said, errors = command("score", str(config), *places, *quick, *score)
    assert code == 0, errors
    assert pd.read_csv(tmp_path / "out.csv")["class"].tolist() == answers[20:].tolist()
    assert "Error estimated without labels: " in errors
    compared = json.loads((tmp_path / "out.csv.drift.json").read_text("utf-8"))
    assert compared["rows"] == 80 and compared["estimate"]["low"] < (answers != rows["c20"])[20:].mean()
