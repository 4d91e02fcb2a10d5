"""Our classifier behind a reduction, as a pipeline that still takes our `eval_set`."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


class ReducedLDSVM(Pipeline):  # type: ignore[misc]
    """Principal components, then our classifier: a pipeline of the steps `reduce` and `classify`.

    What sets it apart from scikit-learn's is that `fit` takes our `eval_set` and `callback`, and that the course of the
    training is found on it as on our classifier. Source: the paper's rows "PCA + ours".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ldsvm.methods.ours import pca_ours
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pca_ours().set_params(reduce__n_components=3, classify__n_basis=20, classify__random_state=0)
    >>> model.fit(X, y, eval_set=(X, y)).transform(X).shape, model.history_[0]["iteration"]
    ((150, 2), 0)
    """

    def fit(self, X: Any, y: Any, eval_set: Any = None, callback: Any = None) -> ReducedLDSVM:
        """Fit both steps to X (n, D) and y (n,); the components see nothing of eval_set, a pair (X, y)."""
        (_, reduce), (_, classify) = self.steps
        reduced = reduce.fit_transform(X)
        valid = None if eval_set is None else (reduce.transform(eval_set[0]), eval_set[1])
        classify.fit(reduced, y, eval_set=valid, callback=callback)
        return self

    def transform(self, X: Any) -> Any:
        """Return the latent coordinates (n, L) of X (n, D)."""
        return self[-1].transform(self[0].transform(X))

    def __getattr__(self, name: str) -> Any:
        if name in ("history_", "stop_reason_", "best_iter_", "latent_coef_", "map"):
            return getattr(self.steps[-1][1], name)
        raise AttributeError(name)
