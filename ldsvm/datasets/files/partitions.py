"""Folders such as year=2024/month=03, whose names are columns of the tables in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.words import shown

NULL = "__HIVE_DEFAULT_PARTITION__"
Values = Mapping[str, Any]  # pyarrow scalars by the name of the column


def is_partition(name: str) -> bool:
    """Tell whether the name of a folder is key=value."""
    return re.fullmatch(r"[^=]+=.*", name) is not None


def partitions(given: str, root: Path, files: Sequence[Path]) -> dict[Path, Values]:
    """Return the values that the folders below ``root`` give to each file: whole numbers where a key has no others.

    Raises `DataError` where the files do not all have the same keys.

    Examples
    --------
    >>> found = partitions("a", Path("a"), [Path("a/year=2024/b.csv"), Path("a/year=2025/b.csv")])
    >>> [values["year"].as_py() for values in found.values()]
    [2024, 2025]
    """
    pa = optional("pyarrow")
    found = {file: _of(file.relative_to(root)) for file in files}
    first = found[files[0]]
    for file, texts in found.items():
        if [*texts] != [*first]:
            raise DataError(
                f"{given}: {file.relative_to(root)} has the folders {_named(texts)}, but {files[0].relative_to(root)} "
                f"has {_named(first)}; all files need the same."
            )
    whole = {key for key in first if all(re.fullmatch(r"-?\d{1,18}|", one[key] or "") for one in found.values())}
    return {
        file: {
            key: pa.scalar(None if text is None else int(text) if key in whole else text, kind)
            for key, text in texts.items()
            for kind in [pa.int64() if key in whole else pa.string()]
        }
        for file, texts in found.items()
    }


def _of(file: PurePath) -> dict[str, str | None]:
    parts = [part.partition("=") for part in file.parts[:-1]]
    return {unquote(key): None if value in (NULL, "") else unquote(value) for key, _, value in parts}


def _named(texts: Mapping[str, Any]) -> str:
    return "/".join(f"{key}=…" for key in texts) or "of no column"


def check_apart(values: Values, names: Sequence[str], file: Path) -> None:
    """Raise `DataError` where a column of a file has the name of one that its folders give."""
    both = next((name for name in values if name in names), None)
    if both is not None:
        raise DataError(f"{file} has a column {shown(both)}, as its folders have; rename one of them.")
