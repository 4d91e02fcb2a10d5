"""The step ``table`` as nodes of an ONNX graph, one input a column; `ldsvm.export` knows the graph, and imports onnx.

========  ==================================================
role      input (N, 1)
========  ==================================================
number    float64, NaN for a gap
yes/no    float64: 1, 0, or NaN for a gap
category  string, "" for a gap
date      float64: seconds since 1970 in UTC, NaN for a gap
========  ==================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import shown

INPUTS = {"number": "DOUBLE", "yes/no": "DOUBLE", "date": "DOUBLE", "category": "STRING"}
UNSEEN = "\0"  # no value of a file
DAY = 86_400.0


def graph_inputs(table: Any, roles: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return the inputs of the graph, by name, for a table (N, D) as `check_cells` returns it.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> table = DataFrame({"age": [31.0], "town": [None]}, dtype=object)
    >>> {name: values.tolist() for name, values in graph_inputs(table, {"age": "number", "town": "category"}).items()}
    {'age': [[31.0]], 'town': [['']]}
    """
    return {name: _input(table[name].to_numpy(), role).reshape(-1, 1) for name, role in roles.items()}


def _input(values: NDArray[Any], role: str) -> NDArray[Any]:
    if role == "category":
        return np.array([value if isinstance(value, str) else "" for value in values], dtype=object)
    if role == "date":
        micro = values.astype("datetime64[us]")
        return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 1e6)
    return values.astype(np.float64)


def add_table(graph: Any, roles: Mapping[str, str], groups: Sequence[tuple[str, Any, Any]]) -> str:
    """Add a fitted `ColumnTransformer` of the step ``table`` and return the name of its features (N, L), float32.

    groups: its name, fitted transformer and columns. Raises `DataError` for texts and quantiles, which are no part of
    a graph.
    """
    if own := [type(step).__name__ for name, step, _ in groups if name.startswith("own-")]:
        raise DataError(f"Transformer {own[0]} cannot be part of an ONNX graph; allowed: the step table without it.")
    for name, role in roles.items():
        if role not in INPUTS:
            raise DataError(
                f"Column {shown(name)} is {role}, which ONNX has no operator for; allowed: {', '.join(INPUTS)}."
            )
        graph.input(name, INPUTS[role], 1)
    add = {"date": _dates, "gap": _gaps, "category": _values, "many": _values}
    parts = [add.get(name, _numbers)(graph, name, step, columns) for name, step, columns in groups if step != "drop"]
    return str(graph.node("Concat", parts, "table", axis=1))


def _joined(graph: Any, group: str, columns: Sequence[str]) -> str:
    return str(graph.node("Concat", [*columns], f"{group}/columns", axis=1))


def _numbers(graph: Any, group: str, step: Any, columns: Sequence[str]) -> str:
    return _filled(graph, group, step.steps, _joined(graph, group, columns))


def _filled(graph: Any, group: str, steps: Sequence[tuple[str, Any]], x: str) -> str:
    """Add gaps filled and numbers scaled, in the order of the steps."""
    for name, step in steps:
        if name == "impute":
            fill = graph.constant(f"{group}/fill", np.asarray(step.statistics_, dtype=np.float64))
            gaps = graph.node("IsNaN", [x], f"{group}/gaps")
            x = graph.node("Where", [gaps, fill, x], f"{group}/filled")
            continue
        if not hasattr(step, "scale_"):
            raise DataError(
                "features.table.numbers is quantile, which ONNX has no operator for; allowed: standard or robust."
            )
        middle = getattr(step, "mean_", getattr(step, "center_", None))
        x = graph.node("Sub", [x, graph.constant(f"{group}/middle", middle)], f"{group}/apart")
        x = graph.node("Div", [x, graph.constant(f"{group}/scale", step.scale_)], f"{group}/scaled")
    return _float32(graph, x, f"{group}/features")


def _float32(graph: Any, x: str, name: str) -> str:
    return str(graph.node("Cast", [x], name, to=graph.type("FLOAT")))


def _gaps(graph: Any, group: str, step: Any, columns: Sequence[str]) -> str:
    return _float32(graph, graph.node("IsNaN", [_joined(graph, group, columns)], f"{group}/where"), f"{group}/features")


