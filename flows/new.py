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

Then read the file, and, in this order:
  python -m flows check conf/my.yaml       # what would be odd or wrong, within a minute
  python -m flows pipeline conf/my.yaml    # how good each method is: search, test error, report
  python -m flows retrain conf/my.yaml     # the model to be used; after new rows, a better one if there is
  python -m flows score conf/my.yaml production.score='{input: new.csv, output: scored.csv}'

DATA is whatever dataset.path takes: CSV, TSV, Parquet, Arrow, NPZ, svmlight, IDX, a folder, glob or zip of such files,
an Excel workbook, or the address of a database.
The separator, the encoding, decimal commas and marks of gaps such as ? are found out, and whether the first line holds
names; where it does not, the columns are c0, c1, …, and the last one is the label. A file that is there is never
overwritten.
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
        description="Write an experiment file for your own data, with comments that say what was found in them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help="a table or another data set, such as my.csv")
    parser.add_argument("--label", metavar="COLUMN", help="the column with the classes")
    parser.add_argument(
        "--group", metavar="COLUMN", help="rows that are alike here are never in two parts of the split"
    )
    parser.add_argument("--time", metavar="COLUMN", help="when a row is from: the oldest train, the newest judge")
    parser.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="a column that is never read; may come twice"
    )
    parser.add_argument("--decimal", metavar="MARK", choices=[".", ","], help="the decimal mark, . or a comma")
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="whether the first line holds the names of the columns"
    )
    parser.add_argument("--encoding", metavar="NAME", help="the encoding, such as cp1252 or utf-16")
    parser.add_argument("--sheet", metavar="NAME", help="the sheet of an Excel workbook")
    parser.add_argument("--table", metavar="NAME", help="the table of a database")
    parser.add_argument("--query", metavar="SQL", help="or a SELECT")
    parser.add_argument("--output", metavar="FILE", type=Path, help="the file to write, instead of conf/NAME.yaml")
    return parser
