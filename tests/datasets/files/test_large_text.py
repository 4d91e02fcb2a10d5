"""Large tables of text are read block by block, and give what they give as a whole: values, roles and errors."""

from __future__ import annotations

import bz2
import gzip
import lzma
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from ldsvm.datasets import DataError, Dataset
from ldsvm.datasets.files import FileSpec, csv_text, inventory, large_text, load, opening, snapshots
from ldsvm.datasets.files.opening import Style

N = 400
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": pa.Codec("zstd").compress,
}  # fmt: skip


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of some twenty rows, as long as a header."""
    monkeypatch.setattr(opening, "BLOCK", 3_000)


def late(first: str, then: str, n: int = N) -> list[str]:
    """Return a column whose last rows are written in another way than those before."""
    return [first] * (n - 5) + [then] * 5


def messy(seed: int = 0) -> dict[str, list[str]]:
    """Return columns whose type is seen only in the last rows, with gaps, odd spaces and line breaks."""
    draw = np.random.default_rng(seed)
    days = [str(np.datetime64("2024-01-01") + i % 300) for i in range(N)]
    return {
        "id": [f"c{i:04}" for i in range(N)], "zip": [f"{i % 50:05}" for i in range(N)],
        "age": [["NA", "", f" {i % 90}"][draw.choice(3, p=[0.1, 0.1, 0.8])] for i in range(N)],
        "size": [str(i) for i in range(N - 5)] + ["1.5", "2e3", "", "nan", "-7"],
        "empty": [""] * N, "filled": late("", "7"), "wrong": late("2", "true"),
        "answer": [*"10" * (N // 2 - 2), *["true"] * 4],
        "day": days, "moment": [*days[:-5], *(f"{day} 10:30:00" for day in days[-5:])],
        "zoned": [f"{day}T00:00:00Z" for day in days[:-5]] + [f"{day}T00:00:00.25Z" for day in days[-5:]],
        "fine": [*days[:-5], *(f"{day} 10:30:00.125" for day in days[-5:])], "time": ["12:30"] * N,
        "code": late("7", "7a"), "large": late("7", "18446744073709551616"), "hexadecimal": late("7", "0x1f"),
        "word": [["red", "blue ", "NA", ""][i % 4] for i in range(N)],
        "note": [f'{i} a "quoted", long\nnote of {i % 7} words' for i in range(N)],
        "left": [["stays", "leaves"][i % 2] for i in range(N)],
    }  # fmt: skip


def write(path: Path, columns: dict[str, list[str]], delimiter: str = ",") -> Path:
    made = pa.BufferOutputStream()
    options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    csv.write_csv(pa.table({f" {name}": values for name, values in columns.items()}), made, options)
    # Numbers stand without quotation marks, as most programs write them.
    lines = made.getvalue().to_pybytes().replace(b'"7"', b"7").replace(b'"1"', b"1")
    path.write_bytes(PACK.get(path.suffix, bytes)(lines))
    return path


def loaded(spec: FileSpec, cache: Path) -> Dataset:
    return load(spec, name="customers", cache_dir=cache)


def both(spec: FileSpec, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dataset, Dataset]:
    """Return the data of a spec as read whole, and block by block."""
    whole = loaded(spec, folder / "whole")
    assert not [*folder.glob("whole/snapshots/*.arrow")]
    monkeypatch.setattr(large_text, "LARGE", 0)
    by_blocks = loaded(spec, folder / "blocks")
    assert [*folder.glob("blocks/snapshots/*.arrow")]
    assert not [file for file in folder.glob("blocks/snapshots/.*") if file.name != ".lock"]
    return whole, by_blocks


def check_same(whole: Dataset, by_blocks: Dataset) -> None:
    assert whole.sha256 == by_blocks.sha256 and whole.source == by_blocks.source
    for a, b in ((whole.train, by_blocks.train), (whole.test, by_blocks.test)):
        if a is None or b is None:
            assert a is b
            continue
        assert a.table == b.table and a.columns == b.columns and a.X.dtype == b.X.dtype
        for name in ("X", "y", "groups", "times"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_column_has_the_type_and_the_values_of_the_whole(tmp_path: Path, delimiter: str) -> None:
    path, style = write(tmp_path / "a.csv", messy(), delimiter), Style(delimiter)
    whole = csv_text.read(path, style, ["zip"])
    file = large_text.snapshot(path, "csv", style, ["zip"], "label", tmp_path / "kept")
    by_blocks = pa.ipc.open_file(file).read_all()
    assert by_blocks.schema == whole.schema and by_blocks.equals(whole)
    assert pa.ipc.open_file(file).num_record_batches > 5
    kinds = {str(field.type) for field in whole.schema}
    assert kinds == {
        "string", "double", "null", "int64", "bool", "date32[day]", "timestamp[s]", "timestamp[ns]",
        "timestamp[ns, tz=UTC]", "time32[s]",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("ending", ["", *PACK])
def test_a_messy_table_is_the_same_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    file, test = (write(tmp_path / f"{name}.csv{ending}", messy(seed)) for seed, name in enumerate(("a", "b")))
    spec = FileSpec(
        str(file), str(test), label="left", group="zip", time="moment", drop=("time", "filled"),
        roles=tuple((name, "category") for name in ("code", "wrong", "hexadecimal")), missing_values=("NA",),
    )  # fmt: skip
    whole, by_blocks = both(spec, tmp_path, monkeypatch)
    check_same(whole, by_blocks)
    assert whole.train.table is not None
    roles = {column.name: column.role for column in whole.train.table}
    assert {*roles.values()} == {"identifier", "number", "constant", "yes/no", "date", "category", "text"}


@pytest.mark.usefixtures("blocks")
def test_decimal_commas_percentages_encodings_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "price": [f"1.{i:03},5" for i in range(N)], "share": [f"{i % 100} %" for i in range(N)],
        "town": [["Köln", "-", "Łódź"][i % 3] for i in range(N)], "left": ["stays", "leaves"] * (N // 2),
    }  # fmt: skip
    for year in ("2023", "2024"):
        (tmp_path / "data" / f"year={year}").mkdir(parents=True)
        file = write(tmp_path / "data" / f"year={year}" / "a.csv", columns, ";")
        file.write_bytes(file.read_bytes().decode().replace("Łódź", "Łodz").encode("cp1250"))
    spec = FileSpec(
        str(tmp_path / "data"), format="semicolon", label="left", encoding="cp1250", decimal=",", thousands=".",
        missing_values=("-",),
    )  # fmt: skip
    check_same(*both(spec, tmp_path, monkeypatch))
    (file,) = (tmp_path / "blocks" / "snapshots").glob("*.arrow")  # the same content has the same name
    assert [part.rows for part in inventory(snapshots.plain(spec, file.parent))] == [N, N]


FAULTS: dict[str, Callable[[list[str]], list[str]]] = {
    "a row of more fields": lambda lines: [*lines[:333], lines[333] + ",9", *lines[334:]],
    "an open quotation mark": lambda lines: [*lines[:-1], lines[-1].rpartition(",")[0] + ',"u\nv'],
    "a mark within": lambda lines: [*lines[:200], lines[200].replace("word", 'wo" rd'), *lines[201:]],
    "a name twice": lambda lines: [lines[0].replace("size", "zip"), *lines[1:]],
    "a word among numbers": lambda lines: [*lines[:250], "x" + lines[250], *lines[251:]],
    "no label": lambda lines: [lines[0].replace("left", "gone"), *lines[1:]],
}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("fault", FAULTS)
def test_errors_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    rows = [f'{i},{i % 50:05},"a word {i}","{i}",{"uv"[i % 2]}' for i in range(N)]
    lines = FAULTS[fault](["id,size,word,zip,left", *rows])
    (tmp_path / "a.csv").write_text("\n".join(lines))
    spec, said = FileSpec(str(tmp_path / "a.csv"), label="left", roles=(("id", "number"), ("word", "text"))), []
    for place, limit in (("whole", large_text.LARGE), ("blocks", 0)):
        monkeypatch.setattr(large_text, "LARGE", limit)
        with pytest.raises(DataError) as caught:
            loaded(spec, tmp_path / place)
        said.append(str(caught.value))
    assert said[0] == said[1] and "a.csv: " in said[0] and "of format csv" not in said[0]
    assert not [*tmp_path.glob("*/snapshots/.a*")]


@pytest.mark.slow
@pytest.mark.usefixtures("blocks")
def test_nothing_half_written_is_left_or_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_text, "LARGE", 0)
    path, kept = write(tmp_path / "a.csv", messy()), tmp_path / "kept"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, limits[1]))  # as a full disk
    try:
        with pytest.raises(DataError, match=r"kept: cannot be written \(.*\)\.$"):
            large_text.snapshot(path, "csv", Style(), [], "label", kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [file.name for file in kept.iterdir()] == [".lock"]
    file = large_text.snapshot(path, "csv", Style(), [], "label", kept)
    content = file.read_bytes()
    left = file.with_name(f".{file.name}.0123")  # by a process that was killed
    file.rename(left)
    left.write_bytes(content[:1_000])
    assert large_text.snapshot(path, "csv", Style(), [], "label", kept).read_bytes() == content
    assert not left.exists()


def test_truth_values_of_the_label_stay_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["True", "False", " True", "False", "True", "True"]
    rows = [f"{i},{i % 7},{words[i % 6]}" for i in range(60)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["a,b,member", *rows]) + "\n", encoding="utf-8")
    whole, by_blocks = both(FileSpec(str(path), label="member"), tmp_path, monkeypatch)
    check_same(whole, by_blocks)
    assert set(by_blocks.train.y) == {"True", "False"}
