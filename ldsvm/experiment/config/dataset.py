"""What an experiment file may say about its data."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr, field_validator, model_validator

from ldsvm.datasets.files import FileSpec
from ldsvm.datasets.files.databases import check_address, is_address
from ldsvm.experiment.config.production import Decimal, Encoding, Mark, Thousands
from ldsvm.experiment.config.spaces import Scalar

Role = Literal["number", "category", "yes/no", "date", "date (day first)", "date (month first)", "text", "ignore"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ,_+().-]*$", max_length=60)]


class DatasetConfig(BaseModel, frozen=True, extra="forbid"):
    """Which data: a data set of the catalogue, by its name, or your own files, by `path`.

    name: the name of the data set; for your own files, what reports call them.
    path: a file, a folder, a glob, an archive, a workbook or a database.
    test_path: the same, for an official test set.
    format: the format of the files; null goes by the ending of their names.
    header: whether the first line of a text file holds the names of the columns.
    encoding: the encoding of a text file; null detects it.
    label: the column of the classes.
    columns: the inputs, or the roles of some columns.
    drop: columns that are never read.
    text: the column of texts, which is then the only input.
    group, time: columns for splits of kind grouped and time.
    decimal, thousands: how numbers are written.
    missing_values: marks of missing values, in addition to the usual ones.
    sheet: the sheet of a workbook.
    table, query: what to read of a database, one of the two.
    missing: what to do about rows with missing values; "drop" also leaves out rows without a label.
    unlabelled: what to do about rows without a label.
    classes: the labels to keep; null keeps all.
    options: the parameters of generated data.
    """

    name: Name
    path: str | None = None
    test_path: str | None = None
    format: str | None = None
    header: bool = True
    encoding: Encoding | None = None
    label: str | None = None
    columns: tuple[str, ...] | dict[str, Role] | None = None
    drop: tuple[str, ...] = ()
    text: str | None = None
    group: str | None = None
    time: str | None = None
    decimal: Decimal | None = None
    thousands: Thousands | None = None
    missing_values: tuple[Mark, ...] = ()
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    missing: Literal["refuse", "drop", "impute"] = "refuse"
    unlabelled: Literal["refuse", "drop"] = "refuse"
    classes: Annotated[list[StrictInt | StrictStr], Field(min_length=2)] | None = None
    options: dict[str, Scalar] = {}

    @property
    def files(self) -> FileSpec | None:
        """What to read of the user's own files; None for a name of the catalogue."""
        if self.path is None:
            return None
        return FileSpec(
            path=self.path, test_path=self.test_path, format=self.format, label=self.label,
            header=self.header, encoding=self.encoding,
            columns=None if isinstance(self.columns, dict) else self.columns,
            roles=tuple(sorted(self.columns.items())) if isinstance(self.columns, dict) else (), drop=self.drop,
            text=self.text, group=self.group, time=self.time,
            decimal=self.decimal, thousands=self.thousands, missing_values=self.missing_values,
            sheet=self.sheet, table=self.table, query=self.query,
        )  # fmt: skip

    @field_validator("path", "test_path")
    @classmethod
    def _no_password(cls, value: str | None) -> str | None:
        if value is not None and is_address(value):
            check_address(value)
        return value

    @field_validator("classes", mode="before")
    @classmethod
    def _labels(cls, value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(v, bool) or not isinstance(v, int | str) for v in value):
            raise ValueError("allowed: whole numbers and words; words that YAML takes for true or false need quotes")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> DatasetConfig:
        if self.path is None:
            given = [f.name for f in fields(FileSpec) if f.name in self.model_fields_set]
            if given:
                raise ValueError(f"allowed: {', '.join(given)} together with path, the user's own files")
        elif self.options:
            raise ValueError("allowed: options for generated data of the catalogue, not together with path")
        return self
