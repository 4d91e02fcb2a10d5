"""A fitted classifier as one file without pickles: arrays in NumPy's npz and everything else in JSON inside it."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ldsvm.mac.scheme import Scheme
from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.linear import Identity
from ldsvm.maps.rbf import Gaussians
from ldsvm.typing import Array

if TYPE_CHECKING:
    from ldsvm.estimator import LDSVMClassifier

FORMAT, VERSION = "ldsvm", 2  # raise the version when a file that is written is no longer read right by older code
FACTS, INIT = "facts", "params.init"
COUNTS = ("n_components_", "n_basis_", "n_iter_", "best_iter_", "n_features_in_")
FLOATS = ("coef_", "intercept_", "map.W", "map.centers", "map.gamma")
NAMES = {FACTS, INIT, *FLOATS, "classes_"}


class NotSaved(ValueError):
    """What a file holds, or should hold, cannot be read or written; the message is one sentence."""


def save(model: LDSVMClassifier, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier to one file, at once or not at all, and return its path.

    path: where, its folder is made when needed and its name taken as it is; an older file there is replaced. Steps
    before the classifier, such as a scaler, are not saved: keep them apart, or see `to_onnx`. The file holds
    parameters, map, machines, labels and history, as arrays and JSON, and nothing that runs when it is read. Raises
    NotSaved for anything but an `LDSVMClassifier`, for a map that is somebody else's regressor and for labels or
    parameters that are neither numbers nor texts; sklearn's NotFittedError for an unfitted model.

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
    from sklearn.utils.validation import check_is_fitted

    from ldsvm.estimator import LDSVMClassifier

    if not isinstance(model, LDSVMClassifier):
        raise NotSaved(
            f"{type(model).__name__} cannot be saved; allowed: a fitted LDSVMClassifier, also of a pipeline."
        )
    check_is_fitted(model, "map_")
    if not isinstance(model.map_, BasisMap):
        raise NotSaved("a map that is a regressor cannot be saved; allowed: map='rbf', 'adaptive_rbf' or 'linear'.")
    arrays: dict[str, Array] = {"coef_": model.coef_, "intercept_": model.intercept_, "map.W": model.map_.W}
    basis = model.map_.basis
    if isinstance(basis, Gaussians):
        arrays |= {"map.centers": basis.centers, "map.gamma": np.asarray(basis.gamma)}
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, **{name: getattr(model, name) for name in COUNTS}}
    facts |= {"history_": model.history_, "stop_reason_": model.stop_reason_, "sparse": model._sparse}
    facts |= {"scheme": [model._scheme.n_classes, model._scheme.kind], "shape": model._shape_fitted}
    facts |= {"params": _params(model, arrays), "labels": _labels(model.classes_, arrays)}
    facts["names"] = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    text = json.dumps(facts, default=lambda value: value.item())
    arrays[FACTS] = np.frombuffer(text.encode(), dtype=np.uint8)
    return replaced(path, lambda file: np.savez(file, allow_pickle=False, **arrays), NotSaved)


def load(path: str | os.PathLike[str]) -> LDSVMClassifier:
    """Read a classifier that `save` wrote.

    path: the file. Raises NotSaved, one sentence, for every other file, one that is cut or changed, or of a later
    version. Nothing in a file is run, and no more memory is taken than the file is large.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NotSaved(f"{path} cannot be read (not a file).")
        with open(path, "rb") as stream:
            arrays = _arrays(stream)
        facts = json.loads(arrays.pop(FACTS).tobytes())
        version = facts["version"] if facts["format"] == FORMAT else 0
        if isinstance(version, int) and version > VERSION:
            raise NotSaved(f"{path} has version {version} of the format; this program reads up to {VERSION}.")
        _expect(version in range(1, VERSION + 1), "no version of it")  # 1 has no z_follows
        return _model(facts, arrays)
    except NotSaved:
        raise
    except OSError as error:
        raise NotSaved(f"{path} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # whatever a damaged file makes of NumPy, zip and JSON
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise NotSaved(f"{path} holds no classifier that ldsvm.save has written, or is cut ({reason}).") from None


def _arrays(stream: BinaryIO) -> dict[str, Array]:
    """Return the arrays of a file by name, after a look at its table of contents."""
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            _expect(member.filename.removesuffix(".npy") in NAMES, f"unknown part {member.filename!r}")
            _expect(member.compress_type == zipfile.ZIP_STORED, "a part is compressed")  # it could be of any size
    stream.seek(0)
    with np.load(stream, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _model(facts: dict[str, Any], arrays: dict[str, Array]) -> LDSVMClassifier:
    """Return the classifier, once everything has the type, shape and range that a fit gives it."""
    from ldsvm.estimator import LDSVMClassifier

    for name in FLOATS:
        _expect(name not in arrays or arrays[name].dtype in (np.float32, np.float64), f"{name} is no array of floats")
        _expect(name not in arrays or bool(np.isfinite(arrays[name]).all()), f"{name} is not finite")
    params = facts["params"]
    given: dict[str, Any] = params["plain"] | {name: dict(pairs) for name, pairs in params["pairs"].items()}
    given |= {"init": arrays[INIT]} if INIT in arrays else {}
    model = LDSVMClassifier(**given)
    model._validate_params()
    for name in COUNTS:
        _expect(type(facts[name]) is int and facts[name] >= 0, f"{name} is {facts[name]!r}")
        setattr(model, name, facts[name])
    K, kind = facts["scheme"]
    _expect(type(K) is int and K >= 2 and kind in ("ovr", "ovo"), f"scheme {K!r}, {kind!r}")
    _expect(isinstance(facts["history_"], list) and isinstance(facts["stop_reason_"], str), "no history")
    model.history_, model.stop_reason_ = facts["history_"], facts["stop_reason_"]
    model._sparse = facts["sparse"] is True
    model._scheme, model._shape_fitted = Scheme(K, kind), list(facts["shape"])
    model.map_ = _map(model, arrays)
    model.coef_, model.intercept_ = arrays["coef_"], arrays["intercept_"]
    model.classes_ = _read_labels(facts["labels"], arrays)
    machines, L, D = model._scheme.n_machines, model.n_components_, model.n_features_in_
    shapes = {"coef_": (machines, L), "intercept_": (machines,), "classes_": (K,)}
    for name, shape in shapes.items():
        _expect(getattr(model, name).shape == shape, f"{name} has shape {getattr(model, name).shape}, not {shape}")
    if facts["names"] is not None:
        names = facts["names"]
        _expect(len(names) == D and all(isinstance(name, str) for name in names), "names of the wrong number")
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _map(model: LDSVMClassifier, arrays: dict[str, Array]) -> BasisMap:
    """Return the map; the model learns centres and widths."""
    W, D, basis = arrays["map.W"], model.n_features_in_, None
    if "map.centers" in arrays:
        centers, gamma = arrays["map.centers"], arrays["map.gamma"]
        _expect(centers.ndim == 2 and centers.shape[1] == D, f"centres have shape {centers.shape}")
        _expect(gamma.shape in ((), (len(centers),)) and bool((gamma > 0).all()), "widths do not belong to the centres")
        basis = Gaussians(centers, gamma if gamma.ndim else gamma.item())
        model.centers_, model.gamma_ = basis.centers, basis.gamma
    found: Basis = Identity(D) if basis is None else basis
    _expect(W.shape == (found.size, model.n_components_), f"weights have shape {W.shape}")
    return BasisMap(found, W)


def _params(model: LDSVMClassifier, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the parameters by how they are kept; an array of starting coordinates goes into `arrays`."""
    found: dict[str, dict[str, Any]] = {"plain": {}, "pairs": {}}
    for name, value in model.get_params(deep=False).items():
        if name == "init" and not isinstance(value, str):
            arrays[INIT] = np.asarray(value, dtype=np.float64)
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
        return [classes.dtype.kind, *classes.tolist()]
    raise NotSaved(f"labels of dtype {classes.dtype} cannot be saved; allowed: numbers and texts.")


def _read_labels(texts: list[str] | None, arrays: dict[str, Array]) -> Array:
    if texts is None:
        classes = arrays["classes_"]
        _expect(classes.dtype.kind in "biuf", "labels are no numbers")
    else:
        _expect(all(isinstance(text, str) for text in texts), "labels are no texts")
        classes = np.array(texts[1:], dtype=object if texts[0] == "O" else str)
    _expect(bool(np.array_equal(classes, np.unique(classes))), "labels are not in order")
    return classes


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def replaced(path: str | os.PathLike[str], write: Callable[[BinaryIO], object], failure: type[ValueError]) -> Path:
    """Let `write` fill a new file and put it in its place at once; raise `failure`, one sentence, where that fails."""
    from ldsvm.datasets.atomic import replacing

    try:
        with replacing(Path(path).resolve()) as temporary, temporary.open("wb") as file:  # of a link what it means
            write(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise failure(f"{path!s} cannot be written ({reason}).") from None
    return Path(path)
