"""A fitted classifier, and the linear steps before it, as one ONNX graph for programs without Python."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.maps.features import BasisMap
from ldsvm.maps.rbf import Gaussians
from ldsvm.saving import replaced
from ldsvm.typing import Array

OPSET, IR = 18, 9  # of early 2023: what runs ONNX today runs these


class NotExported(ValueError):
    """A model, or a step before it, that is no such graph; the message is one sentence."""


def to_onnx(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier as an ONNX graph and return its path.

    model: an `LDSVMClassifier` with ``map="rbf"``, "adaptive_rbf" or "linear", or a scikit-learn pipeline that ends in
    one and whose other steps are linear, such as PCA or a scaler; these become one matrix. path: where; an older file
    there is replaced. The graph takes X (N, D) float32, as the first step does, and gives ``decision`` (N, K), or (N,)
    for two classes, as `decision_function` does, ``label`` (N,) and ``latent`` (N, L).

    Needs the package onnx (``pip install 'ldsvm[export]'``). Raises NotExported for other maps and steps, for
    ``multi_class="ovo"`` with more than two classes, whose votes are no part of ONNX, and for labels that are neither
    numbers nor texts; sklearn's NotFittedError for an unfitted model.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm import LDSVMClassifier, to_onnx
    >>> model = LDSVMClassifier(n_basis=20, random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(model, f"{folder}/model.onnx").name
    'model.onnx'
    """
    try:
        import onnx
    except ImportError as error:
        raise NotExported(f"onnx is not installed ({error}); allowed: pip install 'ldsvm[export]'.") from error
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    graph = _Graph(onnx)
    classifier = _checked(steps[-1])
    features, n_inputs = _features(graph, classifier, *_composed(steps[:-1], classifier.n_features_in_))
    outputs = _outputs(graph, classifier, features)
    info = onnx.TensorProto
    X = onnx.helper.make_tensor_value_info("X", info.FLOAT, ["N", n_inputs])
    whole = onnx.helper.make_graph(graph.nodes, "ldsvm", [X], outputs, graph.constants)
    made = onnx.helper.make_model(whole, opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="ldsvm")
    made.ir_version = IR
    onnx.checker.check_model(made, full_check=True)
    return replaced(Path(path), lambda file: file.write(made.SerializeToString()), NotExported)


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output


def _checked(classifier: Any) -> Any:
    from sklearn.utils.validation import check_is_fitted

    from ldsvm.estimator import LDSVMClassifier

    if not isinstance(classifier, LDSVMClassifier):
        raise NotExported(f"{type(classifier).__name__} cannot be exported; allowed: LDSVMClassifier as the last step.")
    check_is_fitted(classifier, "map_")
    if not isinstance(classifier.map_, BasisMap):
        raise NotExported("a map that is a regressor cannot be exported; allowed: map='rbf', 'adaptive_rbf', 'linear'.")
    if len(classifier.classes_) > 2 and classifier._scheme.kind == "ovo":
        raise NotExported("multi_class='ovo' with more than two classes cannot be exported; allowed: 'ovr'.")
    return classifier


def _composed(steps: list[Any], n_features: int) -> tuple[Array | None, Array]:
    """Return A (D, d) and a (d,) of the steps together, x -> x A + a; A is None without a step."""
    A, a = None, np.zeros(n_features)
    for step in steps:
        if step is None or step == "passthrough":
            continue
        B, b = _affine(step, step.n_features_in_ if A is None else A.shape[1])
        A, a = (B, b) if A is None else (A @ B, a @ B + b)
    return A, a


