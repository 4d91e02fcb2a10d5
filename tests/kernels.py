"""Compile the kernels once, before many processes of tests would do it at the same time: python -m tests.kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ldsvm import LDSVMClassifier, Serial


def fit_all() -> None:
    """Fit small models of all kinds."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    learned: dict[str, Any] = {"map": "adaptive_rbf", "center_steps": 2}
    for classes in (2, 3):
        y = np.arange(60) % classes
        for inputs in (X, X.astype(np.float32)):
            for kind in ({}, learned):
                for executor in (None, Serial()):
                    model = LDSVMClassifier(n_basis=5, max_iter=2, random_state=0, **kind)
                    model.fit(inputs, y, eval_set=(inputs, y), executor=executor).predict(inputs)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two iterations converge to nothing
        fit_all()
