"""The command `data`: what it says is where things are, and what it verifies it leaves alone."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from flows.data import main
from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.entry import Entry, File

PART = "20news-bydate-"
FOLDERS = f"{PART}train and {PART}test"
POSTS = {"train/sci.space/1": b"one", "test/sci.space/2": b"two"}  # invented


def idx(values: bytes, *shape: int) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + values


MNIST = {
    "train-images-idx3-ubyte": (idx(b"abcdef", 3, 2, 1), (3, 2, 1)),
    "train-labels-idx1-ubyte": (idx(b"\0\1\0", 3), (3,)),
    "t10k-images-idx3-ubyte": (idx(b"gh", 1, 2, 1), (1, 2, 1)),
    "t10k-labels-idx1-ubyte": (idx(b"\1", 1), (1,)),
}


def digest(*arrays: tuple[str, bytes]) -> str:
    return hashlib.sha256(b"".join(f"{line}\n".encode() + content for line, content in arrays)).hexdigest()


def tiny() -> dict[str, Entry]:
    """The catalogue with two posts and four images; digests by hand."""
    every = {name: entry for name, entry in catalogue().items() if name != "fashion-mnist"}
    text = struct.pack("<q", 3), struct.pack("<q", 9) + b"sci.space"
    posts = digest(
        ("X text (1,)", text[0] + b"one"), ("y text (1,)", text[1]),
        ("X_test text (1,)", text[0] + b"two"), ("y_test text (1,)", text[1]),
    )  # fmt: skip
    images = digest(
        ("X uint8 (3, 2)", b"abcdef"), ("y uint8 (3,)", b"\0\1\0"),
        ("X_test uint8 (1, 2)", b"gh"), ("y_test uint8 (1,)", b"\1"),
    )  # fmt: skip
    files = tuple(
        File(name, shape, len(data), hashlib.sha256(data).hexdigest()) for name, (data, shape) in MNIST.items()
    )
    every["newsgroups"] = replace(every["newsgroups"], rows=1, test_rows=1, sha256=posts)
    every["mnist"] = replace(every["mnist"], rows=3, test_rows=1, sha256=images, files=files)
    return every


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sound raw files, two of them compressed."""
    home = tmp_path / "raw"
    monkeypatch.setenv("LDSVM_DATA_HOME", str(home))
    for name, content in POSTS.items():
        (home / (PART + name)).parent.mkdir(parents=True)
        (home / (PART + name)).write_bytes(content)
    for name, (data, _) in MNIST.items():
        packed = "labels" in name
        (home / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
    return home


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments, cache_dir=tmp_path / "prepared", entries=tiny())
        return code, *capsys.readouterr()

    return call


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def states(table: str) -> dict[str, str]:
    """Name and last column of each row; columns are two or more spaces apart."""
    rows = [line.split("  ") for line in table.splitlines() if line.strip()]
    filled = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return {row[0]: row[-1] for row in filled if row[0] in tiny()}


def test_list_says_where_each_one_is(raw: Path, run: Run) -> None:
    found = {"digits": "installed", "mnist": "raw files found", "newsgroups": "raw files found", "spirals": "generated"}
    code, out, err = run("list")
    assert (code, err, states(out)) == (0, "", found)
    assert run("fetch", "newsgroups")[0] == 0
    (raw / "train-labels-idx1-ubyte.gz").unlink()
    assert states(run("list")[1]) == found | {"newsgroups": "prepared", "mnist": "needs download"}


