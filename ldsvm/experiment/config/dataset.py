"""The section dataset of an experiment file."""

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
    """The data: a data set of the catalogue, or your own files.

    name: the name in the catalogue, or, with `path`, any name for your own data.
    path: your own data: a file, folder, glob, archive, workbook or database. test_path: the same for an official test
    set.
    format: of the files (default: by the ending of their names).
    header: whether the first line of a text table holds column names. encoding: None detects it.
    label, columns, drop, text, group, time: columns of a table, see `ldsvm.datasets.files.FileSpec`.
    decimal, thousands, missing_values: the decimal mark, the mark between thousands, and the marks of missing values.
    sheet: the sheet of a workbook. table, query: the table, or a SELECT, of a database.
    missing: what to do with missing values: "refuse" them, "drop" their rows, or "impute" the median of the training
    rows.
    unlabelled: what to do with rows without a label: "refuse" or "drop" (missing "drop" drops them too).
    classes: the labels to keep (default: all). options: parameters of generated data.
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
        """How to read the user's own files; None for a data set of the catalogue."""
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
            raise ValueError("allowed: whole numbers and words; words such as yes and no need quotes in YAML")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> DatasetConfig:
        if self.path is None:
            given = [f.name for f in fields(FileSpec) if f.name in self.model_fields_set]
            if given:
                raise ValueError(f"allowed: {', '.join(given)} with path only, that is, for your own files")
        elif self.options:
            raise ValueError("allowed: options for generated data of the catalogue only, without path")
        return self
