"""What `make up`, `make down` and `make clean` rest on, without starting a server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
import yaml

from flows import __main__ as command
from flows import _cli, deployments, environment, processes
from flows.processes import Process
from flows.service import main
from ldsvm.experiment.config.load import ConfigError, load_config

ROOT = Path(__file__).resolve().parents[2]
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@needs_proc
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PORT", "mlflow", 'PORT is "mlflow"; allowed: a port, 1 to 65535.\n'),
        ("PREFECT_PORT", "70000", 'PREFECT_PORT is "70000"; allowed: a port, 1 to 65535.\n'),
        ("PORT", "4200", "PREFECT_PORT and PORT are both 4200; allowed: two different ports.\n"),
        ("RUNS", "/dev/null/runs", "paths.runs is /dev/null/runs, which cannot be created (Not a directory).\n"),
    ],
)
def test_a_wrong_variable_is_one_sentence(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, usual in (("RUNS", "/dev/null/never"), ("PORT", "5000"), ("PREFECT_PORT", "4200")):
        monkeypatch.setenv(name, value if name == variable else usual)
    assert main(["up"]) == 2
    assert tuple(capsys.readouterr()) == ("", said)


@needs_proc
def test_a_process_that_has_the_number_now_is_never_ended(tmp_path: Path) -> None:
    """launch also gives back the default signals that this process, as a script in the background would, ignores."""
    ignored = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        mine = processes.launch(["http.server", "0", "--bind", "127.0.0.1"], tmp_path / "log")
    finally:
        signal.signal(signal.SIGTERM, ignored)
    assert mine.alive
    earlier = Process(mine.pid, str(int(mine.born) - 1))  # the same number, begun a tick before
    assert not earlier.alive and earlier.group("HOME=" + os.environ["HOME"]) == {}
    earlier.end("HOME=" + os.environ["HOME"])
    assert mine.alive
    begin = time.monotonic()
    mine.end("")
    assert time.monotonic() - begin < processes.STOP_SECONDS
    assert os.waitstatus_to_exitcode(os.waitpid(mine.pid, 0)[1]) == -signal.SIGTERM
    assert not mine.alive


@needs_proc
@pytest.mark.parametrize("ours", [True, False])
def test_a_group_without_its_leader_is_ended_if_it_has_our_mark(ours: bool) -> None:
    variables = {**os.environ, "LDSVM_TEST": "mark" if ours else "other"}
    command = ["sh", "-c", "sleep 100 & sleep 100 & echo; wait"]
    with subprocess.Popen(command, env=variables, start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None and leader.stdout.readline()
        born = Path(f"/proc/{leader.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
        group = Process(leader.pid, born)
        assert len(group.group("LDSVM_TEST=mark")) == 3
        leader.kill()
        leader.wait()
        assert len(group.group("LDSVM_TEST=mark")) == (2 if ours else 0)
        group.end("LDSVM_TEST=mark")
        assert len(group.group("LDSVM_TEST=other")) == (0 if ours else 2)
        group.end("LDSVM_TEST=other")


@pytest.mark.parametrize(
    ("config", "overrides", "said"),
    [
        ("/etc/passwd", [], "config is /etc/passwd; allowed in a deployed run: a path below "),
        ("conf/../../x.yaml", [], "config is "),
        ("conf/own_table.yaml", ["dataset.path=/etc/passwd"], "dataset.path is /etc/passwd; allowed"),
        ("conf/own_table.yaml", ["dataset.path=data/../../x.csv"], "dataset.path is "),
        ("conf/digits.yaml", ["paths.cache=/var/tmp/x"], "paths.cache is /var/tmp/x; allowed"),
        ("conf/production/digits.yaml", ["production.score={input: /etc/x.csv, output: data/y.csv}"], "score.input is"),
        ("conf/production/digits.yaml", ["production.score={input: data/x.csv, output: /y.csv}"], "score.output is"),
    ],
)
def test_parameters_of_a_deployed_run_do_not_reach_out_of_the_data(
    config: str, overrides: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LDSVM_DATA", raising=False)
    with pytest.raises(ConfigError, match=said):
        _cli.load_any(config, overrides)


def test_what_make_up_was_told_may_be_reached_but_not_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LDSVM_DATA", f"/nowhere{os.pathsep}{tmp_path / 'mine'}")
    (tmp_path / "mine").mkdir()
    found = _cli.experiment("conf/own_table.yaml", [f"dataset.path={tmp_path / 'mine' / 'x.csv'}"])
    assert found.dataset.path == str(tmp_path / "mine" / "x.csv")
    (tmp_path / "mine" / "link").symlink_to("/etc")
    with pytest.raises(ConfigError, match=r"^dataset\.path is "):
        _cli.experiment("conf/own_table.yaml", [f"dataset.path={tmp_path / 'mine' / 'link' / 'x.csv'}"])


@pytest.mark.slow
def test_files_behind_links_globs_and_labels_are_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "mine", tmp_path / "theirs"
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LDSVM_DATA", str(inside))
    for file in (inside / "images.idx3", inside / "own" / "a.csv", outside / "secret.csv", outside / "labels.idx1"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a,label\n1,0\n")
    (inside / "folder").mkdir()
    (inside / "folder" / "b.csv").symlink_to(outside / "secret.csv")
    (inside / "linked").symlink_to(outside)
    (inside / "beside.idx1").symlink_to(outside / "labels.idx1")
    score = "production.score={{input: {}, output: data/y.csv}}"
    table, images = f"dataset.path={inside}/{{}}", f"dataset.path={inside / 'images.idx3'}"
    assert _cli.experiment("conf/own_table.yaml", [table.format("own/*.csv")])
    for wrong in (
        [table.format("folder")], [table.format("*/*.csv")], [table.format("**/*.csv")],
        [images, "dataset.label=../theirs/labels.idx1"], [images, f"dataset.label={outside / 'labels.idx1'}"],
        [images, "dataset.label=beside.idx1"],
    ):  # fmt: skip
        with pytest.raises(
            ConfigError, match=r"^dataset\.path, which reads .*; allowed in a deployed run: a path below"
        ):
            _cli.experiment("conf/own_table.yaml", wrong)
    with pytest.raises(ConfigError, match=r"^production\.score\.input, which reads .*; allowed"):
        _cli.experiment("conf/production/digits.yaml", [score.format(inside / "*" / "*.csv")])


def test_a_deployed_run_joins_the_rays_that_the_operator_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LDSVM_RAY_ADDRESSES", raising=False)
    trials = ["search.ray_address=head:6379"]
    fits = ["methods.ours.executor={kind: ray, address: 'head:6379'}"]
    for given, key in ((trials, "search.ray_address"), (fits, "methods.ours.executor.address")):
        with pytest.raises(ConfigError, match=f"^{key} is head:6379; allowed in a deployed run: none, as"):
            _cli.experiment("conf/production/digits.yaml", given)
    monkeypatch.setenv("LDSVM_RAY_ADDRESSES", "other:1, head:6379")
    assert _cli.experiment("conf/production/digits.yaml", trials).search.ray_address == "head:6379"
    assert _cli.experiment("conf/production/digits.yaml", fits)


EVERY = [
    *(f"pipeline/{name}" for name in ("digits", "mnist10", "pcmac", "own-table")), "retrain/digits", "score/digits",
    "promote/digits", "rollback/digits",
]  # fmt: skip


@pytest.mark.slow
def test_what_is_deployed_names_files_that_load_and_no_place_of_this_machine() -> None:
    text = (ROOT / "prefect.yaml").read_text("utf-8")
    said = yaml.safe_load(text)
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users|opt)\b|https?://|localhost", text)
    assert list(deployments.wanted_deployments()) == EVERY
    for one in said["deployments"]:
        assert _cli.experiment(**one["parameters"]).paths.runs == ROOT / "runs"
        file, _, flow = one["entrypoint"].partition(":")
        assert file == f"flows/{flow}.py" and one["work_pool"]["name"] == "local"
        assert one["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
        by_hand = flow in ("promote", "rollback")
        found = [(rule["active"], "/" in rule["timezone"]) for rule in one["schedules"]]
        assert found == ([] if by_hand else [(False, True)])


@pytest.mark.parametrize("monday", ["2025-03-24", "2025-10-20"])  # clocks change on the Sunday of that week
def test_a_clock_change_neither_skips_nor_doubles_a_scheduled_run(monday: str) -> None:
    from prefect.server.schemas.schedules import CronSchedule

    said = yaml.safe_load((ROOT / "prefect.yaml").read_text("utf-8"))
    for rule in [rule for one in said["deployments"] for rule in one["schedules"]]:
        schedule = CronSchedule(cron=rule["cron"], timezone=rule["timezone"])
        zone = ZoneInfo(rule["timezone"])
        now = datetime.fromisoformat(monday).replace(tzinfo=zone)
        end = now + timedelta(days=14)
        days = []
        while True:
            (run,) = asyncio.run(schedule.get_dates(1, start=now))
            if run >= end:
                break
            days.append(run.astimezone(zone).date())
            now = run.astimezone(UTC) + timedelta(seconds=1)  # as the server does, which asks again and again
        _, hour, _, _, on = rule["cron"].split()
        week = {"*": range(7), "1-5": range(5), "6": [5], "0": [6]}[on]
        first = datetime.fromisoformat(monday).date()
        assert int(hour) and days == [first + timedelta(days=7 * number + day) for number in range(2) for day in week]


@pytest.fixture
def busy() -> Iterator[Callable[[list[int]], str]]:
    """Address of a server that answers with these codes, one after the other, and then always with the last."""
    servers = []

    def serve(codes: list[int]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(code := codes.pop(0) if len(codes) > 1 else codes[0])
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(json.dumps([code]).encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_server_that_says_it_is_busy_is_asked_again(busy: Callable[[list[int]], str]) -> None:
    assert deployments.post(busy([503, 503, 200]), "flows/filter") == [200]


@pytest.mark.parametrize(("code", "seconds"), [(503, 0.2), (500, 30.0)])
def test_but_not_for_ever_nor_after_another_error(
    code: int, seconds: float, busy: Callable[[list[int]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "BUSY_SECONDS", seconds)
    begin = time.monotonic()
    with pytest.raises(urllib.error.HTTPError, match=str(code)) as caught:
        deployments.post(busy([code]), "flows/filter")
    assert caught.value.code == code and time.monotonic() - begin < 25


@pytest.mark.slow
def test_only_what_is_new_changed_or_absent_is_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not sent keeps what a user changed of it in Prefect's pages."""
    code, present = 0, set[str]()
    sent: list[str] = []

    def run(command: Sequence[str], **_: object) -> Mock:
        sent[:] = [part.removeprefix("--name=") for part in command if part.startswith("--name=")]
        return Mock(wait=lambda: code)

    def deploy() -> list[str]:
        sent.clear()
        wanted, memory = deployments.wanted_deployments(), tmp_path / "deployed.json"
        deploying = deployments.Deploying("api", wanted, memory, tmp_path / "log")
        present.update(name for name in sent if not code)  # which has then been sent before it is looked
        assert deploying.finish() == (code == 0)
        return list(sent)

    monkeypatch.setattr(deployments, "_on_server", lambda _: {name: {} for name in present})
    monkeypatch.setattr(subprocess, "Popen", run)
    assert deploy() == EVERY
    assert deploy() == []
    present.remove("pipeline/pcmac")
    assert deploy() == ["pipeline/pcmac"]
    present.add("pipeline/pcmac")
    changed = tmp_path / "prefect.yaml"
    changed.write_text(
        deployments.FILE.read_text("utf-8").replace("The quick start; takes a minute.", "Digits."), "utf-8"
    )
    monkeypatch.setattr(deployments, "FILE", changed)
    code = 1
    assert deploy() == ["pipeline/digits"]
    code = 0
    assert deploy() == ["pipeline/digits"]  # what failed is tried again
    assert deploy() == []
    monkeypatch.setenv("LDSVM_ROOT", "/another")  # a variable of the file
    assert deploy() == EVERY


