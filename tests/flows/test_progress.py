"""The bar on Prefect's page: what it shows in the end, whatever Prefect refuses on the way."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from flows import _cli as progress
from ldsvm.report.progress import Progress


@pytest.mark.parametrize(("refused", "arrives"), [(0, True), (1, True), (2, True), (progress.TRIES, False)])
def test_the_last_news_arrive_unless_prefect_refuses_again_and_again(
    monkeypatch: pytest.MonkeyPatch, refused: int, arrives: bool
) -> None:
    sent: list[str] = []
    answers = iter([False] * refused)

    def send(_: progress._Page, text: str) -> None:
        if not next(answers, True):
            raise ConnectionError("busy")
        sent.append(text)

    monkeypatch.setattr(progress._Page, "_send", send)
    monkeypatch.setattr(progress.time, "sleep", lambda _: None)
    page = progress._Page("key")
    page.show("first", 0.1)
    page.show("too soon", 0.2)
    page.show("last", 1.0, last=True)
    assert (sent[-1:] == ["last"]) is arrives
    assert "too soon" not in sent


def test_without_a_key_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress._Page, "_send", lambda *_: pytest.fail("was sent"))
    progress._Page(None).show("done", 1.0, last=True)


def test_a_training_tells_what_it_does_before_it_iterates_and_then_its_iterations() -> None:
    said: list[str] = []
    news: Any = lambda text, share=None: said.append(text)  # noqa: E731
    telling = Progress(news, 0, 1)
    telling.step({"doing": "reading the rows, blocks: 40"})
    telling.step({"iteration": 0, "valid_error": 0.25})
    assert said == ["first trials; reading the rows, blocks: 40", "first trials; iteration 0, validation 25.0 %"]


def test_labels_that_look_like_codes_of_emoji_or_markup_are_shown_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    label = "classes (a:b: 2, [red]c: 1), :smile:"
    progress.say(label)
    assert label in capsys.readouterr().err
    monkeypatch.setattr(progress, "console", Console(file=io.StringIO(), force_terminal=True, width=200, emoji=False))
    with progress.console.status("") as status:
        news = progress.News(label, status, progress._Page(None))
        news("half")
        with progress.console.capture() as shown:
            progress.console.print(status.renderable)
    assert f"{label} · half" in shown.get()
    with progress.working(label):
        pass
    assert label in progress.console.file.getvalue()  # type: ignore[attr-defined]
