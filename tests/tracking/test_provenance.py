"""Where and with what an experiment ran."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from ldsvm.tracking import provenance
from ldsvm.tracking.provenance import commit, environment, source_tags


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_says_when_files_differ_from_it(tmp_path: Path) -> None:
    assert commit(tmp_path) is None and commit(tmp_path / "absent") is None
    git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    assert commit(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "new").write_text("results are no change of the code")
    assert commit(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path) == git(tmp_path, "rev-parse", "HEAD") + " (changed)"


def test_the_environment_has_every_version() -> None:
    lines = environment().splitlines()
    assert lines[0].startswith("# ") and lines[1].startswith("# Python 3.")
    for name in ("numpy", "scikit-learn"):
        assert f"{name}=={version(name)}" in lines
    assert lines[2:] == sorted(lines[2:], key=str.lower)


def test_runs_name_user_program_and_the_commit_of_our_checkout_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.setattr("sys.argv", ["/somewhere/flows/__main__.py"])
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "venv" / "provenance.py"))
    named = {"mlflow.user": "me", "mlflow.source.name": "__main__.py", "mlflow.source.type": "LOCAL"}
    git(tmp_path, "init")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "provenance.py").write_text("")
    git(tmp_path, "commit", "--allow-empty", "-m", "of a project that has us in its environment")
    source_tags.cache_clear()
    assert source_tags() == named
    git(tmp_path, "add", "venv")
    git(tmp_path, "commit", "-m", "our own")
    source_tags.cache_clear()
    assert source_tags() == {**named, "mlflow.source.git.commit": git(tmp_path, "rev-parse", "HEAD")}
    source_tags.cache_clear()
