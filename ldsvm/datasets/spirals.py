"""Interleaved spirals in the plane: a small problem that no straight line solves, generated and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets import local
from ldsvm.datasets.dataset import DataError, Dataset, Places, Raw, Rows, finish
from ldsvm.datasets.entry import Entry
from ldsvm.datasets.words import one_of

INNER = 0.1  # radius where the arms begin: at the very centre nothing tells them apart

# The smallest and the largest value of each option; where these are int, it is a whole number.
LIMITS: Mapping[str, tuple[float, float]] = {
    "n_classes": (2, 256),
    "n_samples": (1, 100_000),
    "noise": (0.0, 10.0),
    "turns": (0.0, 100.0),
    "seed": (0, 2**32 - 1),
}


def make(
    *, n_classes: int = 2, n_samples: int = 500, noise: float = 0.0, turns: float = 2.0, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return K spirals X (K n, 2) float32, class after class from the centre outwards, and their labels y (K n,).

    With s evenly from 0 to 1 along an arm, the radius is 0.1 + 0.9 s and the angle 2π (turns s + k / K), so arm k is
    the first one rotated by k / K of a circle, and all lie in [-1, 1] before noise is added.

    Parameters
    ----------
    n_classes : number of arms K, 2 to 256
    n_samples : points on each arm n, 1 to 100,000
    noise : standard deviation of the Gaussian noise on both coordinates, 0 to 10
    turns : how many times an arm goes round, 0 to 100
    seed : of the noise, the only thing left to chance, 0 to 2³² - 1

    The noise comes from raw bits of PCG64, which NumPy promises for ever, and not from its Gaussian stream, which
    may change. Sine, logarithm and the like may differ in the last bit of float64 from machine to machine; rounding
    to float32 hides that but for one value in some hundred million, and the data set's ``sha256`` would show it.
    Raises `DataError` for a value that is not allowed.

    Examples
    --------
    >>> X, y = make(n_classes=3, n_samples=100, noise=0.02, seed=1)
    >>> X.shape, y.tolist() == [0] * 100 + [1] * 100 + [2] * 100
    ((300, 2), True)
    """
    for name, value in zip(LIMITS, (n_classes, n_samples, noise, turns, seed), strict=True):
        _check(name, value)
    s = np.linspace(0.0, 1.0, n_samples)
    angle = 2 * np.pi * (turns * s + np.arange(n_classes)[:, None] / n_classes)
    points = (INNER + (1 - INNER) * s)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    X = points.reshape(-1, 2)
    if noise:
        X += noise * _gaussian(X.shape, seed)
    return X.astype(np.float32), np.repeat(np.arange(n_classes), n_samples)


def load(entry: Entry, _places: Places, options: Mapping[str, Any] | None = None) -> Dataset:
    """Return what `make` gives for these options as a data set without a test set, named by the digest of its content.

    Raises `DataError` for an option that does not exist or has a value that is not allowed.
    """
    given = options or {}
    for name in given:
        if name not in LIMITS:
            raise DataError(f"{entry.name}: {name!r} is not an option: {one_of(name, LIMITS)}")
    chosen: dict[str, Any] = {**(make.__kwdefaults__ or {}), **given}
    X, y = make(**chosen)
    shown = ", ".join(f"{name}={value}" for name, value in chosen.items())
    raw = Raw(Rows(X, y), None, f"{entry.sources['generated'].removesuffix('.')} ({shown}).")
    return finish(raw, replace(entry, sha256=raw.sha256()))


def items(_entry: Entry, _places: Places) -> list[local.Item]:
    """Return nothing: there are no files."""
    return []


def _check(name: str, value: Any) -> None:
    low, high = LIMITS[name]
    whole = isinstance(high, int)
    kind: Any = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        raise DataError(
            f"spirals: {name}={value!r} must be a {'whole ' if whole else ''}number from {low:,} to {high:,}."
        )


def _gaussian(shape: tuple[int, ...], seed: int) -> NDArray[np.float64]:
    """Return independent standard normal numbers of this shape, the same for one seed whatever NumPy's version."""
    from scipy.special import ndtri

    bits = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    # The middles of 2**52 equal cells: never 0 or 1, where the quantile is infinite.
    return ndtri(((bits >> np.uint64(12)) + 0.5) * 2.0**-52).reshape(shape)
