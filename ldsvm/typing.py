"""Types shared by the whole package."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

#: Any NumPy array; shapes and precision stand in the docstrings.
Array = NDArray[Any]
