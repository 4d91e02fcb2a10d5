"""What importing the package loads, and who may import whom inside it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ldsvm"
# Each name stands for its package, or module, but for what is listed by itself. What comes later may import what comes
# earlier, and never the other way round; how a package orders its own modules is its own affair, without circles.
ORDER = (
    "typing", "threads", "memory", "atomic", "checks", "speed",
    "solvers", "maps", "archive", "training_set", "mac", "calibration", "blocks", "training", "auto_size", "estimator",
    "path", "saving", "export", "class_plane",
    "datasets", "known_answers", "model_answers", "metrics", "methods", "sizes", "",
    "experiment.storing", "experiment.config", "experiment.draft", "experiment.draft_text",
    "experiment.schema_file", "experiment.feature_arrays", "experiment.prepared", "experiment.sources",
    "experiment.search", "experiment.compare", "experiment.trial_run", "tracking",
    "production", "serving", "report.plotting", "report", "report.studies", "flows",
)  # fmt: skip


# What one process imports, one after the other; scikit-learn loads some heavy libraries by itself (pandas, and with it
# pyarrow, where installed), which is not ours.
FIRST = (
    "sklearn.base", "ldsvm", "ldsvm.estimator", "ldsvm.methods", "ldsvm.datasets", "ldsvm.datasets.files",
    "ldsvm.datasets.features", "flows.__main__", "ldsvm.experiment.config.load", "ldsvm.report.build",
)  # fmt: skip
WATCH = """
import importlib, json, sys
news = {}
for name in sys.argv[1:]:
    before = {*sys.modules}
    importlib.import_module(name)
    news[name] = sorted({*sys.modules} - before)
print(json.dumps(news))
"""


def news(*names: str) -> dict[str, set[str]]:
    """What each of these modules loads beyond those before it, in a process of its own."""
    command = [sys.executable, "-c", WATCH, *names]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    return {name: set(new) for name, new in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    return news(*FIRST)


@pytest.mark.slow
def test_imports_load_no_heavy_library(loaded: dict[str, set[str]]) -> None:
    # import cost is a feature: frameworks, plotting and compilers load when used
    assert "ldsvm.estimator" in loaded["ldsvm.estimator"]
    heavy = {
        "prefect",
        "mlflow",
        "ray",
        "gunicorn",
        "starlette",
        "matplotlib",
        "osqp",
        "numba",
        "qpsolvers",
        "pydantic",
        "pyarrow",
        "onnx",
    }
    for name in FIRST[1:]:
        if name == "ldsvm.experiment.config.load":
            heavy -= {"pydantic"}  # which checks what a file says
        assert not heavy & loaded[name], name


@pytest.mark.slow
def test_processes_that_fit_no_model_of_scikit_learns_do_not_load_it() -> None:
    # seconds in each worker of Ray, and before each command line says a word
    found = news("ldsvm", "ldsvm.experiment.search.worker", "flows.service", "ldsvm.report.build", "ldsvm.blocks.shard")
    assert "numpy" not in found["ldsvm"] and "ldsvm.blocks.shard" in found["ldsvm.blocks.shard"]
    for name, modules in found.items():
        assert not {"sklearn", "pandas", "pyarrow", "prefect", "mlflow", "ray"} & modules, name


@pytest.mark.slow
def test_data_and_methods_load_only_what_is_used(loaded: dict[str, set[str]]) -> None:
    assert not {"pandas", "yaml", "sklearn.datasets"} & (loaded["ldsvm.datasets"] | loaded["ldsvm.datasets.files"])
    heavy = {"sklearn.decomposition", "sklearn.feature_extraction", "sklearn.impute"}
    assert not heavy & loaded["ldsvm.datasets.features"]
    methods = loaded["ldsvm.methods"]
    assert "ldsvm.methods.registry" in methods and not {"ldsvm.methods.klda", "ldsvm.methods.lmnn"} & methods
    assert [name for name in methods if not name.startswith("ldsvm.")] == []


def modules() -> dict[str, Path]:
    """All modules of the package and the flows by name, without the package's own name in front."""
    files = {file: file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py")}
    files |= {file: file.relative_to(PACKAGE.parent) for file in (PACKAGE.parent / "flows").rglob("*.py")}
    return {".".join(name.with_suffix("").parts).removesuffix("__init__").rstrip("."): f for f, name in files.items()}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module and all statements in it, without the expressions, of which there are ten times as many."""
    yield node
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, block, ()):
            yield from statements(one)


def imported(file: Path, known: dict[str, Path]) -> set[str]:
    """Modules of ours that a file imports anywhere, also inside functions and for its types only."""
    found: set[str] = set()
    for node in statements(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            base = node.module or ""
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole.removeprefix("ldsvm.") in known else base)
    ours = {name for name in found if name.split(".")[0] in ("ldsvm", "flows")}
    return {name.removeprefix("ldsvm").removeprefix(".") for name in ours}


def rank(module: str) -> int:
    """The place of a module in the order, by the longest name that it lies under."""
    homes = [name for name in ORDER if module == name or (name and module.startswith(f"{name}."))]
    return ORDER.index(max(homes, key=len))


@cache
def graph() -> dict[str, set[str]]:
    known = modules()
    assert len(known) > 200
    return {name: imported(file, known) - {name} for name, file in known.items() if name != "experiment"}


def test_no_module_imports_one_that_comes_later() -> None:
    upward = {f"{a} -> {b}" for a, used in graph().items() for b in used if rank(b) > rank(a)}
    assert upward == set()


def test_there_is_no_circle_of_imports() -> None:
    # Kahn: what imports nothing that is left goes; a circle would stay
    left = graph()
    while free := {name for name, used in left.items() if not used & left.keys()}:
        left = {name: used for name, used in left.items() if name not in free}
    assert left == {}


def test_public_names() -> None:
    import ldsvm

    assert set(ldsvm.__all__) == {
        "BlockError",
        "ClassPlane",
        "LDSVMClassifier",
        "OnRay",
        "RowBlocks",
        "Serial",
        "Threads",
        "RelevanceScaler",
        "__version__",
        "fit_path",
        "load",
        "save",
        "size_path",
        "smallest",
        "onnx_inputs",
        "to_onnx",
    }
    assert all(hasattr(ldsvm, name) for name in ldsvm.__all__)
