"""How files spell numbers: decimal commas, marks of missing values, and what to do about other spellings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import csv_text
from ldsvm.datasets.files.kinds import is_number, is_text
from ldsvm.datasets.words import shown

DATASET = "dataset"  # the section of an experiment's file on the data
DECIMALS = (".", ",")
GROUPS = {",": ",", ".": ".", " ": " \u00a0\u202f", "'": "'’"}  # how each mark of thousands may be written
# What pyarrow's CSV reader takes for a number or for a missing one.
NUMBER = r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan|NaN)|#?N/A|NA|n/a|NULL|null)?\s*$"
COMMA = r"^\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*$"
POINT = r"^\s*[+-]?\d*\.\d*([eE][+-]?\d+)?\s*$"
THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*$"
DOTTED = r"^\s*[+-]?\d{1,3}(\.\d{3})+(,\d*)?\s*$"
SPACED = r"^\s*[+-]?[1-9]\d{0,2}([ \x{a0}\x{202f}]\d{3})+([.,]\d*)?\s*$"
QUOTED = r"^\s*[+-]?[1-9]\d{0,2}(['’]\d{3})+([.,]\d*)?\s*$"
SURE_THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3}){2,}|^\s*[+-]?\d{1,3}(,\d{3})+\.\d"  # 1,234 may be a fraction
SURE_COMMA = r"^\s*[+-]?\d{1,3}([. '’\x{a0}\x{202f}]\d{3})+,\d"
PERCENT = r"^\s*[+-]?\d+[.,]?\d*\s*%\s*$"
MISSING = r"(?i)^\s*(\?+|-+|\.+|\*+|na|none|nil|missing|unknown)\s*$"
EMPTY = r"^\s*([+-]?(nan|NaN)|#?N/A|NA|n/a|NULL|null)\s*$"  # what of NUMBER is none
MARKS = 3  # of missing values that a message shows


@dataclass(frozen=True)
class Spelling:
    """How the files write numbers. decimal: the mark, . or a comma. missing: marks such as ? that stand for no value.

    section: of an experiment's file, where the keys decimal and missing_values are, for messages; empty for tables that
    a model is given, with no such file at hand. thousands: a mark of
    GROUPS, empty for none.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()
    section: str = DATASET
    thousands: str = ""

    @classmethod
    def of(
        cls,
        decimal: str | None,
        missing: tuple[str | float, ...],
        section: str = DATASET,
        thousands: str | None = None,
    ) -> Spelling:
        """Return the spelling that the keys ask for; raise `DataError` for an unknown mark, and for one with two uses.

        Where . separates thousands, a comma is the decimal mark.
        """
        if decimal not in (None, *DECIMALS):
            raise DataError(f"{section}.decimal={shown(decimal)} is unknown; allowed: '.' and ','.")
        if thousands not in (None, *GROUPS):
            raise DataError(f"{section}.thousands={shown(thousands)} is unknown; allowed: ',', '.', ' ' and \"'\".")
        decimal = decimal or ("," if thousands == "." else ".")
        if decimal == thousands:
            raise DataError(f"{section}.thousands and {section}.decimal are both {decimal!r}; allowed: two marks.")
        return cls(decimal, tuple(str(mark).strip() for mark in missing), section, thousands or "")

    @property
    def plain(self) -> bool:
        """Tell whether numbers are written as everywhere else, and gaps left empty."""
        return self.decimal == "." and not self.missing and not self.thousands

    def number(self, piece: Any) -> Any:
        """Return a piece of a column without marks of missing values, text as numbers where all of it is such.

        Where the decimal mark is a comma, text with a point is none: 1.234 may be a thousand.

        Examples
        --------
        >>> import pyarrow
        >>> Spelling(",", ("?",)).number(pyarrow.array(["1,5", "?", "2"])).to_pylist()
        [1.5, None, 2.0]
        >>> Spelling(",", thousands=".").number(pyarrow.array(["1.234,5", "2"])).to_pylist()
        [1234.5, 2.0]
        >>> Spelling().number(pyarrow.array(["45 %", None, "7%"])).to_pylist()
        [45.0, None, 7.0]
        """
        found = self._read(piece) if is_text(piece.type) else piece
        return self._without(found) if is_number(found.type) else found

    def _read(self, piece: Any) -> Any:
        pa, pc = optional("pyarrow"), optional("pyarrow.compute")
        text = piece.cast(pa.string())
        if self.missing:
            marked = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array(self.missing))
            text = pc.if_else(marked, pa.scalar(None, pa.string()), text)
        plain = self._ungrouped(_without_percent(text))
        if self.decimal == ",":
            if pc.any(pc.match_substring(plain, ".")).as_py():
                return text
            plain = pc.replace_substring(plain, ",", ".")
        found = csv_text.numbers(plain)
        return text if is_text(found.type) else found

    def _ungrouped(self, text: Any) -> Any:
        """Return texts without the marks of thousands, where these stand before three digits each."""
        if not self.thousands:
            return text
        pc, marks = optional("pyarrow.compute"), f"[{GROUPS[self.thousands]}]"
        whole = pc.match_substring_regex(text, rf"^\s*[+-]?\d{{1,3}}({marks}\d{{3}})+([{self.decimal}]\d*)?\s*$")
        return pc.if_else(whole, pc.replace_substring_regex(text, marks, ""), text)

    def _without(self, piece: Any) -> Any:
        """Return numbers without those that mark a missing value, such as -999, however they are written."""
        pa, pc = optional("pyarrow"), optional("pyarrow.compute")
        marks = [number for mark in self.missing if (number := _number(mark, self.decimal)) is not None]
        if not marks or pa.types.is_boolean(piece.type) or pa.types.is_null(piece.type):
            return piece
        found = piece if pa.types.is_floating(piece.type) else piece.cast(pa.float64(), safe=False)
        value_set = pa.array(marks, pa.float64()).cast(found.type, safe=False)  # -99.99 as a float32 column has it
        return pc.if_else(pc.is_in(found, value_set=value_set), pa.scalar(None, found.type), found)

    def strays(self, piece: Any) -> Any:
        """Return which texts (n,) are not numbers."""
        pc = optional("pyarrow.compute")
        pattern = NUMBER if self.decimal == "." else NUMBER.replace(r"\.", ",")
        return pc.invert(pc.match_substring_regex(self._ungrouped(piece), pattern)).fill_null(False)

    def mostly_numbers(self, text: Any) -> bool:
        """Return whether fewer than half of some texts are words: neither numbers, in any spelling, nor marks of gaps.

        Examples
        --------
        >>> import pyarrow
        >>> [Spelling().mostly_numbers(pyarrow.array(texts)) for texts in (["1,5", "?", "2%"], ["?", "red", "3"])]
        [True, False]
        """
        pc = optional("pyarrow.compute")
        known = text.drop_null()
        for pattern in (MISSING, EMPTY):
            known = known.filter(pc.invert(pc.match_substring_regex(known, pattern)))
        words = known.filter(self.strays(known))
        for pattern, _ in self._known():
            words = words.filter(pc.invert(pc.match_substring_regex(words, pattern)))
        return 2 * len(words) < len(known) or (len(text) > 0 and not len(known))

    def remedies(self, strays: Any) -> list[str]:
        """Return what to do about texts that are not yet numbers; nothing if one of them could never be one.

        Examples
        --------
        >>> import pyarrow
        >>> Spelling().remedies(pyarrow.array(["1,5", "?"]))[0]
        'set dataset.decimal to "," if the comma is the decimal mark'
        >>> Spelling().remedies(pyarrow.array(["1,5", "red"]))
        []
        """
        pc = optional("pyarrow.compute")
        found = []
        for pattern, remedy in self._known():
            hit = pc.match_substring_regex(strays, pattern)
            if pc.any(hit).as_py():
                marks = pc.unique(pc.utf8_trim_whitespace(strays.filter(hit))).to_pylist()[:MARKS]
                found.append(remedy.format(marks=", ".join(map(shown, marks))))
                if (
                    pattern == COMMA
                    and self.section
                    and pc.all(pc.match_substring_regex(strays.filter(hit), THOUSANDS)).as_py()
                ):
                    found[-1] += f', or {self.section}.thousands to "," if it separates thousands'
                strays = strays.filter(pc.invert(hit))
        return [] if len(strays) else list(dict.fromkeys(found))

    def _known(self) -> list[tuple[str, str]]:
        percent = (PERCENT, "write % in all cells or in none")
        if not self.section:
            number = "write numbers like 1234.5, without other marks"
            gap = (MISSING, "leave cells empty, None or NaN, where {marks} marks missing values")
            return [*((pattern, number) for pattern in (COMMA, THOUSANDS, DOTTED, SPACED, QUOTED)), percent, gap]
        decimal = f'set {self.section}.decimal to "," if the comma is the decimal mark'
        key = f"set {self.section}.thousands to"
        if self.decimal == ".":
            numbers = [
                (COMMA, decimal),  # 1,234 may be either
                (THOUSANDS, f'{key} ","'),
                (DOTTED, f'{key} "."'),
            ]
        else:
            numbers = [
                (DOTTED, f'{key} "." if 1.234 is a thousand, and write 1,5 where 1.5 is meant'),
                (POINT, "write all decimals with a comma, 1,5 and not 1.5"),
                (THOUSANDS, "write no separators of thousands, 1234567 and not 1,234,567"),
            ]
        numbers += [(SPACED, f'{key} " "'), (QUOTED, f"""{key} "'\"""")]
        gap = (MISSING, f"list {{marks}} in {self.section}.missing_values if that marks missing values")
        return [*numbers, percent, gap]


def is_percentage(pieces: Sequence[Any]) -> bool:
    """Return whether all texts of a column are such as 45 %, and there is one."""
    pc = optional("pyarrow.compute")
    found = False
    for piece in pieces:
        if not is_text(piece.type) or not pc.all(pc.match_substring_regex(piece, PERCENT)).as_py():
            return False
        found = found or piece.null_count < len(piece)
    return found


def _without_percent(text: Any) -> Any:
    """Return texts without the % at their end, where all have one: 12% is 12."""
    pc = optional("pyarrow.compute")
    if not pc.all(pc.match_substring_regex(text, PERCENT)).as_py():  # gaps do not count
        return text
    return pc.replace_substring_regex(text, r"\s*%\s*$", "")


def _number(mark: str, decimal: str) -> float | None:
    try:
        return float(mark.replace(decimal, "."))
    except ValueError:
        return None
