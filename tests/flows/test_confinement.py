"""What a deployed run may reach, where a setting or a name changes after the file was looked at; see test_service."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flows import _cli
from ldsvm.experiment import prepared
from ldsvm.experiment.config.load import ConfigError


def test_what_is_varied_and_the_cache_of_a_study_do_not_reach_out_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LDSVM_RAY_ADDRESSES", raising=False)
    varied = "vary={{key: {}, values: [{}], label: x}}"
    for given, said in (
        ([varied.format("dataset.path", "data/raw/x.csv, /etc/passwd")], "dataset.path is /etc/passwd; allowed"),
        (
            [
                "methods.ours.executor={kind: ray, workers: 2}",
                varied.format("methods.ours.executor.address", "'a:1', 'a:2'"),
            ],
            "methods.ours.executor.address is a:1; allowed in a deployed run: none",
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            _cli.load_any("conf/own_table.yaml", given)
    with pytest.raises(ConfigError, match=r"paths\.cache is /var/tmp/x; allowed"):
        _cli.load_any("conf/experiments/spirals2.yaml", ["paths.cache=/var/tmp/x"])


@pytest.mark.slow
def test_only_databases_that_the_operator_names_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LDSVM_DATABASES", raising=False)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("create table visits as select 1 as a, 'x' as label union select 2, 'y'")
        connection.commit()
    address = f"sqlite:///{tmp_path / 'a.db'}"
    score = "production={model: m, score: {input: 'postgresql://host/a', output: data/out.csv}}"
    cache = f"paths.cache={tmp_path / 'runs' / 'cache'}"
    for given, key in (
        ([f"dataset.path={address}"], "dataset.path is sqlite"),
        ([score], "production.score.input is post"),
    ):
        with pytest.raises(
            ConfigError, match=f"{key}.*; allowed in a deployed run: none, as listed in LDSVM_DATABASES"
        ):
            _cli.experiment("conf/own_table.yaml", [*given, cache])
    monkeypatch.setenv("LDSVM_DATABASES", f"postgresql://host/b {address}")
    found = _cli.experiment("conf/own_table.yaml", [f"dataset.path={address}", "dataset.table=visits", cache])
    assert len(prepared.load_source(found).data.train) == 2
    monkeypatch.setenv("LDSVM_DATABASES", "")
    with pytest.raises(ConfigError, match=r"^dataset\.path is sqlite"):
        prepared.load_source(found)


def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    for key in ("dataset.path", "dataset.test_path", "production.score.input"):
        more = ["production={model: m, score: {input: a.csv, output: b.csv}}", "dataset.path=a.csv"]
        with pytest.raises(ConfigError, match="allowed: an address without a password") as caught:
            _cli.experiment("conf/own_table.yaml", [*more, f"{key}=postgresql://me:12345@host/clinic"])
        assert "12345" not in str(caught.value)
    for given in ("postgresql://me:12345@host/clinic", "dataset.path=[postgresql://me:12345@host/clinic"):
        with pytest.raises(ConfigError) as caught:
            _cli.experiment("conf/own_table.yaml", [given])
        assert "12345" not in str(caught.value) and "postgresql" in str(caught.value)


def test_a_file_that_has_become_a_link_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDSVM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LDSVM_DATA", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    table = tmp_path / "mine" / "a.csv"
    table.write_text("a,label\n1,x\n2,y\n")
    given = [f"dataset.path={table}", f"paths.cache={tmp_path / 'mine' / 'cache'}"]
    found = _cli.experiment("conf/own_table.yaml", given)
    table.rename(tmp_path / "theirs.csv")
    table.symlink_to(tmp_path / "theirs.csv")
    with pytest.raises(ConfigError, match=r"^dataset\.path is "):
        prepared.load_source(found)
