"""Automations of conf/automations.yaml on Prefect's server: made, changed, and removed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from flows import ROOT
from flows.deployments import post, send

FILE = ROOT / "conf" / "automations.yaml"
TAG = "ldsvm"  # on ours; those that users made on Prefect's pages lack it
DIGEST = "ldsvm:"  # before the digest of an entry, in a second tag


def wanted_automations() -> dict[str, dict[str, Any]]:
    """Return the entries of the file by name; raise ConfigError when the file is wrong."""
    from ldsvm.experiment.config.yaml_merge import ConfigError
    from ldsvm.experiment.search.failure import sentence

    try:
        every = yaml.safe_load(FILE.read_text("utf-8"))["automations"] or []
        found = {str(one["name"]): dict(one) for one in every}
        for one in found.values():
            one["trigger"], one["actions"] = dict(one["trigger"]), [dict(action) for action in one["actions"]]
            for action in one["actions"]:
                kind, _, name = str(action.get("block", "type/name")).partition("/")
                if not kind or not name:
                    raise ValueError(f"block is {action['block']}; allowed: TYPE/NAME")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        why = sentence(error)
    else:
        return found
    raise ConfigError(f"conf/automations.yaml is not valid ({why}); the comment at its top says what is allowed.")


def deploy(api: str, wanted: Mapping[str, dict[str, Any]]) -> list[str]:
    """Make our automations on the server the wanted ones; return a sentence on each that could not be made.

    Unchanged ones are left alone, so that one which a user paused on Prefect's pages stays paused.
    """
    there = {one["name"]: one for one in post(api, "automations/filter") if TAG in one["tags"]}
    failures = []
    for name, entry in wanted.items():
        digest = DIGEST + hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]
        known = there.pop(name, None)
        if known is not None and digest in known["tags"]:
            continue
        try:
            body = {**entry, "actions": [_with_block(api, one) for one in entry["actions"]], "tags": [TAG, digest]}
            if known is None:
                send(api, "POST", "automations/", body)
            else:
                send(api, "PUT", f"automations/{known['id']}", body)
        except (OSError, ValueError) as error:
            failures.append(f"the automation {name} of conf/automations.yaml could not be created ({error})")
    for known in there.values():
        send(api, "DELETE", f"automations/{known['id']}")
    return failures


def _with_block(api: str, action: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action with the id of its block in place of the block's name."""
    found = dict(action)
    if "block" in found:
        kind, _, name = str(found.pop("block")).partition("/")
        match = {"block_types": {"slug": {"any_": [kind]}}, "block_documents": {"name": {"any_": [name]}}}
        blocks = post(api, "block_documents/filter", **match)
        if not blocks:
            raise ValueError(
                f"Prefect has no block {kind}/{name}; create it on Prefect's page Blocks, then run make up"
            )
        found["block_document_id"] = blocks[0]["id"]
    return found
