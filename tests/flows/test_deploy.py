"""What a container sends to Prefect's server before its worker starts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from flows import alarms, automations, deploy, deployments, worker


class Api(HTTPServer):
    """Prefect's API, as far as it knows work pools. made: the pools that it was asked to make."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.made: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/work_pools/local" and self.server.made else 404)
        self.end_headers()

    def do_POST(self) -> None:
        self.server.made.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Api]:
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("PREFECT_API_URL", server.url)
        monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
        yield server
        server.shutdown()
        thread.join()


def deploying(fine: bool) -> type:
    class Deploying:
        def __init__(self, api: str, wanted: dict[str, str], memory: Path, log: Path) -> None:
            assert memory.parent.is_dir() and "pipeline/digits" in wanted
            log.write_text("the reason", "utf-8")

        def finish(self) -> bool:
            return fine

    return Deploying


@pytest.mark.slow
def test_it_makes_the_pool_once_and_sends_both_files(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(deployments, "Deploying", deploying(True))
    monkeypatch.setattr(automations, "deploy", lambda *given: sent.append(given) or [])
    assert (deploy.main(), deploy.main()) == (0, 0)
    (pool,) = api.made
    assert (pool["name"], pool["type"]) == ("local", "process")
    assert "command" in pool["base_job_template"]["variables"]["properties"]  # that prefect.yaml sets
    assert sent == [(api.url, automations.wanted_automations())] * 2


def test_a_deployment_that_fails_says_why_and_no_worker_starts(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.made.append({})
    monkeypatch.setattr(deployments, "Deploying", deploying(False))
    assert deploy.main() == 1
    assert capsys.readouterr().err == "the reason\nprefect.yaml could not be deployed\n"


def test_the_worker_gets_the_options_of_the_container(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(worker, "hurry", lambda *_: None)
    monkeypatch.setattr(worker, "mark_crashed", lambda _: [])
    monkeypatch.setattr(worker, "run", lambda words: ran.append(list(words)))
    monkeypatch.setattr("sys.argv", ["worker", "--with-healthcheck"])
    worker.main()
    (words,) = ran
    assert words[:3] == ["prefect", "worker", "start"] and words[-1] == "--with-healthcheck"


def test_alarms_link_to_where_people_find_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_RUNS", "/data/runs")
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect:4200/api")
    monkeypatch.delenv("PREFECT_UI_URL", raising=False)
    assert alarms._page("7") == "http://prefect:4200/runs/flow-run/7"
    monkeypatch.setenv("PREFECT_UI_URL", "https://prefect.example.org/")
    assert alarms._page("7") == "https://prefect.example.org/runs/flow-run/7"
