"""Automations of the project on a server: the entries of the file, and no other of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import automations
from flows.automations import FILE, deploy, wanted_automations
from ldsvm.experiment.config.load import ConfigError

EXAMPLE = re.sub(r"^# ?", "", FILE.read_text("utf-8").partition("#\n")[2], flags=re.MULTILINE).partition("\n\n")[0]


class Server:
    """What Prefect's API does with automations, and what it was asked to change."""

    def __init__(self) -> None:
        self.has = {"theirs": {"id": "theirs", "name": "theirs", "tags": []}}
        self.blocks, self.asked = ["number of people"], list[str]()

    def post(self, _: str, path: str, **body: Any) -> list[dict[str, Any]]:
        if path == "automations/filter":
            return list(self.has.values())
        assert path == "block_documents/filter" and body["block_types"]["slug"]["any_"] == ["sendgrid-email"]
        assert body["block_documents"]["name"]["any_"] == ["people"]
        return [{"id": one} for one in self.blocks]

    def send(self, _: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        self.asked.append(method)
        number = path.removeprefix("automations/") or str((body or {})["name"])
        if method == "DELETE":
            del self.has[number]
        else:
            self.has[number] = {**(body or {}), "id": number}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    one = Server()
    monkeypatch.setattr(automations, "post", one.post)
    monkeypatch.setattr(automations, "send", one.send)
    monkeypatch.setattr(automations, "FILE", tmp_path / "automations.yaml")
    automations.FILE.write_text(EXAMPLE, "utf-8")
    return one


def test_they_are_made_once_changed_when_the_file_changes_and_removed_when_they_are_gone(server: Server) -> None:
    assert deploy("api", wanted_automations()) == [] and server.asked == ["POST"]
    made = server.has["alarms by e-mail"]
    assert made["actions"][0]["block_document_id"] == "number of people" and "block" not in made["actions"][0]
    assert deploy("api", wanted_automations()) == [] and server.asked == ["POST"]
    automations.FILE.write_text(EXAMPLE.replace("threshold: 1", "threshold: 2"), "utf-8")
    assert deploy("api", wanted_automations()) == [] and server.asked == ["POST", "PUT"]
    assert server.has["alarms by e-mail"]["trigger"]["threshold"] == 2
    automations.FILE.write_text("automations: []", "utf-8")
    assert deploy("api", wanted_automations()) == [] and server.asked == ["POST", "PUT", "DELETE"]
    assert list(server.has) == ["theirs"]


def test_one_whose_block_is_not_there_is_a_sentence_and_made_later(server: Server) -> None:
    server.blocks = []
    (said,) = deploy("api", wanted_automations())
    assert said == (
        "the automation alarms by e-mail of conf/automations.yaml could not be created (Prefect has no block "
        "sendgrid-email/people; create it on Prefect's page Blocks, then run make up)"
    )
    server.blocks = ["number"]
    assert deploy("api", wanted_automations()) == [] and server.asked == ["POST"]


@pytest.mark.slow
def test_the_example_is_what_prefect_takes(server: Server) -> None:
    from prefect.server.events.schemas.automations import AutomationCreate

    (entry,) = wanted_automations().values()
    actions = [{**{k: v for k, v in entry["actions"][0].items() if k != "block"}, "block_document_id": "0" * 32}]
    made = AutomationCreate.model_validate({**entry, "actions": actions, "tags": ["ldsvm"]})
    assert made.trigger.expect == {"ldsvm.alarm.*"}  # type: ignore[union-attr]
    assert yaml.safe_load(FILE.read_text("utf-8")) == {"automations": []}


@pytest.mark.parametrize(
    "text", ["a: b: c", "[]", "automations: [{name: one}]", EXAMPLE.replace("sendgrid-email/", "")]
)
def test_a_file_that_cannot_be_used_is_one_sentence(text: str, server: Server) -> None:
    automations.FILE.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"^conf/automations\.yaml is not valid \(.*\); the comment at its top says"):
        wanted_automations()
