"""What a pyarrow type holds: texts, single numbers, or lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldsvm.datasets.catalog import optional


def is_text(type: Any) -> bool:
    """Tell whether a pyarrow type holds texts."""
    types = optional("pyarrow").types
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def is_number(type: Any) -> bool:
    """Tell whether a pyarrow type holds single numbers, or nothing at all."""
    types = optional("pyarrow").types
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(test(type) for test in tests)


def is_list(type: Any) -> bool:
    """Tell whether a pyarrow type holds lists of any kind."""
    types = optional("pyarrow").types
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def plain(piece: Any) -> Any:
    """Return a piece of a column without the dictionaries and names of types that only wrap values."""
    pa = optional("pyarrow")
    found = piece.storage if isinstance(piece, pa.ExtensionArray) else piece
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def array_of(values: Sequence[Any]) -> Any:
    """Return values of Python as a pyarrow array; as texts if they have several types, or one that pyarrow lacks.

    Examples
    --------
    >>> array_of([1, None, 2.5]).to_pylist(), array_of([1, "red"]).to_pylist()
    ([1.0, None, 2.5], ['1', 'red'])
    """
    pa = optional("pyarrow")
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
