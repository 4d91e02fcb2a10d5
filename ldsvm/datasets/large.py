"""Matrices that are too large for memory: written to a file column by column, read by columns or by some rows."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

ROWS = 50_000  # of numbers that are written together
LARGE = 2**28  # bytes of a matrix; a larger one lies in a file


def is_large(rows: int, columns: int) -> bool:
    """Return whether a matrix of float64 is too large for memory."""
    return 8 * rows * columns > LARGE


def empty(rows: int, columns: int) -> Any:
    """Return a matrix of float32 to be filled: in memory, or in a file without a name where it is large."""
    if not rows or not is_large(rows, (columns + 1) // 2):
        return np.empty((rows, columns), dtype=np.float32)
    with TemporaryFile() as file:
        return np.memmap(file, np.float32, "w+", shape=(rows, columns))


def in_file(X: Any) -> bool:
    """Return whether a matrix lies in a file, whole or some rows of it."""
    return isinstance(X, np.memmap | PickedRows)


class ColumnWriter:
    """Columns (N,) of float64 side by side, at most ``most`` of them: in memory, or in a file where they are large.

    To be used as a context. The file has no name and is gone with the matrix; it is in the folder of temporary files,
    see `tempfile`.

    Examples
    --------
    >>> with ColumnWriter(2) as writer:
    ...     for column in ([1.0, 2.0], [3.0, 4.0]):
    ...         writer.add(np.array(column))
    ...     writer.matrix().tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[NDArray[np.float64]] = []
        self._file: Any = None
        self.width, self._rows = 0, 0

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, column: NDArray[np.float64]) -> None:
        """Append a column; all have as many rows as the first."""
        if not self.width and is_large(len(column), self._most):
            self._file = TemporaryFile()  # noqa: SIM115  (it lives as long as the matrix)
        self.width, self._rows = self.width + 1, len(column)
        if self._file is None:
            self._parts.append(column)
        else:
            self._file.write(np.ascontiguousarray(column, dtype=np.float64).data)

    def matrix(self) -> Any:
        """Return the matrix (N, D), D above 0: an array, or a mapped file whose columns are contiguous."""
        if self._file is None:
            return np.column_stack(self._parts)
        self._file.flush()  # the map outlives the file that is closed
        return np.memmap(self._file, np.float64, "r", shape=(self._rows, self.width), order="F")


def save(file: IO[bytes], X: Any) -> None:
    """Write a matrix (N, D) as a .npy file: codes, of float64, so that columns are contiguous, numbers by rows."""
    by_columns, dtype = X.dtype == np.float64, X.dtype.newbyteorder("<")
    header = {"descr": dtype.str, "fortran_order": by_columns, "shape": tuple(map(int, X.shape))}
    np.lib.format.write_array_header_1_0(file, header)
    if by_columns:
        parts = (X[:, column] for column in range(X.shape[1]))
    else:
        parts = (X[start : start + ROWS] for start in range(0, len(X), ROWS))
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype=dtype).data)


class PickedRows:
    """Some rows of a matrix in a file, in this order; they are read when they are asked for.

    Examples
    --------
    >>> some = PickedRows(np.arange(6.0).reshape(3, 2), np.array([2, 0]))
    >>> some[:, 1].tolist(), some[1:].tolist(), some.shape
    ([5.0, 1.0], [[0.0, 1.0]], (2, 2))
    """

    ndim = 2

    def __init__(self, X: Any, rows: NDArray[Any]) -> None:
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        within = isinstance(X, PickedRows)
        self._X: Any = X._X if within else X
        self._rows: NDArray[Any] = X._rows[rows] if within else rows
        self.shape, self.dtype = (len(self._rows), int(X.shape[1])), X.dtype

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Size of the rows once they are read."""
        return self.shape[0] * self.shape[1] * int(self.dtype.itemsize)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all of these rows in memory."""
        found: NDArray[Any] = self[:]
        return found if dtype is None else found.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        """Return rows (n, D), or with a pair of rows and columns a part of them, as arrays in memory."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        wanted = self._rows[rows]
        if isinstance(columns, int | np.integer):
            return np.asarray(self._X[:, columns])[wanted]
        return np.asarray(self._X[wanted][:, columns])
