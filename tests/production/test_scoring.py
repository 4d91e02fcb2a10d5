"""Scoring files: the same answers as in memory, bounded chunks, a stop goes on, bad columns are named."""

from __future__ import annotations

import csv
import gzip
import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError
from ldsvm.datasets.column import Column
from ldsvm.datasets.files.spellings import Spelling
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_schema import Allowed, Check, seen
from ldsvm.datasets.table_step import TableFeatures
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.production import ScoreConfig
from ldsvm.methods.decision import AtThreshold
from ldsvm.production import scoring
from ldsvm.production.schema_check import remarks
from ldsvm.production.scoring import score
from ldsvm.production.scoring_rows import Scoring

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.slow
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
    # products of one row and of many round in other ways, in float32
    np.testing.assert_allclose(out["margin"], margins(model.decision_function(X)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out.filter(regex="^z"), model.transform(X), rtol=1e-4, atol=1e-5)
    assert set(out["model"]) == {"m version 1"}
    assert not list(tmp_path.glob(".*"))


def test_a_model_with_a_threshold_gives_its_classes(tmp_path: Path) -> None:
    steps, model = fitted(2)[:-1], fitted(2)[-1]
    careful = make_pipeline(*steps, AtThreshold(model, threshold=0.05, response_method="predict_proba"))
    score(job(tmp_path), careful)
    out, X = pd.read_parquet(tmp_path / "out.parquet"), table()[list(NAMES)]
    assert out["class"].tolist() == np.where(fitted(2).predict_proba(X)[:, 1] >= 0.05, "y", "x").tolist()
    assert out["class"].tolist() != fitted(2).predict(X).tolist()


def test_csv_and_several_files_are_read_and_written(tmp_path: Path) -> None:
    frame = table(90)
    frame.iloc[:50].to_csv(tmp_path / "in-0.csv", index=False)
    frame.iloc[50:].to_csv(tmp_path / "in-1.csv", index=False)
    asked = job(tmp_path, input=str(tmp_path / "in-*.csv"), output=tmp_path / "out.csv")
    assert score(asked, fitted()) == 90
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["id"].tolist() == list(range(90))
    assert out["class"].tolist() == fitted().predict(frame[list(NAMES)]).tolist()


def test_a_file_without_names_of_columns_is_read_as_in_training(tmp_path: Path) -> None:
    frame, model = table(90), deepcopy(fitted())
    frame = frame[list(NAMES)].set_axis(["c0", "c1", "c2"], axis=1)
    model[0].feature_names_in_ = frame.columns.to_numpy(dtype=object)
    frame.round(6).to_csv(tmp_path / "in.data", sep="|", header=False, index=False, encoding="utf-16")
    with ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.write(tmp_path / "in.data", "in.data")
    for name in ("in.data", "in.zip"):
        given = [
            "dataset={name: a, path: a.data, format: pipe, header: false, label: c3}",
            f"paths.cache={tmp_path / 'cache'}",
            f"production={{model: m, score: {{input: {tmp_path / name}, output: {tmp_path / 'out.csv'}, keep: [c1]}}}}",
        ]  # fmt: skip
        config = load_config("conf/own_table.yaml", given, root=ROOT)
        assert score(Scoring.of(config, model, "m", "", tmp_path), model) == 90
    expected = fitted().predict(frame.set_axis(list(NAMES), axis=1)).tolist()
    assert pd.read_csv(tmp_path / "out.csv")["class"].tolist() == expected


def test_arrow_files_are_read_and_the_input_is_never_overwritten(tmp_path: Path) -> None:
    asked = job(tmp_path, input=str(tmp_path / "in.arrow"))
    table().to_feather(tmp_path / "in.arrow")
    assert score(asked, fitted()) == 250
    before = (tmp_path / "in.parquet").read_bytes()
    with pytest.raises(DataError, match=r"would be read as a part of the input"):
        score(job(tmp_path, output=tmp_path / "in.parquet"), fitted())
    assert (tmp_path / "in.parquet").read_bytes() == before


def test_a_stopped_run_goes_on_and_never_shows_half_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = job(tmp_path), scoring._scored
    chunks: list[int] = []

    def counted(chunk: Any, *rest: Any) -> Any:
        chunks.append(sum(len(part.batch) for part in chunk))
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
        scoring,
        "_scored",
        lambda chunk, *rest: (counted.append(sum(len(part.batch) for part in chunk)), done(chunk, *rest))[1],
    )
    score(asked, fitted())
    assert sum(counted) == 250


