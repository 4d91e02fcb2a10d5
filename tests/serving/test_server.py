"""The processes together: the alias moves, one is killed, all end; and whether the benchmark's clients would tell."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from benchmarks import serve
from benchmarks.serve_load import Clients, Traffic, request


def counted(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.mark.server
@pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated")
def test_no_answer_is_wrong_or_lost_as_the_alias_moves_and_a_process_is_killed(tmp_path: Path) -> None:
    models = serve.store(tmp_path / "runs")
    X, names = serve.digits()
    rows = [dict(zip(names, row, strict=True)) for row in X]
    requests = [request("/predict", json.dumps({"rows": [row]}).encode()) for row in rows]
    right = {number: serve.expected(model, X) for number, model in enumerate(models, 1)}
    with serve.serving(tmp_path / "runs") as (port, server):
        traffic = [serve.moving(port, requests, tmp_path / "runs", 2)]
        assert serve._versions(traffic[0]) == {1, 2}
        before = serve.workers(server.pid)
        traffic.append(serve.killing(port, requests, server, 1))
        after = serve.workers(server.pid)
        assert len(before) == len(after) == 2 and len({*before} & {*after}) == 1
        assert [(serve.wrongs(one, right), one.lost, one.row()["failed"]) for one in traffic] == [(0, 0, 0)] * 2
        answered = sum(len(one.answers) for one in traffic)
        assert counted(port, 'ldsvm_requests_total{path="/predict",status="200"}') >= answered  # the killed one's too
        end = time.monotonic() + 60
        while counted(port, "ldsvm_version{") != 4 and time.monotonic() < end:  # two processes with version 2
            time.sleep(0.2)
        assert counted(port, "ldsvm_version{") == 4
        with socket.create_connection(("127.0.0.1", port)) as late:  # one request in flight
            late.sendall(requests[0][:200])
            time.sleep(0.3)
            server.terminate()
            time.sleep(1.5)
            late.sendall(requests[0][200:])
            assert late.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert server.wait(60) == 0
    assert not [pid for pid in after if Path(f"/proc/{pid}").exists()]


class Broken(threading.Thread):
    """Answers a row wrongly, closes one connection without an answer and one in the middle of it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port, self.asked = self.listening.getsockname()[1], 0

    def run(self) -> None:
        body = json.dumps({"version": 1, "answers": [{"class": 7, "probability": 0.5}]}).encode()
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
        while True:
            with self.listening.accept()[0] as one:
                one.recv(1 << 16)
                self.asked += 1
                one.sendall({2: b"", 4: whole[:-5]}.get(self.asked, whole))


def test_the_clients_tell_what_is_wrong_repeated_and_lost() -> None:
    server = Broken()
    server.start()
    traffic: Traffic = Clients(server.port, [request("/predict", b"{}")], 1).run(lambda done: done < 6)
    assert (len(traffic.answers), traffic.repeated, traffic.lost, server.asked) == (6, 1, 1, 8)
    assert traffic.answers[0][:2] == (0, 200)
    assert serve.wrongs(traffic, {1: [(7, 0.5)]}) == 0
    assert serve.wrongs(traffic, {1: [(3, 0.5)]}) == serve.wrongs(traffic, {1: [(7, 0.6)]}) == 6


def test_a_request_that_nobody_answers_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.serve_load.PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        traffic = Clients(silent.getsockname()[1], [request("/predict", b"{}")], 2).run(lambda _: True)
    assert (traffic.answers, traffic.lost) == ([], 2)
