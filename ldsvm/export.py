"""Export of a fitted classifier, and the steps before it, as one ONNX graph for programs without Python."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.archive import replaced
from ldsvm.maps.features import BasisMap
from ldsvm.maps.rbf import FLOAT32_RANGE, Gaussians
from ldsvm.typing import Array

LINEAR = (
    "FastICA", "IncrementalPCA", "LinearDiscriminantAnalysis", "MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler",
    "RelevanceScaler", "SelectKBest", "StandardScaler", "TruncatedSVD", "VarianceThreshold",
)  # fmt: skip
OPSET, ML_OPSET, IR = 18, 3, 9  # of early 2023: what runs ONNX today runs these
OUTPUTS = ("decision", "label", "latent", "probabilities")


class NotExported(ValueError):
    """A model, or a step before it, cannot be exported; the message is one sentence."""


def to_onnx(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier as an ONNX graph and return its path.

    model: an `LDSVMClassifier` with ``map="rbf"``, "adaptive_rbf" or "linear", or a scikit-learn pipeline that ends in
    one and whose other steps are linear: FastICA, IncrementalPCA, LinearDiscriminantAnalysis, MaxAbsScaler,
    MinMaxScaler, PCA, RelevanceScaler, RobustScaler, SelectKBest, StandardScaler, TruncatedSVD, VarianceThreshold;
    these become one matrix. A SimpleImputer may come before them, or the step ``table`` of an experiment on a table of
    mixed columns.
    path: the file to write; an existing file is replaced.

    The input of the graph is X (N, D) float32, the input of the first step; for a table each column is an input by its
    name, (N, 1), see `onnx_inputs`. The outputs are ``decision`` (N, K), or (N,) for two classes, as from
    `decision_function`, ``label`` (N,), ``latent`` (N, L) and, if the model has them, ``probabilities`` (N, K), except
    with ``calibration="isotonic"``. The graph computes in float32, so when two classes tie up to rounding, as they do
    far from all training rows, its label can be the other one.

    Needs the package onnx (``pip install onnx``). Raises NotExported for other maps and steps, for
    ``multi_class="ovo"`` with more than two classes (ONNX has no votes), for tables with a column of texts or with
    ``numbers: quantile``, and for labels that are neither numbers nor texts; sklearn's NotFittedError for an unfitted
    model.

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
        raise NotExported(f"onnx is not installed ({error}); install it with: pip install onnx.") from error
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    graph = _Graph(onnx)
    classifier = _checked(steps[-1])
    x, linear = _first(graph, [step for step in steps[:-1] if step is not None and step != "passthrough"])
    affine = _composed(linear, classifier)
    if not graph.inputs:
        graph.input("X", "FLOAT", len(affine.center))
    features = _features(graph, x, classifier, affine)
    outputs = _outputs(graph, classifier, features)
    whole = onnx.helper.make_graph(graph.nodes, "ldsvm", graph.inputs, outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid(*one) for one in (("", OPSET), ("ai.onnx.ml", ML_OPSET))]
    made = onnx.helper.make_model(whole, opset_imports=opsets, producer_name="ldsvm")
    made.ir_version = IR
    onnx.checker.check_model(made, full_check=True)
    return replaced(path, lambda file: file.write(made.SerializeToString()), NotExported)


def onnx_inputs(model: Any, X: Any) -> dict[str, Array]:
    """Return the inputs of a model's graph for the rows X, by name, for onnxruntime's ``session.run``.

    model: as for `to_onnx`. X: as for its `predict`. A matrix of numbers is the input ``X`` (N, D) float32. Each column
    of a mixed table is an input of its own, (N, 1): numbers and yes/no (1 and 0) are float64 with NaN for a missing
    value, dates float64 seconds since 1970 in UTC with NaN for a missing value, and categories strings with "" for a
    missing value. Values that do not fit a column's role raise a ValueError.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm import LDSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> onnx_inputs(LDSVMClassifier(n_basis=20, random_state=0).fit(X, y), X)["X"].shape
    (150, 4)
    """
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    if hasattr(steps[0], "graph_inputs"):
        inputs: dict[str, Array] = steps[0].graph_inputs(X)
        return inputs
    return {"X": np.ascontiguousarray(X, dtype=np.float32)}


class _Graph:
    """Inputs, nodes and constants as they are added; names inside begin with /, so that columns may have any other."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def type(self, name: str) -> int:
        """Return the number of a type such as FLOAT."""
        return int(self.onnx.TensorProto.DataType.Value(name))

    def input(self, name: str, type: str, width: int) -> None:
        """Add an input (N, width)."""
        if name in OUTPUTS or name.startswith("/"):
            raise NotExported(f"column {name!r} has a name that the graph uses for itself; rename it and train again.")
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self.type(type), ["N", width]))

    def constant(self, name: str, value: Array) -> str:
        """Add a constant and return its name in the graph."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), f"/{name}"))
        return f"/{name}"

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node with one output and return its name in the graph."""
        name = output if output in OUTPUTS else f"/{output}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name


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


