"""Versions of registered models: what MLflow is asked for."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from ldsvm.tracking.store import Guarded
from ldsvm.tracking.versions import create_version


@pytest.mark.parametrize(("uri", "number"), [("models:/m-12ab", "m-12ab"), ("runs/models/m-1", None)])
def test_a_server_is_given_the_number_without_which_it_refuses_the_address(uri: str, number: Any) -> None:
    client: Any = MagicMock()
    create_version(Guarded(client, MagicMock()), "digits", uri, "run", {"a": "b"})
    client.create_model_version.assert_called_once_with("digits", uri, run_id="run", tags={"a": "b"}, model_id=number)
