"""A fit's progress as one file: the model and the history, from which another process goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ldsvm.archive import check_numbers, headers_of, replaced
from ldsvm.mac.state import Model, Progress
from ldsvm.maps.features import Basis, BasisMap
from ldsvm.maps.linear import Identity
from ldsvm.maps.rbf import Gaussians
from ldsvm.typing import Array


class CheckpointError(ValueError):
    """A checkpoint cannot be written, read, or belongs to another fit; the message is one sentence."""


class Checkpoint:
    """Where a fit keeps its progress: a `Keeper` of the loop.

    fit: what names the fit, equal for equal fits. sizes: machines, latent dimensions L and inputs D of its models.
    linear: whether their map is linear.
    """

    def __init__(
        self, path: str | os.PathLike[str], fit: dict[str, Any], sizes: tuple[int, int, int], linear: bool
    ) -> None:  # fmt: skip
        self.sizes, self.linear = sizes, linear
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise CheckpointError(f"checkpoint={path!r} must be the name of a file.")
        self.path, self.fit = Path(path), json.loads(json.dumps(fit, default=lambda value: value.item()))

    def load(self) -> Progress | None:
        """Return the progress of the same fit; None when there is no file. Raises CheckpointError."""
        if not self.path.exists():
            return None
        if not self.path.is_file():
            raise CheckpointError(f"{self.path} is not a regular file; name a file, which need not exist yet.")
        try:
            with self.path.open("rb") as stream:
                headers_of(stream, NAMES)
                stream.seek(0)
                with np.load(stream, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays["facts"].tobytes())
            other = {**facts["fit"]}
        except Exception as error:  # whatever a damaged file makes of zip, NumPy and JSON
            raise self._damaged(error) from error
        differs = [name for name in self.fit if not _same(other.get(name), self.fit[name])]
        if "params" in differs:
            mine, theirs = self.fit["params"], other.get("params", {})
            names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
            differs[differs.index("params")] = f"params: {', '.join(names)}"
        if differs:
            raise CheckpointError(
                f"{self.path} belongs to another fit ({'; '.join(differs)} differ); remove it, or name another file."
            )
        try:
            return self._progress(facts, arrays)
        except Exception as error:  # whatever a changed one lacks
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CheckpointError:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        return CheckpointError(f"{self.path} is not a checkpoint, or is damaged ({reason}); remove it to start again.")

    def _progress(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Progress:
        """Return the progress, once its models have the sizes of this fit and its numbers are such as a fit gives."""
        history, mu, before, watched = (facts[name] for name in ("history", "mu", "before", "watched"))
        best = tuple(map(float, watched["best"]))
        places = range(len(history))
        if [info["iteration"] for info in history] != [*places] or watched["best_iter"] not in places:
            raise ValueError("its history is not that of a fit")
        if not 0 < mu < np.inf or not np.isfinite(before or 0.0) or np.isnan(best).any() or watched["waited"] < 0:
            raise ValueError(f"mu={mu}, before={before}, best={best} and waited={watched['waited']} are of no fit")
        kept, now = (_model(name, arrays, self.sizes, self.linear) for name in ("best", "now"))
        return Progress(history, kept, now, mu, before, watched | {"best": best})

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


NAMES = {"facts", *(f"{name}.{part}" for name in ("best", "now") for part in ("W", "V", "b", "centers", "gamma"))}
BASIS = ("now.centers", "now.gamma")  # left out where they are those of the best model


def _arrays(name: str, model: Model) -> dict[str, Array]:
    mapping = model.mapping
    assert isinstance(mapping, BasisMap)
    found: dict[str, Array] = {f"{name}.W": mapping.W, f"{name}.V": model.V, f"{name}.b": model.b}
    if isinstance(mapping.basis, Gaussians):
        found |= {f"{name}.centers": mapping.basis.centers, f"{name}.gamma": np.asarray(mapping.basis.gamma)}
    return found


def _model(name: str, arrays: dict[str, Array], sizes: tuple[int, int, int], linear: bool) -> Model:
    """Return a model. Raises ValueError for sizes other than these, and for numbers that no fit gives."""
    W, V, b = (arrays[f"{name}.{part}"] for part in "WVb")
    machines, L, D = sizes
    M = D if linear else len(W)
    wanted = {"W": (W, (M, L)), "V": (V, (machines, L)), "b": (b, (machines,))}
    found = {"map.W": W, "coef_": V, "intercept_": b}
    if not linear:
        of = name if f"{name}.centers" in arrays else "best"
        centers, gamma = found["map.centers"], found["map.gamma"] = arrays[f"{of}.centers"], arrays[f"{of}.gamma"]
        wanted |= {"centers": (centers, (M, D)), "gamma": (gamma, (M,) if gamma.ndim else ())}
    for part, (array, shape) in wanted.items():
        if array.shape != shape or array.dtype not in (np.float32, np.float64) or not len(W):
            raise ValueError(f"{name}.{part} has shape {array.shape} of {array.dtype}, not {shape} of floats")
    check_numbers(found)
    basis: Basis = Identity(D) if linear else Gaussians(centers, gamma if gamma.ndim else float(gamma))
    return Model(BasisMap(basis, W), V, b)
