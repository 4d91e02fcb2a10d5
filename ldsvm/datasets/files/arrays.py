"""Files that hold whole matrices: NPZ archives, svmlight text, IDX images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import idx
from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError, Rows
from ldsvm.datasets.files import expansion, faults, numbers, opening, precision, values
from ldsvm.datasets.files.find import Found
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.words import row_list, shown

WIDEST = 100_000_000  # columns: what is kept for each of them must fit into memory, however few values there are
CSR = ("data", "indices", "indptr", "shape")


def npz(train: Found, test: Found | None, spec: FileSpec) -> tuple[Rows, Rows | None]:
    """Return the arrays X (N, D) and y (N,) of an archive, and groups and times (N,) where it has them.

    The official test set is in a file of its own or in arrays of the same names that end in ``_test``. A sparse X is
    four arrays X_data, X_indices, X_indptr and X_shape, the parts of a CSR matrix. Objects are never unpickled.
    """
    with _opened(train) as archive:
        rows = _archived(archive, train.given, spec, "", precise=True)
        inside = _archived(archive, train.given, spec, "_test") if _has_X(archive, "_test") else None
    if test is None:
        return rows, inside
    if inside is not None:
        raise DataError(f"{train.given}: holds X_test, but dataset.test_path is also given; allowed: one test set.")
    with _opened(test) as archive:
        return rows, _archived(archive, test.given, spec, "")


@contextmanager
def _opened(found: Found) -> Iterator[Mapping[str, Any]]:
    # A stream of our own is closed for damaged archives, too, which `np.load` leaves open.
    with faults.reading(found.files[0], "npz"), found.files[0].open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("one array without a name")
        with archive:
            for member in archive.zip.infolist():
                expansion.check(found.files[0], member.compress_size, member.file_size)
            yield archive


def _has_X(archive: Mapping[str, Any], ending: str) -> bool:
    return f"X{ending}" in archive or f"X{ending}_data" in archive


def _archived(archive: Mapping[str, Any], given: str, spec: FileSpec, ending: str, *, precise: bool = False) -> Rows:
    X = _inputs(archive, given, f"X{ending}", precise)
    label = f"{spec.label or 'y'}{ending}"
    if label not in archive and spec.label is not None and f"y{ending}" in archive:
        rule = "leave dataset.label out for the array 'y'"
        raise DataError(f"{given}: dataset.label is {shown(label)}, but there is no such array; {rule}.")
    y = values.labels(_row(archive, given, label, X.shape[0]), f"{given}: array {shown(label)}")
    extras: dict[str, NDArray[Any]] = {}
    readers = {"groups": (spec.group, values.groups), "times": (spec.time, values.times)}
    for name, (named, convert) in readers.items():
        key = f"{named or name}{ending}"
        # Under the default name it may be absent, but not from one of the two sets only.
        if named is not None or key in archive or key.removesuffix("_test") in archive:
            extras[name] = convert(_row(archive, given, key, X.shape[0]), f"{given}: array {shown(key)}")
    return Rows(X, y, None, extras.get("groups"), extras.get("times"))


def _inputs(archive: Mapping[str, Any], given: str, name: str, precise: bool) -> Any:
    if f"{name}_data" in archive:
        data, indices, indptr, shape = (_array(archive, given, f"{name}_{part}") for part in CSR)
        _check_numbers(data, given, f"{name}_data")
        for part, array in zip(CSR[1:], (indices, indptr, shape), strict=True):
            _check_numbers(array, given, f"{name}_{part}", "iu", "it must hold whole numbers")
        X = _csr(_float32(data), indices, indptr, tuple(int(size) for size in shape))
        X.check_format(full_check=True)
        return _checked(X, given, name)
    X = _array(archive, given, name)
    if X.ndim != 2:
        raise DataError(f"{given}: array {shown(name)} has shape {X.shape}, but must have a row per sample: (N, D).")
    _check_numbers(X, given, name)
    done = _checked(_float32(X), given, name)
    if precise and X.dtype != np.float32:
        precision.check(done, lambda column: X[:, column], lambda column: f"{given}: column {column} of X")
    return done


def _csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, ...]) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((data, indices, indptr), shape=shape)


def _array(archive: Mapping[str, Any], given: str, name: str) -> NDArray[Any]:
    if name not in archive:
        known = list(archive)
        near = faults.nearest(name, known)
        raise DataError(
            f"{given}: there is no array {shown(name)}{near}: the arrays are {faults.names(known) or 'none'}."
        )
    array = np.asarray(archive[name])
    if array.dtype.kind == "M":
        return array.astype("M8[us]")  # pyarrow knows fewer units than NumPy, and Parquet these
    # Other machines, and longer floats, may have written what only NumPy knows.
    return array.astype(np.float64 if array.dtype == np.longdouble else array.dtype.newbyteorder("="), copy=False)


def _row(archive: Mapping[str, Any], given: str, name: str, n: int) -> numbers.Column:
    array = _array(archive, given, name)
    if array.shape != (n,):
        raise DataError(f"{given}: array {shown(name)} has shape {array.shape}, but X has {n} rows: it must be ({n},).")
    if array.dtype.kind not in "biufMSUm":
        raise DataError(f"{given}: array {shown(name)} is of type {array.dtype}; allowed: numbers, dates or text.")
    return [optional("pyarrow").array(array)]


def _check_numbers(
    array: NDArray[Any], given: str, name: str, kinds: str = "biuf", what: str = "inputs must be numbers"
) -> None:
    if array.dtype.kind not in kinds:
        raise DataError(f"{given}: array {shown(name)} is of type {array.dtype}, but {what}.")


def _float32(array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what is too large becomes inf and is reported with its row
        return array.astype(np.float32, copy=False)


def _checked(X: Any, given: str, name: str) -> Any:
    """Return X (N, D) if it is finite but for missing values and not empty; a sparse one with sorted columns."""
    if 0 in X.shape:
        raise DataError(
            f"{given}: {name} has {X.shape[0]} rows and {X.shape[1]} columns; at least one of each is needed."
        )
    if X.shape[1] > WIDEST:
        raise DataError(f"{given}: {name} has {X.shape[1]:,} columns; allowed: at most {WIDEST:,}.")
    if hasattr(X, "indptr"):
        X.sum_duplicates()
        which = np.unique(np.searchsorted(X.indptr, np.flatnonzero(np.isinf(X.data)), side="right") - 1)
    else:
        which = numbers.infinite_rows(X)
    if len(which):
        raise DataError(
            f"{given}: {name} is infinite or beyond ±3.4e38, the range of float32, in {row_list(which)}; "
            "allowed: finite numbers and missing values."
        )
    return X


def svmlight(train: Found, test: Found | None, _spec: FileSpec) -> tuple[Rows, Rows | None]:
    """Return the sparse rows of lines ``label index:value ...``; both sets get the same number of columns.

    Indices start at 0 when any index of the two files is 0, and else at 1.
    """
    sets = [found for found in (train, test) if found is not None]
    parts = [_svmlight(found) for found in sets]
    shift = int(all(X.indices.min(initial=1) > 0 for X, _ in parts))
    width = max(X.shape[1] for X, _ in parts) - shift
    rows = [
        Rows(_checked(_csr(X.data, X.indices - shift, X.indptr, (len(y), width)), found.given, "X"), y)
        for found, (X, y) in zip(sets, parts, strict=True)
    ]
    return rows[0], rows[1] if len(rows) > 1 else None


def _svmlight(found: Found) -> tuple[Any, NDArray[Any]]:
    from sklearn.datasets import load_svmlight_file

    path = found.files[0]
    # A stream of our own, since scikit-learn would expand other compressed files, too.
    with faults.reading(path, "svmlight"), opening.uncompressed(path) as stream:
        for block in opening.blocks(stream, path):
            if len(block) == opening.BLOCK and b"\n" not in block:  # such as a hole in a file, or zeros
                raise DataError(f"{path}: has a row of more than {len(block):,} bytes; allowed: shorter rows.")
    with faults.reading(path, "svmlight"), opening.uncompressed(path) as stream:
        X, y = load_svmlight_file(stream, dtype=np.float32, zero_based=True)
    if not len(y):
        raise DataError(f"{found.given} holds no rows; at least one is needed.")
    return X, values.labels([optional("pyarrow").array(y)], f"{found.given}: the label")


def images(train: Found, test: Found | None, _spec: FileSpec) -> tuple[Rows, Rows | None]:
    """Return IDX images as rows of unscaled uint8 pixels (N, D) with the labels that lie beside them."""
    return _images(train), None if test is None else _images(test)


def _images(found: Found) -> Rows:
    with faults.reading(found.files[0], "IDX"):  # a header may promise more dimensions than NumPy has
        pixels, labels = (idx.read_any(file) for file in found.files)
    if pixels.ndim < 2 or 0 in pixels.shape:
        raise DataError(f"{found.given}: has sizes {pixels.shape}, but images need a count and at least one side.")
    if labels.shape != pixels.shape[:1]:
        raise DataError(f"{found.files[1]}: has sizes {labels.shape}, but there are {len(pixels)} images.")
    return Rows(pixels.reshape(len(pixels), -1), labels.astype(np.int64))
