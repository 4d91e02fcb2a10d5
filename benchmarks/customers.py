"""Customers of a shop that does not exist: 30 columns of every role, with gaps, and a label that depends on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = 250_000  # rows of a file
PLANS, CHANNELS = ("basic", "plus", "business", "family"), ("shop", "web", "phone", "friend", "fair")
DEVICES, REGIONS = ("phone", "tablet", "desktop"), ("north", "east", "south", "west", "islands", "abroad")
WORDS = np.array([
    "price", "late", "early", "broken", "missing", "parcel", "refund", "thanks", "friendly", "slow", "quick", "wrong",
    "size", "colour", "twice", "never", "again", "order", "invoice", "card", "paid", "lost", "found", "small", "large",
    "return", "gift", "call", "mail", "answer", "waiting", "happy", "angry", "discount", "code",
])  # fmt: skip


def write(folder: Path, rows: int, seed: int = 0) -> None:
    """Write so many rows as Parquet files of 250,000 rows; the first ones are the same for every number of them.

    The files of another seed have other names, so that they join those that are there.
    """
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE)):
        table = pa.table(customers(number, seed))
        parquet.write_table(table.slice(0, rows - start), folder / f"{seed}-{number:04}.parquet", row_group_size=50_000)


def write_csv(file: Path, rows: int, seed: int = 0) -> None:
    """Write the rows that `write` writes as one CSV file."""
    import pyarrow as pa
    from pyarrow import csv

    file.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    for number, start in enumerate(range(0, rows, FILE)):
        table = pa.table(customers(number, seed)).slice(0, rows - start)
        writer = writer or csv.CSVWriter(str(file), table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def customers(number: int, seed: int) -> dict[str, object]:
    """Return the columns of one file."""
    draw, n = np.random.default_rng([seed, number]), FILE

    def some(words: tuple[str, ...], gaps: float = 0.0) -> np.ndarray:
        found = np.array(words, dtype=object)[draw.integers(0, len(words), n)]
        found[draw.random(n) < gaps] = None
        return found

    def number_(values: np.ndarray, gaps: float = 0.0) -> np.ndarray:
        return np.where(draw.random(n) < gaps, np.nan, values)

    age, income, visits = draw.normal(45, 15, n), draw.lognormal(10, 0.6, n), draw.poisson(6, n)
    joined, last = draw.integers(0, 3_000, n), draw.integers(0, 86_400 * 365, n)
    plan, town, angry = draw.integers(0, 4, n), draw.integers(0, 200, n), draw.random(n)
    notes = WORDS[draw.integers(0, len(WORDS), (n, 6))]
    notes[angry < 0.2, 0] = "angry"
    spent = draw.gamma(2.0, 40.0, n)
    score = (
        1.5 * np.sin(age / 12) + 0.8 * (plan == 0) - 0.6 * (plan == 2) + np.cos(visits / 2.0) * (spent > 80)
        + 0.9 * (town % 7 == 3) - 1e-3 * np.abs(joined - 1_500) + 1.2 * (angry < 0.2) + draw.normal(0, 0.3, n)
    )  # fmt: skip
    first = np.datetime64("2016-01-01")
    more = {f"meter_{i}": number_(draw.normal(i, 1 + i, n), 0.02 * i) for i in range(9)}
    return {
        "customer": np.char.add("c", (number * FILE + np.arange(n)).astype(str)),
        "age": number_(age.round(1), 0.05),
        "income": number_(income.round(2), 0.15),
        "spent": spent.round(2),
        "visits": visits,
        "children": draw.integers(0, 5, n),
        **more,
        "plan": np.array(PLANS, dtype=object)[plan],
        "channel": some(CHANNELS, 0.1),
        "device": some(DEVICES),
        "region": some(REGIONS, 0.02),
        "town": np.char.add("town ", town.astype(str)),
        "product": np.char.add("p", draw.integers(0, 400, n).astype(str)),
        "job": np.char.add("job ", draw.zipf(1.7, n).clip(1, 90).astype(str)),
        "member": some(("yes", "no"), 0.05),
        "newsletter": some(("Y", "N")),
        "active": draw.random(n) < 0.7,
        "insured": draw.random(n) < 0.1,
        "joined": first + joined,
        "last_seen": np.datetime64("2024-01-01T00:00:00") + last.astype("timedelta64[s]"),
        "birthday": (np.datetime64("1950-01-01") + draw.integers(0, 18_000, n)).astype(str),
        "note": [" ".join(line) for line in notes.tolist()],
        "left": np.array(["stays", "leaves"], dtype=object)[(score > 0).astype(int)],
    }  # fmt: skip
