"""Who starts services again: the rules, with a clock of our own and services that are only said to be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flows import servers, service, watch
from flows.service_settings import NAMES, SERVERS, Settings

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class World:
    """Services that run and answer unless a test says otherwise; `begun` are those that were started again."""

    settings: Settings
    now: float = 1000.0
    dead: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    repair: bool = True

    def launch(self, name: str, _: Settings) -> None:
        self.begun.append(name)
        self.settings.file(name).touch()
        if self.repair:
            self.dead.discard(name)
            self.silent.discard(name)

    def look(self, one: watch.Watch, seconds: float) -> list[str]:
        """Let it look every two seconds for so long; return what it started."""
        self.begun.clear()
        for _ in range(int(seconds / 2)):
            self.now += 2
            one.look()
        return list(self.begun)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(Settings(tmp_path, 1, 2))
    found.settings.folder.mkdir()
    for name in NAMES:
        found.settings.file(name).touch()
    monkeypatch.setattr(servers, "launch", found.launch)
    monkeypatch.setattr(servers, "end", lambda name, settings: settings.file(name).unlink())
    monkeypatch.setattr(servers, "healthy", lambda name, _: name not in found.dead | found.silent)
    monkeypatch.setattr(Settings, "alive", lambda _, name: name not in found.dead)
    return found


def watching(world: World) -> watch.Watch:
    return watch.Watch(world.settings, world.said.append, lambda: world.now)


@pytest.mark.parametrize("name", SERVERS)
def test_what_ends_is_started_again_once_and_the_status_says_it(
    name: str, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = watching(world)
    assert world.look(one, 60) == [] and not watch.records(world.settings)
    world.dead.add(name)
    assert world.look(one, 60) == [name]
    assert world.said == [f"{name} ended; restarting it in 1 s", f"{name} ended and was restarted"]
    monkeypatch.setattr(service.deployments, "listing", lambda _: [])
    assert service.status(world.settings) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "restarted" in line]
    assert line.startswith(name) and "healthy, restarted once, last at 20" in line


def test_pauses_grow_and_after_five_times_it_is_given_up_until_make_up(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, world.repair = watching(world), False
    world.dead.add("mlflow")
    assert world.look(one, 300) == ["mlflow"] * watch.MOST
    pauses = [sentence for sentence in world.said if "in " in sentence]
    assert [int(sentence.split()[-2]) for sentence in pauses[:5]] == [1, 2, 4, 8, 16]
    monkeypatch.setattr(service.deployments, "listing", lambda _: [])
    assert service.status(world.settings) == 1
    assert "ended; given up after 5 restarts in 10 minutes: see " in capsys.readouterr().out
    world.dead.add("worker")
    assert set(world.look(one, 2000)) == {"worker"}  # the others are still looked after


def test_rare_ends_are_never_given_up(world: World) -> None:
    one = watching(world)
    for _ in range(3 * watch.MOST):
        world.dead.add("prefect")
        assert world.look(one, watch.WINDOW_SECONDS / 2) == ["prefect"]
    assert one.records["prefect"].restarts == 3 * watch.MOST


def test_silence_is_borne_for_a_minute_and_longer_by_what_has_just_started(world: World) -> None:
    one = watching(world)
    world.silent.add("mlflow")
    assert world.look(one, watch.SILENT_SECONDS - 2) == []
    world.silent.clear()
    assert world.look(one, 10) == []  # it was only busy
    world.silent.add("mlflow")
    world.repair = False
    assert world.look(one, watch.SILENT_SECONDS + 10) == ["mlflow"]
    assert world.look(one, watch.SILENT_SECONDS + 10) == []  # it still starts


def test_a_worker_is_not_blamed_for_the_silence_of_prefect(world: World) -> None:
    one = watching(world)
    world.silent = {"prefect", "worker"}
    assert world.look(one, watch.SILENT_SECONDS + 10) == ["prefect"]
    world.silent = {"worker"}
    assert world.look(one, watch.SILENT_SECONDS + 10) == ["worker"]


def test_what_make_down_has_ended_is_not_started(world: World) -> None:
    one = watching(world)
    world.dead = {"worker"}
    world.settings.file("worker").unlink()
    assert world.look(one, 60) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_the_process_is_small_and_ends_with_its_file(tmp_path: Path) -> None:
    settings = Settings(tmp_path, 1, 2)
    settings.folder.mkdir()
    servers.launch("watch", settings)
    found = settings.process("watch")
    assert found is not None
    try:
        end = time.monotonic() + 60
        while "watching" not in settings.log("watch").read_text("utf-8"):
            assert found.alive and time.monotonic() < end
            time.sleep(0.05)
        peak = Path(f"/proc/{found.pid}/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]
        assert int(peak) < 60_000  # kB; with Prefect or MLflow it would be 150,000
        settings.file("watch").write_text(json.dumps({"pid": found.pid + 1, "born": "", "prefect": 1, "mlflow": 2}))
        while found.alive:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        found.end("")
    os.waitpid(found.pid, 0)


@pytest.mark.slow
def test_the_launcher_imports_waits_for_an_answer_and_runs_a_module(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("print('loaded', flush=True)\n")
    (tmp_path / "second.py").write_text("import sys, gc\nprint(__name__, sys.argv[1:], gc.get_threshold()[0])\n")
    page = tmp_path / "page"
    page.write_text("here")
    command = ["flows.launcher", "--load=first", f"--after={page.as_uri()}", "second", "--port", "1"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["loaded", "__main__ ['--port', '1'] 100000"], done.stderr
