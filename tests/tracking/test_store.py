"""What happens when the store's file is locked, lost, damaged or forbidden, with a real MLflow and a real SQLite."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ldsvm.tracking import store
from ldsvm.tracking.client import Tracker, TrackingFailed

pytestmark = [
    pytest.mark.slow,  # MLflow and its store
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has MLflow's tables; making one takes a second."""
    runs = tmp_path_factory.mktemp("ready")
    assert Tracker(runs, "tests").experiment_id
    return runs


@pytest.fixture
def file(ready: Path, tmp_path: Path) -> Path:
    """The file of a store of the test's own."""
    with (
        closing(sqlite3.connect(ready / "mlflow.db")) as source,
        closing(sqlite3.connect(tmp_path / "mlflow.db")) as copy,
    ):
        source.backup(copy)
    return tmp_path / "mlflow.db"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits 20 seconds for a lock, neither we nor MLflow."""
    from sqlalchemy import Engine, event

    def shorten(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
        return statement.replace("busy_timeout = 20000", "busy_timeout = 100"), parameters

    monkeypatch.setattr(store, "LOCK_SECONDS", 0.1)
    event.listen(Engine, "before_cursor_execute", shorten, retval=True)
    yield
    event.remove(Engine, "before_cursor_execute", shorten)


@contextmanager
def locked(file: Path) -> Iterator[Callable[[], object]]:
    """Hold the file as another process would; yields what lets it go."""
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield lambda: other.execute("ROLLBACK")


def write(tracker: Tracker) -> None:
    tracker.finished("a run", kind="trial", params={"C": 1}, metrics={"n_basis": 5}, started=1e9, seconds=1)


def sentence(failure: BaseException, file: Path) -> str:
    """The message without the file, after a look at its form."""
    said = str(failure)
    assert said.startswith(f"{file} ") and said.endswith(".") and "\n" not in said and ". " not in said
    return said.removeprefix(f"{file} ")


def test_a_lock_that_is_let_go_is_waited_for(file: Path) -> None:
    tracker = Tracker(file.parent, "tests")
    assert tracker.experiment_id
    begin = time.monotonic()
    with locked(file) as let_go:
        timer = threading.Timer(0.7, let_go)
        timer.start()
        write(tracker)
        timer.join()
    assert time.monotonic() - begin > 0.6
    assert len(tracker.client.search_runs([tracker.experiment_id])) == 1


def test_opening_waits_for_a_lock_too(file: Path) -> None:
    with locked(file) as let_go:
        timer = threading.Timer(0.7, let_go)
        timer.start()
        assert Tracker(file.parent, "tests").experiment_id
        timer.join()


@pytest.mark.parametrize("opened", [True, False])
def test_a_lock_that_stays_is_a_failure_that_may_pass(file: Path, opened: bool, impatient: None) -> None:
    tracker = Tracker(file.parent, "tests")
    assert not opened or tracker.experiment_id
    with locked(file), pytest.raises(TrackingFailed) as failure:
        write(tracker)
    assert failure.value.transient
    said = sentence(failure.value, file)
    assert said == "was locked by another process for 0.1 s; run again when it is done."
    write(tracker)


def remove(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    os.replace(shutil.copy(file, file.with_name("copy.db")), file)


@pytest.mark.parametrize("lose", [remove, replace])
def test_a_file_that_is_taken_away_is_noticed_and_not_made_anew(file: Path, lose: Callable[[Path], None]) -> None:
    tracker = Tracker(file.parent, "tests")
    assert tracker.experiment_id
    lose(file)
    there = file.exists()
    with pytest.raises(TrackingFailed) as failure:
        write(tracker)
    assert sentence(failure.value, file) == "was removed or replaced while it was in use; run again."
    assert not failure.value.transient
    assert file.exists() == there


def test_a_file_that_took_the_place_of_another_is_read_when_it_is_opened_again(file: Path, tmp_path: Path) -> None:
    # MLflow keeps connections while the process lives, so that it would go on with the file that was removed
    other = tmp_path / "backup.db"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(other)) as copy:
        source.backup(copy)
    assert Tracker(file.parent, "later").experiment_id
    for left in file.parent.glob("mlflow.db*"):
        left.unlink()
    other.replace(file)
    found = {experiment.name for experiment in Tracker(file.parent, "tests").client.search_experiments()}
    assert "tests" in found and "later" not in found


@pytest.mark.parametrize(("raised", "expected"), [(None, TrackingFailed), (ValueError("no"), ValueError)])
def test_a_run_whose_store_is_lost_ends_with_the_first_reason(
    file: Path, raised: Exception | None, expected: type[Exception]
) -> None:
    def lose(tracker: Tracker) -> None:
        with tracker.run("lost", kind="method"):
            file.unlink()
            if raised is not None:
                raise raised

    with pytest.raises(expected):
        lose(Tracker(file.parent, "tests"))


def junk(file: Path) -> None:
    file.write_bytes(b"no database " * 100)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def read_only(file: Path) -> None:
    """As SQLite defines it: whoever finds a number above 2 at this place of the file must not write."""
    content = bytearray(file.read_bytes())
    content[18] = 3
    file.write_bytes(content)


def forbidden(file: Path) -> None:
    file.chmod(0o444)


def forbidden_folder(file: Path) -> None:
    file.parent.chmod(0o555)


def other_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")


DAMAGED = "is not an SQLite database, or is damaged; move it away, and run again."
UNWRITABLE = "cannot be written to; make it and its folder writable, or choose another with paths.runs."
allowed_all = pytest.mark.skipif(os.geteuid() == 0, reason="this user may write everywhere")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (junk, DAMAGED),
        (folder, "is a folder, where a file must be; move it away."),
        (read_only, UNWRITABLE),
        pytest.param(forbidden, UNWRITABLE, marks=allowed_all),
        pytest.param(forbidden_folder, UNWRITABLE, marks=allowed_all),
    ],
)
def test_a_file_that_cannot_be_the_store_is_one_sentence_at_once(
    file: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(file)
    begin = time.monotonic()
    with pytest.raises(TrackingFailed) as failure:
        write(Tracker(file.parent, "tests"))
    assert time.monotonic() - begin < 60  # MLflow alone tries for minutes
    assert sentence(failure.value, file) == said
    assert not failure.value.transient


def test_a_store_of_another_mlflow_is_one_sentence(file: Path) -> None:
    other_version(file)
    with pytest.raises(TrackingFailed) as failure:
        write(Tracker(file.parent, "tests"))
    assert sentence(failure.value, file).startswith("was made by another version of MLflow; move it away, or ")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrackingFailed) as failure:
        write(Tracker(tmp_path / "file" / "runs", "tests"))
    place = tmp_path / "file" / "runs"
    assert str(failure.value) == f"{place} cannot be used (Not a directory); choose another folder with paths.runs."


def test_a_mistake_of_ours_stays_what_it_is(file: Path) -> None:
    from mlflow import MlflowException

    tracker = Tracker(file.parent, "tests")
    with tracker.run("twice", kind="trial") as run:
        run.log({"C": 1}, {})
        with pytest.raises(MlflowException, match="C"):
            run.log({"C": 2}, {})
    with pytest.raises(MlflowException, match="already exists"):
        tracker.client.create_experiment("tests")


@pytest.mark.parametrize("quick", [True, False])
def test_a_store_on_a_local_disk_need_not_wait_for_it(
    tmp_path: Path, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlalchemy

    monkeypatch.setattr(store, "_on_local_disk", lambda folder: quick)
    store.StoreFile(tmp_path).prepare()
    store.tend_connections()
    address = store.store_uri(tmp_path)
    for name, level in ((address, 1 if quick else 2), (address.replace("mlflow", "another"), 2)):
        engine = sqlalchemy.create_engine(name)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == level
        engine.dispose()


def test_disks_of_this_machine_are_told_from_others() -> None:
    assert not store._on_local_disk(Path("/proc"))
