"""One column of a table: its name, and what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INPUTS = ("number", "category", "yes/no", "date", "text")
FIRST = {"date (day first)": "%d", "date (month first)": "%m"}  # dates such as 5/6/2024, and what is first in them
ROLES = (*INPUTS, *FIRST, "ignore")  # what dataset.columns may say


@dataclass(frozen=True)
class Column:
    """One column of a table.

    role: one of INPUTS, or what else it is (identifier, constant, too many values …), with the reason. values: of a
    category, or the texts, by code; many texts lie in a file, see `StoredTexts`. how: the format of dates for
    pandas, or %d or %m if the day or the month comes first; empty where dates are not texts. doubt: what the values may
    be instead, for a person to decide.
    """

    name: str
    role: str
    values: Sequence[str] = ()
    reason: str = ""
    how: str = ""
    doubt: str = ""

    @classmethod
    def named(cls, name: str, role: str) -> Column:
        """Return a column with a role that dataset.columns gives it."""
        return cls(name, "date", how=FIRST[role]) if role in FIRST else cls(name, role)

    @property
    def used(self) -> bool:
        """Whether it is an input."""
        return self.role in INPUTS
