"""Alarms, sent to a server of our own: what arrives, how often it is tried, and that nobody reads the address."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.production import alarms
from ldsvm.production.alarms import KINDS, Message, send

ROOT = Path(__file__).resolve().parents[2]
SECRET = "T00/B00/very-secret-token"
NO_ADDRESS = (
    "LDSVM_WEBHOOK is not a valid address; allowed: one that begins with https:// or http://, in ASCII characters, "
    "without USER:PASSWORD@"
)
DRIFT = Message("drift", "60 % of the inputs have drifted.", model="digits", version="3", data="ab12", run="score")


class Sink:
    """A webhook: answers with these codes, one after the other, and then always with the last."""

    def __init__(self) -> None:
        self.codes, self.bodies = [200], list[dict[str, Any]]()
        self.location, self.asked = "", list[str]()  # where to go on, and what was asked for by GET
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                sink.bodies.append({"path": self.path, "type": self.headers["Content-Type"], **body})
                self.send_response(sink.codes.pop(0) if len(sink.codes) > 1 else sink.codes[0])
                self.send_header("Location", sink.location)
                self.end_headers()

            def do_GET(self) -> None:
                sink.asked.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    one = Sink()
    monkeypatch.setenv(alarms.VARIABLE, f"http://127.0.0.1:{one.server.server_port}/services/{SECRET}")
    monkeypatch.setattr(alarms, "PAUSES", (0.01, 0.02, 0.03))
    yield one
    one.server.shutdown()
    one.server.server_close()


def without_the_secret(runs: Path, *texts: str) -> bool:
    files = [file.read_text("utf-8") for file in runs.rglob("*") if file.is_file()]
    return not any(word in text for word in ("very-secret", "services") for text in (*files, *texts))


def test_the_body_says_what_of_which_model_and_fits_what_chats_take(sink: Sink, tmp_path: Path) -> None:
    said = list[str]()
    assert send(DRIFT, tmp_path, said.append) and not said
    (body,) = sink.bodies
    assert body.pop("path") == f"/services/{SECRET}" and body.pop("type") == "application/json"
    assert body.pop("time").startswith("20")
    assert body == {
        "text": "drift: digits: 60 % of the inputs have drifted.", "kind": "drift", "run": "score",
        "sentence": "60 % of the inputs have drifted.", "model": "digits", "version": "3", "data": "ab12", "link": "",
    }  # fmt: skip
    (kept,) = alarms.journal(tmp_path)
    assert kept["sent"] and kept["sentence"] == DRIFT.sentence and without_the_secret(tmp_path)


def test_the_text_names_the_model_once() -> None:
    assert Message("promoted", "digits version 3: better", model="digits").body()["text"] == (
        "promoted: digits version 3: better"
    )


def test_a_server_in_trouble_is_asked_again_but_one_that_refuses_is_not(sink: Sink, tmp_path: Path) -> None:
    sink.codes = [500, 503, 429, 200]
    assert send(DRIFT, tmp_path, pytest.fail) and len(sink.bodies) == 4
    sink.codes, said = [500], list[str]()
    assert not send(Message("failed", "no data"), tmp_path, said.append) and len(sink.bodies) == 8
    sink.codes = [403]
    assert not send(Message("failed", "no disk"), tmp_path, said.append) and len(sink.bodies) == 9
    start, end = "the alarm was not sent to the webhook (answer ", f"); it is kept in {tmp_path / 'alarms.jsonl'}"
    assert said == [f"{start}500{end}", f"{start}403{end}"] and without_the_secret(tmp_path, *said)


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # each byte begins the time limit of a socket anew
    monkeypatch.setattr(alarms, "TIMEOUT", 0.3)
    monkeypatch.setattr(alarms, "PAUSES", ())
    over, said = threading.Event(), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with server.accept()[0] as client:
                client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                with suppress(OSError):
                    while not over.wait(0.1):
                        client.sendall(b"a")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        monkeypatch.setenv(alarms.VARIABLE, f"http://127.0.0.1:{server.getsockname()[1]}/")
        begun = time.monotonic()
        assert not send(DRIFT, tmp_path, said.append) and "(no answer within 0.3 s)" in said[0]
        assert time.monotonic() - begun < 5
        over.set()
        thread.join()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_not_taken_for_success(code: int, sink: Sink, tmp_path: Path) -> None:
    # urllib would go on by GET, without the alarm, and 200 there would say that it was sent
    sink.codes, sink.location, said = [code], f"http://127.0.0.1:{sink.server.server_port}/login", list[str]()
    assert not send(DRIFT, tmp_path, said.append)
    assert len(sink.bodies) == 1 and not sink.asked and f"(answer {code})" in said[0]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:{port}/services/very-secret", "Connection refused"),
        ("http://127.0.0.1:none/services/very-secret", "InvalidURL"),
        ("very-secret/services", NO_ADDRESS),
        ("ftp://very-secret/services", NO_ADDRESS),
        ("http://name:very-secret@127.0.0.1:{port}/", NO_ADDRESS),  # urllib takes the name for a part of the host
        ("http://127.0.0.1:{port}/services/very secret", NO_ADDRESS),
        ("http://127.0.0.1:{port}/services/very-sécret", NO_ADDRESS),
    ],
)
def test_nobody_there_is_one_sentence_without_the_address(
    address: str, said: str, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv(alarms.VARIABLE, address.format(port=port))
    told = list[str]()
    assert not send(DRIFT, tmp_path, told.append) and not sink.bodies
    assert told == [f"the alarm was not sent to the webhook ({said}); it is kept in {tmp_path / 'alarms.jsonl'}"]
    assert without_the_secret(tmp_path, *told)


def test_one_that_comes_after_nobody_was_there_is_sent(sink: Sink, tmp_path: Path) -> None:
    sink.codes = [500]
    assert not send(DRIFT, tmp_path, lambda _: None)
    sink.codes = [200]
    assert send(DRIFT, tmp_path, pytest.fail)


def test_the_same_alarm_is_sent_once_also_when_many_say_it_at_once(
    sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda _: send(DRIFT, tmp_path, pytest.fail), range(40)))
    assert sum(sent) == 1 == len(sink.bodies)
    assert send(Message("drift", DRIFT.sentence, model="another"), tmp_path, pytest.fail)
    monkeypatch.setattr(alarms, "REPEAT_SECONDS", -1.0)
    assert send(DRIFT, tmp_path, pytest.fail)


def test_the_address_may_be_in_a_file_and_without_one_alarms_are_only_kept(
    sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").mkdir()
    file, runs = tmp_path / "secret" / "webhook", tmp_path / "runs"
    runs.mkdir()
    file.write_text(f"http://127.0.0.1:{sink.server.server_port}/hook\n")
    monkeypatch.delenv(alarms.VARIABLE)
    assert not send(DRIFT, runs, pytest.fail)  # nobody asked for a webhook, so nothing is said of it
    monkeypatch.setenv(alarms.FILE_VARIABLE, str(file))
    assert send(DRIFT, runs, pytest.fail)
    assert [one["sent"] for one in alarms.journal(runs)] == [False, True]
    file.unlink()
    told = list[str]()
    assert not send(Message("failed", "x"), runs, told.append)
    assert f"LDSVM_WEBHOOK_FILE is {file}, which cannot be read (No such file or directory)" in told[0]


def test_a_record_that_cannot_be_kept_or_read_ends_nothing(sink: Sink, tmp_path: Path) -> None:
    (tmp_path / alarms.JOURNAL).write_text('{"cut": "o\n[1]\n{"time": "x", "digest": 3, "sent": true}\n')
    assert send(DRIFT, tmp_path, pytest.fail)
    (tmp_path / "file").touch()
    told = list[str]()
    assert not send(DRIFT, tmp_path / "file", told.append) and told[0].endswith(DRIFT.sentence)


def test_which_kinds_are_sent_is_in_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    file = "conf/production/digits.yaml"
    config = load_config(file, ["production.alarms=[drift]"], root=ROOT)
    assert config.production is not None and config.production.alarms == ("drift",)
    with pytest.raises(ConfigError, match=r"^production\.alarms.* is 'flood'|flood") as wrong:
        load_config(file, ["production.alarms=[flood]"], root=ROOT)
    assert "\n" not in str(wrong.value) and "rolled_back" in str(wrong.value)
    assert set(load_config(file, root=ROOT).production.alarms) == set(KINDS) - {"given_up"}  # type: ignore[union-attr]
