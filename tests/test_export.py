"""ONNX graphs: onnxruntime gives the same decisions, labels and latent coordinates, and what is no graph is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler

from ldsvm import LDSVMClassifier, RelevanceScaler, to_onnx
from ldsvm.export import NotExported

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


def small(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**{"n_basis": 40, "random_state": 0, "n_jobs": 1, **changes})


def ran(file: Path, rows: Any) -> dict[str, NDArray[Any]]:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    inputs = rows if isinstance(rows, dict) else {"X": rows}
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (small(), 10),
        (small(map="linear"), 10),
        (small(map="adaptive_rbf", center_steps=100, gamma=0.002, early_stopping=True), 10),
        (small(multi_class="ovo"), 2),
        (small(n_components=2, calibration="sigmoid"), 3),
        (small(calibration="sigmoid"), 2),
        (make_pipeline(PCA(20), small()), 10),
        (make_pipeline(StandardScaler(), PCA(10, whiten=True), MinMaxScaler(), small()), 4),
        (make_pipeline("passthrough", small()), 2),
        (make_pipeline(StandardScaler(), RelevanceScaler(random_state=0), small()), 3),
    ],
    ids=["rbf", "linear", "adaptive", "pair", "plane", "sigmoid", "pca", "several", "passthrough", "relevance"],
)
def test_onnxruntime_gives_the_same(tmp_path: Path, model: Any, classes: int) -> None:
    rows = classes > Y
    model.fit(X[rows], Y[rows])
    found = ran(to_onnx(model, tmp_path / "m.onnx"), X[rows])
    decision = model.decision_function(X[rows])
    assert found["decision"].shape == decision.shape
    np.testing.assert_allclose(found["decision"], decision, atol=1e-4 * max(1.0, float(np.abs(decision).max())))
    sure = np.abs(decision) > 1e-3 if classes == 2 else np.diff(np.sort(decision, axis=1)[:, -2:]).ravel() > 1e-3
    np.testing.assert_array_equal(found["label"][sure], model.predict(X[rows])[sure])
    np.testing.assert_allclose(found["latent"], model.transform(X[rows]), atol=1e-3)
    np.testing.assert_allclose(found["probabilities"][sure], model.predict_proba(X[rows])[sure], atol=1e-3)
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_probabilities_far_from_the_training_rows(tmp_path: Path) -> None:
    # every sigmoid of the scores is below the smallest number of float32
    model = small(calibration="sigmoid").fit(X[Y < 3], Y[Y < 3])
    far = [np.array([slope, offset - 200.0]) for slope, offset in model.calibrator_.columns]
    model.calibrator_ = replace(model.calibrator_, columns=far)
    found = ran(to_onnx(model, tmp_path / "m.onnx"), X[:50])
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X[:50]), atol=1e-3)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [20231100.0, 20231101.0], [-3, 7]])
def test_labels_are_those_of_the_model(tmp_path: Path, labels: list[Any]) -> None:
    rows = Y < 2
    names = np.array(labels)
    model = small().fit(X[rows], names[Y[rows]])
    found = ran(to_onnx(model, tmp_path / "m.onnx"), X[rows][:50])
    assert found["label"].tolist() == model.predict(X[rows][:50]).tolist()


@pytest.mark.slow
def test_an_offset_of_the_data_costs_no_digits(tmp_path: Path) -> None:
    moved = X + np.float32(1e5)
    for model in (
        small(gamma=0.001),
        make_pipeline(StandardScaler(), small()),
        make_pipeline(PCA(20), small(gamma=0.001)),
    ):
        model.fit(moved.astype(np.float64), Y)
        found = ran(to_onnx(model, tmp_path / "m.onnx"), moved)
        np.testing.assert_allclose(found["decision"], model.decision_function(moved.astype(np.float64)), atol=1e-3)


@pytest.mark.slow
def test_what_is_no_graph_is_one_sentence_and_leaves_the_old_file(tmp_path: Path) -> None:
    file = to_onnx(small().fit(X, Y), tmp_path / "m.onnx")
    before = file.read_bytes()
    few = X[:200, 20:28], Y[:200]
    wrong = {
        "step Normalizer cannot be exported": make_pipeline(Normalizer(), small()).fit(*few),
        "step PolynomialFeatures cannot be exported": make_pipeline(PolynomialFeatures(2), small()).fit(*few),
        "step Binarizer cannot be exported": make_pipeline(Binarizer(threshold=8), small()).fit(X, Y),
        "clip=True is not linear": make_pipeline(MinMaxScaler(clip=True), small()).fit(*few),
        "too large for centres": small(gamma=10.0).fit(*few),
        "a map that is a regressor": small(map=Ridge()).fit(*few),
        "multi_class='ovo'": small(multi_class="ovo").fit(*few),
        "Ridge cannot be exported": Ridge().fit(*few),
    }
    for said, model in wrong.items():
        with pytest.raises(NotExported, match=said) as caught:
            to_onnx(model, file)
        assert "\n" not in str(caught.value) and "allowed: " in str(caught.value)
    with pytest.raises(NotFittedError):
        to_onnx(small(), file)
    with pytest.raises(NotExported, match="cannot be written"):
        to_onnx(small().fit(*few), file / "m.onnx")
    assert file.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["m.onnx"]
