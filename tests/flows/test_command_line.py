"""The command line: it teaches, and a mistake is one sentence and exit code 2, before anything is started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows import environment
from flows.__main__ import NAMES, _pages, main

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flows", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=200)


def test_help_names_every_flow_and_shows_commands_to_copy() -> None:
    done = run("--help")
    assert done.returncode == 0
    for part in (*NAMES, "key=value", "python -m flows pipeline conf/digits.yaml", "exit codes"):
        assert part in done.stdout


@pytest.mark.slow
def test_a_wrong_key_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    done = run("pipeline", "conf/digits.yaml", f"paths.runs={tmp_path / 'runs'}", "seeds=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert 'did you mean "seed"' in done.stderr
    assert list(tmp_path.iterdir()) == []


TABLE = "a,b,label\n" + "".join(f"{i},{i * 7 % 5},{'xy'[i % 2]}\n" for i in range(40))


@pytest.mark.parametrize(
    ("command", "overrides", "said"),
    [
        ("pipeline", ["dataset.label=lable"], "dataset.label names 'lable', which is not a column"),
        ("prepare", ["dataset.drop=[c]"], "dataset.drop names 'c', which is not a column"),
        ("pipeline", ["split.train=400"], "400"),
        ("retrain", ["dataset.label=lable"], "dataset.label names 'lable', which is not a column"),
        ("score", ["production.score={input: absent.csv, output: scored.csv}"], "absent.csv"),
    ],
)
def test_a_mistake_in_the_data_is_told_before_any_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    command: str, overrides: list[str], said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(environment, "check_api", lambda: pytest.fail("what needs servers begins"))
    (tmp_path / "a.csv").write_text(TABLE)
    file = "conf/own_table.yaml" if command in ("pipeline", "prepare") else "conf/production/digits.yaml"
    own = [f"dataset.path={tmp_path / 'a.csv'}", f"paths.runs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}"]
    assert main([command, file, *own, *overrides]) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert said in last and "Traceback" not in last


@pytest.mark.parametrize("arguments", [[], ["pipelin", "conf/digits.yaml"], ["pipeline"]])
def test_a_wrong_command_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m flows" in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "conf/none.yaml"]) == 2
    assert (
        capsys.readouterr().err == 'config: no file "conf/none.yaml"; allowed: a YAML file such as conf/digits.yaml.\n'
    )


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    handler = signal.getsignal(signal.SIGTERM)
    assert main(["pipeline", "conf/digits.yaml", f"paths.runs={tmp_path / 'file' / 'runs'}"]) == 2
    signal.signal(signal.SIGTERM, handler)
    assert "paths.runs is" in capsys.readouterr().err


def test_a_failure_while_it_runs_is_one_sentence_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.__main__._run", lambda *_: (_ for _ in ()).throw(RuntimeError("the disk is full")))
    assert main(["pipeline", "conf/digits.yaml", f"paths.runs={tmp_path}"]) == 1
    assert capsys.readouterr().err == "pipeline failed: RuntimeError: the disk is full\n"
    monkeypatch.setattr("flows.__main__._run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    assert main(["pipeline", "conf/digits.yaml", f"paths.runs={tmp_path}"]) == 130


def test_a_server_that_ends_at_once_is_told_where_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with environment.api(tmp_path) as wait_for_api, pytest.raises(RuntimeError, match=r"prefect-server\.log"):
        wait_for_api()
    assert "PREFECT_API_URL" not in os.environ


def test_the_users_own_api_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    monkeypatch.delenv("PREFECT_HOME", raising=False)
    environment.configure(tmp_path)
    with environment.api(tmp_path) as wait_for_api:
        wait_for_api()
    assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:4200/api"
    assert "PREFECT_HOME" not in os.environ
    assert list(tmp_path.iterdir()) == []


def test_the_pages_are_named_by_server_or_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "my runs"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@mlflow.here/")
    assert _pages(runs) == "https://mlflow.here/"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert shlex.split(_pages(runs)) == ["make", "-C", str(ROOT), "ui", f"RUNS={runs}"]
    monkeypatch.setattr("flows.__main__.ROOT", tmp_path)  # as in an image, which has no Makefile
    command = shlex.split(_pages(runs))
    assert command[:2] == ["mlflow", "server"] and f"sqlite:///{runs}/mlflow.db" in command
