"""Steps of our own for texts: posts without their headers, and principal components of word counts.

Both are stored with a model, so they are ordinary scikit-learn transformers; skops asks to trust them by name. The
module imports what is heavy: `ldsvm.datasets.features` imports it only when a step is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA

from ldsvm.datasets.dataset import DataError

LARGEST = 200 * 2**20  # bytes that sparse training rows may take when they are made dense

# A header starts with "Name: value", the name without spaces, and ends with the first empty line.
HEADER = re.compile(r"[!-9;-~]+:(?=\s).*?\n\r?\n", re.DOTALL)
DASHES = re.compile(r"^[ \t]*--+[ \t\r]*$", re.MULTILINE)
QUOTED = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")


class StripHeaders(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Remove what surrounds the words of a post: its header, and if wanted its signature and what it quotes.

    Texts that do not start with a header stay as they are; fitting learns nothing.

    Parameters
    ----------
    footers : bool, default=False
        Also remove the signature: the last line of only dashes, at least two, and all below it, unless nothing
        is above it.
    quotes : bool, default=False
        Also remove lines that start with > or |, and those that introduce them, such as "... writes:".

    Examples
    --------
    >>> post = "From: somebody\\nSubject: disks\\n\\n> Which one?\\nThe small one.\\n--\\nSomebody"
    >>> StripHeaders(footers=True, quotes=True).fit_transform([post, "No header: none"]).tolist()
    ['The small one.\\n', 'No header: none']
    """

    def __init__(self, *, footers: bool = False, quotes: bool = False) -> None:
        self.footers = footers
        self.quotes = quotes

    def fit(self, X: Iterable[str], y: object = None) -> StripHeaders:
        """Do nothing; it is there for the pipeline."""
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.object_]:
        """Return the texts X (N,) without what is to be removed, as an object array (N,) of str."""
        return np.array([self._strip(text) for text in X], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        return tags

    def _strip(self, text: str) -> str:
        header = HEADER.match(text)
        body = text[header.end() :] if header else text
        if self.footers:
            body = _unsigned(body)
        if self.quotes:
            body = "\n".join(line for line in body.split("\n") if not QUOTED.search(line))
        return body


def _unsigned(text: str) -> str:
    lines = list(DASHES.finditer(text))
    above = text[: lines[-1].start()] if lines else ""
    return above if above.strip() else text


class DensifyingPCA(PCA):  # type: ignore[misc]
    """Principal components of sparse rows, with every option that dense rows have.

    scikit-learn's solvers for sparse rows take no share of the variance, or need a D x D matrix. There are few
    training texts and many words, so that making the training rows dense is cheaper; `transform` keeps rows sparse.
    Training rows that would take more than 200 MiB raise `DataError`.
    """

    def fit(self, X: Any, y: object = None) -> DensifyingPCA:
        """Learn the components of X (N, D), sparse or dense."""
        super().fit(_dense(X), y)
        return self

    def fit_transform(self, X: Any, y: object = None) -> NDArray[np.floating[Any]]:
        """Learn the components of X (N, D), sparse or dense, and return its coordinates (N, L)."""
        return super().fit_transform(_dense(X), y)


def _dense(X: Any) -> Any:
    if not issparse(X):
        return X
    rows, columns = X.shape
    size = rows * columns * X.dtype.itemsize
    if size > LARGEST:
        raise DataError(
            f"features.pca needs {rows:,} x {columns:,} sparse inputs made dense, {size / 2**20:,.0f} MiB; allowed: "
            f"{LARGEST / 2**20:,.0f} MiB, or the step svd, which keeps them sparse."
        )
    return X.toarray()
