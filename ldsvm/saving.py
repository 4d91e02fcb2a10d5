"""A fitted classifier as one file without pickles: a NumPy npz of arrays, with everything else as JSON inside it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ldsvm.archive import FLOATS, Header, check_numbers, expect, headers_of, replaced
from ldsvm.calibration import Calibrator
from ldsvm.estimator import LDSVMClassifier
from ldsvm.mac.scheme import Scheme
from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.linear import Identity
from ldsvm.maps.rbf import Gaussians
from ldsvm.typing import Array

FORMAT, VERSION = "ldsvm", 3  # raise the version when a file that is written is no longer read right by older code
FACTS, INIT = "facts", "params.init"
SIZES = ("n_components_", "n_basis_", "n_features_in_")  # L, M and D
COUNTS = (*SIZES, "n_iter_", "best_iter_")
NAMES = {FACTS, INIT, *FLOATS, "classes_"}
LABELS = 2**26  # bytes of labels that are texts: NumPy makes all as wide as the longest


class NotSaved(ValueError):
    """A model cannot be saved, or a file not loaded; the message is one sentence."""


def save(model: LDSVMClassifier, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier to a file, completely or not at all, and return its path.

    path: the file, which gets exactly this name. Its folder is created if needed; an existing file is replaced.

    The file holds parameters, map, SVMs, labels and history, as arrays and JSON, and nothing that is run on loading. If
    ``centers`` is an estimator, its centres are saved in its place. Steps before the classifier, such as a scaler, are
    not saved: keep them separately, or see `to_onnx`. Raises NotSaved for anything but an `LDSVMClassifier`, for a map
    that is a scikit-learn regressor, for labels or parameters that are neither numbers nor texts, and for weights that
    are not finite or too large; sklearn's NotFittedError for an unfitted model.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm import LDSVMClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LDSVMClassifier(n_basis=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, f"{folder}/model.npz"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(model, LDSVMClassifier):
        raise NotSaved(
            f"{type(model).__name__} cannot be saved; allowed: a fitted LDSVMClassifier, also of a pipeline."
        )
    check_is_fitted(model, "map_")
    if not isinstance(model.map_, BasisMap):
        raise NotSaved(
            "a map that is a scikit-learn regressor cannot be saved; allowed: map='rbf', 'adaptive_rbf' or 'linear'."
        )
    arrays: dict[str, Array] = {"coef_": model.latent_coef_, "intercept_": model.intercept_, "map.W": model.map_.W}
    basis = model.map_.basis
    if isinstance(basis, Gaussians):
        arrays |= {"map.centers": basis.centers, "map.gamma": np.asarray(basis.gamma)}
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, **{name: getattr(model, name) for name in COUNTS}}
    facts |= {
        "alpha_": model.alpha_,
        "history_": model.history_,
        "stop_reason_": model.stop_reason_,
        "sparse": model._sparse,
    }
    facts |= {"scheme": [model._scheme.n_classes, model._scheme.kind], "shape": model._shape_fitted}
    facts |= {"params": _params(model, arrays), "labels": _labels(model.classes_, arrays)}
    calibrator = getattr(model, "calibrator_", None)  # models of earlier versions have none
    facts["calibrator"] = None if calibrator is None else calibrator.as_json()
    facts["names"] = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    try:
        check_numbers(arrays)
    except ValueError as error:
        raise NotSaved(f"the model cannot be saved ({error}).") from None
    text = json.dumps(facts, default=lambda value: value.item())
    arrays[FACTS] = np.frombuffer(text.encode(), dtype=np.uint8)
    return replaced(path, lambda file: np.savez(file, allow_pickle=False, **arrays), NotSaved)


def load(path: str | os.PathLike[str]) -> LDSVMClassifier:
    """Read a classifier that `save` wrote.

    path: the file. Nothing in it is run. Raises NotSaved, with one sentence, for a file that `save` did not write, that
    is truncated or changed, that has a later version of the format, or whose weights are not finite or too large.

    Sizes are compared with the size of the file before memory is allocated. A file that `save` wrote takes about its
    size in memory; the most that a manipulated file took was 50 times its size, for a history of nested lists, and 200
    MB for labels that are texts.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NotSaved(f"{path} cannot be read (not a file).")
        with open(path, "rb") as stream:
            headers = headers_of(stream, NAMES)
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                facts = json.loads(file[FACTS].tobytes())
                version = facts["version"] if facts["format"] == FORMAT else 0
                if isinstance(version, int) and version > VERSION:
                    raise NotSaved(f"{path} has version {version} of the format; this program reads up to {VERSION}.")
                expect(version in range(1, VERSION + 1), "no version of it")  # 1 has no z_follows, 2 no probabilities
                _check_sizes(facts, headers)
                arrays = {name: file[name] for name in headers if name != FACTS}
        return _model(facts, arrays)
    except NotSaved:
        raise
    except OSError as error:
        raise NotSaved(f"{path} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # whatever a damaged file makes of NumPy, zip and JSON
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise NotSaved(f"{path} was not written by ldsvm.save, or is truncated ({reason}).") from None


def _check_sizes(facts: dict[str, Any], headers: dict[str, Header]) -> None:
    """Raise ValueError unless all arrays and labels have the shapes and types of one model."""
    for name in COUNTS:
        least = 1 if name in SIZES else 0
        expect(type(facts[name]) is int and facts[name] >= least, f"{name} is {facts[name]!r}")
    L, M, D = (facts[name] for name in SIZES)
    K, kind = facts["scheme"]
    expect(type(K) is int and K >= 2 and kind in ("ovr", "ovo"), f"scheme {K!r}, {kind!r}")
    svms = Scheme(K, kind).n_svms
    wanted = {"coef_": (svms, L), "intercept_": (svms,), "map.W": (M, L)}
    if "map.centers" in headers:
        wanted["map.centers"] = (M, D)
        expect(headers["map.gamma"][0] in ((), (M,)), "widths do not belong to the centres")
    else:
        expect(M == D and "map.gamma" not in headers, f"a linear map of {D} inputs has {M} weights")
    if facts["labels"] is None:
        wanted["classes_"] = (K,)
        expect(headers["classes_"][1].kind in "biuf", "labels are not numbers")
    else:
        _check_texts(facts["labels"], K)
    for name, shape in wanted.items():
        expect(headers[name][0] == shape, f"{name} has shape {headers[name][0]}, not {shape}")
    for name in (name for name in FLOATS if name in headers):
        expect(headers[name][1] in (np.float32, np.float64), f"{name} is not an array of floats")
    names = facts["names"]
    expect(
        names is None or (len(names) == D and all(isinstance(name, str) for name in names)),
        "names of the wrong number",
    )


def _check_texts(texts: Any, K: int) -> None:
    """Raise ValueError unless these are labels of K classes, after the kind of their array, that memory can hold."""
    expect(isinstance(texts, list) and all(isinstance(text, str) for text in texts), "labels are not texts")
    expect(len(texts) == K + 1, f"{len(texts) - 1} labels of {K} classes")
    longest = max(map(len, texts[1:]))
    expect(
        texts[0] == "O" or 4 * K * longest <= LABELS,
        f"{K:,} labels of up to {longest:,} letters take more than {LABELS >> 20} MB",
    )


def _model(facts: dict[str, Any], arrays: dict[str, Array]) -> LDSVMClassifier:
    """Return the classifier, of sizes that are known to be right, once its values have the range that a fit gives."""
    check_numbers(arrays)
    params = facts["params"]
    given: dict[str, Any] = params["plain"] | {name: dict(pairs) for name, pairs in params["pairs"].items()}
    given |= {"init": arrays[INIT]} if INIT in arrays else {}
    if given["centers"] is None:
        given["centers"] = arrays.get("map.centers", "kmeans")
    model = LDSVMClassifier(**given)
    model._validate_params()
    for name in COUNTS:
        setattr(model, name, facts[name])
    expect(isinstance(facts["history_"], list) and isinstance(facts["stop_reason_"], str), "no history")
    model.history_, model.stop_reason_ = facts["history_"], facts["stop_reason_"]
    if (alpha := facts.get("alpha_", model.alpha)) != "auto":  # files of earlier versions hold a number as parameter
        expect(isinstance(alpha, float | int) and 0 <= alpha < np.inf, f"alpha_ is {alpha!r}")
        model.alpha_ = alpha
    found = facts.get("calibrator")
    model.calibrator_ = None if found is None else Calibrator.from_json(found, facts["scheme"][0])
    model._sparse = facts["sparse"] is True
    model._scheme, model._shape_fitted = Scheme(*facts["scheme"]), list(facts["shape"])
    model.map_ = BasisMap(_basis(model, arrays), arrays["map.W"])
    model.latent_coef_, model.intercept_ = arrays["coef_"], arrays["intercept_"]
    model.classes_ = _read_labels(facts["labels"], arrays)
    if facts["names"] is not None:
        model.feature_names_in_ = np.array(facts["names"], dtype=object)
    return model


def _basis(model: LDSVMClassifier, arrays: dict[str, Array]) -> Basis:
    """Return the basis; the model learns centres and widths."""
    if "map.centers" not in arrays:
        return Identity(model.n_features_in_)
    gamma = arrays["map.gamma"]
    basis = Gaussians(arrays["map.centers"], gamma if gamma.ndim else gamma.item())
    model.centers_, model.gamma_ = basis.centers, basis.gamma
    return basis


def _params(model: LDSVMClassifier, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the parameters by how they are kept; an array of starting coordinates goes into `arrays`."""
    found: dict[str, dict[str, Any]] = {"plain": {}, "pairs": {}}
    for name, value in model.get_params(deep=False).items():
        if name == "init" and not isinstance(value, str):
            arrays[INIT] = np.asarray(value, dtype=np.float64)
        elif name == "centers" and not isinstance(value, str):
            found["plain"][name] = None  # those that the map has
        elif isinstance(value, dict):  # JSON would make texts of its keys
            found["pairs"][name] = [[_plain(name, key), _plain(name, item)] for key, item in value.items()]
        else:
            found["plain"][name] = _plain(name, value)
    return found


def _plain(name: str, value: Any) -> Any:
    """Return a number, text or None as JSON knows it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise NotSaved(f"parameter {name}={value!r} cannot be saved; allowed: numbers, texts, None, and arrays.")


def _labels(classes: Array, arrays: dict[str, Array]) -> list[str] | None:
    """Return labels that are texts as such, with how they were kept; numbers go into `arrays`."""
    if classes.dtype.kind in "biuf":
        arrays["classes_"] = classes
        return None
    if classes.dtype.kind in "OU" and all(isinstance(label, str) for label in classes.tolist()):
        texts = [classes.dtype.kind, *classes.tolist()]
        try:
            _check_texts(texts, len(classes))
        except ValueError as error:
            raise NotSaved(f"the labels cannot be saved ({error}).") from None
        return texts
    raise NotSaved(f"labels of dtype {classes.dtype} cannot be saved; allowed: numbers and texts.")


def _read_labels(texts: list[str] | None, arrays: dict[str, Array]) -> Array:
    if texts is None:
        classes = arrays["classes_"]
    else:
        classes = np.array(texts[1:], dtype=object if texts[0] == "O" else str)
    expect(bool(np.array_equal(classes, np.unique(classes))), "labels are not in order")
    return classes
