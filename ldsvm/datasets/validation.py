"""What must hold before anything is fitted: of the rows by themselves, and of the parts of a split side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError, Rows
from ldsvm.datasets.splits import Indices, Split, absent, told

BLOCK = 2**21  # values looked at together: the temporary arrays stay below 64 MiB
MISSING = ("refuse", "drop", "impute")


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
    rows: Rows, *, missing: Literal["refuse", "drop", "impute"], classes: Sequence[Any] | None, what: str
) -> Cleaned:
    """Check rows and leave out those that are not wanted.

    Parameters
    ----------
    rows : as a source read them
    missing : "refuse" rows with missing values or labels, "drop" them, or keep missing values for the features to
        "impute"; missing labels and texts cannot be imputed
    classes : the labels to keep; None keeps all
    what : names the rows in the findings, such as "training data"

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
    ([0, 2], "training data: values are missing in column 'b' (row 1): 1 of 3 rows left out.")
    """
    if missing not in MISSING:
        near = difflib.get_close_matches(str(missing), MISSING, 1, 0)[0]
        raise DataError(f"missing={missing!r} is unknown, nearest {near!r}: use one of {', '.join(MISSING)}.")
    kept, findings = _labelled(rows.y, missing)
    y = _one_type(rows.y[kept])
    if y is None:
        findings.append(Finding("error", "the labels must be all whole numbers or all text."))
        rows = _take(rows, kept)
    else:
        wanted, found = _wanted(y, classes)
        kept = kept[wanted]
        chosen = replace(_take(rows, kept), y=y[wanted])
        complete, more = _complete(chosen, kept, missing)
        rows, kept = _take(chosen, complete), kept[complete]
        findings += found + more + _enough(rows)
    return Cleaned(rows, kept, tuple(Finding(found.level, f"{what}: {found.text}") for found in findings))


def check_parts(
    train: Rows,
    validation: Rows,
    test: Rows,
    *,
    split: Split,
    kept: Indices | None = None,
    kept_test: Indices | None = None,
) -> list[Finding]:
    """Compare the parts of a split, whose inputs have D columns or are texts; parts may be empty.

    Labels that training never sees, and parts of other inputs or types of label, are errors. Classes with few rows,
    columns with one value, and rows of another part that training has too are warnings. Rows are told by their
    numbers in the source: ``split`` has them, ``kept`` and ``kept_test`` (see `Cleaned`) translate where rows of the
    training data and of the official test set were left out. Inputs are equal when every value is, NaN equals NaN.

    Examples
    --------
    >>> rows = Rows(np.float32([[1], [2], [3], [2]]), np.array([0, 1, 0, 1]))
    >>> split = Split(np.array([0, 1]), np.array([], dtype=np.int64), np.array([2, 3]), official_test=False)
    >>> parts = [rows.take(part) for part in (split.train, split.validation, split.test)]
    >>> check_parts(*parts, split=split)[1].text
    '1 of 2 test rows equal a training row with the same label: (test, training) row (3, 1).'
    """
    numbers = _original(split, kept, kept_test)
    findings = _rare(train.y, numbers["training"]) + _constant(train)
    keys = _keys(train.X)
    for name, part in (("validation", validation), ("test", test)):
        if not len(part):
            continue
        unlike = _unlike(train, part, name)
        findings += unlike or _labels(train.y, part.y, name, numbers[name])
        if not unlike:
            findings += _duplicates(train, part, keys, name, numbers)
    return findings


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


@dataclass(frozen=True, eq=False)
class Flaws:
    """Which rows (N,) have a value that is missing or infinite, and how many rows each column (D,) has it in."""

    missing_rows: NDArray[np.bool_]
    missing: Indices
    infinite_rows: NDArray[np.bool_]
    infinite: Indices


def flaws(rows: Rows) -> Flaws:
    """Count missing and infinite values, in blocks of rows; a text is one column."""
    n, D = len(rows), rows.n_features or 1
    if rows.kind == "text":
        gone = absent(rows.X)
        return Flaws(gone, np.array([gone.sum()]), np.zeros(n, dtype=bool), np.zeros(1, dtype=np.int64))
    found = [(np.zeros(n, dtype=bool), np.zeros(D, dtype=np.int64)) for _ in range(2)]
    for start, block in blocks(rows.X):
        sparse = hasattr(block, "indptr")
        values = block.data if sparse else block
        if np.isfinite(values).all():
            continue
        for (flagged, counts), test in zip(found, (np.isnan, np.isinf), strict=True):
            places = np.nonzero(test(values))
            if sparse:
                (entries,) = places
                places = np.searchsorted(block.indptr, entries, side="right") - 1, block.indices[entries]
            flagged[start + places[0]] = True
            counts += np.bincount(places[1], minlength=D)
    return Flaws(*found[0], *found[1])


def blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """Yield (first row, block) over X (N, D), dense as it is, sparse as a copy in canonical form without zeros."""
    step = _step(X)
    for start in range(0, X.shape[0], step):
        yield start, _block(X, slice(start, start + step))


def _step(X: Any) -> int:
    """Return how many rows make a block: BLOCK values, of sparse rows of average length."""
    rows, columns = X.shape
    return int(max(1, BLOCK * rows // max(X.nnz, 1) if hasattr(X, "indptr") else BLOCK // max(columns, 1)))


def _block(X: Any, rows: slice | Indices) -> Any:
    if not hasattr(X, "indptr"):
        return X[rows]
    block = X[rows]  # a copy, so that the caller's matrix stays as it is
    block.sum_duplicates()
    block.eliminate_zeros()
    return block


def _take(rows: Rows, which: Indices) -> Rows:
    return rows if len(which) == len(rows) else rows.take(which)


def _labelled(y: NDArray[Any], missing: str) -> tuple[Indices, list[Finding]]:
    """Return the rows that have a label; nothing else can be checked about the others."""
    gone = absent(y)
    if not gone.any():
        return np.arange(len(y)), []
    where = f"the label is missing in {told('row', np.flatnonzero(gone))}"
    if missing == "drop":
        finding = Finding("warning", f"{where}: left out.")
    else:
        finding = Finding("error", f"{where}: allowed only with missing='drop', which leaves such rows out.")
    return np.flatnonzero(~gone), [finding]


def _one_type(y: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels as int64 or as str in an object array; None when they are mixed or of another type."""
    kinds = set(map(type, y.tolist())) if y.dtype.kind == "O" else {str if y.dtype.kind == "U" else y.dtype.type}
    if kinds <= {str}:
        return y.astype(object)
    return y.astype(np.int64) if all(issubclass(kind, int | np.integer | np.bool_) for kind in kinds) else None


