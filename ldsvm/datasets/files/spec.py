"""Which of a user's files make a data set, and what their columns mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class FileSpec:
    """Where the data lie and how to read them; everything but ``path`` has a default.

    path : a file, a folder or a glob; a zip archive of such files, an Excel workbook, or the address of a database,
        which `ldsvm.datasets.files.snapshots` makes files of. A folder of tables (Parquet, CSV, Arrow) is all of them
        in order of name; in subfolders such as year=2024/month=3 they get the columns year and month; a folder with one
        subfolder per class is a collection of texts, labelled by the subfolders' names.
    test_path : the official test set, read the same way and with the same columns; None where there is none
    format : parquet, csv, semicolon, pipe, blanks (text with ; or | or blanks between the fields), tsv, arrow, npz,
        svmlight, idx or text; None means what the files' names end in
    header : whether the first line of a table of text holds the names of its columns; they are c0, c1, … where not
    encoding : of a table of text, any of Python's; None where it is found out: UTF-16 by its first bytes, UTF-8, or
        else Windows-1252
    label : the label column of a table (default "label"), the labels' array in an NPZ file (default "y"), or the
        file of labels beside IDX images (default: the images' name with labels for images and idx1 for idx3; it
        names the labels of ``path``, those of ``test_path`` are always found by name)
    columns : the input columns of a table, in this order; None means all but label, drop, group and time
    roles : what input columns are, by name, where their values are not to decide: number, category, yes/no, date, text,
        date (day first) or date (month first) where no date tells which, or ignore for no input
    drop : columns that are never read
    text : the column that holds texts, then the only input
    group, time : columns for splits by group and by time; in an NPZ file arrays, by default "groups" and "times"
    decimal : "," where the numbers of a table are written as 1,5; "." where it is None
    thousands : "," or "." or " " or "'" where these separate thousands, as in 1,234,567
    missing_values : marks of missing numbers in a table, such as "?" or -999, beside the empty field, NA and the like
    sheet : of a workbook; None is the only one that has rows
    table, query : what to read of a database, one of them; before a table's name a schema's may stand, with a point
    snapshots : a folder for the Arrow files that large tables of text become; None reads these whole. It decides no
        value, and no key of an experiment sets it: `ldsvm.datasets.files.snapshots.plain` does

    The names of the other fields after ``path`` are those of the section ``dataset`` of an experiment, and messages
    call them so.

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
