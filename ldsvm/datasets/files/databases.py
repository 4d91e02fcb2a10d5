"""Tables of SQLite and PostgreSQL as Parquet files; nothing is ever written into a database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from ldsvm.datasets.catalog import optional
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.kinds import array_of
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.words import cut, shown

ROWS = 200_000  # of one file
SQLITE, POSTGRES = "sqlite:///", "postgresql://"
RULE = "sqlite:///FILE and postgresql://HOST/DATABASE"


def is_address(given: str) -> bool:
    """Tell whether a path is the address of a database.

    Examples
    --------
    >>> is_address("sqlite:///a.db"), is_address("a.csv")
    (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", given) is not None


def check_address(given: str) -> None:
    """Raise ValueError for an address of another kind, and for one with a password, which is not shown.

    Examples
    --------
    >>> check_address("postgresql://me:12345@host/clinic")
    Traceback (most recent call last):
    ValueError: allowed: an address without a password; put it in PGPASSWORD or the file ~/.pgpass
    """
    parts = urlsplit(given)
    if parts.password is not None or any("passw" in key.lower() for key in parse_qs(parts.query, True)):
        raise ValueError("allowed: an address without a password; put it in PGPASSWORD or the file ~/.pgpass")
    if not given.startswith((SQLITE, POSTGRES)):
        raise ValueError(f"allowed: {RULE}")


def name_of(given: str, table: str | None) -> str:
    """Return a name for the files of a table."""
    return f"{Path(urlsplit(given).path).stem}-{table or 'query'}"


def write(given: str, spec: FileSpec, place: Path) -> None:
    """Write the rows of ``spec.table``, or of ``spec.query``, as Parquet files into the folder ``place``.

    A table's rows are in the order of its primary key. Raises `DataError` for what cannot be read.
    """
    pa, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    with _connected(given) as connection:
        result = _asked(connection, given, spec)
        if not result.returns_rows:
            raise DataError(f"{given}: dataset.query returns no rows; allowed: a SELECT.")
        names = [*result.keys()]
        empty = True
        for number, rows in enumerate(result.partitions(ROWS)):
            arrays = [array_of(column) for column in zip(*rows, strict=True)]
            parquet.write_table(pa.Table.from_arrays(arrays, names=names), place / f"{number:05d}.parquet")
            empty = False
        if empty:
            parquet.write_table(pa.table({name: pa.nulls(0) for name in names}), place / "00000.parquet")


@contextmanager
def _connected(given: str) -> Iterator[Any]:
    sql = optional("sqlalchemy", "sql")
    try:
        check_address(given)
    except ValueError as error:
        raise DataError(f"dataset.path: {error}.") from None
    options: dict[str, Any] = {"poolclass": sql.pool.NullPool, "hide_parameters": True}
    if given.startswith(SQLITE):
        file = Path(given.removeprefix(SQLITE)).expanduser()
        if not file.is_file():
            raise DataError(f"{given}: there is no file {file}.")
        address = f"file:{quote(str(file.absolute()))}?mode=ro"
        engine = sql.create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True), **options)
    else:
        optional("psycopg2", "sql")
        engine = sql.create_engine(given.replace(POSTGRES, "postgresql+psycopg2://", 1), **options)
    try:
        with engine.connect() as connection:
            reading = {"stream_results": True, "no_parameters": True}
            yield connection.execution_options(
                **reading, **({} if "sqlite" in given[:6] else {"postgresql_readonly": True})
            )
    except sql.exc.SQLAlchemyError as error:
        why = (str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"{given}: cannot be read ({cut(why, 200)}).") from None


def _asked(connection: Any, given: str, spec: FileSpec) -> Any:
    sql = optional("sqlalchemy", "sql")
    if spec.query is not None and spec.table is None:
        return connection.exec_driver_sql(spec.query)
    schema, _, name = (spec.table or "").rpartition(".")
    about = sql.inspect(connection)
    known = [*about.get_table_names(schema or None), *about.get_view_names(schema or None)]
    there = f"there are {faults.names(known) or 'none'}"
    if (spec.table is None) == (spec.query is None):
        raise DataError(f"{given}: name one table as dataset.table, or give a SELECT as dataset.query; {there}.")
    if name not in known:
        near = faults.nearest(name, known)
        raise DataError(f"{given}: dataset.table is {shown(str(spec.table))}, which is not a table{near}; {there}.")
    order = [sql.column(key) for key in about.get_pk_constraint(name, schema or None)["constrained_columns"]]
    table = sql.table(name, schema=schema or None)
    return connection.execute(sql.select(sql.text("*")).select_from(table).order_by(*order))
