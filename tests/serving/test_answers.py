"""What the server answers: what the model says of the same rows, in whatever form they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest

from ldsvm.serving.champion import Champion
from tests.serving.conftest import COLUMNS, rows

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def test_answers_are_the_models_in_every_form(people: Any, serving: Callable[..., Any]) -> None:
    table = rows(5, seed=1)
    cells, records = table.to_numpy().tolist(), table.to_dict("records")
    with serving(people) as client:
        answer = client.post("/predict", json={"rows": records, "probabilities": True})
        said = answer.json()
        assert (answer.status_code, said["version"], "remarks" in said) == (200, 1, False)
        assert [one["class"] for one in said["answers"]] == people.predict(table).tolist()
        X, P = people[:-1].transform(table), people.predict_proba(table)
        np.testing.assert_array_equal([one["latent"] for one in said["answers"]], people[-1].transform(X))
        np.testing.assert_array_equal([one["margin"] for one in said["answers"]], abs(people.decision_function(table)))
        np.testing.assert_array_equal([[*one["probabilities"].values()] for one in said["answers"]], P)
        np.testing.assert_array_equal([one["probability"] for one in said["answers"]], P.max(axis=1))
        assert [*said["answers"][0]["probabilities"]] == ["old", "tall"]
        plain = client.post("/predict", json={"rows": cells}).json()["answers"]
        without = [{k: v for k, v in one.items() if k != "probabilities"} for one in said["answers"]]
        assert plain == without
        turned = table[["age", "height"]].assign(more="x")
        for body, kind in (
            (turned.to_csv(index=False), "text/csv; charset=utf-8"),
            (json.dumps({"rows": turned.to_dict("records")}), "application/json"),
            (json.dumps({"rows": [{name: str(cell) for name, cell in row.items()} for row in records]}), ""),
        ):
            given = client.post("/predict", content=body, headers={"content-type": kind}).json()["answers"]
            assert given == without, body


def test_one_row_and_many_give_the_same_bits(people: Any, serving: Callable[..., Any]) -> None:
    # an answer does not depend on what else is asked at the same time
    records = rows(2, seed=2).to_dict("records")
    with serving(people) as client:
        one = [client.post("/predict", json={"rows": [row]}).json()["answers"][0] for row in records]
        again = [client.post("/predict", json={"rows": [row]}).json()["answers"][0] for row in records]
    assert one == again


def test_forms_of_mlflow(people: Any, serving: Callable[..., Any]) -> None:
    table = rows(3, seed=1)
    right, cells = people.predict(table).tolist(), table.to_numpy().tolist()
    P = [dict(zip(["old", "tall"], row, strict=True)) for row in people.predict_proba(table).tolist()]
    with serving(people) as client:
        for body in (
            {"dataframe_split": {"columns": COLUMNS, "data": cells}},
            {"dataframe_records": table.to_dict("records")},
            {"instances": cells},
            {"inputs": table.to_dict("records")},
        ):
            assert client.post("/invocations", json=body).json() == {"predictions": right}
        wanted = {"dataframe_split": {"columns": COLUMNS, "data": cells}, "params": {"probabilities": True}}
        assert client.post("/invocations", json=wanted).json() == {"predictions": P}


@pytest.mark.slow
def test_a_mixed_table_texts_and_rows_without_names(
    shop: Any, letters: Any, plain: Any, serving: Callable[..., Any]
) -> None:
    with serving(shop) as client:
        both = pandas.DataFrame({"age": [25.0, 61.5], "town": ["Ulm", None]})
        said = client.post("/predict", json={"rows": [{"age": 25, "town": "Ulm", "more": 1}, {"age": 61.5}]}).json()
        assert [one["class"] for one in said["answers"]] == shop.predict(both).tolist()
        np.testing.assert_array_equal(
            [one["latent"] for one in said["answers"]], shop[-1].transform(shop[:-1].transform(both))
        )
        found = client.get("/schema").json()
        assert found["classes"] == ["old", "young"] and found["rows"] == "table"
        assert found["columns"] == [
            {"name": "age", "role": "number", "optional": False, "least": 20, "largest": 69},
            {"name": "town", "role": "category", "optional": True},
        ]
    with serving(letters) as client:
        texts = ["disk drive 3", "cat dog 1"]
        said = client.post("/predict", json={"rows": texts}).json()
        assert [one["class"] for one in said["answers"]] == letters.predict(texts).tolist() == ["pc", "pet"]
        assert client.get("/schema").json()["rows"] == "texts"
        csv = client.post("/predict", content="text\ndisk drive 3\n", headers={"content-type": "text/csv"}).json()
        assert [one["class"] for one in csv["answers"]] == ["pc"]
    with serving(plain) as client:
        cells = rows(4, seed=1).to_numpy()
        said = client.post("/predict", json={"rows": cells.tolist()}).json()
        assert [one["class"] for one in said["answers"]] == plain.predict(cells).tolist()
        assert "probability" not in said["answers"][0]
        answer = client.post("/predict", json={"rows": cells.tolist(), "probabilities": True})
        assert answer.status_code == 400 and answer.json()["error"].startswith("The model has no probabilities;")


@pytest.mark.parametrize("rule", ["warn", "refuse", "ignore"])
def test_cells_that_the_schema_does_not_allow(rule: str, people: Any, serving: Callable[..., Any]) -> None:
    said = "The request: row 2, counted from 1 without a header, column 'age' is 131; training saw 1 to 90."
    with serving(people, schema=rule) as client:
        answer = client.post("/predict", json={"rows": [[50, 60], [50, 131]]})
        found = answer.json()
        assert answer.status_code == (400 if rule == "refuse" else 200)
        if rule == "refuse":
            assert found["error"] == f"{said} The request is refused (production.schema is refuse)."
        else:
            assert [one["class"] for one in found["answers"]] == ["old", "old"]
            assert found.get("remarks", []) == ([said] if rule == "warn" else [])


def test_the_short_way_and_the_long_way_find_the_same_rows_odd(people: Any) -> None:
    # the short way looks at numbers alone; the long way is the one of files and of MLflow's server
    rng = np.random.default_rng(0)
    champion = Champion(people, 1, "warn")
    for row in rng.choice([0.999, 1.0, 45.5, 90.0, 90.001], size=(40, 2)).tolist():
        short = champion._numbers([row])
        _, X, remarks = champion.served.inputs(champion._table([row]))
        assert (short is None) == bool(remarks)
        if short is not None:
            np.testing.assert_array_equal(short, X)


BAD = {
    "nothing": (b"", "The request is not valid JSON (Expecting value, line 1"),
    "no JSON": (b"rows", "The request is not valid JSON (Expecting value, line 1"),
    "cut": (b'{"rows": [[1, 2', "The request is not valid JSON (Expecting "),
    "more after it": (b'{"rows": [[1, 2]]} x', "The request is not valid JSON (Extra data"),
    "no UTF-8": (b'{"rows": [["\xff"]]}', "The request is not UTF-8 from byte 13 on; allowed: UTF-8."),
    "a number": (b"7", "The request is 7; allowed: an object such as"),
    "null": (b"null", "The request is None; allowed: an object such as"),
    "no rows": (b"{}", "The request has 0 of the keys that hold rows; allowed:"),
    "two forms": (b'{"rows": [[1, 2]], "instances": [[1, 2]]}', "The request has 2 of the keys that hold rows;"),
    "a wrong key": (b'{"row": [[1, 2]]}', "The request has the key 'row'; allowed:"),
    "empty": (b'{"rows": []}', "rows is []; allowed: a list with at least one row."),
    "rows of a text": (b'{"rows": "x"}', "rows is 'x'; allowed: a list with at least one row."),
    "a row of nothing": (b'{"rows": [null]}', "Row 1, counted from 1 without a header, is None; the model needs"),
    "a row that is a text": (b'{"rows": ["x"]}', "Row 1, counted from 1 without a header, is 'x'; the model needs"),
    "a row that is too short": (b'{"rows": [[1, 2], [1]]}', "Row 2, counted from 1 without a header, has 1 cells;"),
    "an absent column": (b'{"rows": [{"age": 1}]}', "Row 1, counted from 1 without a header, has no column 'height';"),
    "NaN": (b'{"rows": [[NaN, 2]]}', "The request has NaN, which is not JSON; allowed: finite numbers"),
    "inf": (b'{"rows": [[-Infinity, 2]]}', "The request has -Infinity, which is not JSON; allowed: finite numbers"),
    "an infinite number": (b'{"rows": [[1e999, 2]]}', "Row 1, counted from 1 without a header, has inf in column"),
    "a gap": (b'{"rows": [[1, null]]}', "Row 1, counted from 1 without a header, has no value in column 'age';"),
    "a word": (b'{"rows": [[1, "x"]]}', "Row 1, counted from 1 without a header, has 'x' in column 'age';"),
    "a list": (b'{"rows": [[1, [2]]]}', "Row 1, counted from 1 without a header, has [2] in column 'age'; allowed:"),
    "an object": (b'{"rows": [{"age": 1, "height": {}}]}', "Row 1, counted from 1 without a header, has {} in column"),
    "a large number": (b'{"rows": [[1, %s]]}' % (b"9" * 400), "Row 1, counted from 1 without a header, has a number"),
    "a larger number": (b'{"rows": [[1, %s]]}' % (b"9" * 5000), "The request has a number with too many digits;"),
    "half a character": (b'{"rows": [[1, "\\ud800"]]}', "The request has \\ud800, half of a surrogate pair;"),
    "a key twice": (b'{"rows": [{"age": 1, "age": 2, "height": 3}]}', "The request has the key 'age' more than once"),
    "deep": (b'{"rows": %s1%s}' % (b"[" * 50_000, b"]" * 50_000), "The request is nested too deeply; allowed:"),
    "probabilities": (b'{"rows": [[1, 2]], "probabilities": 1}', "probabilities is 1; allowed: true or false."),
    "params": (b'{"rows": [[1, 2]], "params": [1]}', "probabilities is None; allowed: true or false."),
    "no split": (b'{"dataframe_split": [1]}', "dataframe_split needs columns, a list of names, and data,"),
    "a split twice": (
        b'{"dataframe_split": {"columns": ["age", "age"], "data": [[1, 2]]}}',
        "dataframe_split names a column more than once; allowed: once.",
    ),
    "a short row of a split": (
        b'{"dataframe_split": {"columns": ["age", "height"], "data": [[1]]}}',
        "dataframe_split has the row [1]; allowed: a list of 2 cells.",
    ),
}  # fmt: skip
BAD_CSV = {
    "nothing": (b"", "The request is not valid CSV: No columns to parse from file."),
    "no rows": (b"height,age\n", "The request has no rows; allowed: at least one row below"),
    "an absent column": (b"height\n1\n", "The request has no column 'age'; the model needs"),
    "a word": (b"height,age\n1,x\n", "Row 1, counted from 1 without a header, has 'x' in column 'age';"),
    "a gap": (b"height,age\n1,\n", "Row 1, counted from 1 without a header, has '' in column 'age';"),
    "fewer cells": (b"height,age\n1,2\n3\n", "Row 2, counted from 1 without a header, has fewer cells than there are"),
    "more cells": (b"height,age\n1,2\n1,2,3,4\n", "The request is not valid CSV: Error tokenizing data."),
    "more cells in all rows": (b"height,age\n1,2,3\n1,2,3\n", "The request is not valid CSV: Error tokenizing data."),
    "a column twice": (b"height,age,age\n1,2,3\n", "The request has column 'age' more than once; allowed: once."),
    "a quote": (b'height,age\n1,"2\n', "The request is not valid CSV: "),
    "no UTF-8": (b"height,age\n1,\xff\n", "The request is not UTF-8 from byte 14 on; allowed: UTF-8."),
}


def test_what_does_not_fit_is_answered_with_one_sentence(people: Any, serving: Callable[..., Any]) -> None:
    with serving(people) as client:
        for kind, table in (("application/json", BAD), ("text/csv", BAD_CSV)):
            for what, (body, sentence) in table.items():
                answer = client.post("/predict", content=body, headers={"content-type": kind})
                said = answer.json()
                assert (answer.status_code, [*said]) == (400, ["error"]), what
                assert said["error"].startswith(sentence) and said["error"].endswith("."), (what, said)
                assert not [word for word in ("Traceback", ".py", "/", "\n") if word in said["error"]], what
        assert client.post("/predict", json={"rows": [[1, 2]]}).status_code == 200


def test_a_model_that_fails_is_answered_without_its_reason(people: Any, serving: Callable[..., Any]) -> None:
    with serving(people) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr("ldsvm.serving.champion.Answers", lambda *_, **__: 1 / 0)
        answer = client.post("/predict", json={"rows": [[1, 2]]})
    assert answer.status_code == 500
    assert answer.json() == {"error": "The model failed with ZeroDivisionError; the log of the server has the reason."}


@pytest.mark.slow
def test_a_misspelt_column_that_may_be_absent_is_a_remark(shop: Any, serving: Callable[..., Any]) -> None:
    said = ["The request lacks column 'town', which counts as missing, but has the unknown column 'Town'."]
    with serving(shop, schema="warn") as client:
        known = {"age": 30, "town": "Ulm", "x": 1}
        for row, remarks in (({"age": 30, "Town": "Ulm"}, said), ({"age": 30}, None), (known, None)):
            assert client.post("/predict", json={"rows": [row]}).json().get("remarks") == remarks
        table = client.post("/predict", content=b"age,Town\n30,Ulm\n", headers={"content-type": "text/csv"})
        assert table.json()["remarks"] == said
    with serving(shop, schema="ignore") as client:
        assert "remarks" not in client.post("/predict", json={"rows": [{"age": 30, "Town": "Ulm"}]}).json()
