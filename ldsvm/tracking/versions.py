"""Versions of registered models, made of models that a run has kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldsvm.tracking.store import Guarded


def logged_model(uri: str) -> str | None:
    """Return the number of the model at an address as `Run.model` returned it; None for the address of a folder.

    Examples
    --------
    >>> logged_model("models:/m-12ab"), logged_model("runs/model")
    ('m-12ab', None)
    """
    return uri.removeprefix("models:/") if uri.startswith("models:/m-") else None


def create_version(client: Guarded, name: str, uri: str, run_id: str, tags: Mapping[str, str]) -> Any:
    """Add a version to a registered model and return it as MLflow does. uri: as `Run.model` returned it."""
    number = logged_model(uri)  # a server takes the address only with it
    return client.create_model_version(name, uri, run_id=run_id, tags=dict(tags), model_id=number)
