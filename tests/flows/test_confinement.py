"""What a deployed run may reach, where a setting or a name changes after the file was looked at; see test_service."""

from __future__ import annotations

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