def test_an_output_is_written_by_one_run_and_no_chunk_of_a_stopped_one_gets_in(tmp_path: Path) -> None:
    asked = job(tmp_path)
    other = replace(asked, model="m version 2")

    def disturbed(rows: int) -> None:
        if rows == 80:
            said = (
                r"out\.parquet: another run is writing this file; wait until it has ended, or choose another output\.$"
            )
            with pytest.raises(DataError, match=said):
                score(other, fitted())
        if rows == 120:
            raise KeyboardInterrupt

    for again in (asked, other):
        with pytest.raises(KeyboardInterrupt):
            score(again, fitted(), disturbed)
    seen: list[int] = []
    assert score(asked, fitted(), seen.append) == 250 and not list(tmp_path.glob(".*"))
    assert set(pd.read_parquet(asked.output)["model"]) == {"m version 1"}


@pytest.mark.parametrize("damage", ["start", "middle", "rows"])
def test_a_damaged_chunk_is_made_again(tmp_path: Path, damage: str) -> None:
    asked = job(tmp_path)

    def stop(rows: int) -> None:
        if rows == 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(asked, fitted(), stop)
    first, second = sorted(tmp_path.glob(".out.parquet.parts/*/*.parquet"))
    data = first.read_bytes()
    half = len(data) // 2
    if damage == "rows":
        parquet.write_table(parquet.read_table(second).slice(0, 3), first)
    else:
        first.write_bytes(b"PAR1xx" if damage == "start" else data[:4] + bytes(half) + data[4 + half :])
    assert score(asked, fitted()) == 250
    out = pd.read_parquet(asked.output)
    assert out["id"].tolist() == list(range(250))
    assert out["class"].tolist() == fitted().predict(table()[list(NAMES)]).tolist()


@pytest.mark.parametrize(
    ("frame", "changes", "message"),
    [
        (table().drop(columns=["b", "c"]), {}, r"columns 'b', 'c' are missing; the model needs them"),
        (table().drop(columns="b"), {}, r"column 'b' is missing; the model needs it \(the columns are 'a', 'c'"),
        (table(), {"keep": ("no",)}, r"column 'no' is missing; production\.score\.keep names it \(the columns are"),
        (table().assign(b="word"), {}, r"'b'"),
        (
            table().assign(c=[np.nan] + [0.0] * 249),
            {},
            r"column 'c' has no value in row 1, counted from 1 without a header",
        ),
        (
            table().assign(c=[0.0] * 100 + [np.nan] * 2 + [0.0] * 148),
            {},
            r"column 'c' has no value in rows 101, 102, counted from 1 without a header",
        ),
        (
            table().assign(a=np.inf),
            {},
            r"column 'a' is infinite .* in rows 1, 2, 3, 4, 5 and 35 more, counted from 1 without a header;",
        ),
        (
            table().assign(b=[0.0] * 130 + [np.inf] + [0.0] * 119),
            {},
            r"column 'b' is infinite .* in row 131, counted from 1 without a header;",
        ),
        (table(0), {}, r"holds column names but no rows"),
        (
            table(),
            {"keep": ("class",)},
            r"^production\.score\.keep has 'class', a name that the output uses for its own columns",
        ),
        (table(), {"keep": ("id", "z0")}, r"keep has 'z0'"),
        (table(), {"output": Path("out.txt")}, r"must end in \.parquet or \.csv"),
        (table(), {"input": "nowhere.parquet"}, r"no such file"),
        (
            table().assign(id=b"\xff"),
            {"output": Path("out.csv")},
            r"out.csv: cannot be written \(Invalid UTF8 payload\)",
        ),
        (table().assign(id=[[1, 2]] * 250), {"output": Path("out.csv")}, r"cannot hold column 'id' .* list<.*>; write"),
    ],
)
def test_what_the_model_cannot_take_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, frame: pd.DataFrame, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        score(job(tmp_path, frame, **changes), fitted())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


def test_an_output_that_is_a_folder_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(DataError, match=r"out\.csv: is a folder; allowed: the name of a file\."):
        score(job(tmp_path, output=tmp_path / "out.csv"), None)


