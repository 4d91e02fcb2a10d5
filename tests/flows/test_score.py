"""Where the flow score looks for rows, and where it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import ROOT
from ldsvm.experiment.config.production import ScoreConfig
from ldsvm.production.scoring_rows import places


def test_the_input_is_looked_for_like_a_table_and_the_output_is_written_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("a\n1\n")
    here = ScoreConfig(input="new.csv", output="scored.parquet")
    assert places(here, ROOT) == (str(tmp_path / "new.csv"), tmp_path / "scored.parquet")
    assert places(here.model_copy(update={"input": "*.csv"}), ROOT)[0] == str(tmp_path / "*.csv")
    # what only the project has is found there too, and the user's own file wins over one of the same name
    asked = here.model_copy(update={"input": "pyproject.toml"})
    assert places(asked, ROOT) == (str(ROOT / "pyproject.toml"), tmp_path / "scored.parquet")
    (tmp_path / "pyproject.toml").touch()
    assert places(asked, ROOT)[0] == str(tmp_path / "pyproject.toml")
    assert places(here.model_copy(update={"input": "none.csv"}), ROOT)[0] == "none.csv"  # in the user's own words
    away = ScoreConfig(input="/data/x.csv", output="/data/y.csv")
    assert places(away, ROOT) == ("/data/x.csv", Path("/data/y.csv"))
