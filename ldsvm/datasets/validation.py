"""Checks of rows before anything is fitted; `split_checks` compares the parts of a split."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError, Rows, absent
from ldsvm.datasets.flaws import Flaw, flaws
from ldsvm.datasets.labels import alike, coded, unknown
from ldsvm.datasets.split import Indices
from ldsvm.datasets.words import listing, row_list, shown

MISSING = ("refuse", "drop", "impute")
COUNTED = 20  # fewer rows may be in order by chance


@dataclass(frozen=True)
class Finding:
    """One sentence about the data: an error stops everything, a warning is for the reader of the results."""

    level: Literal["error", "warning"]
    text: str


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Rows fit for use, if no finding is an error; ``kept`` (n,) are their row numbers before anything was left out."""

    rows: Rows
    kept: Indices
    findings: tuple[Finding, ...]


def clean(
    rows: Rows,
    *,
    missing: Literal["refuse", "drop", "impute"],
    classes: Sequence[Any] | None,
    what: str,
    official: bool = False,
    unlabelled: Literal["refuse", "drop"] = "refuse",
) -> Cleaned:
    """Check rows and leave out those that are not wanted.

    Parameters
    ----------
    rows : as a source read them
    missing : "refuse" rows with missing values or labels, "drop" them, or keep missing values for the features to
        "impute"; missing labels and texts cannot be imputed
    unlabelled : "drop" leaves out rows without a label whatever becomes of other missing values
    classes : the labels to keep; None keeps all
    what : names the rows in the findings, such as "training data"
    official : whether they are an official test set, which may lack classes, and, for "impute", columns

    Returns
    -------
    Cleaned
        The rows with y as int64 or str in an object array, and no label missing; findings in the order of the checks.

    Raises
    ------
    DataError
        For an unknown ``missing``. What is wrong with the rows is a finding; `refuse` raises it.

    Examples
    --------
    >>> rows = Rows(np.float32([[1, 2], [3, np.nan], [5, 6]]), np.array(["no", "no", "yes"], dtype=object), ("a", "b"))
    >>> done = clean(rows, missing="drop", classes=None, what="training data")
    >>> done.kept.tolist(), done.findings[0].text
    ([0, 2], "training data: values are missing in column 'b' (row 2, counted from 1 without a header): 1 of 3 rows \
left out.")
    """
    if missing not in MISSING:
        near = difflib.get_close_matches(str(missing), MISSING, 1, 0)[0]
        raise DataError(f"missing={shown(missing)} is unknown, nearest {near!r}: use one of {', '.join(MISSING)}.")
    kept, findings = _labelled(rows.y, "drop" in (missing, unlabelled))
    findings += [] if official else _counting(rows)
    y = _one_type(rows.y[kept])
    if y is None:
        findings.append(Finding("error", "the labels must be all whole numbers or all text."))
        rows = _take(rows, kept)
    else:
        wanted, found = _wanted(y, classes, official)
        kept = kept[wanted]
        chosen = replace(_take(rows, kept), y=y[wanted])
        complete, more = _complete(chosen, kept, missing, official)
        rows, kept = _take(chosen, complete), kept[complete]
        # A wanted class without rows explains too few classes, so that is not reported again.
        findings += found + more + ([] if any(f.level == "error" for f in found) else _enough(rows, official))
        findings += [Finding("warning", text) for text in alike(y)]
    return Cleaned(rows, kept, tuple(Finding(found.level, f"{what}: {found.text}") for found in findings))


def refuse(findings: Iterable[Finding]) -> list[str]:
    """Return the texts of the warnings; raise `DataError` with the errors, a line each, if there are any.

    Examples
    --------
    >>> refuse([Finding("warning", "training data: 2 rows are empty texts.")])
    ['training data: 2 rows are empty texts.']
    """
    texts: dict[str, list[str]] = {"error": [], "warning": []}
    for found in findings:
        texts[found.level].append(found.text)
    if texts["error"]:
        raise DataError("\n".join(texts["error"]))
    return texts["warning"]


def _take(rows: Rows, which: Indices) -> Rows:
    return rows if len(which) == len(rows) else rows.take(which)


def _labelled(y: NDArray[Any], drop: bool) -> tuple[Indices, list[Finding]]:
    """Return the rows that have a label; nothing else can be checked about the others."""
    gone = absent(y)
    if not gone.any():
        return np.arange(len(y)), []
    where = f"the label is missing in {row_list(np.flatnonzero(gone))}"
    if drop:
        finding = Finding("warning", f"{where}: left out.")
    else:
        finding = Finding("error", f"{where}: allowed only with dataset.unlabelled=drop, which leaves such rows out.")
    return np.flatnonzero(~gone), [finding]