def test_whole_numbers_are_taken_for_numbers_and_an_older_output_is_replaced(tmp_path: Path) -> None:
    assert score(job(tmp_path), fitted()) == 250
    frame = table().assign(a=np.arange(250), b=True)
    assert score(job(tmp_path, frame), fitted()) == 250
    found = fitted().predict(frame[list(NAMES)].astype(np.float32)).tolist()
    assert pd.read_parquet(tmp_path / "out.parquet")["class"].tolist() == found


def wrong(folder: Path, text: str, **changes: Any) -> str:
    """What is said of a CSV file."""
    (folder / "in.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        score(job(folder, **{"input": str(folder / "in.csv")} | changes), fitted())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_types_may_differ_from_block_to_block_and_from_file_to_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldsvm.datasets.files.opening.BLOCK", 200)
    frame = table(90).assign(a=[1.0] * 50 + [0.5] * 40, c=[*[True, False] * 15, *[1.0] * 60])
    words = frame.astype({"id": "object"})
    words.loc[70:, "id"] = [f"w{i}" for i in range(20)]
    whole = words.assign(a=[*["1"] * 50, *[" 0.5"] * 40])
    whole.iloc[:30].to_csv(tmp_path / "in-0.csv", index=False)
    whole.iloc[30:].to_csv(tmp_path / "in-1.csv", index=False)
    asked = job(tmp_path, input=str(tmp_path / "in-*.csv"))
    assert score(asked, fitted()) == 90
    out = pd.read_parquet(asked.output)
    assert out["id"].tolist() == list(map(str, words["id"]))
    assert out["class"].tolist() == fitted().predict(frame[list(NAMES)].astype(np.float32)).tolist()


@pytest.mark.parametrize(
    "kept",
    [
        ["007", "10"], ["12345678901234567890", "2"], ["2024-01-02T03:04", "2024-01-02"], ["", "NA", "1e3"],
        ["true", "TRUE"], ['1,5"', "word"], ["12:30", "12:31:00"], ["0.10", "1."],
    ],
)  # fmt: skip
def test_kept_columns_come_out_as_they_are_written(tmp_path: Path, kept: list[str]) -> None:
    table(len(kept)).assign(id=kept).to_csv(tmp_path / "in.csv", index=False)
    for suffix in (".csv", ".parquet"):
        asked = job(tmp_path, input=str(tmp_path / "in.csv"), output=tmp_path / f"out{suffix}", keep=("id", "a", "id"))
        assert score(asked, fitted()) == len(kept)
    given, found = (list(csv.DictReader((tmp_path / name).read_text().splitlines())) for name in ("in.csv", "out.csv"))
    assert [row["id"] for row in found] == kept == pd.read_parquet(tmp_path / "out.parquet")["id"].tolist()
    assert [row["a"] for row in found] == [row["a"] for row in given]


def test_texts_that_a_spreadsheet_would_run_are_escaped_in_csv_and_numbers_are_not(tmp_path: Path) -> None:
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "-e5", "@SUM(A1)", "\t=1", "\r=1", "-1+1", "=-1"]
    plain = ["-0.5", "+1e-3", "-1,5", "-inf", "-", "a=1", "", "word -1", "'=1", "2024-01-02"]
    texts = [*formulas, *plain]
    raw = [text.encode() for text in texts]
    frame = table(len(texts)).assign(**{"=id": texts, "kind": pd.Categorical(texts), "raw": raw})
    frame.loc[frame.index[-1], "=id"] = None
    names = ("=id", "kind", "raw", "a")
    wanted = [f"'{text}" for text in formulas] + plain

    def scored(**changes: Any) -> pd.DataFrame:
        asked = job(tmp_path, frame, keep=names, output=tmp_path / "out.csv", rows=7, **changes)
        score(asked, fitted())
        with asked.output.open(newline="", encoding="utf-8") as file:
            return pd.DataFrame(csv.DictReader(file))

    found = scored()
    assert found["kind"].tolist() == found["raw"].tolist() == wanted
    assert found["'=id"].tolist() == [*wanted[:-1], ""]
    np.testing.assert_allclose(found["a"].astype(float), frame["a"], rtol=1e-6)
    assert min(found["a"].astype(float)) < 0
    assert scored(escape_formulas=False)["kind"].tolist() == texts
    score(job(tmp_path, frame, keep=names), fitted())
    assert pd.read_parquet(tmp_path / "out.parquet")["kind"].tolist() == texts


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_only_an_output_of_a_scoring_is_replaced(tmp_path: Path, suffix: str) -> None:
    asked = job(tmp_path, output=tmp_path / f"out{suffix}")
    for other in (b"", b"class,margin,model\n" * (suffix == ".parquet"), b"a,class,margin,z1,model\n", b'"\xff\n'):
        asked.output.write_bytes(other)
        with pytest.raises(DataError, match=r"out\.\w+ exists and is not an output of a scoring"):
            score(asked, None)
        assert asked.output.read_bytes() == other
    asked.output.unlink()
    assert score(asked, fitted()) == score(replace(asked, keep=("id", "other")), fitted()) == 250
    assert score(replace(asked, rows=30), fitted(2)) == 250  # an output of another model and other columns
    if suffix == ".parquet":
        table().to_parquet(asked.output)
        with pytest.raises(DataError, match="is not an output of a scoring"):
            score(asked, None)


