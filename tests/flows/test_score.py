"""Where the flow score looks for rows, and where it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import ROOT
from ldsvm.experiment.config.load import load_config
from ldsvm.production.scoring_rows import places


def test_the_input_is_looked_for_like_a_table_and_the_output_is_written_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("a\n1\n")

    def placed(input: str, output: str = "scored.parquet") -> tuple[str, Path]:
        given = [f"production.score={{input: '{input}', output: {output}}}"]
        spec, target = places(load_config("conf/production/digits.yaml", given, root=ROOT), ROOT)
        return spec.path, target

    assert placed("new.csv") == (str(tmp_path / "new.csv"), tmp_path / "scored.parquet")
    assert placed("*.csv")[0] == str(tmp_path / "*.csv")
    # what only the project has is found there too, and the user's own file wins over one of the same name
    assert placed("pyproject.toml") == (str(ROOT / "pyproject.toml"), tmp_path / "scored.parquet")
    (tmp_path / "pyproject.toml").touch()
    assert placed("pyproject.toml")[0] == str(tmp_path / "pyproject.toml")
    assert placed("none.csv")[0] == "none.csv"  # in the user's own words
    assert placed("/data/x.csv", "/data/y.csv") == ("/data/x.csv", Path("/data/y.csv"))
