"""Mistakes on the command line of `python -m flows serve`: one sentence, exit code 2, and no server."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from flows import serve
from flows.__main__ import main
from flows.processes import free_ports
from ldsvm.serving.folder import TOKEN

FILE = "conf/production/digits.yaml"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["conf/digits.yaml"], "digits has no section production; add one, as in conf/production/digits.yaml."),
        (["conf/nothing.yaml"], "conf/nothing.yaml"),
        ([FILE, "nothing=1"], "nothing"),
        ([FILE, "--host", "nowhere.invalid"], "--host is 'nowhere.invalid'; allowed: an address of this computer,"),
        (
            [FILE, "--token-file", "nothing"],
            "--token-file is nothing, which cannot be read (No such file or directory)",
        ),
    ],
)
def test_mistakes(given: Sequence[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *given, f"paths.runs={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert not (tmp_path / "serve").exists()


@pytest.mark.parametrize(
    "option", ["--port=0", "--port=x", "--workers=0", "--max-rate=-1", "--max-rate=nan", "--max-body=1"]
)
def test_numbers_out_of_their_range(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        serve.main([FILE, option])
    assert ended.value.code == 2
    assert "allowed: a" in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", FILE, f"paths.runs={tmp_path}", "--port", str(port)]) == 2
    assert capsys.readouterr().err.startswith(
        f"--port is {port}, which cannot be used (address already in use); allowed:"
    )


def test_a_folder_that_is_gone_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_serve", lambda *_: (tmp_path / "gone" / "metrics").mkdir())
    (port,) = free_ports(1)
    assert main(["serve", FILE, f"paths.runs={tmp_path}", "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("serve failed: ") and "gone/metrics" in said and said.count("\n") == 1


@pytest.mark.parametrize("text", ["", "short", "with a space in the middle", "ümlaut-in-a-long-token"])
def test_a_token_that_is_none(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    assert main(["serve", FILE, f"paths.runs={tmp_path}", "--token-file", str(file)]) == 2
    said = capsys.readouterr().err
    assert said == f"--token-file {file} holds no valid token; allowed: 16 or more ASCII characters without spaces.\n"
    monkeypatch.setenv(TOKEN, text)
    assert main(["serve", FILE, f"paths.runs={tmp_path}"]) == 2
    assert capsys.readouterr().err.startswith(f"{TOKEN} holds no valid token; allowed:")
    file.write_text("0123456789abcdef\n", encoding="utf-8")
    assert serve._token(str(file)) == "0123456789abcdef"