@pytest.mark.parametrize("name", ["in.csv", "in.CSV.GZ", "in.TSV"])
def test_text_is_read_as_training_reads_it(tmp_path: Path, name: str) -> None:
    frame = table(20).assign(id="é")
    separator, format = ("\t", None) if name == "in.TSV" else (";", "semicolon")
    data = frame.to_csv(index=False, sep=separator).encode("latin-1")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("GZ") else data)
    asked = job(tmp_path, input=str(tmp_path / name), format=format)
    assert score(asked, fitted()) == 20
    assert set(pd.read_parquet(asked.output)["id"]) == {"é"}


def test_decimal_commas_are_read_as_training_reads_them(tmp_path: Path) -> None:
    frame = table(90).round(3)
    frame.to_csv(tmp_path / "in.csv", index=False, sep=";", decimal=",")
    asked = job(tmp_path, frame, input=str(tmp_path / "in.csv"), format="semicolon", spelling=Spelling(","))
    assert score(asked, fitted()) == 90
    np.testing.assert_allclose(
        pd.read_parquet(asked.output)["margin"], margins(fitted().decision_function(frame[list(NAMES)])), atol=1e-5
    )
    with pytest.raises(DataError, match=r'set production\.score\.decimal to "," if the comma is the decimal mark\.$'):
        score(replace(asked, spelling=Scoring.spelling), fitted())
    config = ScoreConfig(input="a", output="b.csv", decimal=",")
    assert config.spelling(None, ("?",)) == Spelling(",", ("?",), "production.score")
    assert config.spelling(None, (), ",") == Spelling(",", (), "production.score")  # the thousands of another spelling
    config = ScoreConfig(input="a", output="b", thousands="'")
    assert config.spelling(",", (), ".") == Spelling(",", (), "production.score", "'")
    assert ScoreConfig(input="a", output="b").spelling(None, (), ".") == Spelling(",", (), "production.score", ".")


def test_a_missing_value_of_text_is_a_missing_number(tmp_path: Path) -> None:
    text = "a,b,c,id\n1,2,3,x\n NA ,2,3,y\n1,,3,z\n"
    assert "column 'a' has no value in row 2, counted from 1 without a header;" in wrong(tmp_path, text)
    model = make_pipeline(
        SimpleImputer().set_output(transform="pandas").fit(pd.DataFrame([[1.0, 2.0, 3.0]], columns=NAMES)), *fitted()[:]
    )
    asked = job(tmp_path, input=str(tmp_path / "in.csv"), missing=True)
    assert score(asked, model) == 3
    assert pd.read_parquet(asked.output)["margin"].nunique() == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a,b,c,id\n" + "1,2,3,x\n" * 60 + "1,two,3,x\n",
            "'b' is text in row 61, counted from 1 without a header, 'two' first, but inputs must be",
        ),
        (
            "a,b,c,id\n1,2,3,x\n1,0x1f,3,x\n1,2,3,x\n",
            "is text in row 2, counted from 1 without a header, '0x1f' first",
        ),
        (
            "a,b,c,id\n" + "1,2,3,x\n" * 60 + "1,inf,3,x\n",
            "column 'b' is infinite or beyond ±3.4e38, .* in row 61, counted from 1 without a header;",
        ),
        (
            "a,b,c,id\n" + "1,2,3,x\n" * 60 + "1,,3,x\n",
            "column 'b' has no value in row 61, counted from 1 without a header;",
        ),
        (
            "a,b,c,id\n" + "1,2,3,x\n" * 60 + "1,3,x\n",
            "row 61, counted from 1 without a header, has 3 fields, but the header has 4;",
        ),
        ("a,b,c,id\n1,2,3,x,4\n", "row 1, counted from 1 without a header, has 5 fields, but the header has 4;"),
        (
            'a,b,c,id\n1,2,3,x\n1,2,3,"x\n1,2,3,x\n',
            r'a quotation mark \("\) in row 2, ' r"counted from 1 without a header, is never closed;",
        ),
        ("a,b,c,id,a\n1,2,3,x,4\n", "the column 'a' occurs 2 times; names must be unique"),
        ("a;b;c;id\n1;2;3;4\n", "columns 'a', 'b', 'c', .* are missing; .*the columns are 'a;b;c;id'"),
        ("", r"in\.csv is empty; a table needs"),
    ],
)
def test_a_fault_of_text_is_named_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr("ldsvm.datasets.files.opening.BLOCK", 100)
    found = wrong(tmp_path, text)
    assert re.search(said, found), found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.parquet"]


