"""Tables in folders such as year=2024, whose names are columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from ldsvm.datasets import DataError
from ldsvm.datasets.files import FileSpec, inventory, load, read
from ldsvm.datasets.files.dialect import look
from ldsvm.datasets.files.find import find, holds
from ldsvm.datasets.files.streams import stream

FRAME = pd.DataFrame(
    {
        "year": [2024, 2024, 2025, 2025],
        "site": ["a b", "a b", "c=d", "c=d"],
        "month": [1, 12, 1, 12],
        "size": [1.5, 2.5, 3.5, 4.5],
        "label": ["x", "y", "y", "x"],
    }
)


def written(folder: Path, format: str) -> str:
    """Write the table as pyarrow does it."""
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    keys = ds.partitioning(pa.schema([table.schema.field(name) for name in ("year", "site", "month")]), flavor="hive")
    ds.write_dataset(table, folder / "data", format=format, partitioning=keys)
    (folder / "data" / "_SUCCESS").write_text("")
    return str(folder / "data")


@pytest.mark.parametrize("format", ["parquet", "csv", "feather"])
def test_the_names_of_folders_are_columns(tmp_path: Path, format: str) -> None:
    path = written(tmp_path, format)
    rows = read(FileSpec(path)).train
    assert rows.table is not None
    codes = {column.name: rows.X[:, place].tolist() for place, column in enumerate(rows.table)}
    assert codes == {"size": [1.5, 2.5, 3.5, 4.5], "year": [2024, 2024, 2025, 2025], "site": [0, 0, 1, 1],
                     "month": [1, 12, 1, 12]}  # fmt: skip
    assert rows.table[2].values == ("a b", "c=d") and rows.y.tolist() == ["x", "y", "y", "x"]
    assert inventory(FileSpec(path))[0].name.startswith("year=2024/site=a%20b/month=1/")
    assert load(FileSpec(path, drop=("site",)), name="a", cache_dir=tmp_path / "cache").train.columns == (
        "size", "year", "month",
    )  # fmt: skip
    found, _ = find(FileSpec(path))
    batches = [next(stream(f, found.format, values=found.values[f]).batches(["month", "size"], 5)) for f in found.files]
    assert [batch["month"].to_pylist() for batch in batches] == [[1], [12], [1], [12]]
    only = stream(found.files[3], found.format, values=found.values[found.files[3]])
    assert [batch.to_pylist() for batch in only.batches(["year"], 5)] == [[{"year": 2025}]]
    assert look(FileSpec(path)).columns.keys() == {"size", "label", "year", "site", "month"}  # type: ignore[union-attr]
    assert holds(path, Path(path, "year=2026", "new.parquet")) and not holds(path, Path(path, "scored", "new.parquet"))


def test_one_partition_by_itself_adds_no_column(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    assert read(FileSpec(f"{path}/year=2024/site=a%20b/month=1")).train.columns == ("size",)


def test_values_that_are_absent_or_no_numbers(tmp_path: Path) -> None:
    for year in ("2024", "__HIVE_DEFAULT_PARTITION__", "later"):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "a.csv").write_text("x,label\n1,u\n")
    found, _ = find(FileSpec(str(tmp_path)))
    assert [found.values[file]["year"].as_py() for file in found.files] == ["2024", None, "later"]


def test_what_cannot_be_meant(tmp_path: Path) -> None:
    def fails(message: str) -> None:
        with pytest.raises(DataError, match=message):
            read(FileSpec(str(tmp_path)))

    (tmp_path / "year=2024").mkdir()
    (tmp_path / "year=2024" / "a.csv").write_text("year,label\n1,u\n")
    fails("a.csv has a column 'year', as its folders have; rename one of them")
    (tmp_path / "year=2025" / "month=1").mkdir(parents=True)
    (tmp_path / "year=2025" / "month=1" / "a.csv").write_text("x,label\n1,u\n")
    fails(r"year=2025/month=1/a.csv has the folders year=…/month=…, but year=2024/a.csv has year=…; all files need")
    (tmp_path / "year=2025" / "b.tsv").write_text("x\tlabel\n1\tu\n")
    fails("holds files of 2 formats; set dataset.format to one of csv, tsv")


def test_texts_by_class_may_have_such_names(tmp_path: Path) -> None:
    for name in ("spam=no", "spam=yes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text("fine weather")
    assert read(FileSpec(str(tmp_path))).train.y.tolist() == ["spam=no", "spam=yes"]
