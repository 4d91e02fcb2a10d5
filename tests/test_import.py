"""What importing the package loads, and who may import whom inside it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ldsvm"
HEAVY = ["prefect", "mlflow", "ray", "matplotlib", "osqp", "numba", "qpsolvers", "pydantic", "pyarrow", "onnx"]
BELOW = {
    "mac": {"ldsvm.mac", "ldsvm.maps", "ldsvm.solvers", "ldsvm.threads", "ldsvm.typing"},
    "maps": {"ldsvm.maps", "ldsvm.solvers", "ldsvm.threads", "ldsvm.typing"},
    "solvers": {"ldsvm.solvers", "ldsvm.threads", "ldsvm.typing"},
}


def test_import_loads_no_heavy_library() -> None:
    # import cost is a feature: frameworks, plotting and compilers load when used; what scikit-learn loads by itself
    # (pandas, and with it pyarrow, where installed) is not ours
    loaded = "import sys, sklearn.base; before = {*sys.modules}; import ldsvm; loaded = {*sys.modules} - before; "
    code = f"{loaded} assert 'ldsvm.estimator' in loaded; print(*[m for m in {HEAVY!r} if m in loaded])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def own_imports(file: Path) -> set[str]:
    """Modules of ours that a file imports anywhere, as package.room."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            # "from ldsvm import x" imports the room x
            names |= {f"{node.module}.{a.name}" for a in node.names} if node.module == "ldsvm" else {node.module or ""}
    return {".".join(name.split(".")[:2]) for name in names if name.split(".")[0] == "ldsvm"}


@pytest.mark.parametrize("room", BELOW)
def test_rooms_import_nothing_above_them(room: str) -> None:
    # solvers know no MAC, maps know no loop, and none knows the estimator
    files = list((PACKAGE / room).glob("**/*.py"))
    assert len(files) > 3
    assert {file.name: own_imports(file) - BELOW[room] for file in files if own_imports(file) - BELOW[room]} == {}
    assert set.union(*(own_imports(file) for file in files)) >= {f"ldsvm.{room}", "ldsvm.typing"}


def test_public_names() -> None:
    import ldsvm

    assert set(ldsvm.__all__) == {
        "LDSVMClassifier",
        "RowBlocks",
        "__version__",
        "fit_path",
        "load",
        "save",
        "size_path",
        "smallest",
        "to_onnx",
    }
    assert all(hasattr(ldsvm, name) for name in ldsvm.__all__)
