"""What a data set looks like in a few numbers, as JSON for the records and as sentences for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import Rows
from ldsvm.datasets.flaws import blocks, flaws
from ldsvm.datasets.words import cut

COLUMNS = 20  # columns with missing values that a summary names, the worst first


def summarise(train: Rows, test: Rows | None) -> dict[str, Any]:
    """Return the facts of a data set; what can be large is looked at in blocks of rows.

    Returns
    -------
    dict
        kind : "dense", "sparse" or "text"
        rows, test_rows : of training data and of the official test set (None: there is none)
        features : D; None for text
        sparsity : fraction of the training values that are zero or not stored; None for text, tables and without values
        bytes : of all inputs in memory; texts as UTF-8
        classes, test_classes : rows by label, as a str; test_classes is None without a test set
        missing : "total" missing training values, and "columns", the counts by name or number of at most 20
        texts : "min", "median" and "max" characters of the training texts, and how many are "empty"; None without

    Examples
    --------
    >>> rows = Rows(np.float32([[0, 2], [0, np.nan], [5, 6]]), np.array([0, 0, 1]), ("a", "b"))
    >>> found = summarise(rows, None)
    >>> found["sparsity"], found["classes"], found["missing"]
    (0.3333333333333333, {'0': 2, '1': 1}, {'total': 1, 'columns': {'b': 1}})
    """
    return {
        "kind": train.kind,
        "rows": len(train),
        "test_rows": None if test is None else len(test),
        "features": train.n_features,
        "sparsity": _sparsity(train),
        "bytes": sum(_bytes(rows) for rows in (train, test) if rows is not None),
        "classes": _classes(train.y),
        "test_classes": None if test is None else _classes(test.y),
        "missing": _missing(train),
        "texts": _texts(train.X) if train.kind == "text" and len(train) else None,
    }


def facts(summary: dict[str, Any]) -> dict[str, str]:
    """Return what `summarise` found as the rows of a table, text by heading.

    Examples
    --------
    >>> rows = Rows(np.zeros((2, 3), dtype=np.float32), np.array(["no", "yes"], dtype=object))
    >>> facts(summarise(rows, rows))["rows"]
    '2 rows + 2 official test rows'
    """
    official = summary["test_rows"]
    more = "" if official is None else f" + {_count(official, 'official test row')}"
    found = {
        "rows": _count(summary["rows"], "row") + more,
        "classes": _balance(summary["classes"]),
        "raw inputs": _inputs(summary),
    }
    if summary["missing"]["total"]:
        found["missing values"] = _gaps(summary["missing"])
    if summary["texts"]:
        lengths = "texts of {min:,} to {max:,} characters, median {median:,.0f}, {empty:,} of them empty"
        found["texts"] = lengths.format(**summary["texts"])
    return found


def sentences(summary: dict[str, Any]) -> list[str]:
    """Return the same as sentences: one of rows, classes and inputs, then one for each other fact.

    Examples
    --------
    >>> rows = Rows(np.zeros((2, 3), dtype=np.float32), np.array(["no", "yes"], dtype=object))
    >>> sentences(summarise(rows, None))
    ['2 rows, 2 classes (no: 1, yes: 1), 3 columns (dense), 100.0 % of the values zero, 24 bytes.']
    """
    texts = list(facts(summary).values())
    lines = [", ".join(texts[:3]), *texts[3:]]
    return [f"{line[0].upper()}{line[1:]}." for line in lines]


def _sparsity(rows: Rows) -> float | None:
    if rows.kind in ("text", "table") or not rows.X.shape[0] * rows.X.shape[1]:
        return None
    # NaN is not zero: a missing value is no absent one.
    nonzero = sum(block.nnz if rows.kind == "sparse" else np.count_nonzero(block) for _, block in blocks(rows.X))
    values = rows.X.shape[0] * rows.X.shape[1]
    return (values - int(nonzero)) / values


def _bytes(rows: Rows) -> int:
    if rows.kind == "text":
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in rows.X if text is not None)
    arrays = (rows.X.data, rows.X.indices, rows.X.indptr) if rows.kind == "sparse" else (rows.X,)
    return sum(int(array.nbytes) for array in arrays)


def _classes(y: NDArray[Any]) -> dict[str, int]:
    """Return the rows by label: numbers in their order, then texts in theirs, missing labels last."""
    counts = Counter(y.tolist())
    known = sorted(counts, key=lambda label: (label is None, isinstance(label, str), label if label is not None else 0))
    return {str(label): counts[label] for label in known}


def _missing(rows: Rows) -> dict[str, Any]:
    missing = flaws(rows).missing
    worst = np.argsort(-missing.counts, kind="stable")[:COLUMNS]
    names = ("text",) if rows.kind == "text" else rows.columns
    places, counts = missing.columns[worst].tolist(), missing.counts[worst].tolist()
    found = {str(place if names is None else names[place]): count for place, count in zip(places, counts, strict=True)}
    return {"total": int(missing.counts.sum()), "columns": found}


def _texts(X: NDArray[Any]) -> dict[str, Any]:
    lengths = np.fromiter((len(text or "") for text in X), dtype=np.int64, count=len(X))
    empty = sum(not (text or "").strip() for text in X)
    low, middle, high = int(lengths.min()), float(np.median(lengths)), int(lengths.max())
    return {"min": low, "median": middle, "max": high, "empty": empty}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _balance(classes: dict[str, int]) -> str:
    counts = list(classes.values())
    many = f"{min(counts):,} to {max(counts):,} rows each" if len(counts) > 10 else ""
    plural = "class" if len(counts) == 1 else "classes"
    return f"{len(counts)} {plural} ({many or ', '.join(f'{cut(name)}: {count:,}' for name, count in classes.items())})"


def _inputs(summary: dict[str, Any]) -> str:
    size = _size(summary["bytes"])
    if summary["features"] is None:
        return f"{summary['kind']}, {size}"
    kind = "" if summary["kind"] == "table" else f" ({summary['kind']})"
    zeros = "" if summary["sparsity"] is None else f", {100 * summary['sparsity']:.1f} % of the values zero"
    return f"{_count(summary['features'], 'column')}{kind}{zeros}, {size}"


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}" if unit != "bytes" else f"{number} bytes"
        number /= 1024
    return f"{number:,.1f} GiB"


def _gaps(missing: dict[str, Any]) -> str:
    columns = ", ".join(f"{cut(name)} ({count:,})" for name, count in missing["columns"].items())
    counted = sum(missing["columns"].values())
    rest = f" and others ({missing['total'] - counted:,})" if counted < missing["total"] else ""
    return f"{_count(missing['total'], 'missing value')}: {columns}{rest}"
