"""From the bytes of a request to rows, or one sentence on why there are none."""

from __future__ import annotations

import io
import json
from typing import Any, NoReturn

from ldsvm.datasets import DataError
from ldsvm.datasets.words import shown
from ldsvm.tracking.served import csv_table

PLAIN = 'such as {"rows": [{"height": 1.8, "age": 30}]}'
FORMS = ("rows", "dataframe_records", "dataframe_split", "instances", "inputs")  # the last four are MLflow's
MORE = ("probabilities", "params")


def rows_of(body: bytes, kind: str) -> tuple[Any, bool]:
    """Return the rows of a request, a list or a table, and whether it asks for all probabilities.

    kind: the content type. Raises DataError, in one sentence, for what is neither JSON nor CSV with at least one row.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"The request is not UTF-8 from byte {error.start + 1} on; allowed: UTF-8.") from None
    if kind.partition(";")[0].strip().lower() == "text/csv":
        table = csv_table(io.StringIO(text))
        if not len(table):
            raise DataError("The request has no rows; allowed: at least one row below the line of column names.")
        return table, False
    said = _json(text)
    if not isinstance(said, dict):
        raise DataError(f"The request is {shown(said)}; allowed: an object {PLAIN}.")
    forms = [name for name in FORMS if name in said]
    unknown = [name for name in said if name not in FORMS + MORE]
    if unknown or len(forms) != 1:
        what = f"has the key {shown(unknown[0])}" if unknown else f"has {len(forms)} of the keys that hold rows"
        raise DataError(f"The request {what}; allowed: an object {PLAIN}, and probabilities.")
    rows = _split(said["dataframe_split"]) if forms == ["dataframe_split"] else said[forms[0]]
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{forms[0]} is {shown(rows)}; allowed: a list with at least one row.")
    params = said.get("params") or {}
    wanted = said.get("probabilities", params.get("probabilities", False) if isinstance(params, dict) else None)
    if not isinstance(wanted, bool):
        raise DataError(f"probabilities is {shown(wanted)}; allowed: true or false.")
    return rows, wanted


def _json(text: str) -> Any:
    try:
        said = READER.decode(text)
        if "\\u" in text:  # an escape may be half of a pair, which is no character
            json.dumps(said, ensure_ascii=False).encode()
        return said
    except DataError:
        raise
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):x}"
        raise DataError(f"The request has {half}, half of a surrogate pair; allowed: UTF-8.") from None
    except RecursionError:
        raise DataError("The request is nested too deeply; allowed: rows of cells.") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno}, column {error.colno}"
        raise DataError(f"The request is not valid JSON ({where}); allowed: an object {PLAIN}.") from None
    except ValueError:  # of int(), for thousands of digits
        raise DataError("The request has a number with too many digits; allowed: up to 2**63.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"The request has the key {shown(twice)} more than once in one object; allowed: once.")
    return found


def _constant(name: str) -> NoReturn:
    raise DataError(
        f"The request has {name}, which is not JSON; allowed: finite numbers, and null for a missing value."
    )


READER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def _split(said: Any) -> list[Any]:
    """Return MLflow's form of names of columns and lists of cells as rows by name."""
    names, data = (said.get("columns"), said.get("data")) if isinstance(said, dict) else (None, None)
    if not isinstance(names, list) or not isinstance(data, list) or not all(isinstance(name, str) for name in names):
        raise DataError("dataframe_split needs columns, a list of names, and data, a list of rows.")
    if len({*names}) < len(names):
        raise DataError("dataframe_split names a column more than once; allowed: once.")
    for row in data:
        if not isinstance(row, list) or len(row) != len(names):
            raise DataError(f"dataframe_split has the row {shown(row)}; allowed: a list of {len(names)} cells.")
    return [dict(zip(names, row, strict=True)) for row in data]
