"""Who may import what, read from the sources themselves."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from flows.__main__ import NAMES

ROOT = Path(__file__).resolve().parents[2]
HOME = {
    "prefect": "flows/",
    "mlflow": "ldsvm/tracking/",
    "matplotlib": "ldsvm/report/plotting/",
    "ray": (
        "ldsvm/experiment/search/parallel.py",
        *(f"ldsvm/blocks/{name}.py" for name in ("connection", "actors", "each_on_ray")),
    ),
}


@cache
def imports(file: Path) -> set[str]:
    """Top names of everything a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("library", HOME)
def test_each_framework_is_imported_in_its_home_only(library: str) -> None:
    files = [p for folder in ("ldsvm", "flows") for p in (ROOT / folder).rglob("*.py")]
    users = [str(p.relative_to(ROOT)) for p in files if library in p.read_text("utf-8") and library in imports(p)]
    assert [user for user in users if not user.startswith(HOME[library])] == []
    assert files


def test_flows_are_thin() -> None:
    for file in (ROOT / "flows").glob("*.py"):
        assert "numpy" not in imports(file), file
    for name in NAMES:
        assert len((ROOT / "flows" / f"{name}.py").read_text("utf-8").splitlines()) <= 60, name
