"""What each feature step did to the training inputs, in one sentence for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse


def summarise_step(name: str, step: Any, before: Any, after: Any) -> str:
    """Return one sentence about a fitted step, given the training inputs before and after it."""
    kind, rows = kind_of(name), after.shape[0]
    if kind == "impute":
        return _imputed(before)
    if kind == "strip_headers":
        shorter = sum(len(new) < len(old) for old, new in zip(before, after, strict=True))
        empty = sum(not text.strip() for text in after)
        return f"{name}: {shorter:,} of {rows:,} training documents shortened, {empty:,} without text"
    if kind == "tfidf":
        words = _several(after.shape[1], "word" if tuple(step.ngram_range) == (1, 1) else "term")
        empty = int(np.count_nonzero(np.diff(after.indptr) == 0))
        return f"{name}: {words}, {empty:,} of {rows:,} training documents without any of them"
    if kind in ("pca", "svd"):
        share = 100 * float(step.explained_variance_ratio_.sum(dtype=np.float64))
        return f"{name}: {_several(after.shape[1], 'component')}, {share:.1f} % of the variance"
    return f"{name}: {_several(after.shape[1], 'column')}"


def _imputed(X: Any) -> str:
    gaps = np.isnan(X.data if issparse(X) else X)
    columns = X.indices[gaps] if issparse(X) else np.nonzero(gaps)[1]
    counts = np.bincount(columns, minlength=X.shape[1])
    text = f"imputed {_several(len(columns), 'value')} in {_several(int(np.count_nonzero(counts)), 'column')}"
    without = int(np.count_nonzero(counts == X.shape[0]))
    return f"{text}, {without:,} of them without any training value and now 0" if without else text


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def kind_of(name: str) -> str:
    """Return the name of a step as the experiment file has it: scale-2 is a second scale."""
    return name.partition("-")[0]