def test_lists_and_dictionaries_are_what_they_hold(tmp_path: Path) -> None:
    rng, names = np.random.default_rng(0), ("v[0]", "v[1]", "b")
    X = pd.DataFrame(rng.normal(size=(60, 3)).astype(np.float32), columns=names)
    model = make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=5, random_state=0)).fit(X, X["b"] > 0)
    lists = pa.array(X[["v[0]", "v[1]"]].to_numpy().tolist(), pa.list_(pa.float32()))
    b, id = pa.array(X["b"].round()), pa.array([f"r{i % 3}" for i in range(60)])
    whole = pa.table({"v": lists, "b": b.dictionary_encode(), "id": id.dictionary_encode()})
    (tmp_path / "in").mkdir()
    parquet.write_table(whole, tmp_path / "in" / "0.parquet")
    flat = pa.table({"id": id, **{name: pa.array(X[name]) for name in names}, "more": id})  # as the model was trained
    parquet.write_table(flat, tmp_path / "in" / "1.parquet")
    asked = job(tmp_path, input=str(tmp_path / "in"), columns=names)
    assert score(asked, model) == 120
    out = pd.read_parquet(asked.output)
    assert out["id"].tolist() == id.to_pylist() * 2
    assert out["class"].tolist() == [*model.predict(X.assign(b=X["b"].round())), *model.predict(X)]
    parquet.write_table(whole.set_column(0, "v", pa.array([[1.0]] * 60)), tmp_path / "in" / "0.parquet")
    with pytest.raises(DataError, match=r"0\.parquet: its lists make 2 inputs; the model needs 3"):
        score(asked, model)


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (("int32", "int64"), None),
        (("int64", "float64"), "'id' of production.score.keep has values that do not fit double"),
        (("str", "int64"), "keep has the types '.*string', 'int64' in different files; allowed: one type"),
    ],
)
def test_a_kept_column_has_one_type_or_is_refused(tmp_path: Path, types: tuple[str, str], said: str | None) -> None:
    (tmp_path / "in").mkdir()
    for place, type in enumerate(types):
        ids = [2**53 + 1 if type == "int64" else 7] * 5
        table(5).assign(id=np.array(ids).astype(type)).to_parquet(tmp_path / "in" / f"{place}.parquet")
    asked = job(tmp_path, input=str(tmp_path / "in"))
    if said is None:
        assert score(asked, fitted()) == 10
        assert pd.read_parquet(asked.output)["id"].tolist() == [7] * 5 + [2**53 + 1] * 5
    else:
        with pytest.raises(DataError, match=said):
            score(asked, fitted())


def test_a_repeated_name_is_one_sentence(tmp_path: Path) -> None:
    asked = job(tmp_path)
    columns = [pa.array([1.0])] * 5
    parquet.write_table(pa.Table.from_arrays(columns, names=["a", "b", "c", "id", "a"]), tmp_path / "in.parquet")
    with pytest.raises(DataError, match="the column 'a' occurs 2 times; names must be unique"):
        score(asked, fitted())