def _wanted(y: NDArray[Any], classes: Sequence[Any] | None) -> tuple[Indices, list[Finding]]:
    if classes is None:
        return np.arange(len(y)), []
    values, codes = np.unique(y, return_inverse=True)
    known = values.tolist()
    findings = [Finding("error", _unknown(name, known)) for name in dict.fromkeys(classes) if name not in known]
    rows = np.flatnonzero(np.isin(codes, [code for code, value in enumerate(known) if value in classes]))
    if len(rows) < len(y):
        findings.append(
            Finding("warning", f"{len(y) - len(rows):,} of {len(y):,} rows are of other classes: left out.")
        )
    return rows, findings


def _unknown(name: Any, known: list[Any]) -> str:
    by_text = {str(value): value for value in known}
    near = [by_text[text] for text in difflib.get_close_matches(str(name), by_text, 1)]
    rest = f"the nearest is {near[0]!r}" if near else f"the rows have {told('label', known)}"
    return f"no row has label {name!r}; {rest}."


def _complete(rows: Rows, kept: Indices, missing: str) -> tuple[Indices, list[Finding]]:
    """Return which rows stay, and what was found about missing, infinite and empty values."""
    found, every, findings = flaws(rows), np.arange(len(rows)), []
    if found.infinite.any():
        where = _where(rows, found.infinite, kept[found.infinite_rows])
        findings.append(Finding("error", f"values are infinite in {where}: only finite ones are allowed."))
    nowhere = np.flatnonzero((found.missing == len(rows)) & (len(rows) > 0))
    if len(nowhere):
        findings.append(Finding("error", f"no row has a value in {_named(rows, nowhere)}: leave it out."))
    elif found.missing.any():
        gone = found.missing_rows
        where = f"values are missing in {_where(rows, found.missing, kept[gone])}"
        if missing == "drop":
            every = np.flatnonzero(~gone)
            findings.append(Finding("warning", f"{where}: {gone.sum():,} of {len(gone):,} rows left out."))
        elif missing == "impute" and rows.kind != "text":
            findings.append(Finding("warning", f"{where}: {found.missing.sum():,} values to impute."))
        else:
            allowed = "missing='drop'" if rows.kind == "text" else "missing='drop' or missing='impute'"
            findings.append(Finding("error", f"{where}: allowed only with {allowed}."))
    return every, findings + _empty(rows, kept)


