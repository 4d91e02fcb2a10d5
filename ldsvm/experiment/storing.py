"""Fitted scikit-learn objects as bytes that run no code when they are read, unlike pickles."""

from __future__ import annotations

from typing import Any


def dumps(fitted: Any) -> bytes:
    """Return a fitted estimator in skops's format."""
    from skops.io import dumps as to_bytes

    data: bytes = to_bytes(fitted)
    return data


def loads(data: bytes) -> Any:
    """Return what `dumps` was given."""
    from skops.io import loads as from_bytes

    return from_bytes(data, trusted=trusted(data))


def trusted(data: bytes) -> list[str]:
    """Name the types in `data` that are ours or NumPy's: skops loads no other that it was not told to trust."""
    from skops.io import get_untrusted_types

    return [str(name) for name in get_untrusted_types(data=data) if name.startswith(("ldsvm.", "numpy."))]