@dataclass(frozen=True)
class _Affine:
    """x -> (x - center) A + offset, around the centre of the data so that an offset of them costs no digits.

    center (D,) in float32, A (D, d) or None for the identity, offset (d,).
    """

    center: Array
    A: Array | None
    offset: Array


def _first(graph: _Graph, steps: list[Any]) -> tuple[str, list[Any]]:
    """Add the steps that are not linear, which come first, and return the name of what they make, and the others."""
    if steps and type(steps[0]).__name__ == "SimpleImputer":
        return _imputed(graph, steps[0]), steps[1:]
    x = "X"
    while steps and hasattr(steps[0], "add_nodes"):
        try:
            x = steps[0].add_nodes(graph, x)
        except ValueError as error:
            raise NotExported(str(error)) from error
        steps = steps[1:]
    return x, steps


def _imputed(graph: _Graph, step: Any) -> str:
    if step.add_indicator or not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise NotExported(
            "step SimpleImputer adds columns, or replaces other values than NaN; allowed: missing_values=nan and "
            "add_indicator=False."
        )
    if np.isnan(fill := np.asarray(step.statistics_, dtype=np.float32)).any():
        raise NotExported("step SimpleImputer drops empty columns; allowed: keep_empty_features=True.")
    graph.input("X", "FLOAT", len(fill))
    gaps = graph.node("IsNaN", ["X"], "gaps")
    return graph.node("Where", [gaps, graph.constant("fill", fill), "X"], "imputed")