@pytest.mark.parametrize(
    ("given", "output", "refused"),
    [
        ("in", "in/out.parquet", True),
        ("in/*.parquet", "in/out.parquet", True),
        ("in/*.parquet", "in/out.csv", False),
        ("in/*.parquet", "in/scored/out.parquet", False),
        ("**/*.parquet", "in/scored/out.parquet", True),
        ("in/**/*.parquet", "in/out.parquet", True),
        ("in", "in/scored/out.parquet", False),
    ],
)
def test_an_output_is_never_where_the_next_run_looks_for_its_input(
    tmp_path: Path, given: str, output: str, refused: bool
) -> None:
    (tmp_path / "in").mkdir()
    table(5).to_parquet(tmp_path / "in" / "0.parquet")
    asked = Scoring(f"{tmp_path}/{given}", tmp_path / output, NAMES, None, (), 40, "m version 1")
    if refused:
        with pytest.raises(DataError, match=r"would be read as a part of the input .*; choose another output\."):
            score(asked, fitted())
    else:
        assert score(asked, fitted()) == score(asked, fitted()) == 5


def test_arrow_batches_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pa.Table.from_pandas(table(90))
    for name, make in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with make(str(tmp_path / f"{name}.arrow"), whole.schema) as writer:
            writer.write_table(whole, max_chunksize=25)
        asked = job(tmp_path, input=str(tmp_path / f"{name}.arrow"), rows=20)
        sizes: list[int] = []
        assert score(asked, fitted(), sizes.append) == 90
        assert sizes == [20, 40, 60, 80, 90]
        assert pd.read_parquet(asked.output)["id"].tolist() == list(range(90))


def test_cells_that_the_schema_does_not_allow_are_said_or_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(90.0), "town": ["Ulm", "Bonn"] * 45, "id": np.arange(90)})
    roles = {"a": "number", "town": "category"}
    model = make_pipeline(RawTable(roles).fit(None), TableFeatures(roles), LDSVMClassifier(n_basis=5, random_state=0))
    model.fit(frame, np.arange(90) % 3)
    allowed = Allowed("a", "number", least=0, largest=86), Allowed("town", "category", values=("Ulm", "Bonn"))
    asked = job(
        tmp_path, frame.assign(town=frame["town"].where(frame["a"] != 50, "Oslo")), roles=roles, columns=("a", "town")
    )
    check = Check(allowed)
    assert score(replace(asked, allowed=allowed), model, check=check) == 90  # in chunks of 40 rows
    file = tmp_path / "in.parquet"
    assert check.sentences == [
        f"{file}: row 51, counted from 1 without a header, column 'town' is 'Oslo'; training saw the values "
        "'Ulm', 'Bonn'.",
        f"{file}: row 88, "
        f"counted from 1 without a header, column 'a' is 87, and 2 more rows are like this; training saw 0 to 86.",
    ]
    assert remarks(check, "scored")[2:] == ["Such rows are scored anyway; production.schema=refuse would refuse them."]
    before = (tmp_path / "out.parquet").read_bytes()
    with pytest.raises(
        DataError,
        match=r"row 51, "
        r"counted from 1 without a header, column 'town' is 'Oslo'; .*\n"
        r"So nothing was scored \(production\.schema is refuse\); to allow more, edit ",
    ):
        score(replace(asked, allowed=allowed, schema="refuse"), model)
    assert (tmp_path / "out.parquet").read_bytes() == before and not list(tmp_path.glob(".*"))


def test_a_table_of_numbers_is_checked_too_to_the_last_digit_of_float32(tmp_path: Path) -> None:
    # 0.7 is 0.699999988 in float32: the smallest value of the training is no odd one
    frame = pd.DataFrame({name: np.full(90, 0.7) for name in NAMES}).assign(id=np.arange(90))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(90, len(NAMES))), columns=NAMES)
    model = LDSVMClassifier(n_basis=5, random_state=0).fit(X, np.arange(90) % 3)
    file, columns = tmp_path / "in.parquet", [Column(name, "number") for name in NAMES]
    allowed = tuple(seen(np.float32([[0.7] * len(NAMES), [0.9] * len(NAMES)]), columns))
    assert (allowed[0].least, allowed[0].largest) == (0.7, 0.9)
    for value, said in (
        (0.7, []),
        (
            0.95,
            [f"{file}: row 6, counted from 1 without a header, column 'a' is 0.95; training saw 0.7 to 0.9."],
        ),
    ):
        frame.loc[5, NAMES[0]] = value
        check = Check(allowed)
        score(job(tmp_path, frame, allowed=allowed), model, check=check)
        assert check.sentences == said
