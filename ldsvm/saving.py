"""A fitted classifier as one file without pickles: arrays in NumPy's npz and everything else in JSON inside it."""

from __future__ import annotations

import json
import os
import secrets
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

FORMAT, VERSION = "ldsvm", 1  # raise the version when a file that is written is no longer read right by older code
FACTS = "facts"
PLAIN = ("n_components_", "n_basis_", "n_iter_", "best_iter_", "stop_reason_", "history_", "n_features_in_", "_sparse")
ARRAYS = ("classes_", "coef_", "intercept_")


class NotSaved(ValueError):
    """What a file holds, or should hold, cannot be read or written; the message is one sentence."""


def save(model: LDSVMClassifier, path: str | os.PathLike[str]) -> Path:
    """Write a fitted classifier to one file, at once or not at all, and return its path.

    path: where; an older file there is replaced. The file holds parameters, map, machines, labels and history, as
    arrays and JSON, and nothing that runs when it is read. Raises NotSaved for a map that is somebody else's regressor
    and for labels or parameters that are neither numbers nor texts; sklearn's NotFittedError for an unfitted model.

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

    check_is_fitted(model, "map_")
    arrays: dict[str, Array] = {name: _storable(name, getattr(model, name)) for name in ARRAYS}
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, "map": _map(model.map_, arrays)}
    facts |= {name: getattr(model, name) for name in PLAIN}
    facts |= {"scheme": [model._scheme.n_classes, model._scheme.kind], "params": _params(model, arrays)}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names_in_"] = _storable("feature_names_in_", model.feature_names_in_)
    arrays[FACTS] = np.frombuffer(json.dumps(facts, default=lambda value: value.item()).encode(), dtype=np.uint8)
    return replaced(Path(path), lambda file: np.savez(file, allow_pickle=False, **arrays), NotSaved)


def load(path: str | os.PathLike[str]) -> LDSVMClassifier:
    """Read a classifier that `save` wrote. Raises NotSaved for every other file, one that is cut or of a later version.

    path: the file.
    """
    from ldsvm.estimator import LDSVMClassifier

    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(arrays.pop(FACTS).tobytes())
        if facts["format"] != FORMAT:
            raise KeyError(FORMAT)
        if facts["version"] > VERSION:
            raise NotSaved(f"{path} has version {facts['version']} of the format; this program reads up to {VERSION}.")
        params = facts["params"]
        given = params["plain"] | {name: dict(pairs) for name, pairs in params["pairs"].items()}
        given |= {name: arrays.pop(f"params.{name}") for name in params["arrays"]}
        model = LDSVMClassifier(**given)
        mapping = _read_map(facts["map"], arrays)
        model.map_ = mapping
        for name in PLAIN:
            setattr(model, name, facts[name])
        for name, array in arrays.items():
            setattr(model, name, array.astype(object) if name == "feature_names_in_" else array)
        model._scheme = Scheme(*facts["scheme"])
        _check(model, mapping)
    except NotSaved:
        raise
    except OSError as error:
        raise NotSaved(f"{path} cannot be read ({error.strerror or error}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise NotSaved(f"{path} holds no classifier that ldsvm.save has written, or is cut ({error}).") from None
    model._shape_fitted = model._shape_choices()
    if isinstance(mapping.basis, Gaussians):
        model.centers_, model.gamma_ = mapping.basis.centers, mapping.basis.gamma
    return model


def _params(model: LDSVMClassifier, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the parameters by how they are kept, and the names of those that went into `arrays`."""
    found: dict[str, Any] = {"plain": {}, "pairs": {}, "arrays": []}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, np.ndarray):
            arrays[f"params.{name}"] = _storable(name, value)
            found["arrays"].append(name)
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


def _map(mapping: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    if not isinstance(mapping, BasisMap):
        raise NotSaved("a map that is a regressor cannot be saved; allowed: map='rbf', 'adaptive_rbf' or 'linear'.")
    arrays["map.W"] = mapping.W
    if isinstance(mapping.basis, Gaussians):
        arrays["map.centers"], arrays["map.gamma"] = mapping.basis.centers, np.asarray(mapping.basis.gamma)
        return {"basis": "gaussians"}
    return {"basis": "identity", "size": mapping.basis.size}


def _read_map(facts: dict[str, Any], arrays: dict[str, Array]) -> BasisMap:
    W = arrays.pop("map.W")
    basis: Basis
    if facts["basis"] == "gaussians":
        gamma = arrays.pop("map.gamma")
        basis = Gaussians(arrays.pop("map.centers"), gamma if gamma.ndim else gamma.item())
    else:
        basis = Identity(facts["size"])
    return BasisMap(basis, W)


def _check(model: LDSVMClassifier, mapping: BasisMap) -> None:
    """Raise ValueError where arrays do not fit together, so that a wrong file shows here and not in a prediction."""
    (M, L), machines = mapping.W.shape, model._scheme.n_machines
    wanted = {"coef_": (machines, L), "intercept_": (machines,), "classes_": (model._scheme.n_classes,)}
    for name, shape in wanted.items():
        if getattr(model, name).shape != shape:
            raise ValueError(f"{name} has shape {getattr(model, name).shape} instead of {shape}")
    inputs = mapping.basis.centers.shape[1] if isinstance(mapping.basis, Gaussians) else mapping.basis.size
    if mapping.basis.size != M or inputs != model.n_features_in_:
        raise ValueError("weights and basis functions differ in number")


def _storable(name: str, value: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind == "O" and all(isinstance(item, str) for item in array.ravel()):
        array = array.astype(str)
    if array.dtype.kind not in "biufU":
        raise NotSaved(f"{name} of dtype {array.dtype} cannot be saved; allowed: numbers and texts.")
    return array


def replaced(path: Path, write: Callable[[BinaryIO], object], failure: type[ValueError]) -> Path:
    """Let `write` fill a new file and put it in its place at once; raise `failure`, one sentence, where that fails."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("wb") as file:
            write(file)
        os.replace(temporary, path)
    except OSError as error:
        raise failure(f"{path} cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)
    return path