@needs_proc
@pytest.mark.parametrize(
    ("text", "said"),
    [("a: b: c", "ScannerError"), ("[]", "TypeError"), ("pull: []\ndeployments: [{name: one}]", "entry")],
)
def test_a_prefect_yaml_that_cannot_be_read_is_one_sentence_before_anything_starts(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prefect.yaml").write_text(text)
    monkeypatch.setattr(deployments, "FILE", tmp_path / "prefect.yaml")
    monkeypatch.setattr(environment, "configure_service", lambda *_: None)  # it would set this process's environment
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    assert main(["up"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and "Traceback" not in err
    assert err.splitlines()[-1].startswith("prefect.yaml is not valid (")
    assert not (tmp_path / "runs" / "logs").exists()


def test_under_make_up_its_folder_is_the_one_that_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_RUNS", "/a: folder")
    found = _cli.experiment("conf/digits.yaml", ["seed=3"])
    assert (found.paths.runs, found.seed) == (Path("/a: folder"), 3)
    assert _cli.experiment("conf/digits.yaml", ["paths.runs=/named"]).paths.runs == Path("/named")


def test_make_clean_leaves_a_folder_in_use_alone(tmp_path: Path) -> None:
    """In another folder than the project's, whose prepared data must stay."""
    runs = tmp_path / "my runs"
    (runs / "service").mkdir(parents=True)
    (runs / "service" / "worker.pid").write_text("{}")

    def clean() -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "clean", f"RUNS={runs}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = clean()
    assert (done.returncode, done.stdout, (runs / "service").is_dir()) == (2, "", True)
    assert done.stderr.startswith(f"RUNS={runs} is in use by what make up started; allowed: a folder after make down\n")
    (runs / "service" / "worker.pid").unlink()
    done = clean()
    assert (done.returncode, runs.exists()) == (0, False), done.stderr


@pytest.mark.slow
def test_the_schema_accepts_the_experiments_and_refuses_what_they_may_not_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An independent validator reads the schema; pydantic, which wrote it, only says what the merged files are."""
    import jsonschema  # type: ignore[import-untyped]

    assert command.main(["schema"]) == 0
    check = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out)).is_valid
    for file in ("digits.yaml", "blocks.yaml", "own_table.yaml", "experiments/mnist10.yaml", "experiments/pcmac.yaml"):
        tree = load_config(f"conf/{file}", root=ROOT).model_dump(mode="json", exclude_unset=True)
        assert check(tree)
        assert not check({**tree, "sead": 1})
        assert not check({**tree, "split": {**tree["split"], "kind": "sorted"}})
        assert not check({key: value for key, value in tree.items() if key != "methods"})
