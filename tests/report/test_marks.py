"""A label that is Markdown and HTML shows as its letters, and as nothing else, wherever Markdown is written.

The judge is a parser of CommonMark with its tables: what it finds in our Markdown beside text is what we put there.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from markdown_it import MarkdownIt

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.search.trial import Trial
from ldsvm.production.gate import Check, Verdict
from ldsvm.report import build, marks, retraining, tables
from ldsvm.report.card import card
from ldsvm.report.claims import Claim
from ldsvm.report.studies import publish as studies
from ldsvm.report.studies.base import Page, Table
from ldsvm.report.timeline import in_short

LABEL = (
    "# good\n\n# Promoted\r\n---\n- a\x0b1. b\u2028> c\n\n<img src=x onerror=alert(1)> <!-- --> [x](y) ![x](y) [x]: y\n"
    " \\ *i* _i_ __b__ `c` ~~s~~ | --- | &lt; <http://x> a_b\n"
)
LINE = " ".join(LABEL.replace("\x0b", " ").split())
OURS = {"text", "strong", "softbreak"}
TABLE = ("table", "thead", "tbody", "tr", "th", "td")
SCORE = Score(0.1, 0.05, 0.2, 1, 10, 3, 3, 8, 1.0, 1.0, [LABEL, "b"], [0.1, 0.1], [[1, 1], [3, 5]])
DONE = Outcome(Path(), (Result(LABEL, LABEL, "linear_svm", [Trial({}, 0)], valid_error=0.1, train_s=1.0, search_s=1.0,
                               train_alone_s=1.0, params={LABEL: LABEL}, score=SCORE),))  # fmt: skip
PREPARED: Any = SimpleNamespace(
    dataset=dict.fromkeys(("name", "source", "sha256", "licence"), LABEL), sizes={LABEL: 1}, split="s", seed=0,
    features=[LABEL], notes=[LABEL], n_features=2,
)  # fmt: skip
CONFIG: Any = SimpleNamespace(
    name="c",
    title=LABEL,
    judge=SimpleNamespace(refit=True),
    search=SimpleNamespace(objective="error"),
    split=SimpleNamespace(test_ratio=None),
)


def headings(text: str, labels: int = 1) -> list[str]:
    """Return the headings of a Markdown text that shows the label so many times at least, and has no marks of it."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    assert {child.type.removesuffix("_open").removesuffix("_close") for child in inner} <= OURS
    blocks = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
    assert blocks <= {"heading", "paragraph", "inline", "bullet_list", "list_item", *TABLE}
    lines = ["".join(child.content for child in token.children or ()) for token in tokens]
    assert sum(line.count(LINE) for line in lines) >= labels
    return [lines[i + 1] for i, token in enumerate(tokens) if token.type == "heading_open"]


@pytest.mark.parametrize(
    "mark", ["# x", "## ##", "- x", "+", "1. x", "2) x", "> x", ">x", "---", "- - -", "===", "___"]
)
def test_what_begins_a_block_is_a_paragraph(mark: str) -> None:
    tokens = MarkdownIt("commonmark").parse(marks.escape(mark))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert "".join(child.content for child in tokens[1].children or ()) == mark


def test_ordinary_cells_are_as_they_were() -> None:
    for cell in (
        "-0.27",
        "+0.10",
        "–",
        "1.5e-3",
        "min_absolute_change",
        "10 to 20 %",
        "p > 0.05",
        "R&D",
        "a: b",
        "3.10",
    ):
        assert marks.escape(cell) == cell


def test_tables_notes_and_pages_of_studies(tmp_path: Path) -> None:
    assert headings(tables.markdown([LABEL, "b"], [[LABEL, "1"], ["x", LABEL]]), 3) == []
    assert headings(build.note(CONFIG, SimpleNamespace(name=LABEL), [DONE]), 2) == [LINE]  # type: ignore[arg-type]
    page = Page(LABEL, [Claim(LABEL, True, LABEL)], [Table(LABEL, [LABEL], [[LABEL]], note=LABEL)], [], "")
    assert headings(studies.note(CONFIG, page), 4) == [LINE]
    config: Any = SimpleNamespace(
        results=tmp_path, title=LABEL, n_jobs=1, study="s", seed=0, settings=SimpleNamespace(model_dump=lambda mode: {})
    )
    studies.publish(config, page)
    assert headings((tmp_path / "tables.md").read_text(encoding="utf-8"), 8) == [LINE, LINE]


def test_model_cards() -> None:
    look: Any = SimpleNamespace(decision=SimpleNamespace(reasons=[LABEL]))
    duel: Any = SimpleNamespace(
        score=SCORE, result=DONE.first, champion=SCORE, verdict=Verdict((Check(LABEL, False, 1.0, 0.0, LABEL),))
    )
    found = headings(card(CONFIG, PREPARED, look, duel, "m version 2", "m version 1"), 15)
    assert found[0] == f"{LINE} : m version 2, compared with m version 1"
    assert len(found) == 8


def test_prefects_artifacts_and_the_run_of_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import _cli, _runtime, challenge  # which take seconds to import

    sent: list[Any] = []
    published: Any = SimpleNamespace(page="p")
    monkeypatch.setattr(_runtime.publish, "publish", lambda *_: published)
    monkeypatch.setattr(_runtime.publish, "collect", lambda *_: [DONE])
    monkeypatch.setattr(_runtime.preparation, "read", lambda _: [])
    for kind in ("table", "markdown"):
        monkeypatch.setattr(_runtime, f"create_{kind}_artifact", lambda what, key, *about: sent.extend([what, *about]))
    config: Any = SimpleNamespace(**{**vars(CONFIG), "results": Path(), "problems": [SimpleNamespace(name=LABEL)]})
    _runtime.write_report.fn(config, "facts")
    (row, _), about, note, about_note = sent
    assert headings(row["method"]) == headings(about) == headings(about_note) == []
    assert headings(note) == [LINE]

    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda percent, key, text: sent.append(text))
    _cli._Page("key").show(LABEL, 0.5)
    assert headings(sent[-1]) == []

    run = MagicMock()
    run.describe = lambda note: sent.append(note)
    decision = SimpleNamespace(action="none", sentence=LABEL, reasons=[LABEL])
    look: Any = SimpleNamespace(decision=decision, new=0, drift=None, sha256="a")
    monkeypatch.setattr(retraining, "asdict", lambda _: {})
    tracker: Any = SimpleNamespace(run=lambda *_, **__: nullcontext(run))
    events: list[Any] = []
    monkeypatch.setattr(challenge.timeline, "remember", lambda _, registry, event: events.append(event))
    challenge.record_decision.fn(MagicMock(), SimpleNamespace(tracker=tracker), look, None)
    assert headings(sent[-1]) == []
    short = in_short("digits", events, Path("timeline.html"))
    assert headings(short) == ["digits in production"] and short.count("\n|") == 3
