"""`RowBlocks`: rows that need not fit into memory, from arrays, files, or Ray."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from ldsvm.blocks.actors import reference_blocks
from ldsvm.blocks.reductions import pca, scaler
from ldsvm.blocks.source import (
    ROWS,
    ArrayBlock,
    Block,
    BlockError,
    MappedBlock,
    ParquetBlock,
    Rows,
    check_count,
    chosen_columns,
    first_line,
    listed,
    pair_of,
)
from ldsvm.checks import NAMELESS, index_columns
from ldsvm.typing import Array


class RowBlocks(Rows):
    """Rows for `LDSVMClassifier.fit` that need not fit into memory, and may lie on several machines.

    Make them with `arrays`, `parquet`, `mapped` or `ray`. Rows must not change during a fit: it ends with a BlockError
    if a file has changed or a value has become NaN. For ``map="adaptive_rbf"``, which learns block by block, the order
    of the rows should have nothing to do with their labels.

    blocks: each is read as a whole, so it must fit into memory. steps: fitted scikit-learn transformers, applied to
    each block as it is read, see `scaled` and `principal`. columns: names of the inputs before the steps, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from ldsvm import LDSVMClassifier, RowBlocks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> rows = RowBlocks.arrays([(X[:300], y[:300]), (X[300:], y[300:])])
    >>> model = LDSVMClassifier(n_basis=40, C=1.0, max_iter=20, tol=0.1, random_state=0).fit(rows)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    @classmethod
    def arrays(cls, pairs: Iterable[tuple[Any, Any]]) -> Self:
        """Make blocks from pairs of inputs X (n, D) and labels y (n,), one pair for each block.

        The columns of a table keep their names. Raises BlockError, with one sentence, for anything else than such a
        pair, and for tables with different columns.
        """
        blocks: list[Block] = []
        columns: tuple[str, ...] | None = None
        for i, pair in enumerate(listed(pairs, "pairs")):
            name = f"block {i}"
            X, y = pair_of(pair, name)
            names = _column_names(pair[0])
            if i and names != columns:
                raise BlockError(
                    f"{name}: its columns differ from those of the blocks before it, or are in another order."
                )
            columns = names
            blocks.append(ArrayBlock(name, X, y))
        return cls(_some(tuple(blocks), "pairs"), columns)

    @classmethod
    def parquet(
        cls, where: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], label: str,
        columns: Sequence[str] | None = None, rows: int = ROWS,
    ) -> Self:  # fmt: skip
        """Make blocks from a Parquet file, a folder of them, a glob such as ``rows/2024-*.parquet``, or a list of them.

        label: the column of labels. columns: the columns of the inputs (default: all others); a single column may hold
        a list of D numbers, or D bytes, in every row. rows: approximate number of rows of a block, at least a row group
        of the file. Raises BlockError, with one sentence, without a file, for an unreadable file, or if columns differ.
        """
        from pyarrow import parquet

        check_count("rows", rows, 1)
        chosen = None if columns is None else chosen_columns(columns, label)
        blocks: list[Block] = []
        found: tuple[str, ...] | None = None
        places = list(where) if isinstance(where, Iterable) and not isinstance(where, str | bytes) else [where]
        paths = [path for place in places for path in _files(place)]
        twice = [path for path, count in Counter(paths).items() if count > 1]
        if not paths or twice:
            what = f"{twice[0]} is listed more than once" if twice else "the list of Parquet files is empty"
            raise BlockError(f"{what}; allowed: each file once, and at least one.")
        for path in paths:
            try:
                with parquet.ParquetFile(path) as file:
                    names, sizes = file.schema_arrow.names, _group_sizes(file.metadata)
                    index = index_columns(file.schema_arrow)
            except Exception as error:
                raise BlockError(f"{path} is not a readable Parquet file ({first_line(error)}).") from error
            wanted = chosen or tuple(name for name in names if name != label)
            numbers = [name for name in wanted if NAMELESS.fullmatch(name) or name in index]
            if numbers and chosen is None:
                raise BlockError(f"{path}: column {numbers[0]!r} is pandas' row index; name the inputs with columns=.")
            absent = [name for name in (*wanted, label) if name not in names]
            if absent:
                raise BlockError(f"{path} has no column {absent[0]!r}; it has {', '.join(names[:20])}.")
            if found is not None and set(wanted) != set(found):
                other = sorted(set(wanted) ^ set(found))[0]
                raise BlockError(f"{path}: column {other!r} is not in all files; name the inputs with columns=.")
            found = found or wanted
            blocks += [
                ParquetBlock(path, groups, count, found, label) for groups, count in _together(sizes, rows) if count
            ]
        assert found is not None
        return cls(_some(tuple(blocks), ", ".join(map(str, places[:3]))), None if len(found) == 1 else found)

    @classmethod
    def mapped(
        cls, X: str | os.PathLike[str], y: str | os.PathLike[str] | Array, rows: int = ROWS
    ) -> Self:  # fmt: skip
        """Make blocks from inputs (N, D) in a .npy file, which is mapped into memory as needed.

        y: labels (N,), in another .npy file or as an array. rows: number of rows of a block.
        """
        check_count("rows", rows, 1)
        what = "y" if isinstance(y, np.ndarray) else str(y)
        try:
            for file in [X] if isinstance(y, np.ndarray) else [X, y]:
                _check_regular(file)
            inputs = np.load(X, mmap_mode="r", allow_pickle=False).shape
            labels = (y if isinstance(y, np.ndarray) else np.load(y, mmap_mode="r", allow_pickle=False)).shape
        except (OSError, ValueError, TypeError) as error:
            raise BlockError(f"{X} and {what} cannot be read as arrays ({error}).") from error
        n = inputs[0] if inputs else 0
        if len(inputs) != 2 or labels != (n,) or not n:
            raise BlockError(
                f"{X} has shape {inputs} and {what} has shape {labels}; allowed: (N, D) and (N,) with N above 0."
            )
        parts = [slice(*ends) for ends in pairwise([*range(0, n, rows), n])]
        carried = [y[part] if isinstance(y, np.ndarray) else os.path.abspath(y) for part in parts]
        return cls(tuple(MappedBlock(os.path.abspath(X), *each) for each in zip(carried, parts, strict=True)))

    @classmethod
    def ray(cls, source: Any, label: str | None = None, columns: Sequence[str] | None = None) -> Self:
        """Make blocks from a ray.data.Dataset, or from Ray's references to pairs (X, y) or to Arrow tables.

        label: the column of labels of a dataset or table. columns: the columns of the inputs (default: all others). The
        rows stay where Ray has them; every worker fetches its own. Call it while Ray is running, and use the executor
        `OnRay`.
        """
        blocks, names = reference_blocks(source, label, columns)
        return cls(_some(blocks, "source"), names)

    def scaled(self, executor: Any = None) -> tuple[Self, Any]:
        """Return the rows scaled to columns of mean 0 and variance 1, and the fitted sklearn StandardScaler."""
        step = scaler(self, executor)
        return self.then(step), step

    def principal(self, n_components: int, executor: Any = None) -> tuple[Self, Any]:
        """Return the rows reduced to their first principal components, and the fitted sklearn PCA.

        It is exact, and takes two passes over the rows; D (D + 1) / 2 sums move between the workers.
        """
        step = pca(self, n_components, executor)
        return self.then(step), step


