"""Which of a user's files make a data set, and what their columns mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class FileSpec:
    """Where the data are and how to read them; everything except ``path`` has a default.

    path : a file, a folder or a glob; a zip archive of such files, an Excel workbook, or the address of a database
        (`ldsvm.datasets.files.snapshots` turns these three into files). A folder of tables (Parquet, CSV, Arrow) is
        read in the order of their names; subfolders such as year=2024/month=3 become the columns year and month. A
        folder with one subfolder for each class is a collection of texts, labelled by the names of the subfolders.
    test_path : the official test set, read in the same way and with the same columns; None if there is none
    format : parquet, csv, semicolon, pipe, blanks (text with ; or | or blanks between the fields), tsv, arrow, npz,
        svmlight, idx or text; None takes it from the ending of the files' names
    header : whether the first line of a text table holds the names of its columns; if not, they are c0, c1, …
    encoding : of a text table, any that Python knows; None detects it: UTF-16 by its first bytes, UTF-8, or else
        Windows-1252
    label : the label column of a table (default "label"), the labels' array in an NPZ file (default "y"), or the
        file of labels beside IDX images (default: the images' name with labels for images and idx1 for idx3; it
        names the labels of ``path``, those of ``test_path`` are always found by name)
    columns : the input columns of a table, in this order; None means all except label, drop, group and time
    roles : roles of columns, by name, in place of those guessed from their values: number, category, yes/no, date,
        text, date (day first) or date (month first) if no date tells which, or ignore
    drop : columns that are never read
    text : the column of texts, which is then the only input
    group, time : columns for splits by group and by time; in an NPZ file arrays, by default "groups" and "times"
    decimal : the decimal mark, "," or "."; None means "."
    thousands : the mark between thousands, as in 1,234,567: "," or "." or " " or "'"
    missing_values : marks of missing numbers in a table, such as "?" or -999, besides the empty field, NA and the like
    sheet : of a workbook; None means the only one that has rows
    table, query : the table of a database, or a SELECT; give one of them. A schema may precede the table's name, with
        a dot
    snapshots : a folder for the Arrow files into which large text tables are converted; None reads them whole. It does
        not affect values, and no key of an experiment sets it: `ldsvm.datasets.files.snapshots.plain` does

    The names of the other fields are keys of the section ``dataset`` of an experiment, and messages use these names.

    Examples
    --------
    >>> FileSpec("patients/*.parquet", label="outcome", drop=("id",)).format is None
    True
    """

    path: str
    test_path: str | None = None
    format: str | None = None
    header: bool = True
    encoding: str | None = None
    label: str | None = None
    columns: tuple[str, ...] | None = None
    roles: tuple[tuple[str, str], ...] = ()
    drop: tuple[str, ...] = ()
    text: str | None = None
    group: str | None = None
    time: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing_values: tuple[str | float, ...] = ()
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    snapshots: Path | None = field(default=None, compare=False, repr=False)