def _values(graph: Any, group: str, step: Any, columns: Sequence[str]) -> str:
    """Add the features of categories: a row of a matrix for each value, the last one for unseen values.

    A value decides features of its own column only, so the features of a row of several columns are a sum.
    """
    known = dict(
        zip(columns, getattr(step, "categories_", None) or step.named_steps["encode"].categories_, strict=True)
    )
    first = {name: values[:1] for name, values in known.items()}
    base = _encoded(step, first)
    x = graph.constant(f"{group}/base", base.astype(np.float32))
    for place, (name, values) in enumerate(known.items()):
        asked = [*values, UNSEEN]
        others = {other: np.repeat(value, len(asked)) for other, value in first.items()}
        rows = _encoded(step, {**others, name: np.array(asked, dtype=object)}) - base
        keys = [value if isinstance(value, str) else "" for value in values]
        index = graph.node(
            "LabelEncoder", [name], f"{group}/{place}/index", domain="ai.onnx.ml",
            keys_strings=keys, values_int64s=[*range(len(keys))], default_int64=len(keys),
        )  # fmt: skip
        index = graph.node(
            "Squeeze", [index, graph.constant(f"{group}/{place}/axis", np.array([1]))], f"{group}/{place}/row"
        )
        rows = graph.constant(f"{group}/{place}/rows", rows.astype(np.float32))
        x = graph.node("Add", [x, graph.node("Gather", [rows, index], f"{group}/{place}/own")], f"{group}/{place}/sum")
    return x


def _encoded(step: Any, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    from pandas import DataFrame, Series

    table = DataFrame({name: Series(values, dtype=object) for name, values in columns.items()})
    return np.asarray(step.transform(table), dtype=np.float64)


def _dates(graph: Any, group: str, step: Any, columns: Sequence[str]) -> str:
    parts, fill = step.steps[0][1], step.steps[1:]
    own = [_date(graph, f"{group}/{i}", name, parts.first_[i] / 1e6) for i, name in enumerate(columns)]
    return _filled(graph, group, fill, _joined(graph, group, own))


def _date(graph: Any, name: str, seconds: str, first: float) -> str:
    """Add year, month, weekday and days (N, 6) of one column, as `DateParts` makes them; NaN where it is a gap.

    The calendar is that of H. Hinnant, "chrono-compatible low-level date algorithms": years begin in March, and
    146,097 days are 400 years.
    """
    count = iter(range(100))

    def calc(kind: str, *inputs: Any) -> str:
        place = f"{name}/{next(count)}"
        named = [
            one if isinstance(one, str) else graph.constant(f"{place}/{i}", np.float64(one))
            for i, one in enumerate(inputs)
        ]
        return str(graph.node(kind, named, place))

    def quotient(x: str, by: float) -> str:
        return calc("Floor", calc("Div", x, by))

    def remainder(x: str, by: float) -> str:
        return calc("Sub", x, calc("Mul", quotient(x, by), by))

    def around(x: str, steps: int, what: str) -> str:
        angles = 2 * np.pi / steps * np.arange(steps)
        circle = graph.constant(f"{name}/{what}", np.column_stack([np.sin(angles), np.cos(angles)]))
        place = graph.node("Cast", [x], f"{name}/{what}/place", to=graph.type("INT64"))
        row = graph.node("Squeeze", [place, graph.constant(f"{name}/{what}/axis", np.array([1]))], f"{name}/{what}/row")
        return str(graph.node("Gather", [circle, row], f"{name}/{what}/point"))

    gap = str(graph.node("IsNaN", [seconds], f"{name}/gap"))
    known = calc("Where", gap, 0.0, seconds)
    day = quotient(known, DAY)
    since = calc("Add", day, 719_468.0)  # days since 0000-03-01
    era = quotient(since, 146_097.0)
    of_era = calc("Sub", since, calc("Mul", era, 146_097.0))
    leap = calc("Sub", calc("Sub", quotient(of_era, 36_524.0), quotient(of_era, 1_460.0)), quotient(of_era, 146_096.0))
    year = quotient(calc("Add", of_era, leap), 365.0)
    before = calc("Sub", calc("Add", calc("Mul", year, 365.0), quotient(year, 4.0)), quotient(year, 100.0))
    month = quotient(calc("Add", calc("Mul", calc("Sub", of_era, before), 5.0), 2.0), 153.0)  # 0: March
    month = calc("Add", month, 2.0)  # 0: January, 12: that of the next year
    year = calc("Add", calc("Add", year, calc("Mul", era, 400.0)), quotient(month, 12.0))
    month, weekday = remainder(month, 12.0), remainder(calc("Add", day, 3.0), 7.0)
    days = calc("Div", calc("Sub", known, first), DAY)
    parts = [year, around(month, 12, "month"), around(weekday, 7, "weekday"), days]
    return calc("Where", gap, float("nan"), str(graph.node("Concat", parts, f"{name}/parts", axis=1)))
