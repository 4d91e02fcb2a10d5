"""Models of strangers: nothing is built or called for a file that holds what no model of ours holds."""

from __future__ import annotations

import io
import json
import pydoc
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ldsvm import LDSVMClassifier
from ldsvm.datasets.unit_rows import UnitRows
from ldsvm.experiment import storing
from ldsvm.experiment.storing import UntrustedModel, dumps, loads


def rewritten(data: bytes, change: Callable[[dict[str, Any]], None], *, packed: bool = False) -> bytes:
    """A model's file after `change` of each object of its tree."""
    old, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "__loader__" in node:
                change(node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == storing.SCHEMA:
                tree = json.loads(content)
                walk(tree)
                content = json.dumps(tree).encode()
            new.writestr(name, content)
    return out.getvalue()


def names(module: str, name: str, reader: str) -> Callable[[dict[str, Any]], None]:
    """A change that lets objects which `reader` reads name something else."""

    def change(node: dict[str, Any]) -> None:
        if node["__loader__"] == reader:
            node["__module__"], node["__class__"] = module, name

    return change


@pytest.fixture
def fitted() -> Any:
    """A scaler with numbers in it."""
    return StandardScaler().fit(np.arange(6.0).reshape(3, 2))


@pytest.fixture(autouse=True)
def nothing_is_built(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when skops begins to read a file in a test that is not about good models."""
    if "good" not in request.node.name:
        monkeypatch.setattr(skops.io, "loads", lambda *_, **__: pytest.fail("skops began to build the model"))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy.testing", "runstring"),  # exec under another name
        ("numpy.testing._private.utils", "rundocs"),
        ("numpy", "load"),
        ("numpy", "vectorize"),
        ("ldsvm.atomic", "alone"),  # ours, but not part of a model
        ("ldsvm.estimator", "LDSVMClassifier"),  # allowed as an object, not as a function of an array
        ("os", "system"),
    ],
)
def test_a_name_that_skops_would_call_is_refused(fitted: Any, module: str, name: str) -> None:
    crafted = rewritten(dumps(fitted), names(module, name, "NdArrayNode"))
    with pytest.raises(UntrustedModel, match=rf"The model holds {module}\.{name} \(NdArrayNode\)"):
        loads(crafted)


@pytest.mark.parametrize(
    "harmful",
    [
        make_pipeline(FunctionTransformer(np.vectorize(len)), StandardScaler()),
        FunctionTransformer(np.log1p),  # skops trusts it by itself
        make_pipeline(StandardScaler(), DecisionTreeClassifier()),
        PCA(random_state=np.random.RandomState(0)),
        TfidfVectorizer(tokenizer=str.split),
    ],
    ids=["vectorize", "ufunc", "tree", "RandomState", "method"],
)
def test_objects_outside_the_list_are_refused_when_read_and_when_written(harmful: Any) -> None:
    for act in (lambda: loads(skops.io.dumps(harmful)), lambda: dumps(harmful)):
        with pytest.raises(UntrustedModel, match="no model of ours needs"):
            act()


def test_a_compressed_file_is_refused(fitted: Any) -> None:
    # what skops writes is stored as it is, so a small file cannot become a large one in memory
    with pytest.raises(UntrustedModel, match="is compressed"):
        loads(rewritten(dumps(fitted), lambda _: None, packed=True))


@pytest.mark.parametrize(
    ("number", "said"),
    [(lambda count: count, r"The model's '\d+\.npy' is read twice"), (lambda _: 1, "object 1 is not unique")],
    ids=["many arrays of one file", "one number of many objects"],
)
def test_what_would_grow_in_memory_is_refused(fitted: Any, number: Callable[[int], int], said: str) -> None:
    # skops reads a file anew for each number, and repeats what has the same one: 8 MiB became 5 GB
    files: list[str] = []

    def change(node: dict[str, Any]) -> None:
        if node["__loader__"] == "NdArrayNode" and "file" in node:
            files.append(node["file"])
            node |= {"file": files[0], "__id__": number(len(files))}
        elif node["__loader__"] == "ListNode":
            node["__id__"] = number(10**6)

    with pytest.raises(UntrustedModel, match=said):
        loads(rewritten(dumps(fitted), change))


@pytest.mark.parametrize("data", [b"", b"PK", b"\x80\x04K\x01."], ids=["empty", "cut", "pickle"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UntrustedModel, match="allowed: models in skops's format"):
        loads(data)


def test_the_list_names_classes_alone() -> None:
    # a function on it could be called with the file's arguments
    for name in (*storing.OURS, *storing.SCIKIT_LEARN):
        assert isinstance(pydoc.locate(name), type), name
    assert not any("FunctionTransformer" in name for _, name in storing.ALLOWED)
    assert {name for _, name in storing.ALLOWED if name.startswith("numpy.")} == {
        "numpy.bool", "numpy.dtype", "numpy.float32", "numpy.float64", "numpy.int64", "numpy.ndarray",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"map": "adaptive_rbf"}, {"map": "linear"}, {"multi_class": "ovo"}])
@pytest.mark.parametrize("kind", [int, str, bool])
def test_good_models_are_read_again(digits: Any, settings: dict[str, Any], kind: type) -> None:
    X, y = digits
    X, y = X[:120], (y[:120] > 4 if kind is bool else y[:120].astype(kind))
    model = LDSVMClassifier(n_basis=10, max_iter=1, random_state=0, **settings)
    pipe = make_pipeline(StandardScaler(), PCA(8), model)
    with pytest.warns(ConvergenceWarning):  # one iteration does not converge
        pipe.fit(X, y)
    again = loads(dumps(pipe))
    np.testing.assert_array_equal(again.decision_function(X), pipe.decision_function(X))


def test_good_models_are_read_under_the_names_their_classes_had_before() -> None:
    scaled = UnitRows()
    old = rewritten(dumps(scaled), _named_as_before)
    assert b"ldsvm.datasets.lengths" in old
    assert type(loads(old)) is UnitRows
    # every old name is that of one class of today
    assert len(storing.OLD) == len(storing.MOVED)
    assert all(pydoc.locate(name) is None for name in storing.OLD)


def _named_as_before(node: dict[str, Any]) -> None:
    if node["__module__"] == "ldsvm.datasets.unit_rows":
        node["__module__"] = "ldsvm.datasets.lengths"