def _column_names(X: Any) -> tuple[str, ...] | None:
    names = getattr(X, "columns", None)
    return None if names is None or not all(isinstance(name, str) for name in names) else tuple(names)


def _files(where: Any) -> list[str]:
    """Absolute names of the files. Names that begin with a dot or an underscore are skipped: they may be unfinished."""
    if not isinstance(where, str | os.PathLike):
        raise BlockError(f"{where!r} is not a path; allowed: a Parquet file, a folder, a glob, or a list of these.")
    path = Path(where)
    if path.is_dir():
        every = [file for file in path.rglob("*.parquet") if not _hidden(file.relative_to(path).parts)]
    elif path.is_file():  # its name may look like a glob
        every = [path]
    else:
        every = [Path(file) for file in glob.glob(str(where), recursive=True)]
    if not every:
        raise BlockError(f"{where}: no Parquet file found; allowed: a file, a folder with *.parquet files, or a glob.")
    for file in every:
        _check_regular(file)
    return sorted(os.path.abspath(file) for file in every)


def _check_regular(file: str | os.PathLike[str]) -> None:
    """Raise BlockError for a folder, and for a pipe or a device, whose reading might wait for ever."""
    if os.path.exists(file) and not os.path.isfile(file):
        raise BlockError(f"{file} is a pipe, a device or a folder; allowed: a regular file.")


def _hidden(parts: Sequence[str]) -> bool:
    return any(part[0] in "._" for part in parts)


def _group_sizes(metadata: Any) -> list[int]:
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def _together(sizes: Sequence[int], rows: int) -> list[tuple[tuple[int, ...], int]]:
    """Join consecutive row groups into blocks of at most this many rows."""
    found: list[tuple[tuple[int, ...], int]] = []
    for i, size in enumerate(sizes):
        if found and found[-1][1] + size <= rows:
            found[-1] = (*found[-1][0], i), found[-1][1] + size
        else:
            found.append(((i,), size))
    return found


def _some(blocks: tuple[Block, ...], what: str) -> tuple[Block, ...]:
    if not any(block.rows is None or block.rows for block in blocks):
        raise BlockError(f"{what} has no rows; allowed: at least one row.")
    return blocks
