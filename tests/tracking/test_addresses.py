"""Addresses in messages: without user and password, however they are written."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows import __main__ as command
from flows import environment
from ldsvm.experiment.config.load import ConfigError
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.server import Server, redacted
from ldsvm.tracking.store import TrackingFailed

SECRETS = [
    "http://user:PW@127.0.0.1:9/api", "http://PW@127.0.0.1:9/api", "http://user:a@PW@127.0.0.1:9/api",
    "http://user:a/PW@127.0.0.1:9/api", "user:PW@127.0.0.1:9/api", "postgresql+psycopg2://me:PW@h/db",
    "postgresql://h/db?user=me&password=PW&sslmode=require",
]  # fmt: skip


@pytest.mark.parametrize("address", SECRETS)
def test_no_message_holds_a_password(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    with pytest.raises(ConfigError, match="where no Prefect server answers") as prefect:
        environment.check_api()
    assert "PW" not in str(prefect.value)
    if "://" in address:  # else it is no tracking server
        with pytest.raises(TrackingFailed) as mlflow, Server(address).guard():
            raise ConnectionError(f"no answer from {address} at all")
        assert "PW" not in str(mlflow.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:4200/api", "postgresql://host:5432/db", "nonsense", ""])
def test_an_address_without_a_password_stays(address: str) -> None:
    assert redacted(address) == address


def test_the_last_lines_of_a_run_hold_no_password_and_labels_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:PW@host:5000")
    monkeypatch.setattr(
        "ldsvm.report.curves.summary", lambda *_: [(":smile:", ["method", ":bug:"], [[":cat:", "[red]1"]])]
    )
    config: Any = SimpleNamespace(name="tiny", results=Path("results"), paths=SimpleNamespace(runs=Path("runs")))
    command._show(argparse.Namespace(config="c", overrides=[]), config, "1", None)
    said = capsys.readouterr().out
    assert "http://host:5000, then the experiment tiny" in said and "PW" not in said
    assert all(label in said for label in (":smile:", ":bug:", ":cat:", "[red]1"))


def test_no_line_of_the_log_holds_a_password() -> None:
    try:
        raise ConnectionError("nobody at http://user:PW@host:5000/api")
    except ConnectionError:
        record = logging.LogRecord("n", 40, "f", 1, "asked http://user:PW@host", None, sys.exc_info())
    said = command._Redacting("%(asctime)s %(message)s").format(record)
    assert "asked http://host" in said and "Traceback" in said and "PW" not in said


@pytest.mark.slow
def test_mlflow_prints_no_address_and_a_failure_is_kept_without_a_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:PW@host:5000")
    monkeypatch.delenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", raising=False)
    monkeypatch.setattr(Tracker, "_join", lambda *_: None)
    tracker = Tracker(tmp_path, "e")
    assert tracker.client is None
    assert os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] == "true"

    run: Any = SimpleNamespace(failure=None, sample=None)
    monkeypatch.setattr(tracker, "_open", lambda *_: run)
    monkeypatch.setattr(tracker, "_close", lambda *_: None)
    with pytest.raises(ValueError, match="nobody"), tracker.run("r", kind="trial"):
        raise ValueError("nobody at http://user:PW@host")
    assert run.failure == "ValueError: nobody at http://host"
