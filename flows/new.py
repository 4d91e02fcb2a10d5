"""The command `python -m flows new`: write an experiment file for a user's own data. It starts no server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from flows import ROOT

EXAMPLES = """
examples:
  python -m flows new my.csv                       # which columns are there?
  python -m flows new my.csv --label outcome       # writes conf/my.yaml
  python -m flows new postgresql://host/clinic --table visits --label ill
  python -m flows new visits/ --label ill --group patient_id --output conf/visits.yaml
  python -m flows new letters.dat --no-header      # the last column is the label
  python -m flows new sales.parquet --label returned --time sold_on

Then read the file and go on with:
  python -m flows check conf/my.yaml       # finds problems within a minute
  python -m flows pipeline conf/my.yaml    # compares the methods: search, test error, report
  python -m flows retrain conf/my.yaml     # trains the model to use; run it again when new rows arrive
  python -m flows score conf/my.yaml production.score='{input: new.csv, output: scored.csv}'

DATA is anything that dataset.path accepts: CSV, TSV, Parquet, Arrow, NPZ, svmlight or IDX files, a folder, glob or zip
of them, an Excel workbook, or the address of a database.
The separator, the encoding, the decimal mark, the marks of missing values (such as ?) and whether the first line holds
column names are detected. Without names, the columns are c0, c1, …, and the last one is the label. An existing file is
never overwritten.
exit codes: 0 written, 2 a mistake in the command or the data.
"""


def main(arguments: Sequence[str]) -> int:
    """Write the file and return the exit code."""
    asked = _parser().parse_args(arguments)
    from flows._cli import working
    from ldsvm.datasets import DataError
    from ldsvm.experiment.config.yaml_merge import without_password
    from ldsvm.experiment.draft_text import write

    try:
        with working(f"read {without_password(asked.data)}"):
            lines = write(
                asked.data,
                ROOT,
                **{name: value for name, value in vars(asked).items() if name != "data"},
            )
    except DataError as error:
        hint = " (--drop NAME leaves a column out.)" if ": column " in str(error) else ""
        print(f"{error}{hint}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows new",
        description="Write an experiment file for your own data, with comments on what was found in the data.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help="a table or another data set, such as my.csv")
    parser.add_argument("--label", metavar="COLUMN", help="the column with the classes")
    parser.add_argument(
        "--group", metavar="COLUMN", help="rows with the same value here, such as a patient, are never split apart"
    )
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        help="the date of each row; the oldest rows are for training, the newest for testing",
    )
    parser.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="a column to ignore; may be repeated"
    )
    parser.add_argument("--decimal", metavar="MARK", choices=[".", ","], help="the decimal mark")
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="whether the first line holds column names"
    )
    parser.add_argument("--encoding", metavar="NAME", help="the encoding, such as cp1252 or utf-16")
    parser.add_argument("--sheet", metavar="NAME", help="the sheet of an Excel workbook")
    parser.add_argument("--table", metavar="NAME", help="the table of a database")
    parser.add_argument("--query", metavar="SQL", help="a SELECT, in place of a table")
    parser.add_argument("--output", metavar="FILE", type=Path, help="the file to write (default: conf/NAME.yaml)")
    return parser