def _composed(steps: list[Any], classifier: Any) -> _Affine:
    """Return what the steps are together."""
    for step in steps:
        if type(step).__name__ not in LINEAR or not type(step).__module__.startswith(("sklearn.", "ldsvm.")):
            raise NotExported(f"step {type(step).__name__} cannot be exported; allowed: {', '.join(LINEAR)}.")
        if getattr(step, "clip", False):
            raise NotExported(f"step {type(step).__name__} with clip=True is not linear; allowed: clip=False.")
    basis = classifier.map_.basis
    if not steps:
        mean = basis.centers.mean(axis=0, dtype=np.float64) if isinstance(basis, Gaussians) else np.zeros(basis.size)
        center = mean.astype(np.float32)
        return _Affine(center, None, center.astype(np.float64))
    first, n_inputs = steps[0], int(steps[0].n_features_in_)
    middle = next((v for n in ("mean_", "center_", "data_min_") if (v := getattr(first, n, None)) is not None), 0.0)
    center = np.broadcast_to(middle, n_inputs).astype(np.float32)
    rows = center.astype(np.float64) + np.vstack([np.zeros(n_inputs), np.eye(n_inputs)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of columns, which a graph has not
        for step in steps:
            rows = np.asarray(step.transform(rows), dtype=np.float64)
    return _Affine(center, rows[1:] - rows[0], rows[0])


def _features(graph: _Graph, x: str, classifier: Any, affine: _Affine) -> str:
    """Add phi(x) and return its name."""
    basis = classifier.map_.basis
    x = graph.node("Sub", [x, graph.constant("center", affine.center)], "centred")
    shift = basis.centers.mean(axis=0, dtype=np.float64) if isinstance(basis, Gaussians) else np.zeros(basis.size)
    offset = (affine.offset - shift).astype(np.float32)
    if affine.A is not None:
        named = [graph.constant("linear", affine.A.astype(np.float32)), graph.constant("offset", offset)]
        x = graph.node("Gemm", [x, *named], "x")
    elif offset.any():
        x = graph.node("Add", [x, graph.constant("offset", offset)], "x")
    if not isinstance(basis, Gaussians):
        return x
    centers = basis.centers.astype(np.float64) - shift
    gamma = np.broadcast_to(basis.gamma, basis.size).astype(np.float64)
    squares = gamma * np.einsum("md,md->m", centers, centers)
    if not squares.max(initial=0.0) <= FLOAT32_RANGE:
        raise NotExported(
            f"gamma {gamma.max():g} is too large for centres {np.sqrt(squares / gamma).max():.3g} from their mean "
            f"in float32, which the graph has; allowed: gamma times the squared distance up to {FLOAT32_RANGE:g}."
        )
    # -gamma |x - c|^2 = 2 gamma x.c - gamma |c|^2 - gamma |x|^2
    twice = graph.constant("centers", (2.0 * gamma[:, None] * centers).T.astype(np.float32))
    own = graph.constant("squares", -squares.astype(np.float32))
    square = graph.node("ReduceSumSquare", [x, graph.constant("columns", np.array([1]))], "square", keepdims=1)
    widths = graph.constant("widths", gamma[None, :].astype(np.float32))
    apart = [graph.node("Gemm", [x, twice, own], "products"), graph.node("MatMul", [square, widths], "norms")]
    exponent = graph.node("Sub", apart, "difference")
    exponent = graph.node("Min", [exponent, graph.constant("zero", np.zeros((), np.float32))], "exponent")
    return graph.node("Exp", [exponent], "phi")


def _outputs(graph: _Graph, classifier: Any, features: str) -> list[Any]:
    """Add the latent coordinates, the decisions and the labels, and return what the graph gives."""
    helper, info = graph.onnx.helper, graph.onnx.TensorProto
    W, V, b = classifier.map_.W, classifier.latent_coef_, classifier.intercept_
    graph.node("MatMul", [features, graph.constant("weights", W.astype(np.float32))], "latent")
    svms = [graph.constant("svms", (W @ V.T).astype(np.float32)), graph.constant("bias", b.astype(np.float32))]
    shape: list[Any] = ["N"]
    if len(classifier.classes_) == 2:
        column = [graph.node("Gemm", [features, *svms], "column"), graph.constant("axis", np.array([1]))]
        graph.node("Squeeze", column, "decision")
        positive = graph.node("Greater", ["decision", graph.constant("nothing", np.zeros((), np.float32))], "positive")
        index = graph.node("Cast", [positive], "index", to=info.INT64)
    else:
        graph.node("Gemm", [features, *svms], "decision")
        index = graph.node("ArgMax", ["decision"], "index", axis=1, keepdims=0)
        shape.append(len(classifier.classes_))
    labels, kind = _labels(classifier.classes_, info)
    graph.node("Gather", [graph.constant("classes", labels), index], "label")
    calibrator = getattr(classifier, "calibrator_", None)
    calibrated = calibrator is not None and calibrator.method != "isotonic"
    if calibrated:
        _probabilities(graph, calibrator, index, len(classifier.classes_))
    return [
        helper.make_tensor_value_info("decision", info.FLOAT, shape),
        helper.make_tensor_value_info("label", kind, ["N"]),
        helper.make_tensor_value_info("latent", info.FLOAT, ["N", W.shape[1]]),
        *([helper.make_tensor_value_info("probabilities", info.FLOAT, ["N", len(classifier.classes_)])] * calibrated),
    ]


def _probabilities(graph: _Graph, calibrator: Any, index: str, K: int) -> None:
    """Add the probabilities of the decisions. index: the name of the classes that win (N,)."""
    columns = np.array(calibrator.columns, dtype=np.float32)
    score = "/column" if K == 2 else "decision"  # (N, 1) or (N, K)
    if calibrator.method == "temperature":
        factors = graph.node("Gather", [graph.constant("factors", np.resize(columns, K)), index], "factor")
        factors = graph.node("Unsqueeze", [factors, graph.constant("last", np.array([1]))], "factor_column")
        logit = graph.node("Mul", [score, factors], "logit")
    else:
        score = graph.node("Mul", [score, graph.constant("slopes", columns[:, 0])], "steeper")
        logit = graph.node("Add", [score, graph.constant("offsets", columns[:, 1])], "logit")
    against = graph.node("Neg", [logit], "against") if K == 2 or calibrator.method == "sigmoid" else ""
    if K == 2:  # 1 - p would lose the digits of a small one
        both = [graph.node("Sigmoid", [against], "unlikely"), graph.node("Sigmoid", [logit], "likely")]
        graph.node("Concat", both, "probabilities", axis=1)
        return
    if calibrator.method == "sigmoid":  # the logarithms of sigmoids that may all be too small for a float
        logit = graph.node("Neg", [graph.node("Softplus", [against], "unlike")], "logarithm")
    graph.node("Softmax", [logit], "probabilities", axis=1)


def _labels(classes: Array, info: Any) -> tuple[Array, int]:
    """Return labels in a type that ONNX has, and its number."""
    kinds = {"b": (np.bool_, info.BOOL), "i": (np.int64, info.INT64), "u": (np.uint64, info.UINT64)}
    kinds["f"] = (np.float64, info.DOUBLE)
    if classes.dtype.kind in kinds:
        kind, number = kinds[classes.dtype.kind]
        return classes.astype(kind), number
    try:
        if all(isinstance(label, str) and label.encode() for label in classes.tolist()):
            return classes.astype(object), info.STRING
    except UnicodeEncodeError:
        pass
    raise NotExported(
        f"labels of dtype {classes.dtype} cannot be exported; allowed: numbers, and texts that are not empty."
    )
