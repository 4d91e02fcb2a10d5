"""A fit's progress as one file: the model and the history, from which another process goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ldsvm.mac.state import Model, Progress
from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.linear import Identity
from ldsvm.maps.rbf import Gaussians
from ldsvm.saving import replaced
from ldsvm.typing import Array


class CheckpointError(ValueError):
    """A checkpoint cannot be written, read, or belongs to another fit; the message is one sentence."""


class Checkpoint:
    """Where a fit keeps its progress: a `Keeper` of the loop. fit: what names the fit, equal for equal fits."""

    def __init__(self, path: str | os.PathLike[str], fit: dict[str, Any]) -> None:
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise CheckpointError(f"checkpoint={path!r} must be the name of a file.")
        self.path, self.fit = Path(path), json.loads(json.dumps(fit, default=lambda value: value.item()))

    def load(self) -> Progress | None:
        """Return the progress of the same fit; None when there is no file. Raises CheckpointError."""
        if not self.path.exists():
            return None
        if not self.path.is_file():
            raise CheckpointError(f"{self.path}: is no file; name one, or one that is not there yet.")
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays["facts"].tobytes())
            models = {name: _model(name, arrays) for name in ("best", "now")}
            watched = facts["watched"] | {"best": tuple(facts["watched"]["best"])}
            found = Progress(facts["history"], models["best"], models["now"], facts["mu"], facts["before"], watched)
            other = {**facts["fit"]}
        except Exception as error:  # whatever a damaged file makes of zip, NumPy and JSON
            raise CheckpointError(
                f"{self.path}: is no checkpoint, or damaged ({error}); remove it to begin anew."
            ) from error
        differs = [name for name in self.fit if not _same(other.get(name), self.fit[name])]
        if "params" in differs:
            mine, theirs = self.fit["params"], other.get("params", {})
            names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
            differs[differs.index("params")] = f"params: {', '.join(names)}"
        if differs:
            raise CheckpointError(
                f"{self.path}: is of another fit ({'; '.join(differs)} differ); remove it, or name another file."
            )
        return found

    def save(self, progress: Progress) -> None:
        """Write the progress, in place of the last one."""
        arrays = _arrays("best", progress.best)
        same = progress.now.mapping.basis is progress.best.mapping.basis  # type: ignore[attr-defined]
        arrays |= {k: v for k, v in _arrays("now", progress.now).items() if not (same and k in BASIS)}
        facts = {
            "fit": self.fit, "history": progress.history, "mu": progress.mu, "before": progress.before,
            "watched": progress.watched,
        }  # fmt: skip
        text = json.dumps(facts, default=lambda value: value.item())
        arrays["facts"] = np.frombuffer(text.encode(), dtype=np.uint8)
        write: Callable[[BinaryIO], None] = lambda file: np.savez(file, allow_pickle=False, **arrays)  # noqa: E731
        replaced(self.path, write, CheckpointError)

    def done(self) -> None:
        """Forget the progress of a fit that has ended."""
        self.path.unlink(missing_ok=True)


def _same(a: Any, b: Any) -> bool:
    """Tell whether two facts are equal; of sums, but for the order in which they were added up."""
    if not isinstance(b, list):
        return bool(a == b)
    return isinstance(a, list) and len(a) == len(b) and np.allclose(a, b, rtol=1e-9, atol=0.0)


BASIS = ("now.centers", "now.gamma")  # left out where they are those of the best model


def _arrays(name: str, model: Model) -> dict[str, Array]:
    mapping = model.mapping
    assert isinstance(mapping, BasisMap)
    found: dict[str, Array] = {f"{name}.W": mapping.W, f"{name}.V": model.V, f"{name}.b": model.b}
    if isinstance(mapping.basis, Gaussians):
        found |= {f"{name}.centers": mapping.basis.centers, f"{name}.gamma": np.asarray(mapping.basis.gamma)}
    return found


def _model(name: str, arrays: dict[str, Array]) -> Model:
    W = arrays[f"{name}.W"]
    of = name if f"{name}.centers" in arrays else "best"
    basis: Basis = Identity(len(W))
    if f"{of}.centers" in arrays:
        gamma = arrays[f"{of}.gamma"]
        basis = Gaussians(arrays[f"{of}.centers"], gamma if gamma.ndim else float(gamma))
    return Model(BasisMap(basis, W), arrays[f"{name}.V"], arrays[f"{name}.b"])
