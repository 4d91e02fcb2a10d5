"""Recursive feature machines of the package xRFM (Beaglehole, Holzmüller, Radhakrishnan and Belkin, 2025)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ldsvm.methods.packages import package

VALIDATION = 0.2  # share of the rows by which xRFM chooses among its iterations


class RecursiveFeatures(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A kernel machine whose distance is learned from the gradients of what it has found so far, with any labels.

    bandwidth: of the kernel exp(-distance / bandwidth). reg: ridge. iters: how often the distance is learned anew; a
    fifth of the rows chooses among them. random_state: of that fifth. n_jobs: threads, None for PyTorch's own number.
    Raises MissingPackage in `fit` where xRFM is absent.
    """

    def __init__(
        self, bandwidth: float = 10.0, reg: float = 1e-3, iters: int = 5, random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:  # fmt: skip
        self.bandwidth, self.reg, self.iters = bandwidth, reg, iters
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, X: Any, y: Any) -> RecursiveFeatures:
        """Fit to X (n, D) and labels y (n,)."""
        from sklearn.model_selection import train_test_split
        from sklearn.utils import check_random_state

        kind = package("xrfm", "xrfm").xRFM
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        seed = int(check_random_state(self.random_state).randint(2**31))
        large = counts.min() > 1 and VALIDATION * len(codes) >= len(counts)
        parts = train_test_split(
            np.asarray(X, dtype=np.float32), codes.astype(np.int64), test_size=VALIDATION,
            stratify=codes if large else None, random_state=seed,
        )  # fmt: skip
        model = {"kernel": "l2", "exponent": 1.0, "bandwidth": self.bandwidth, "diag": False}
        how = {"reg": self.reg, "iters": self.iters, "early_stop_rfm": True, "verbose": False}
        self.model_ = kind(
            rfm_params={"model": {**model, "bandwidth_mode": "constant"}, "fit": how}, tuning_metric="brier",
            device="cpu", random_state=seed, n_threads=self.n_jobs, verbose=False,
        )  # fmt: skip
        self.model_.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels (n,) of X (n, D)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n, K) of X (n, D)."""
        found = np.asarray(self.model_.predict_proba(np.asarray(X, dtype=np.float32)), dtype=np.float64)
        return found / found.sum(axis=1, keepdims=True)
