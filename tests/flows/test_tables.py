"""A table of words, dates, numbers and gaps, all the way: first champion, answers to rows as they came, new rows."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.production.registry import Registry
from ldsvm.tracking.client import Tracker

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),
]
CONFIG = """
name: shop
title: A shop's customers
dataset: {name: shop, path: FOLDER, label: left, columns: {plz: category}}
problems: [{name: left, labels: original}]
split: {kind: stratified, train: 0.6, validation: 0.2, test: 0.2}
methods:
  ours: {estimator: ldsvm, params: {n_basis: 30, gamma: 0.05, alpha: 1e-3, max_iter: 10}, search: {C: [1]}}
production: {model: shop, least: 40, score: {input: new.csv, output: scored.csv, keep: [customer]}}
"""


def customers(n: int, seed: int) -> pd.DataFrame:
    """Rows whose label depends on a category, a number and a date alone, so that no column of numbers tells it."""
    draw = np.random.default_rng(seed)
    plan = draw.choice(["basic", "plus", "business"], n)
    spent, day = draw.normal(100, 30, n), draw.integers(0, 700, n)
    left = ((plan == "basic") & (spent < 110)) | (day < 200)
    table = pd.DataFrame({
        "customer": [f"c{seed}-{i}" for i in range(n)], "plan": plan, "spent": spent.round(2),
        "plz": draw.integers(1, 6, n),
        "since": (np.datetime64("2022-01-01") + day).astype(str), "paid": draw.choice(["yes", "no"], n),
        "left": np.where(left, "left", "stayed"),
    })  # fmt: skip
    table.loc[draw.random(n) < 0.1, "spent"] = np.nan
    table.loc[draw.random(n) < 0.1, "plan"] = None
    return table


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    (place / "rows").mkdir()
    customers(400, 1).to_csv(place / "rows" / "1.csv", index=False)
    (place / "shop.yaml").write_text(CONFIG.replace("FOLDER", str(place / "rows")))
    return place


@pytest.fixture
def call(
    shop: Path, command: Callable[..., tuple[int, str, str]], undrawn: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(shop)
    given = [str(shop / "shop.yaml"), f"paths.runs={shop / 'runs'}", f"paths.cache={shop / 'cache'}"]
    return lambda name, *more: command(name, *given, *more)


def champion(shop: Path) -> Any:
    registry = Registry(Tracker(shop / "runs", "shop"), "shop")
    return registry.model(registry.require())


def test_the_life_of_a_model_of_a_table(shop: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    code, said, errors = call("retrain")
    assert code == 0, errors
    (report,) = (shop / "runs" / "results").rglob("report.html")
    text = html.unescape(report.read_text("utf-8"))
    assert "Columns: number 'spent'; categories 'plan', 'plz'; yes/no 'paid'; date 'since'." in text
    assert "Left out: 'customer' (identifier: every row has a value of its own)." in text

    model, new = champion(shop), customers(200, 2)
    right = (model.predict(new) == new["left"]).mean()
    assert right > 0.85  # without plan and date nobody does better than about 0.7
    turned = new[new.columns[::-1]].assign(plz=new["plz"].astype(str))
    np.testing.assert_array_equal(model.predict(turned), model.predict(new))

    new.to_csv("new.csv", index=False)
    code, said, errors = call("score")
    assert code == 0, errors
    scored = pd.read_csv("scored.csv")
    assert scored["customer"].tolist() == new["customer"].tolist()
    assert scored["class"].tolist() == model.predict(new).tolist()
    new.assign(spent="much").to_csv("wrong.csv", index=False)
    code, said, errors = call("score", "production.score.input=wrong.csv", "production.score.output=no.csv")
    assert code != 0 and "column 'spent' is text" in said + errors and not Path("no.csv").exists()

    customers(200, 3).assign(plan="basic").to_csv(shop / "rows" / "2.csv", index=False)
    code, said, errors = call("retrain")
    assert code == 0, errors
    assert "200 new rows" in said + errors and "drifted" in said + errors
