"""The empty database of an installation: made once, copied into new folders, and never over what is there."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flows import prefect_store


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    return {"PREFECT_HOME": str(tmp_path / "first")}


def made(folder: str) -> Path:
    """A database as a server makes it: some of it may still be in the journal beside the file."""
    Path(folder).mkdir()
    with closing(sqlite3.connect(Path(folder) / "prefect.db")) as store, store:
        store.execute("pragma journal_mode=wal")
        store.execute("create table version (number)")
        store.execute("insert into version values (7)")
    return Path(folder) / "prefect.db"


def numbers(file: Path) -> list[tuple[int]]:
    with closing(sqlite3.connect(file)) as store:
        return store.execute("select number from version").fetchall()


def test_the_second_folder_gets_what_was_made_in_the_first(variables: dict[str, str], tmp_path: Path) -> None:
    assert prefect_store.provide(variables), "there is none yet: Prefect must make its own"
    made(variables["PREFECT_HOME"])
    prefect_store.keep(variables)
    second = {"PREFECT_HOME": str(tmp_path / "second")}
    assert not prefect_store.provide(second)
    assert numbers(tmp_path / "second" / "prefect.db") == [(7,)]
    assert [file.name for file in (tmp_path / "second").iterdir()] == ["prefect.db"]


def test_a_database_that_is_there_or_elsewhere_is_left_alone(variables: dict[str, str], tmp_path: Path) -> None:
    own = made(variables["PREFECT_HOME"])
    prefect_store.keep(variables)
    with closing(sqlite3.connect(own)) as store, store:
        store.execute("insert into version values (8)")
    assert not prefect_store.provide(variables) and numbers(own) == [(7,), (8,)]
    prefect_store.keep(variables)
    assert numbers(prefect_store.pattern()) == [(7,)], "kept is what was empty"
    elsewhere = {
        "PREFECT_HOME": str(tmp_path / "third"), "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://db/x",
    }  # fmt: skip
    assert not prefect_store.provide(elsewhere) and not (tmp_path / "third").exists()


def test_where_nothing_can_be_kept_each_folder_makes_its_own(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "file"))  # as where the installation is read only
    made(variables["PREFECT_HOME"])
    prefect_store.keep(variables)
    assert prefect_store.provide({"PREFECT_HOME": str(tmp_path / "second")})


def test_a_folder_that_cannot_be_made_is_left_to_prefect(variables: dict[str, str], tmp_path: Path) -> None:
    made(variables["PREFECT_HOME"])
    prefect_store.keep(variables)
    (tmp_path / "file").touch()
    assert not prefect_store.provide({"PREFECT_HOME": str(tmp_path / "file")})
    assert (tmp_path / "file").read_bytes() == b""