def _empty(rows: Rows, kept: Indices) -> list[Finding]:
    if rows.kind != "text":
        return []
    empty = np.fromiter((text is not None and not text.strip() for text in rows.X), dtype=bool, count=len(rows))
    where = told("row", kept[empty])
    return [Finding("warning", f"the text is empty in {where}.")] if empty.any() else []


def _enough(rows: Rows) -> list[Finding]:
    classes = len(np.unique(rows.y))
    text = f"{len(rows):,} rows with {classes} distinct labels are left, but at least 2 labels are needed."
    return [] if classes > 1 else [Finding("error", text)]


def _where(rows: Rows, counts: Indices, numbers: Indices) -> str:
    return f"{_named(rows, np.flatnonzero(counts))} ({told('row', numbers)})"


def _named(rows: Rows, columns: Indices) -> str:
    """Return columns by name where they have one, else by number."""
    if rows.kind == "text":
        return "the text"
    return told("column", columns if rows.columns is None else [rows.columns[column] for column in columns])


def _original(split: Split, kept: Indices | None, kept_test: Indices | None) -> dict[str, Indices]:
    """Return the row numbers in the source of each part's rows."""
    numbers = {"training": split.train, "validation": split.validation, "test": split.test}
    origins = (kept, kept, kept_test if split.official_test else kept)
    return {
        name: rows if origin is None else origin[rows]
        for (name, rows), origin in zip(numbers.items(), origins, strict=True)
    }


def _rare(y: NDArray[Any], numbers: Indices) -> list[Finding]:
    values, first, counts = np.unique(y, return_index=True, return_counts=True)
    once = counts == 1
    text = f"Training has only one row of {told('label', values[once])} ({told('row', numbers[first[once]])})."
    return [Finding("warning", text)] if once.any() else []


def _constant(train: Rows) -> list[Finding]:
    if train.kind == "text" or len(train) < 2:
        return []
    if train.kind == "sparse":
        low, high = (getattr(train.X, name)(axis=0).toarray().ravel() for name in ("nanmin", "nanmax"))
    else:
        low, high = (function.reduce(train.X, axis=0) for function in (np.fmin, np.fmax))
    columns = np.flatnonzero((low == high) | np.isnan(low))  # NaN: every value is missing
    text = f"All training rows have the same value, or none, in {_named(train, columns)}."
    return [Finding("warning", text)] if len(columns) else []


def _unlike(train: Rows, part: Rows, name: str) -> list[Finding]:
    """Return why a part cannot be compared with training at all."""
    kinds = ["text" if rows.y.dtype.kind == "O" else "whole numbers" for rows in (train, part)]
    findings = []
    if kinds[0] != kinds[1]:
        findings.append(Finding("error", f"Labels are {kinds[0]} in training, but {kinds[1]} in {name} rows."))
    inputs = [(rows.kind, rows.n_features) for rows in (train, part)]
    if inputs[0] != inputs[1]:
        shapes = [kind if D is None else f"{kind} with {D} columns" for kind, D in inputs]
        findings.append(Finding("error", f"Inputs are {shapes[0]} in training, but {shapes[1]} in {name} rows."))
    return findings


