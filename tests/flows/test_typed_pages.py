"""The commands of the pages, typed from the pages: only folders, and searches that take seconds, are added."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUICK = (
    "methods={ours: {estimator: ldsvm, params: {gamma: 0.1, max_iter: 5}, search: {n_basis: [40], C: [0.1]}}}",
    "judge.repeats=1", "n_jobs=1",
)  # fmt: skip
Command = Callable[..., tuple[int, str, str]]
pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


def blocks(page: str, most: int) -> list[tuple[str, str]]:
    """The first blocks of a page that are Python or commands of a shell."""
    return FENCE.findall((ROOT / page).read_text("utf-8"))[:most]


def lines(block: str) -> list[list[str]]:
    words = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    return [one for one in words if one]


@pytest.fixture
def typed(command: Command, undrawn: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Types the lines of a block in a folder of its own; returns what each flow printed first."""
    monkeypatch.chdir(tmp_path)
    places = [f"paths.runs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}"]

    def run(block: str, *more: str) -> list[str]:
        said = []
        for program, *words in lines(block):
            if program == "mv":
                shutil.move(*words)
                continue
            assert [program, *words[:2]] == [".venv/bin/python", "-m", "flows"], words
            _, _, name, *arguments = [word.replace("conf/my.yaml", str(tmp_path / "my.yaml")) for word in words]
            added = ["--output", str(tmp_path / "my.yaml")] if name == "new" else [*places, *QUICK, *more]
            code, out, err = command(name, *arguments, *added)
            said.append(f"{code} {(out or err).strip().splitlines()[0 if out else -1]}")
        return said

    return run


@pytest.mark.parametrize("page", ["README.md", "docs/how_to/own_table.md"])
def test_own_data(page: str, typed: Callable[..., list[str]], tmp_path: Path) -> None:
    table = load_iris(as_frame=True).frame.rename(columns={"target": "outcome"})
    table.assign(outcome=table["outcome"].map({0: "setosa", 1: "versicolor", 2: "virginica"})).to_csv("my.csv")
    (block,) = [text for _, text in blocks(page, 9) if "flows new" in text]
    said = typed(block)
    assert [line[0] for line in said] == ["0", "0", "0"], said
    assert list((tmp_path / "runs" / "results").glob("*/report.html"))


def test_production(typed: Callable[..., list[str]], tmp_path: Path) -> None:
    (_, prepare), (_, life) = blocks("docs/how_to/production.md", 2)
    exec(prepare, {})
    first, alarm, second, scored, back = typed(life, "production.trials=1")
    assert first == "0 digits version 1: Promoted: all 5 rules hold."
    assert alarm.startswith("1 ") and "production.acknowledge=true" in alarm
    assert second.startswith("0 digits version 2: Promoted")
    assert scored.startswith("0 397 rows scored by digits version 2 in ")
    assert back == "0 digits version 1 is the champion again, digits version 2 is now previous"
    assert (tmp_path / "scored.parquet").is_file()
