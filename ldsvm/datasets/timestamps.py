"""Times as values that sort."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.split import Indices
from ldsvm.datasets.words import row_list, shown


def parse_times(times: NDArray[Any], name: str, rows: Indices | None) -> NDArray[Any]:
    """Return times (N,) as they are where they are numbers or dates, and ISO 8601 texts as datetime64[us] in UTC.

    name: what the message calls the times. rows (N,): their row numbers in the source, if other than 0, 1, …. Raises
    `DataError` for texts that are not a time, or not one between the years 1 and 9999 in UTC.

    Examples
    --------
    >>> parse_times(np.array(["2024-01-31T01:00+02:00", "2024-01-31"]), "times", None).astype(str).tolist()
    ['2024-01-30T23:00:00.000000', '2024-01-31T00:00:00.000000']
    """
    if times.dtype.kind in "iufM":
        return times
    texts = [str(time) for time in times.tolist()]
    found = [_parse_time(text) for text in texts]
    wrong = np.array([row for row, time in enumerate(found) if time is None], dtype=np.int64)
    if len(wrong):
        rule = "allowed: numbers, dates and ISO 8601 texts such as '2024-01-31' or '2024-01-31T18:00'"
        hold = "holds" if len(wrong) == 1 else "hold"
        where = row_list(wrong if rows is None else rows[wrong])
        raise DataError(f"{name}: {where}, {hold} no time, such as {shown(texts[wrong[0]])}; {rule}.")
    return np.array(found, dtype="datetime64[us]")


def _parse_time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    except (ValueError, OverflowError):  # in UTC, an early morning of year 1 would lie in year 0
        return None
