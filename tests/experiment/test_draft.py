"""The commands `new` and `check`: what is found in a table, and what would be wrong with an experiment."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flows.__main__ import main
from ldsvm.datasets import DataError, Rows, large
from ldsvm.datasets.column import Column
from ldsvm.datasets.files import FileSpec, large_text
from ldsvm.datasets.files.dialect import look
from ldsvm.datasets.leaks import leaks
from ldsvm.experiment import draft
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.draft_text import scalar, write
from ldsvm.experiment.prepared import prepare
from ldsvm.experiment.search.search import plan
from ldsvm.experiment.search.worker import Here
from ldsvm.experiment.trial_run import Remark, look_over

ROOT = Path(__file__).resolve().parents[2]
N = 120
Drafted = Callable[..., tuple[Config, str]]


@pytest.fixture
def drafted(tmp_path: Path) -> Drafted:
    """Writes lines into a file, lets `new` write an experiment, and returns it as it is loaded, and its text."""

    def draft(
        name: str, lines: list[str], label: str | None = "outcome", *overrides: str, **more: str
    ) -> tuple[Config, str]:
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        file = tmp_path / "drafts" / "mine.yaml"
        write(str(tmp_path / name), ROOT, label=label, output=file, **more)
        own = [f"paths.cache={tmp_path / 'cache'}", f"paths.runs={tmp_path / 'runs'}"]
        return load_config(file, [*own, *overrides], root=ROOT), file.read_text("utf-8")

    return draft


def words(n: int = N) -> list[str]:
    """A CSV of words, ? gaps in numbers, ISO dates, a constant, a number of the row, and classes in turn."""
    ages = ["?" if i % 10 == 3 else i * 37 % 91 for i in range(n)]
    rows = [f"{i},{ages[i]},{['red', 'green'][i * i % 3]},2024-01-{i % 28 + 1:02d},7,{'ab'[i % 2]}" for i in range(n)]
    return ["row,age,colour,day,one,outcome", *rows]


@pytest.mark.slow
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_large_table_of_text_gives_the_same_file(
    drafted: Drafted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decimal: str
) -> None:
    lines = [f"{line},{i}.5" if i else f"{line},size" for i, line in enumerate(words())]
    lines = [line.replace(",", ";").replace(".", decimal) for line in lines]
    _, whole = drafted("mine.csv", lines)
    (tmp_path / "drafts" / "mine.yaml").unlink()
    monkeypatch.setattr(large_text, "LARGE", 0)
    monkeypatch.setattr(large, "LARGE", 0)
    assert drafted("mine.csv", lines)[1] == whole and ('decimal: ","' in whole) == (decimal == ",")


@pytest.mark.slow
def test_words_gaps_and_dates(drafted: Drafted) -> None:
    config, text = drafted("mine.csv", words())
    assert config.dataset.missing_values == ("?",) and config.dataset.drop == ("row",)
    assert (config.split.kind, config.features[0].name) == ("stratified", "table")
    assert f"Only {N // 5} test rows." in text and "split: {kind: cross_validation, folds: 5}" in text
    assert config.judge.refit and not load_config("conf/digits.yaml", [], root=ROOT).judge.refit
    assert "# columns: {age: category}" in text and "left out: one (constant: all rows have 7.0)" in text
    assert "'day' is a date" in text  # only a hint
    [prepared] = prepare(config)
    assert sum(prepared.sizes.values()) == N
    assert {column["name"]: column["role"] for column in prepared.table or []} == {
        "age": "number", "colour": "category", "day": "date", "one": "constant",
    }  # fmt: skip
    assert config.methods["ours"].search["n_basis"] == [12, 36, 54]  # half of 72 training rows, and three quarters


@pytest.mark.filterwarnings("ignore:strategy.min_resources is 20000, but there are only 72")
def test_a_large_table_is_searched_by_blocks_and_read_by_columns(
    drafted: Drafted, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, _ = drafted("mine.csv", words())
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(draft, "MANY_ROWS", N - 1)
    (small.paths.cache.parent / "drafts" / "mine.yaml").unlink()
    config, text = drafted("mine.csv", words())
    assert (config.dataset, config.features, config.split) == (small.dataset, small.features, small.split)
    assert [*config.methods] == ["ours", "linear"]
    for method in config.methods.values():
        assert method.executor is not None and method.executor.memory_mib == 512
        points, halving = plan(method, seed=0, rows=72)
        assert len(points) == halving.total == 4
    assert "several copies of 72 rows of" in text  # and so methods that hold all rows are left out


@pytest.mark.slow
def test_dates_whose_month_is_unknown_are_for_people_to_say(
    drafted: Drafted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ["x,seen,outcome", *(f"{i % 7},{i % 12 + 1:02d}/{i * 5 % 12 + 1:02d}/2024,{'ab'[i % 2]}" for i in range(N))]
    config, text = drafted("dates.csv", lines)
    assert "# Note: 'seen' may hold dates, such as '01/01/2024'" in text
    main(["new", str(tmp_path / "dates.csv"), "--label", "outcome", "--output", str(tmp_path / "again.yaml")])
    assert "columns: {seen: date (day first)}, or date (month first)" in capsys.readouterr().out
    assert any("may hold dates" in note for note in prepare(config)[0].notes)
    (tmp_path / "drafts" / "mine.yaml").unlink()
    config, _ = drafted("dates.csv", lines, "outcome", "dataset.columns={seen: date (day first)}")
    [prepared] = prepare(config)
    assert [column["role"] for column in prepared.table or []] == ["number", "date"]


@pytest.mark.parametrize("answers", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_labels_that_are_truth_values_stay_as_they_are_written(drafted: Drafted, answers: tuple[str, str]) -> None:
    lines = [f"{i % 7}.5,{i * i % 11},{'NA' if i == 5 else answers[i % 2]}" for i in range(N)]
    config, text = drafted("truth.csv", ["x,z,outcome", *lines])
    assert all(f"{answer}: {n}" in text.replace("'", "") for answer, n in zip(answers, (60, 59), strict=True))
    [prepared] = prepare(config)
    assert set(prepared.arrays("train", "original")[1]) == {*answers}
    assert prepared.table is None and prepared.n_features == 2  # the inputs are read as before


def test_truth_values_of_parquet_are_shown_as_such(drafted: Drafted, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": [*range(N)], "outcome": [None, *(i % 3 == 0 for i in range(1, N))]})
    pq.write_table(table, tmp_path / "truth.parquet")
    rows = draft.find_out(FileSpec(str(tmp_path / "truth.parquet"), label="outcome")).rows
    assert rows.y[:4].tolist() == [None, "False", "False", "True"]


def test_names_of_digits_are_names_beside_words(drafted: Drafted) -> None:
    lines = [f"word{i},{i * i % 7}.5,{'ab'[i % 2]}" for i in range(N)]
    config, _ = drafted("names.csv", ["note,1,inf", *lines], "inf")
    assert config.dataset.header and config.dataset.label == "inf" and config.dataset.drop == ()
    [prepared] = prepare(config)
    assert {column["name"]: column["role"] for column in prepared.table or []} == {"note": "identifier", "1": "number"}


def test_an_infinite_value_is_named_with_its_file(drafted: Drafted) -> None:
    lines = [f"{'inf' if i == 4 else i % 9},{['red', 'green'][i * i % 3 % 2]},{'ab'[i % 2]}" for i in range(N)]
    with pytest.raises(
        DataError,
        match=r"wide\.csv: column 'age' is infinite or beyond .* in row 5, "
        r"counted from 1 without a header; allowed: fin",
    ):
        drafted("wide.csv", ["age,colour,outcome", *lines])


@pytest.mark.parametrize("label", [None, "outcome"])
@pytest.mark.parametrize(("lines", "said"), [([""], "is empty; "), (["x,outcome"], "holds column names but no rows")])
def test_files_without_rows(drafted: Drafted, lines: list[str], said: str, label: str | None) -> None:
    with pytest.raises(DataError, match=rf"mine\.csv:? {said}"):
        drafted("mine.csv", lines, label)


STEPS = ["check", "pipeline", "retrain", "score"]


def steps_in(text: str) -> list[str]:
    return re.findall(r"python -m flows (\w+) ", text)


def test_what_to_type_next_is_said_in_its_order(
    drafted: Drafted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, text = drafted("mine.csv", words())
    assert steps_in(text.partition("in this order:")[2].partition("\nname:")[0]) == STEPS
    main(["new", str(tmp_path / "mine.csv"), "--label", "outcome", "--output", str(tmp_path / "a file.yaml")])
    said = capsys.readouterr().out.partition("in this order:\n")[2].splitlines()
    assert steps_in("\n".join(said)) == STEPS and len(said) == 5
    assert all(f"'{tmp_path}/a file.yaml' " in line and " # " in line for line in said[:4])
    assert said[4].startswith("For retrain, add new rows to this file, or put files in a folder") and said[4] in text


def test_semicolons_and_decimal_commas(drafted: Drafted) -> None:
    lines = [
        "Größe;Umsatz;outcome",
        *(f"1{i % 7},5;{'-' if i == 9 else i * 7 % 13};{['ja', 'nein'][i % 2]}" for i in range(N)),
    ]
    config, _ = drafted("export.csv", lines)
    found = config.dataset
    assert (found.format, found.decimal, found.missing_values, found.missing) == ("semicolon", ",", ("-",), "impute")
    [prepared] = prepare(config)
    assert prepared.n_features == 2 and prepared.table is None


def test_a_gap_in_the_label_says_nothing_about_gaps_of_inputs(drafted: Drafted) -> None:
    lines = [f"{'' if i % 5 == 1 else i % 7},{i % 3},{'' if i % 10 == 2 else 'ab'[i % 2]}" for i in range(N)]
    config, text = drafted("gaps.csv", ["x,y,outcome", *lines])
    assert (config.dataset.unlabelled, config.dataset.missing) == ("drop", "impute")
    assert "unlabelled: drop" in text and "12 rows without a label are left out" in text
    assert sum(prepare(config)[0].sizes.values()) == N - 12
    with pytest.raises(
        DataError,
        match=r"label is missing in rows 3, 13, .*, "
        r"counted from 1 without a header.*allowed only with dataset\.unlabelled=drop",
    ):
        prepare(config.model_copy(update={"dataset": config.dataset.model_copy(update={"unlabelled": "refuse"})}))


def test_a_file_without_names_of_columns_and_with_gaps(drafted: Drafted, tmp_path: Path) -> None:
    lines = [f" {i % 7}.5, {'?' if i % 9 == 4 else ['red', 'blue'][i % 3 % 2]}, <={'ab'[i % 2]}" for i in range(N)]
    config, _ = drafted("census.data", lines, None)
    assert (config.dataset.format, config.dataset.header, config.dataset.label) == ("csv", False, "c2")
    [prepared] = prepare(config)
    assert prepared.summary["classes"] == {"<=a": 60, "<=b": 60} and config.dataset.missing_values == ("?",)
    with pytest.raises(ConfigError, match=r"dataset.encoding.*latin-9000.*allowed: an encoding that Python knows"):
        load_config(tmp_path / "drafts" / "mine.yaml", ["dataset.encoding=latin-9000"], root=ROOT)


def test_a_thousand_or_a_fraction_is_for_people_to_say(drafted: Drafted) -> None:
    lines = ["x,price,outcome", *(f'{i % 7},"1,{100 + i}",{"ab"[i % 2]}' for i in range(N))]
    with pytest.raises(DataError, match="if the comma is the decimal mark"):
        drafted("prices.csv", lines)
    assert drafted("prices.csv", lines, decimal=",")[0].dataset.decimal == ","


def test_named_times_and_repeated_patients_decide_the_split(drafted: Drafted, tmp_path: Path) -> None:
    assert drafted("mine.csv", words(), time="day")[0].split.kind == "time"
    (tmp_path / "drafts" / "mine.yaml").unlink()
    lines = ["patient_id\tx\toutcome", *(f"{i * 17 % 40}\t{i % 7}.5\t{'ab'[i * i % 3 % 2]}" for i in range(N))]
    config, text = drafted("visits.txt", lines)  # a name that tells no format
    assert (config.split.kind, config.dataset.group, config.dataset.format) == ("grouped", "patient_id", "tsv")
    assert "40 values in 120 rows" in text
    prepare(config)


def test_whole_numbers_that_may_be_codes_are_pointed_out(drafted: Drafted) -> None:
    lines = ["zip,stars,x,outcome", *(f"{i * i % 97},{i % 5},{i % 13}.5,{'ab'[i % 2]}" for i in range(N))]
    config, text = drafted("codes.csv", lines)
    assert "  # columns: {zip: category, stars: category}\n" in text and config.dataset.columns is None


def test_a_folder_of_texts_needs_no_label(tmp_path: Path) -> None:
    for i in range(40):
        file = tmp_path / "mail" / "ab"[i % 2] / f"{i}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{'fine weather' if i % 2 else 'awful rain'} number {i}")
    write(str(tmp_path / "mail"), ROOT, output=tmp_path / "mail.yaml")
    config = load_config(tmp_path / "mail.yaml", [f"paths.cache={tmp_path / 'cache'}"], root=ROOT)
    assert prepare(config)[0].n_features == 2  # of five words, so that every training set has as many


def test_a_rare_class_is_remarked(drafted: Drafted) -> None:
    lines = [
        "x,colour,outcome",
        *(f"{i % 7},{['red', 'blue'][i % 2]},{'yes' if i % 30 == 0 else 'no'}" for i in range(N)),
    ]
    config, text = drafted("rare.csv", lines)
    assert "class 'yes' has 4 of 120 rows (3.3 %)" in text and "# params: {class_weight: balanced}" in text
    config = config.model_copy(update={"methods": {"linear SVM": config.methods["linear SVM"]}})
    assert sum("'yes'" in remark.text for remark in checked(config) if remark.kind == "odd") == 1  # once


@pytest.mark.parametrize(
    ("lines", "label", "said"),
    [
        (words(), None, "say which one holds the classes, such as --label outcome"),
        (words(), "outcom", "nearest 'outcome'"),
        (words()[2:], "outcome", "--label is 'outcome', but the first line holds no column names; allowed"),
        (["p,x,s,x", *["e,x,s,x"] * 30], "s", "looks like a row of values, but contains 's'; add --header"),
        (["p,x,s", *["e,x,s", "p,y,s"] * 15], "s", "looks like a row of values, but contains 's'; add --header"),
        (["p,x,p", *["e,y,s"] * 30], "x", "the column 'p' occurs 2 times"),
        (["x,y", *(f"{i},{i * i}" for i in range(N))], "y", "column 'y' has 120 different values in 120 rows"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, lines: list[str], label: str | None, said: str) -> None:
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=said.replace("?", r"\?")):
        write(str(tmp_path / "mine.csv"), ROOT, label=label, output=tmp_path / "mine.yaml")
    assert not (tmp_path / "mine.yaml").exists()


def test_elsewhere_than_in_the_project_the_file_is_named_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("mine.csv").write_text("\n".join(words()))
    said = "\n".join(write("mine.csv", tmp_path / "project", label="outcome"))
    file = tmp_path / "project" / "conf" / "mine.yaml"
    assert file.is_file() and said.startswith(f"{file} was written for") and f"check {file} " in said
    monkeypatch.chdir(tmp_path / "project")
    said = "\n".join(write("../here/mine.csv", tmp_path / "project", label="outcome", output=Path("conf/b.yaml")))
    assert said.startswith("conf/b.yaml was written for") and "check conf/b.yaml " in said


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.csv").write_text("\n".join(words()))
    file = tmp_path / "mine.yaml"
    command = ["new", str(tmp_path / "mine.csv"), "--label", "outcome", "--output", str(file)]
    assert main(command) == 0
    assert "was written for 120 rows, 2 classes (a: 60, b: 60)." in capsys.readouterr().out
    file.write_text("mine")
    assert main(command) == 2
    assert "already exists and is not overwritten" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_numbers_are_names_where_they_count_or_are_years(tmp_path: Path) -> None:
    for header in ("0,1,label", "2019,2021,label"):
        (tmp_path / "a.csv").write_text(f"{header}\n3,4,x\n3,5,y\n")
        assert look(FileSpec(str(tmp_path / "a.csv"))).spec.drop == ()


def test_what_can_be_no_input_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",time,label\n0,12:30:00,x\n1,13:00:00,y\n")
    found = look(FileSpec(str(tmp_path / "a.csv")))
    assert found.left_out[0] == Column("", "identifier", reason="the number of the row")
    assert found.spec.drop == ("", "time")


@pytest.mark.parametrize("text", ["no", "1e-3", "a: b", "x #y", "", " x", "null", "Größe", 'say "no"', "a\nb", "007"])
def test_any_name_survives_the_way_through_yaml(text: str, tmp_path: Path) -> None:
    from ldsvm.experiment.config.yaml_merge import read

    file = tmp_path / "a.yaml"
    file.write_text(f"a: {scalar(text)}\nb: {{{scalar(text)}: [{scalar(text)}]}}\n", encoding="utf-8")
    assert read(file) == {"a": text, "b": {text: [text]}}


def test_leaks_are_columns_that_determine_the_label() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    noise, range_of_each = rng.normal(size=300), y + rng.uniform(0, 0.9, size=300)
    almost = np.where(np.arange(300) == 5, (y + 1) % 3, y)
    X = np.column_stack([noise, range_of_each, almost, 10.0 * y]).astype(np.float32)
    X[7, 3] = np.nan  # a gap tells nothing
    [found] = leaks(Rows(X, y, ("noise", "range", "almost", "code")))
    assert found.text.startswith("columns 'range', 'code' alone determine the label")


def checked(config: Config) -> list[Remark]:
    return list(look_over(config, Here()))


@pytest.mark.slow
def test_check_says_what_is_odd_and_fits_each_method_once(drafted: Drafted, tmp_path: Path) -> None:
    lines = words()
    lines = [f"{lines[0]},after", *(f"{line},{'x' if line.endswith('a') else 'z'}" for line in lines[1:])]
    small = ["methods.ours.search={n_basis: [5], C: [1]}", "methods.boosted trees=null"]
    config, _ = drafted("mine.csv", lines, "outcome", *small[:1])
    config = config.model_copy(update={"methods": {k: config.methods[k] for k in ("ours", "linear SVM")}})
    found = checked(config)
    odd = [remark.text for remark in found if remark.kind == "odd"]
    assert not [remark for remark in found if remark.kind == "wrong"]
    assert any("Column 'after' alone determines the label" in text for text in odd)
    assert any(text.startswith("Values are missing in column 'age'") for text in odd)
    assert any(
        text.startswith("Few test rows: with 2 of 24 wrong, the 95 % interval of the error is 2 to 26 %")
        for text in odd
    )
    folds = "split={kind: cross_validation, folds: 4}", "production=null"
    (tmp_path / "drafts" / "mine.yaml").unlink()
    other, _ = drafted("mine.csv", lines, "outcome", *small[:1], *folds)
    said = checked(other.model_copy(update={"methods": {}}))
    assert any("(cross_validation, the first of 4 splits)" in remark.text for remark in said)
    assert not [remark for remark in said if "Few test rows" in remark.text]
    facts = {remark.about: remark.text for remark in found if remark.kind == "fact"}
    assert (
        "4 fits on 72 rows) will take roughly 1 second" in facts["linear SVM"] and "one fit on 72 rows" in facts["ours"]
    )


@pytest.mark.slow
def test_check_names_what_must_be_changed(drafted: Drafted) -> None:
    config, _ = drafted("mine.csv", words(), "outcome", "dataset.missing=drop", "split.train=4000")
    assert [(remark.kind, remark.about) for remark in checked(config)] == [("wrong", "data")]
    config = load_config("conf/digits.yaml", [f"paths.cache={config.paths.cache}", "limits.fit_mib=1"], root=ROOT)
    config = config.model_copy(update={"methods": {"Gaussian SVM": config.methods["Gaussian SVM"]}})
    wrong, again = (remark.text for remark in checked(config) if remark.kind == "wrong")  # of two problems
    assert wrong == again and wrong.startswith("all fits of the search are not run: needs 3.1 MiB")


def test_the_commands_teach_and_start_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new", "check"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"python -m flows {name} " in capsys.readouterr().out.partition("examples:")[2]
    with pytest.raises(SystemExit):
        main(["--help"])
    assert steps_in(capsys.readouterr().out.partition("step by step:")[2])[:5] == ["new", *STEPS]
    monkeypatch.setattr("flows.environment.check_api", lambda: pytest.fail("what needs servers begins"))
    for module in ("prefect", "mlflow", "ray"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    (tmp_path / "a.csv").write_text("\n".join(words()))
    own = [f"dataset.path={tmp_path / 'a.csv'}", f"paths.cache={tmp_path / 'cache'}"]
    assert main(["check", "conf/own_table.yaml", *own, "dataset.label=nothing"]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "Must be changed:" in said and "dataset.label names 'nothing'" in said and "ready" not in said
    assert main(["check", "conf/none.yaml"]) == 2


def test_percentages_lists_and_columns_without_a_name(tmp_path: Path) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"p": [f"{i % 50} %" for i in range(90)], "town": rng.choice(["a", "b"], 90)})
    table["y"] = rng.choice(["no", "yes"], 90)
    table.set_index(rng.normal(size=90)).to_csv(tmp_path / "a.csv")
    found = draft.find_out(FileSpec(str(tmp_path / "a.csv"), label="y"))
    roles = {column.name: (column.role, column.reason) for column in found.columns}
    assert roles == {"": ("identifier", "it has no name"), "p": ("number", ""), "town": ("category", "")}
    assert found.rows.X[:3, 0].tolist() == [0, 1, 2]
    table.assign(words=[["x"]] * 90, pair=[[1, 2]] * 90).to_parquet(tmp_path / "b.parquet")
    found = draft.find_out(FileSpec(str(tmp_path / "b.parquet"), label="y", drop=("p",)))
    reason = "lists cannot be inputs beside columns of other kinds"
    assert {column.name: column.reason for column in found.columns} == {
        "p": "as --drop says", "words": reason, "pair": reason, "town": "",
    }  # fmt: skip
