"""Scoring files: the same answers as in memory, bounded chunks, a stop goes on, bad columns are named."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError
from ldsvm.experiment import scoring
from ldsvm.experiment.scoring import Scoring, score

NAMES = ("a", "b", "c")


@cache
def fitted(classes: int = 3) -> Any:
    rng = np.random.default_rng(0)
    y = np.array(["x", "y", "z"])[np.arange(120) % classes]
    X = pd.DataFrame(
        (rng.normal(size=(120, 3)) + (np.arange(120) % classes)[:, None]).astype(np.float32), columns=NAMES
    )
    return make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=10, random_state=0)).fit(X, y)


def table(n: int = 250) -> pd.DataFrame:
    found = pd.DataFrame(np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32), columns=NAMES)
    return found.assign(id=np.arange(n), other="text")


def job(folder: Path, frame: pd.DataFrame | None = None, **changes: Any) -> Scoring:
    frame = table() if frame is None else frame
    frame.to_parquet(folder / "in.parquet", row_group_size=60)
    given = Scoring(str(folder / "in.parquet"), folder / "out.parquet", NAMES, None, ("id",), 40, "m version 1")
    return replace(given, **changes)


def margins(scores: NDArray[Any]) -> NDArray[Any]:
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rows", [1, 40, 1000])
def test_every_row_has_the_answers_of_the_model(tmp_path: Path, classes: int, rows: int) -> None:
    seen: list[int] = []
    frame = table(61 if rows == 1 else 250)
    model = fitted(classes)
    assert score(job(tmp_path, frame, rows=rows), model, seen.append) == len(frame) == seen[-1]
    out = pd.read_parquet(tmp_path / "out.parquet")
    X = frame[list(NAMES)]
    assert list(out.columns) == ["id", "class", "margin", *(f"z{i}" for i in range(classes - 1)), "model"]
    assert out["class"].tolist() == model.predict(X).tolist() and out["id"].tolist() == frame["id"].tolist()
    np.testing.assert_allclose(out["margin"], margins(model.decision_function(X)), atol=1e-5)
    np.testing.assert_allclose(out.filter(regex="^z"), model.transform(X), atol=1e-5)
    assert set(out["model"]) == {"m version 1"}
    assert not list(tmp_path.glob(".*"))


def test_csv_and_several_files_are_read_and_written(tmp_path: Path) -> None:
    frame = table(90)
    frame.iloc[:50].to_csv(tmp_path / "in-0.csv", index=False)
    frame.iloc[50:].to_csv(tmp_path / "in-1.csv", index=False)
    asked = job(tmp_path, input=str(tmp_path / "in-*.csv"), output=tmp_path / "out.csv")
    assert score(asked, fitted()) == 90
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["id"].tolist() == list(range(90))
    assert out["class"].tolist() == fitted().predict(frame[list(NAMES)]).tolist()


def test_arrow_files_are_read_and_the_input_is_never_overwritten(tmp_path: Path) -> None:
    asked = job(tmp_path, input=str(tmp_path / "in.arrow"))
    table().to_feather(tmp_path / "in.arrow")
    assert score(asked, fitted()) == 250
    before = (tmp_path / "in.parquet").read_bytes()
    with pytest.raises(DataError, match="is the input too"):
        score(job(tmp_path, output=tmp_path / "in.parquet"), fitted())
    assert (tmp_path / "in.parquet").read_bytes() == before


def test_a_stopped_run_goes_on_and_never_shows_half_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = job(tmp_path), scoring._scored
    chunks: list[int] = []

    def counted(chunk: Any, *rest: Any) -> Any:
        chunks.append(chunk.num_rows)
        if len(chunks) == 4:
            raise KeyboardInterrupt
        return done(chunk, *rest)

    monkeypatch.setattr(scoring, "_scored", counted)
    with pytest.raises(KeyboardInterrupt):
        score(asked, fitted())
    assert not asked.output.exists()
    assert score(asked, fitted()) == 250
    assert chunks == [40] * 4 + [40, 40, 40, 10]  # three chunks were not done again
    assert len(pd.read_parquet(asked.output)) == 250


@pytest.mark.parametrize("change", [{"model": "m version 2"}, {"keep": ()}, {"rows": 41}, "input"])
def test_chunks_of_another_job_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    asked = job(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "_gather", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            score(asked, fitted())
    if change == "input":
        asked = job(tmp_path, table().assign(a=0.0))
    else:
        asked = replace(asked, **change)
    counted: list[int] = []
    done = scoring._scored
    monkeypatch.setattr(
        scoring, "_scored", lambda chunk, *rest: (counted.append(chunk.num_rows), done(chunk, *rest))[1]
    )
    score(asked, fitted())
    assert sum(counted) == 250


@pytest.mark.parametrize(
    ("frame", "changes", "message"),
    [
        (table().drop(columns=["b", "c"]), {}, r"the column 'b' and 1 more is absent"),
        (table(), {"keep": ("no",)}, r"the column 'no' is absent"),
        (table().assign(b="word"), {}, r"'b'"),
        (table().assign(c=[np.nan] + [0.0] * 249), {}, r"column 'c' has no value in row 0"),
        (table().assign(c=[0.0] * 100 + [np.nan] * 2 + [0.0] * 148), {}, r"column 'c' has no value in rows 100, 101"),
        (table().assign(a=np.inf), {}, r"'a'"),
        (table(0), {}, r"holds no rows"),
        (table(), {"keep": ("class",)}, r"keep names 'class', a column that the output has"),
        (table(), {"keep": ("id", "z0")}, r"keep names 'z0'"),
        (table(), {"output": Path("out.txt")}, r"ends in none of \.parquet, \.csv"),
        (table(), {"input": "nowhere.parquet"}, r"no such file"),
    ],
)
def test_what_the_model_cannot_take_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, frame: pd.DataFrame, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        score(job(tmp_path, frame, **changes), fitted())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_whole_numbers_are_taken_for_numbers_and_an_older_output_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").write_bytes(b"older")
    frame = table().assign(a=np.arange(250), b=True)
    assert score(job(tmp_path, frame), fitted()) == 250
    found = fitted().predict(frame[list(NAMES)].astype(np.float32)).tolist()
    assert pd.read_parquet(tmp_path / "out.parquet")["class"].tolist() == found
