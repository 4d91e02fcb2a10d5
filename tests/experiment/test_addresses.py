"""Addresses in messages: without user and password, however they are written."""

from __future__ import annotations

import pytest

from flows import environment
from ldsvm.experiment.load import ConfigError
from ldsvm.experiment.remote import Server, redacted
from ldsvm.experiment.store import TrackingFailed

SECRETS = [
    "http://user:PW@127.0.0.1:9/api", "http://PW@127.0.0.1:9/api", "http://user:a@PW@127.0.0.1:9/api",
    "http://user:a/PW@127.0.0.1:9/api", "user:PW@127.0.0.1:9/api", "postgresql+psycopg2://me:PW@h/db",
    "postgresql://h/db?user=me&password=PW&sslmode=require",
]  # fmt: skip


@pytest.mark.parametrize("address", SECRETS)
def test_no_message_holds_a_password(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    with pytest.raises(ConfigError, match="where no Prefect server answers") as prefect:
        environment.check_api()
    assert "PW" not in str(prefect.value)
    if "://" in address:  # else it is no tracking server
        with pytest.raises(TrackingFailed) as mlflow, Server(address).guard():
            raise ConnectionError(f"no answer from {address} at all")
        assert "PW" not in str(mlflow.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:4200/api", "postgresql://host:5432/db", "nonsense", ""])
def test_an_address_without_a_password_stays(address: str) -> None:
    assert redacted(address) == address
