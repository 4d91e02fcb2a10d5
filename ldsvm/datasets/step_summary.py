"""What each feature step did to the training inputs, in one sentence for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ldsvm.datasets.words import listing

# What the step table calls one column of a group, and several.
NOUNS = {
    "number": ("number", "numbers"),
    "flat": ("number with equal quartiles", "numbers with equal quartiles"),
    "yes/no": ("yes/no column", "yes/no columns"),
    "date": ("date", "dates"),
    "gap": ("column with gaps", "columns with gaps"),
    "category": ("category", "categories"),
}


def summarise_step(name: str, step: Any, before: Any, after: Any) -> str:
    """Return one sentence about a fitted step, given the training inputs before and after it."""
    kind, rows = kind_of(name), after.shape[0]
    if kind == "impute":
        return _imputed(before)
    if kind == "table":
        return f"{name}: {_table(step, after.shape[1])}"
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
    if kind == "relevance":
        found = (
            f"factors from {step.scale_.min():.2g} to {step.scale_.max():.2g}" if step.power_ else "no factors helped"
        )
        return f"{name}: {_several(after.shape[1], 'column')}, {found}"
    return f"{name}: {_several(after.shape[1], 'column')}"


def _imputed(X: Any) -> str:
    gaps = np.isnan(X.data if issparse(X) else X)
    columns = X.indices[gaps] if issparse(X) else np.nonzero(gaps)[1]
    counts = np.bincount(columns, minlength=X.shape[1])
    text = f"imputed {_several(len(columns), 'value')} in {_several(int(np.count_nonzero(counts)), 'column')}"
    without = int(np.count_nonzero(counts == X.shape[0]))
    return f"{text}, {without:,} of them without any training value and now 0" if without else text


def _table(step: Any, features: int) -> str:
    """Return how many features each group of columns became, and which categories are target-encoded."""
    parts, texts = [], [0, 0]
    for group, fitted, columns in step.columns_.transformers_:
        place = step.columns_.output_indices_[group]
        made = place.stop - place.start
        if group == "many":
            parts.append(f"{made:,} from the target-encoded {listing('column', columns)}")
        elif group in NOUNS:
            parts.append(f"{made:,} from {len(columns):,} {NOUNS[group][len(columns) > 1]}")
        elif group.startswith("own-"):
            names = [columns] if isinstance(columns, str) else columns
            parts.append(f"{made:,} from {listing('column', names)} by {type(fitted).__name__}")
        elif group.startswith("text-"):
            texts = [texts[0] + 1, texts[1] + made]
    if texts[0]:
        parts.append(f"{texts[1]:,} from {_several(texts[0], 'text')}")
    left = f"; {listing('column', step.empty_)} left out, without a training value" if step.empty_ else ""
    return f"{_several(features, 'feature')}: {', '.join(parts)}{left}"


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def kind_of(name: str) -> str:
    """Return the name of a step as the experiment file has it: scale-2 is a second scale."""
    return name.partition("-")[0]
