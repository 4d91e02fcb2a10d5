"""What each column of a table is for: inputs, label, text, group, time, or nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldsvm.checks import NAMELESS
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.words import shown


@dataclass(frozen=True)
class Layout:
    """The columns to read, found in the first file and demanded of every other one.

    inputs are the names of the columns of numbers, in order, and empty where ``text`` names a column of texts.
    ``closed`` means that the inputs are all columns that have no other use, so another file may not have more.
    """

    inputs: tuple[str, ...]
    label: str
    text: str | None
    group: str | None
    time: str | None
    drop: tuple[str, ...]
    closed: bool
    first: Path

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        used = (*self.inputs, self.label, self.text, self.group, self.time)
        return list(dict.fromkeys(name for name in used if name is not None))

    def check(self, known: Sequence[str], file: Path) -> None:
        """Raise `DataError` unless ``file`` has the columns of the first file, in any order."""
        check_unique(known, file)
        there, expected = set(known), {*self.names, *self.drop}  # a table may have thousands of columns
        missing = [name for name in self.names if name not in there]
        if missing:
            raise DataError(f"{file}: column {shown(missing[0])} is missing; {self.first} has it.")
        more = [name for name in known if name not in expected] if self.closed else []
        if more:
            raise DataError(
                f"{file} has a column {shown(more[0])}, which {self.first} lacks; "
                "list it in dataset.drop, or the inputs in dataset.columns."
            )


def layout(spec: FileSpec, known: Sequence[str], file: Path, index: Sequence[str] = ()) -> Layout:
    """Decide about the columns ``known`` of a file; raise `DataError` for names that are absent or clash.

    ``index`` are those that the file says to be the index of its rows; they are inputs only if ``spec`` names them.

    Examples
    --------
    >>> layout(FileSpec("a.csv", drop=("id",)), ["id", "age", "label"], Path("a.csv")).inputs
    ('age',)
    """
    check_unique(known, file)
    label = spec.label or "label"
    one = {"label": label, "text": spec.text, "group": spec.group, "time": spec.time}
    roles: dict[str, tuple[str, ...]] = {role: (name,) for role, name in one.items() if name is not None}
    ignored = tuple(name for name, role in spec.roles if role == "ignore" and name not in spec.drop)
    roles |= {"drop": spec.drop, "columns": spec.columns or tuple(name for name, _ in spec.roles)}
    for role, names in roles.items():
        _check_there(role, names, known, file)
    _check_clashes(roles)
    if spec.text is not None:
        inputs: tuple[str, ...] = ()
    elif spec.columns is not None:
        inputs = spec.columns
    else:
        other = {name for role, names in roles.items() if role != "columns" for name in names} | {*ignored}
        inputs = tuple(name for name in known if name not in other)
        _refuse_index(inputs, known, file, index)
    if not inputs and spec.text is None:
        raise DataError(f"{file}: no input column is left beside {faults.names(known)}.")
    closed = spec.columns is None and spec.text is None
    return Layout(inputs, label, spec.text, spec.group, spec.time, (*spec.drop, *ignored), closed, file)


def check_unique(known: Sequence[str], file: Path) -> None:
    """Raise `DataError` when two of the columns ``known`` of a file have one name."""
    name, times = Counter(known).most_common(1)[0] if known else ("", 1)
    if times > 1:
        raise DataError(f"{file}: the column {shown(name)} occurs {times} times; names must be unique.")


def _refuse_index(inputs: Sequence[str], known: Sequence[str], file: Path, index: Sequence[str]) -> None:
    # pandas writes its row index so: a number that grows with the row is no input anybody means.
    rule = "list it in dataset.drop, or the inputs in dataset.columns"
    nameless = next((name for name in inputs if NAMELESS.fullmatch(name)), None)
    if nameless is not None:
        raise DataError(
            f"{file}: column {known.index(nameless)} has no name ({shown(nameless)}), so it seems to hold row numbers; "
            f"{rule}."
        )
    named = next((name for name in inputs if name in index), None)
    if named is not None:
        raise DataError(f"{file}: column {shown(named)} is the row index by the file's pandas metadata; {rule}.")


def _check_there(role: str, names: Sequence[str], known: Sequence[str], file: Path) -> None:
    there, counts = set(known), Counter(names)
    for name in names:
        if name not in there:
            near, all_names = faults.nearest(name, known), faults.names(known)
            own = " With header: false they are c0, c1 and so on." if re.fullmatch(r"c\d+", name) else ""
            raise DataError(
                f"{file}: dataset.{role} names {shown(name)}, which is not a column{near}: the columns are {all_names}."
                f"{own}"
            )
        if counts[name] > 1:
            raise DataError(f"dataset.{role} names {shown(name)} twice; name it once.")


def _check_clashes(roles: dict[str, tuple[str, ...]]) -> None:
    """Refuse a column that is dropped and used, and a label among the inputs; groups and times may be inputs too."""
    if "text" in roles and roles["columns"]:
        raise DataError(
            "dataset.text and dataset.columns are both given; allowed: one of them, since a text is the only input."
        )
    for role, others in (("drop", [*roles]), ("label", ["text", "columns", "group", "time"])):
        for other in others:
            both = set(roles[role]) & set(roles.get(other, ())) if role != other else set()
            if both:
                raise DataError(
                    f"{shown(min(both))} is both dataset.{role} and dataset.{other}; a column can have only one use."
                )