def test_list_shows_counts_and_licences_whatever_the_width(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run("list")
    for part in ("1,797", "3 + 1", "CC BY-SA 3.0", "text", "none stated", "status"):
        assert part in out
    assert max(map(len, out.splitlines())) <= 100
    assert "CC BY" not in run("list", "spirals")[1]


def test_fetch_prepares_and_says_where(raw: Path, run: Run, tmp_path: Path) -> None:
    before = snapshot(raw)
    for name in ("mnist", "newsgroups"):
        code, out, err = run("fetch", name)
        assert code == 0 and f"fetch {name}" in err
        assert out.startswith(f"{name}: {tmp_path / 'prepared' / name}.parquet (0.0 MB): ") and out.count("\n") == 1
    assert snapshot(raw) == before
    assert sorted(p.name for p in (tmp_path / "prepared").iterdir()) == ["mnist.parquet", "newsgroups.parquet"]
    assert run("fetch", "digits")[1].startswith("digits: nothing to keep: UCI")


def test_fetch_rebuilds_a_damaged_file_and_says_so(raw: Path, run: Run, tmp_path: Path) -> None:
    run("fetch", "newsgroups")
    path = tmp_path / "prepared" / "newsgroups.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    code, _, err = run("fetch", "newsgroups")
    assert code == 0 and "newsgroups.parquet is rebuilt" in err and path.read_bytes() == whole


def test_verify_all_sound(raw: Path, run: Run) -> None:
    run("fetch", "mnist")
    code, out, err = run("verify")
    assert (code, err) == (0, "")
    lines = {line.split(maxsplit=1)[1] for line in out.splitlines()}
    assert lines == {
        "digits.csv: ok", *(f"{name}: ok" for name in MNIST), "mnist.parquet: ok",
        f"{FOLDERS}: ok", "newsgroups.parquet: not prepared yet", "nothing on the disk: ok",
    }  # fmt: skip


def test_verify_names_what_is_damaged_and_changes_nothing(raw: Path, run: Run, tmp_path: Path) -> None:
    for name in ("mnist", "newsgroups"):
        run("fetch", name)
    path = tmp_path / "prepared" / "mnist.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    (raw / "t10k-images-idx3-ubyte").write_bytes(MNIST["t10k-images-idx3-ubyte"][0][:-1] + b"i")
    (raw / f"{PART}train/sci.space/1").write_bytes(b"uno")
    (raw / "train-labels-idx1-ubyte.gz").unlink()
    before = snapshot(tmp_path)
    code, out, err = run("verify")
    assert (code, err) == (2, "")
    lines = dict(line.split(maxsplit=1)[1].split(": ", 1) for line in out.splitlines())
    faults = {name: text for name, text in lines.items() if text not in ("ok", "missing")}
    assert sorted(faults) == [FOLDERS, "mnist.parquet", "t10k-images-idx3-ubyte"]
    assert all(text.startswith("damaged: ") for text in faults.values())
    assert "rebuilt" not in faults["mnist.parquet"] and "cannot be read" in faults["mnist.parquet"]
    assert "sha256" in faults[FOLDERS] and "sha256" in faults["t10k-images-idx3-ubyte"]
    assert lines["train-labels-idx1-ubyte"] == "missing" and lines["newsgroups.parquet"] == "ok"
    assert snapshot(tmp_path) == before
    assert run("verify", "newsgroups")[0] == 2 and run("verify", "digits")[0] == 0


def test_missing_is_not_damaged(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.delenv("LDSVM_DATA_HOME", raising=False)
    code, out, _ = run("verify", "newsgroups")
    assert (code, out.count("missing"), out.count("not prepared yet")) == (0, 1, 1)
    assert "20news-bydate.tar.gz: missing" in out


@pytest.mark.parametrize("action", ["list", "fetch", "verify"])
def test_an_unknown_name_is_one_sentence(run: Run, action: str) -> None:
    code, out, err = run(action, "newsgroup")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and "did you mean newsgroups?" in err


def test_a_damaged_raw_file_ends_a_fetch_in_one_sentence(raw: Path, run: Run, tmp_path: Path) -> None:
    (raw / f"{PART}train/sci.space/1").write_bytes(b"uno")
    code, out, err = run("fetch", "newsgroups")
    assert (code, out) == (2, "") and "Traceback" not in err
    assert err.splitlines()[-1].startswith("newsgroups: the content has sha256")
    assert not (tmp_path / "prepared").exists()


def test_help_teaches(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"], cache_dir=tmp_path)
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for part in ("list", "fetch", "verify", "LDSVM_DATA_HOME", "paths.cache", "exit codes"):
        assert part in out


@pytest.mark.parametrize("arguments", [[], ["fetch"], ["fetsh", "mnist"]])
def test_a_wrong_command_shows_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments, cache_dir=tmp_path)
    assert caught.value.code == 2
    assert "usage: python -m flows data" in capsys.readouterr().err
