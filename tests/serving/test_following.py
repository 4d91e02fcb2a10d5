"""The version that answers is the champion's, from one look to the next; what cannot be loaded changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ldsvm.experiment.storing import dumps
from ldsvm.production.registry import RegistryFailed, Version
from ldsvm.serving import follower
from ldsvm.serving.current import Current
from ldsvm.serving.folder import Folder, State
from ldsvm.serving.follower import Follower
from ldsvm.tracking.client import TrackingFailed
from tests.serving.conftest import put

ROW = {"rows": [[1, 2]]}
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def test_a_new_version_answers_and_a_damaged_one_does_not(
    people: Any, plain: Any, folder: Folder, serving: Callable[..., Any]
) -> None:
    with serving(people) as client:
        assert client.post("/predict", json=ROW).json()["version"] == 1
        put(folder, plain, 2)
        client.wait(0.6)
        answer = client.post("/predict", json=ROW).json()
        assert answer["version"] == 2 and answer["answers"][0]["class"] == plain.predict([[1.0, 2.0]])[0]
        put(folder, None, 3)
        client.wait(0.6)
        ready = client.get("/ready")
        said = "Version 3 of people cannot be loaded; the log of the server has the reason."
        assert (ready.status_code, ready.json()) == (200, {"model": "people", "version": 2, "problem": said})
        assert client.post("/predict", json=ROW).json()["version"] == 2
        put(folder, people, 4)
        client.wait(0.6)
        assert client.get("/ready").json() == {"model": "people", "version": 4}


def test_the_old_version_answers_until_the_new_one_is_loaded(
    people: Any, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, people, 1)
    current = Current(folder, folder.settings())
    asyncio.run(current.look())
    first = current.champion
    seen = []
    load = follower.Champion.load

    def slow(*arguments: Any) -> Any:
        seen.append(current.champion)
        return load(*arguments)

    monkeypatch.setattr("ldsvm.serving.current.Champion.load", slow)
    put(folder, people, 2)
    asyncio.run(current.look())
    assert seen == [first] and current.champion is not None and current.champion.version == 2
    put(folder, people, 1)
    asyncio.run(current.look())  # going back takes no loading
    assert seen == [first] and current.champion is first


class Shelf:
    """A registry of files: who is champion, and how often somebody asked."""

    def __init__(self, place: Path) -> None:
        self.place, self.champion, self.asked, self.changed = place, 0, 0, True
        self.copied: list[int] = []
        self.error: Exception | None = None

    def moved(self) -> bool:
        changed, self.changed = self.changed, False
        return changed

    def promote(self, number: int, model: Any = None) -> None:
        self.champion, self.changed = number, True
        (self.place / str(number)).write_bytes(b"no model" if model is None else dumps(model))

    def require(self, _: str) -> Version:
        self.asked += 1
        if self.error:
            raise self.error
        if not self.champion:
            raise RegistryFailed("No version of people is champion yet; python -m flows retrain makes one.")
        return Version("people", self.champion, f"run{self.champion}", "")

    def file(self, version: Version, folder: Path) -> Path:
        self.copied.append(version.number)
        (folder / "model.skops").write_bytes((self.place / str(version.number)).read_bytes())
        return folder / "model.skops"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "shelf").mkdir()
    return Shelf(tmp_path / "shelf")


def test_the_folder_follows_the_alias(
    shelf: Shelf, folder: Folder, people: Any, plain: Any, caplog: pytest.LogCaptureFixture
) -> None:
    following = Follower(folder, folder.settings(), lambda: shelf)  # type: ignore[arg-type, return-value]
    assert following.look() == folder.state()
    assert folder.state().problem.startswith("No version of people is champion yet;")
    shelf.promote(1, people)
    assert following.look() == folder.state() == State(1, "versions/1-run1/model.skops", "", 1)
    assert following.look() == folder.state() and shelf.asked == 2  # nobody has written, so nobody is asked
    shelf.promote(2)
    assert following.look() == folder.state()
    assert (folder.state().version, folder.state().failures) == (1, 2)
    assert folder.state().problem.startswith("people version 2 cannot be loaded (UntrustedModel: ")
    assert following.look().failures == 2  # it is not tried again and again
    shelf.promote(3, plain)
    following.look()
    shelf.promote(1, people)  # a rollback
    assert following.look() == folder.state() == State(1, "versions/1-run1/model.skops", "", 2)
    assert shelf.copied == [1, 2, 3]
    assert [line for line in caplog.messages if "answer" in line] == [
        "people version 1 now answers", caplog.messages[2], "people version 3 now answers",
        "people version 1 now answers",
    ]  # fmt: skip
    assert caplog.messages[2].endswith("; version 1 goes on answering")


def test_a_store_that_is_away_is_opened_again(shelf: Shelf, folder: Folder, people: Any) -> None:
    opened = []

    def open_again() -> Shelf:
        opened.append(1)
        return shelf

    following = Follower(folder, folder.settings(), open_again)  # type: ignore[arg-type]
    shelf.promote(1, people)
    following.look()
    shelf.error, shelf.changed = TrackingFailed("http://me:secret@host does not answer"), True
    assert following.look().version == 1 and folder.state().problem == "http://host does not answer"
    shelf.error, shelf.changed = None, True
    assert following.look() == State(1, "versions/1-run1/model.skops", "", 1) and len(opened) == 2


def test_a_full_disk_is_survived_and_the_version_is_taken_once_there_is_room(
    shelf: Shelf, folder: Folder, people: Any, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "EVERY", 0.0)
    following = Follower(folder, folder.settings(), lambda: shelf)  # type: ignore[arg-type, return-value]
    shelf.promote(1, people)
    following.look()
    shelf.promote(2, plain)
    with monkeypatch.context() as full:
        full.setattr(folder, "say", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert following.look().version == folder.state().version == 1
    assert following.look() == folder.state() == State(2, "versions/2-run2/model.skops", "", 0)


def test_a_file_of_an_older_version_is_let_go(
    shelf: Shelf, folder: Folder, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "KEPT", 2)
    following = Follower(folder, folder.settings(), lambda: shelf)  # type: ignore[arg-type, return-value]
    for number in (1, 2, 3):
        shelf.promote(number, people)
        following.look()
    assert sorted(path.name for path in (folder.path / "versions").iterdir()) == ["2-run2", "3-run3"]


def test_a_process_without_a_version_looks_for_one_before_it_refuses(
    people: Any, folder: Folder, serving: Callable[..., Any]
) -> None:
    body = {"rows": [{"height": 2, "age": 3}]}
    with serving() as client:
        assert client.post("/predict", json=body).status_code == 503
        put(folder, people, 1)  # another process may have loaded it, and said that it is ready
        assert client.post("/predict", json=body).json()["version"] == 1
