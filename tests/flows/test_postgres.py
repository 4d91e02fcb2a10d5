"""The commands of compose.yaml on a real PostgreSQL: both servers keep their stores there, and an experiment runs."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from flows.processes import free_ports
from tests.compose_file import Service, read, services

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).with_name("tiny.yaml")
INITDB = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
Running = Callable[..., AbstractContextManager[Any]]
COMPOSE, SERVICES = read(), services()


def as_somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": pwd.getpwnam("nobody").pw_uid} if os.getuid() == 0 else {}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of its owner's, which pytest's are not."""
    with TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        if who := as_somebody():
            os.chown(folder, who["user"], -1)
        yield Path(folder)


@pytest.fixture
def database(place: Path, running: Running, tmp_path: Path) -> Iterator[int]:
    """Port of a PostgreSQL with the user and the databases of compose.yaml, on loopback."""
    assert INITDB is not None
    (port,), who = free_ports(1), as_somebody()
    password = place / "password"
    password.write_text("secret", "utf-8")
    password.chmod(0o644)
    made = [INITDB, "-D", str(place / "data"), "-U", "ldsvm", "--auth=scram-sha-256", f"--pwfile={password}"]
    made += ["--locale=C.UTF-8"]  # as the image; in a database of ASCII MLflow cannot keep our names
    subprocess.run(made, check=True, capture_output=True, cwd="/", **who)
    serve = [str(Path(INITDB).resolve().with_name("postgres")), "-D", str(place / "data"), "-p", str(port)]
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={place}"]
    with running([*serve, *settings], tmp_path / "postgres.log", cwd="/", **who):
        import psycopg2

        end = time.monotonic() + 200
        while True:
            try:
                connection = psycopg2.connect(
                    host="127.0.0.1", port=port, user="ldsvm", password="secret", dbname="postgres"
                )
                break
            except psycopg2.OperationalError:
                assert time.monotonic() < end, (tmp_path / "postgres.log").read_text("utf-8")
                time.sleep(0.2)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE prefect")
            cursor.execute(COMPOSE["configs"]["databases"]["content"])
        connection.close()
        yield port


def command_of(service: Service, port: int, own: int, place: Path) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a service of compose.yaml, with this machine's ports and folders."""

    def here(text: str) -> str:
        text = text.replace("@db:5432", f"@127.0.0.1:{port}").replace("0.0.0.0", "127.0.0.1")
        text = text.replace("/run/secrets", str(place)).replace("/data", str(place))
        return re.sub(r"\b(4200|5000)\b", str(own), text)

    more = service.said.get("environment", {})
    return list(map(here, service.words)), {key: here(value) for key, value in more.items()}


@pytest.mark.server
@pytest.mark.skipif(INITDB is None, reason="needs PostgreSQL, in Debian the package postgresql")
@pytest.mark.timeout(600)
def test_both_servers_keep_their_stores_in_postgresql(
    database: int, running: Running, quiet: dict[str, str], prefect: Any, undrawn: None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from prefect.events.worker import EventsWorker

    (tmp_path / "password").write_text("secret\n", "utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    base = {**quiet, "PREFECT_HOME": str(tmp_path / "prefect"), "PATH": path}
    ports = dict(zip(("prefect", "mlflow"), free_ports(2), strict=True))
    with ExitStack() as servers:
        for name, health in (("prefect", "api/health"), ("mlflow", "health")):
            command, more = command_of(SERVICES[name], database, ports[name], tmp_path)
            log = tmp_path / f"{name}.log"
            url = f"http://127.0.0.1:{ports[name]}/{health}"
            servers.enter_context(running(command, log, url, cwd=ROOT, env={**base, **more}))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{ports['mlflow']}")
        here = {**prefect.variables, "PREFECT_API_URL": f"http://127.0.0.1:{ports['prefect']}/api"}
        given = [f"paths.runs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}"]
        code = replace(prefect, variables=here).call("pipeline", str(TINY), *given)
        EventsWorker.drain_all(at_exit=False)  # else what it has not yet sent waits for a server that has ended
        assert code == 0, capsys.readouterr().err
    import psycopg2

    for name, query, least in (
        ("prefect", "select count(*) from flow_run where state_type = 'COMPLETED'", 1),
        ("mlflow", "select count(*) from runs where status = 'FINISHED'", 5),
    ):
        with psycopg2.connect(
            host="127.0.0.1", port=database, user="ldsvm", password="secret", dbname=name
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            assert cursor.fetchone()[0] >= least
        connection.close()


@pytest.mark.server
@pytest.mark.skipif(INITDB is None, reason="no PostgreSQL")
def test_a_table_is_read_as_a_data_set_and_nothing_is_written(
    database: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg2

    from ldsvm.datasets import DataError
    from ldsvm.datasets.files import FileSpec, load

    connection = psycopg2.connect(host="127.0.0.1", port=database, user="ldsvm", password="secret", dbname="postgres")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("create schema clinic")
        cursor.execute(
            'create table clinic."Visits" (id serial primary key, price numeric(9, 2), day date, sick boolean, '
            "key uuid default gen_random_uuid(), state text)"
        )
        cursor.execute(
            'insert into clinic."Visits" (price, day, sick, state) values '
            "(1.25, '2024-03-01', true, 'ill'), (null, '2024-03-02', false, 'well'), (2, '2024-03-03', true, 'ill')"
        )
    connection.close()

    def read(**fields: Any) -> Any:
        address = f"postgresql://ldsvm@127.0.0.1:{database}/postgres"
        return load(FileSpec(address, label="state", **fields), name="visits", cache_dir=tmp_path / "cache")

    with pytest.raises(DataError, match=r"cannot be read .*password") as caught:
        read(table="clinic.Visits")
    monkeypatch.setenv("PGPASSWORD", "secret")
    data = read(table="clinic.Visits", drop=("id", "key"))
    assert data.X[:, [0, 2]].tolist()[::2] == [[1.25, 1], [2, 1]] and data.y.tolist() == ["ill", "well", "ill"]
    assert [column.role for column in data.train.table or ()] == ["number", "date", "yes/no"]
    with pytest.raises(DataError, match=r"cannot be read .*read-only transaction") as refused:
        read(query="select nextval('clinic.\"Visits_id_seq\"')")
    assert len(read(table="clinic.Visits", drop=("id", "key")).y) == 3
    assert "secret" not in str(caught.value) + str(refused.value)