def _labels(y: NDArray[Any], y_part: NDArray[Any], name: str, numbers: Indices) -> list[Finding]:
    trained, seen, findings = np.unique(y), np.unique(y_part), []
    new, lacking = np.setdiff1d(seen, trained), np.setdiff1d(trained, seen)
    if len(new):
        rows = told("row", numbers[np.isin(y_part, new)])
        findings.append(Finding("error", f"{told('Label', new)}: in {name} {rows}, but never in training."))
    if len(lacking):
        findings.append(Finding("warning", f"No {name} row has {told('label', lacking)}."))
    return findings


def _duplicates(
    train: Rows, part: Rows, keys: NDArray[np.uint64], name: str, numbers: dict[str, Indices]
) -> list[Finding]:
    """Return how many rows of a part are training rows too, with the label of one of those or with none of theirs."""
    _, codes = np.unique(np.concatenate([train.y, part.y]), return_inverse=True)
    # A label's code times an odd number keeps equal inputs of different labels apart; uint64 wraps around.
    marks = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ours = _keys(part.X)
    findings, left = [], np.arange(len(part))
    for label, shift in (("the same", marks), ("another", np.zeros_like(marks))):
        twins = _first(keys + shift[: len(keys)], (ours + shift[len(keys) :])[left])
        rows, twins = left[twins >= 0], twins[twins >= 0]
        equal = _equal(part.X, rows, train.X, twins)
        rows, twins = rows[equal], twins[equal]
        left = np.setdiff1d(left, rows)
        if len(rows):
            pairs = list(zip(numbers[name][rows].tolist(), numbers["training"][twins].tolist(), strict=True))
            start = f"{len(rows):,} of {len(part):,} {name} rows equal a training row with {label} label"
            findings.append(Finding("warning", f"{start}: ({name}, training) {told('row', pairs)}."))
    return findings


def _keys(X: Any) -> NDArray[np.uint64]:
    """Return a number per row (N,), the same for equal rows and, but for one pair in 2**40 or so, for no others."""
    if X.ndim == 1:
        return np.fromiter(map(hash, X), dtype=np.int64, count=len(X)).view(np.uint64)
    keys = np.empty(X.shape[0], dtype=np.uint64)
    factors = np.random.PCG64(0).random_raw(X.shape[1]) | np.uint64(1)
    for start, block in blocks(X):
        keys[start : start + block.shape[0]] = _patterns(block) @ factors
    return keys


def _patterns(block: Any) -> Any:
    """Return the bits of the values as uint32, dense or sparse as the block is: one pattern for NaN, one for zero."""
    sparse = hasattr(block, "indptr")
    values = np.add(block.data if sparse else block, np.float32(0), dtype=np.float32)  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint32)
    return type(block)((bits, block.indices, block.indptr), shape=block.shape) if sparse else bits


def _first(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Indices:
    """Return the first place of each wanted key among keys, -1 where it is not there."""
    values, first = np.unique(keys, return_index=True)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[place] == wanted, first[place], -1)


def _equal(X: Any, rows: Indices, Z: Any, others: Indices) -> NDArray[np.bool_]:
    """Return where a row of X equals the other one of Z, in every value."""
    if X.ndim == 1:
        return np.asarray(X[rows] == Z[others], dtype=bool)
    equal, step = np.empty(len(rows), dtype=bool), _step(X)
    for start in range(0, len(rows), step):
        cut = slice(start, start + step)
        unlike = _patterns(_block(X, rows[cut])) != _patterns(_block(Z, others[cut]))
        equal[cut] = ~unlike.any(axis=1) if isinstance(unlike, np.ndarray) else unlike.getnnz(axis=1) == 0
    return equal
