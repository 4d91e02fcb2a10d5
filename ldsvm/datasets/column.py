"""One column of a table: its name, and what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INPUTS = ("number", "category", "yes/no", "date", "text")
ROLES = (*INPUTS, "ignore")  # what dataset.columns may say


@dataclass(frozen=True)
class Column:
    """One column of a table.

    role: one of INPUTS, or why it is none (identifier, constant, too many values …), with the reason. values: of a
    category, or the texts, by code; many texts lie in a file, see `StoredTexts`. how: the way in which dates are
    written, as pandas takes it; empty where they are no texts.
    """

    name: str
    role: str
    values: Sequence[str] = ()
    reason: str = ""
    how: str = ""

    @property
    def used(self) -> bool:
        """Whether it is an input."""
        return self.role in INPUTS
