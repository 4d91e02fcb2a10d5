"""A network of four basis functions that learned centres must find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsvm.maps.rbf import Gaussians

Floats = NDArray[np.float64]


@pytest.fixture
def planted() -> Callable[[int], tuple[Floats, Floats, Floats]]:
    """Gives so many rows, targets that four Gaussians of different widths give exactly, and their centres."""

    def draw(n: int) -> tuple[Floats, Floats, Floats]:
        rng = np.random.default_rng(0)
        X, centers = rng.uniform(-2, 2, size=(n, 2)), np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
        Phi = Gaussians(centers, np.array([0.5, 1.0, 2.0, 4.0]))(X, np.float64)
        return X.astype(np.float32), Phi @ rng.normal(size=(4, 3)), centers

    return draw