def _affine(step: Any, n_features: int) -> tuple[Array, Array]:
    """Return B and b of a step that is x -> x B + b, found by trying, and refuse one that is not."""
    probe = np.random.default_rng(0).normal(size=(20, n_features))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names of columns, which a graph has not
            b = np.asarray(step.transform(np.zeros((1, n_features))), dtype=np.float64)[0]
            B = np.asarray(step.transform(np.eye(n_features)), dtype=np.float64) - b
            expected = np.asarray(step.transform(probe), dtype=np.float64)
    except (TypeError, ValueError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise NotExported(f"step {type(step).__name__} cannot be exported ({reason}); allowed: linear steps.") from None
    if not np.allclose(probe @ B + b, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max(initial=1e-30)):
        raise NotExported(f"step {type(step).__name__} is not linear; allowed: linear steps, such as PCA and scalers.")
    return B, b


def _features(graph: _Graph, classifier: Any, A: Array | None, a: Array) -> tuple[str, int]:
    """Add phi(x) and return its name and how many inputs the graph has."""
    basis = classifier.map_.basis
    gaussian = isinstance(basis, Gaussians)
    # around the centres' mean, so that an offset of the data costs no digits
    shift = basis.centers.mean(axis=0, dtype=np.float64) if gaussian else np.zeros_like(a)
    offset = (a - shift).astype(np.float32)
    if A is None:
        n_inputs, x = classifier.n_features_in_, graph.node("Add", ["X", graph.constant("offset", offset)], "x")
    else:
        n_inputs = A.shape[0]
        named = [graph.constant("linear", A.astype(np.float32)), graph.constant("offset", offset)]
        x = graph.node("Gemm", ["X", *named], "x")
    if not gaussian:
        return x, n_inputs
    centers = basis.centers.astype(np.float64) - shift
    gamma = np.broadcast_to(basis.gamma, basis.size).astype(np.float64)
    # -gamma |x - c|^2 = 2 gamma x.c - gamma |c|^2 - gamma |x|^2
    twice = graph.constant("centers", (2.0 * gamma[:, None] * centers).T.astype(np.float32))
    own = graph.constant("squares", (-gamma * np.einsum("md,md->m", centers, centers)).astype(np.float32))
    square = graph.node("ReduceSumSquare", [x, graph.constant("columns", np.array([1]))], "square", keepdims=1)
    widths = graph.constant("widths", gamma[None, :].astype(np.float32))
    apart = [graph.node("Gemm", [x, twice, own], "products"), graph.node("MatMul", [square, widths], "norms")]
    exponent = graph.node("Sub", apart, "difference")
    exponent = graph.node("Min", [exponent, graph.constant("zero", np.zeros((), np.float32))], "exponent")
    return graph.node("Exp", [exponent], "phi"), n_inputs


def _outputs(graph: _Graph, classifier: Any, features: str) -> list[Any]:
    """Add the latent coordinates, the decisions and the labels, and return what the graph gives."""
    helper, info = graph.onnx.helper, graph.onnx.TensorProto
    W, V, b = classifier.map_.W, classifier.coef_, classifier.intercept_
    graph.node("MatMul", [features, graph.constant("weights", W.astype(np.float32))], "latent")
    machines = [graph.constant("machines", (W @ V.T).astype(np.float32)), graph.constant("bias", b.astype(np.float32))]
    zero = graph.constant("first", np.array([1]))
    shape: list[Any] = ["N"]
    if len(classifier.classes_) == 2:
        graph.node("Squeeze", [graph.node("Gemm", [features, *machines], "column"), zero], "decision")
        positive = graph.node("Greater", ["decision", graph.constant("nothing", np.zeros((), np.float32))], "positive")
        index = graph.node("Cast", [positive], "index", to=info.INT64)
    else:
        graph.node("Gemm", [features, *machines], "decision")
        index = graph.node("ArgMax", ["decision"], "index", axis=1, keepdims=0)
        shape.append(len(classifier.classes_))
    labels, kind = _labels(classifier.classes_, info)
    graph.node("Gather", [graph.constant("classes", labels), index], "label")
    return [
        helper.make_tensor_value_info("decision", info.FLOAT, shape),
        helper.make_tensor_value_info("label", kind, ["N"]),
        helper.make_tensor_value_info("latent", info.FLOAT, ["N", W.shape[1]]),
    ]


def _labels(classes: Array, info: Any) -> tuple[Array, int]:
    """Return labels in a type that ONNX has, and its number."""
    if classes.dtype.kind in "iub":
        return (classes, info.BOOL) if classes.dtype.kind == "b" else (classes.astype(np.int64), info.INT64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32), info.FLOAT
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object), info.STRING
    raise NotExported(f"labels of dtype {classes.dtype} cannot be exported; allowed: numbers and texts.")
