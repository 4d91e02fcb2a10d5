from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from benchmarks.iterates import collect
from ldsvm import LDSVMClassifier
from ldsvm.solvers.box_qp import residual, solve


@pytest.mark.slow
def test_the_iterates_are_those_of_a_fit():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    caught = collect(X, y, L=2, C=3.0, iterations=4, n_basis=20)
    assert len(caught) == 4
    # The first Z-step has no multipliers to begin with, the others those of the one before.
    assert [it.start is None for it in caught] == [True, False, False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping at max_iter is the purpose here
        model = LDSVMClassifier(
            2, n_basis=20, gamma=1 / 32, alpha=1e-3, C=3.0, max_iter=3, tol=0.0, mu_max=3.0, random_state=0
        ).fit(X, y)
    # What goes into the fourth Z-step is the model after three iterations, if that is the best of them.
    nested = [info["nested"] for info in model.history_]
    assert model.best_iter_ == 3 == int(np.argmin(nested))
    np.testing.assert_array_equal(caught[3].V, model.latent_coef_)
    np.testing.assert_array_equal(caught[3].b, model.intercept_)
    np.testing.assert_allclose(caught[3].F, model.transform(X), atol=1e-4)  # transform rounds to float32


def test_a_caught_Z_solves_the_problem_that_was_caught():
    X, y = load_iris(return_X_y=True)
    for it in collect(X.astype(np.float32), y, L=2, C=3.0, iterations=3, n_basis=20):
        Z, alpha = solve(*it.z_problem)  # cold: its own way to the one optimum
        assert residual(Z, alpha, *it.z_problem[1:]).max() <= 1e-8
        np.testing.assert_allclose(it.Z, Z, atol=1e-7)