def counting(rows: Rows) -> Indices:
    """Return which columns only count the rows: in sorted rows such a number gives the label away."""
    if rows.kind not in ("dense", "table") or len(rows) < COUNTED:
        return np.zeros(0, dtype=np.int64)
    first = rows.X[:COUNTED].astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite values, which are refused later
        steps = first[1] - first[0]
        regular = (first == first[0] + np.arange(COUNTED)[:, None] * steps).all(axis=0)
    columns = [
        column
        for column in np.flatnonzero(regular & (steps != 0))
        if np.array_equal(rows.X[:, column], np.float32(first[0, column] + np.arange(len(rows)) * steps[column]))
    ]
    return np.array(columns, dtype=np.int64)


def _counting(rows: Rows) -> list[Finding]:
    columns = counting(rows)
    text = f"{named(rows, columns)} {'numbers' if len(columns) == 1 else 'number'} the rows"
    return [Finding("warning", f"{text}; list columns that are not inputs in dataset.drop.")] if len(columns) else []


def _one_type(y: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels as int64 or as str in an object array; None when they are mixed or of another type."""
    kinds = set(map(type, y.tolist())) if y.dtype.kind == "O" else {str if y.dtype.kind == "U" else y.dtype.type}
    if kinds <= {str}:
        return y.astype(object)
    return y.astype(np.int64) if all(issubclass(kind, int | np.integer | np.bool_) for kind in kinds) else None


def _wanted(y: NDArray[Any], classes: Sequence[Any] | None, official: bool) -> tuple[Indices, list[Finding]]:
    if classes is None:
        return np.arange(len(y)), []
    values, codes = coded(y)
    known = values.tolist()
    findings = [
        Finding("warning", f"no row has label {shown(name)}.") if official else Finding("error", unknown(name, known))
        for name in dict.fromkeys(classes)
        if name not in known
    ]
    rows = np.flatnonzero(np.isin(codes, [code for code, value in enumerate(known) if value in classes]))
    if len(rows) < len(y):
        findings.append(
            Finding("warning", f"{len(y) - len(rows):,} of {len(y):,} rows are of other classes and left out.")
        )
    return rows, findings


def _complete(rows: Rows, kept: Indices, missing: str, official: bool) -> tuple[Indices, list[Finding]]:
    """Return which rows stay, and what was found about missing, infinite and empty values."""
    found, every, findings = flaws(rows), np.arange(len(rows)), []
    if len(found.infinite.columns):
        where = _where(rows, found.infinite, kept)
        findings.append(Finding("error", f"values are infinite in {where}; allowed: finite values."))
    nowhere = found.missing.columns[found.missing.counts == len(rows)]
    if len(nowhere) and not official:
        findings.append(Finding("error", f"no row has a value in {named(rows, nowhere)}: leave it out."))
    elif len(found.missing.columns):
        gone = found.missing.rows
        where = f"values are missing in {_where(rows, found.missing, kept)}"
        if missing == "drop":
            every = np.flatnonzero(~gone)
            findings.append(Finding("warning", f"{where}: {gone.sum():,} of {len(gone):,} rows left out."))
        elif rows.kind == "table":
            findings.append(
                Finding(
                    "warning", f"{where}: {found.missing.counts.sum():,} missing values, which the step table fills."
                )
            )
        elif missing == "impute" and rows.kind != "text":
            findings.append(Finding("warning", f"{where}: {found.missing.counts.sum():,} values to impute."))
        else:
            allowed = (
                "dataset.missing=drop" if rows.kind == "text" else "dataset.missing=drop or dataset.missing=impute"
            )
            findings.append(Finding("error", f"{where}: allowed only with {allowed}."))
    return every, findings + _empty(rows, kept)


def _empty(rows: Rows, kept: Indices) -> list[Finding]:
    if rows.kind != "text":
        return []
    empty = np.fromiter((text is not None and not text.strip() for text in rows.X), dtype=bool, count=len(rows))
    where = row_list(kept[empty])
    return [Finding("warning", f"the text is empty in {where}.")] if empty.any() else []


def _enough(rows: Rows, official: bool) -> list[Finding]:
    if official:
        return [] if len(rows) else [Finding("error", "no rows are left, but at least one is needed.")]
    classes = len(coded(rows.y)[0])
    text = f"{len(rows):,} rows with {classes} distinct labels are left, but at least 2 labels are needed."
    return [] if classes > 1 else [Finding("error", text)]


def _where(rows: Rows, flaw: Flaw, kept: Indices) -> str:
    return f"{named(rows, flaw.columns)} ({row_list(kept[flaw.rows])})"


def named(rows: Rows, columns: Indices, total: int | None = None) -> str:
    """Return columns by name where they have one, else by number; total: how many, if these are only the first."""
    if rows.kind == "text":
        return "the text"
    items = columns if rows.columns is None else [rows.columns[column] for column in columns]
    return listing("column", items, total)
