"""Features as ordinary scikit-learn pipelines: named in the experiment file, fitted on the training part, and stored
with the model, so that a model takes the inputs as they came.

=============  ===========================================================================================
table          the columns of a table by their roles, see `ldsvm.datasets.table_step`; the first step of a
               table, also where the file does not name it
strip_headers  texts without the header of a post; footers, quotes: without signature and quotations
tfidf          texts to sparse rows of weighted word counts (`TfidfVectorizer`), one row per document
pca            principal components: a number of them, or a fraction of the variance; whiten. Sparse inputs
               are made dense for it where the training part takes at most 200 MiB
svd            the same without centring (`TruncatedSVD`), for sparse inputs of any size
scale          columns of mean 0 and variance 1; sparse inputs keep their mean, and so their zeros
minmax         columns from 0 to 1 (dense inputs); max_abs: columns from -1 to 1, zeros stay zeros
normalize      rows of Euclidean length 1, whatever the size of their values
relevance      each column times a factor that is learned from the labels (`RelevanceScaler`, dense inputs)
a.path.Class   a transformer by its import path, with its parameters; with ``columns`` after the step table,
               it takes these columns of the table in place of that step
=============  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ldsvm.datasets import finite, transformers
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.split import Indices
from ldsvm.datasets.step_summary import kind_of, summarise_step
from ldsvm.datasets.steps import Step
from ldsvm.datasets.table_cells import check_cells, check_roles
from ldsvm.datasets.transformers import is_path

ON_TEXT = ("strip_headers", "tfidf")
# What a step makes; the others leave the kind as it is.
AFTER = {"table": "dense", "tfidf": "sparse", "pca": "dense", "svd": "dense"}


def pipeline(
    steps: Sequence[Step], *, kind: str, missing: str, seed: int, roles: Mapping[str, str] | None = None
) -> Any:
    """Return the unfitted scikit-learn Pipeline of these steps, or None when there is nothing to do.

    kind: what the inputs are, see `Rows.kind`. missing: "impute" replaces missing values of dense and sparse inputs
    by the column's training median, and by 0 in a column that has no training value; the step table always fills
    gaps. seed: of what is random in table, pca, svd and relevance. roles: of the columns of a table. Steps keep
    their names; a second scale is called scale-2. Raises `DataError` for steps that do not fit the inputs or each
    other.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline

    made: list[tuple[str, Any]] = []
    if kind == "table":
        check_roles(roles or {})
        steps = _with_own_columns(steps if steps and steps[0].name == "table" else [Step("table"), *steps])
    elif missing == "impute" and kind != "text":
        made.append(("impute", SimpleImputer(strategy="median", keep_empty_features=True)))
    now = kind
    for i, step in enumerate(steps):
        _check_place(step, now, kind)
        times = sum(before.name == step.name for before in steps[: i + 1])
        name = step.name.replace(".", "_")  # which scikit-learn does not take
        made.append((name if times == 1 else f"{name}-{times}", _make(step, now, seed, roles)))
        now = AFTER.get(step.name, now)
    if now == "text":
        raise DataError("The inputs are texts, but features has no step that turns texts into numbers; add tfidf.")
    return Pipeline(made) if made else None


def _check_place(step: Step, now: str, kind: str) -> None:
    """Refuse a step that cannot follow: ``now`` is what the steps before it made of inputs of this kind."""
    name = f"features.{step.name}"
    if is_path(step.name) and "columns" in step.params:
        raise DataError(
            f"{name}.columns needs a table whose columns have roles; allowed: right after the step table, or without "
            "columns (a table of numbers gets roles when dataset.columns gives one of them)."
        )
    if step.name == "table" and kind != "table":
        raise DataError(
            f"{name} needs a table with roles of its columns, but the inputs are {_called(kind)}; "
            "allowed: for tables only."
        )
    if step.name == "table" and now != "table":
        raise DataError(f"{name} comes after another step; allowed: as the first step, and once.")
    if step.name not in ON_TEXT and now == "text":
        raise DataError(f"{name} needs numbers, but the inputs are texts; allowed: after tfidf.")
    if step.name in ON_TEXT and kind != "text":
        raise DataError(f"{name} needs texts, but the inputs are {_called(kind)}; allowed: steps for numbers.")
    if step.name in ON_TEXT and now != "text":
        raise DataError(f"{name} comes after tfidf, which leaves no texts; allowed: before it, and tfidf once.")
    if now == "sparse" and step.name == "minmax":
        raise DataError(f"{name} would fill the zeros of sparse inputs; allowed: max_abs, which keeps them.")
    if now == "sparse" and step.name == "relevance":
        raise DataError(f"{name} needs dense numbers, but the inputs are sparse; allowed: after pca or svd.")
    if now == "sparse" and step.params.get("with_mean"):
        raise DataError(f"{name}.with_mean is True, which would fill the zeros of sparse inputs; allowed: false.")


def _with_own_columns(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with those that take columns of the table as a parameter of the step table."""
    table, *others = steps
    own = list(takewhile(lambda step: is_path(step.name) and "columns" in step.params, others))
    if not own:
        return list(steps)
    made = [
        {
            "path": step.name,
            "columns": step.params["columns"],
            "params": {key: value for key, value in step.params.items() if key != "columns"},
        }
        for step in own
    ]
    return [Step("table", {**table.params, "own": made}), *others[len(own) :]]


def _called(kind: str) -> str:
    return {"table": "a table", "text": "texts"}.get(kind, f"{kind} numbers")


def _make(step: Step, now: str, seed: int, roles: Mapping[str, str] | None) -> Any:
    from sklearn import decomposition, preprocessing
    from sklearn.feature_extraction.text import TfidfVectorizer

    from ldsvm.datasets.relevance import RelevanceScaler
    from ldsvm.datasets.table_step import TableFeatures
    from ldsvm.datasets.text import DensifyingPCA, StripHeaders
    from ldsvm.datasets.unit_rows import UnitRows

    pca = DensifyingPCA if now == "sparse" else decomposition.PCA
    makers: dict[str, Callable[..., Any]] = {
        "table": lambda **params: TableFeatures(dict(roles or {}), random_state=seed, **params),
        "strip_headers": StripHeaders,
        "tfidf": lambda **params: TfidfVectorizer(dtype=np.float32, **params),
        "pca": lambda **params: pca(random_state=seed, **params),
        "svd": lambda **params: decomposition.TruncatedSVD(random_state=seed, **params),
        "scale": lambda with_mean=now == "dense": preprocessing.StandardScaler(with_mean=with_mean),
        "minmax": preprocessing.MinMaxScaler,
        "max_abs": preprocessing.MaxAbsScaler,
        "normalize": UnitRows,
        "relevance": lambda **params: RelevanceScaler(random_state=seed, **params),
    }
    if is_path(step.name):
        return transformers.make(step.name, step.params)
    # YAML has lists only, and scikit-learn wants a tuple.
    params = {k: tuple(v) if isinstance(v, list) and k != "own" else v for k, v in step.params.items()}
    return makers[step.name](**params)


def fit_transform(pipe: Any, X: Any, rows: Indices | None = None, *, y: Any = None) -> Any:
    """Fit the steps of `pipeline` to the training inputs X, (N, D) or (N,) texts, and return their features (N, L).

    y (N,): the labels, which relevance needs, and a table where categories have many values.
    The features are float32: dense and C-contiguous, or CSR. Messages call the rows by the numbers ``rows`` (N,) in the
    source, if these are other than 0, 1, …. Raises `DataError` for inputs that are not finite (or
    missing, without "impute"), for a vocabulary without words, for more components than there can be, for features
    beyond float32, and for more sparse columns than steps can keep numbers for.

    Examples
    --------
    >>> from ldsvm.datasets.steps import parse
    >>> pipe = pipeline(parse([{"tfidf": {"min_df": 2}}]), kind="text", missing="refuse", seed=0)
    >>> fit_transform(pipe, np.array(["a small disk", "a large disk", "no word"], dtype=object)).toarray().tolist()
    [[1.0], [1.0], [0.0]]
    >>> describe(pipe)
    ['tfidf: 1 word, 1 of 3 training documents without any of them']
    """
    X = _inputs(pipe, X, rows)
    summary = []
    # Step by step, as Pipeline does it: only here can an error name its step, and the report tell what each step did.
    for name, step in pipe.steps:
        with _named(name):
            before, X = X, _fit(name, step, X, y)
            finite.check_output(name, X, rows)
        summary.append(summarise_step(name, step, before, X))
    pipe.summary_ = summary  # a part of the fitted pipeline, so that it is stored with it
    return _float32(X)


def transform(pipe: Any, X: Any, rows: Indices | None = None) -> Any:
    """Return the features (n, L) of more inputs X, (n, D) or (n,) texts, from a pipeline that `fit_transform` fitted.

    They are as `fit_transform` gives them, but for target-encoded categories: there each training row is left out of
    its own features. Raises `DataError` for another number of columns, for inputs that are not finite (or missing,
    without "impute"), for features beyond float32, and for tables without a column of training or with a cell of
    another type; more columns and another order of them are all right.
    """
    X = _inputs(pipe, X, rows)
    for name, step in pipe.steps:
        with _named(name):
            X = step.transform(X)
            finite.check_output(name, X, rows)
    return _float32(X)


def describe(pipe: Any) -> list[str]:
    """Return what each step of a fitted pipeline did to the training inputs, one sentence each, for the report."""
    return list(pipe.summary_)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn scikit-learn's errors into one sentence that names the step, without the advice in the lines below it."""
    try:
        # What overflows is found afterwards, with its rows.
        with np.errstate(all="ignore"):
            yield
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"{finite.called(name)}: {str(error).splitlines()[0].rstrip('.')}.") from error


def _fit(name: str, step: Any, X: Any, y: Any) -> Any:
    if kind_of(name) in ("pca", "svd"):
        _check_components(name, step, X)
    try:
        X = step.fit_transform(X, y)
    except ValueError as error:
        if kind_of(name) != "tfidf":
            raise
        # What is left after `parse`: scikit-learn has three messages for it, none with the number of documents.
        raise DataError(
            f"features.tfidf with min_df {step.min_df} and max_df {step.max_df} leaves no word of the {len(X):,} "
            "training documents; allowed: limits that keep at least one word."
        ) from error
    finite.check_fitted(name, step)
    return X


def _check_components(name: str, step: Any, X: Any) -> None:
    n, (rows, columns) = step.n_components, X.shape
    if abs(X.max(axis=0) - X.min(axis=0)).max() == 0:
        raise DataError(f"features.{name}: the {rows:,} training rows are all equal; allowed: inputs that vary.")
    # Centring leaves rank N - 1: the last of N components is rounding, which whitening would blow up.
    limit = min(rows - 1 if getattr(step, "whiten", False) else rows, columns)
    if n > limit:
        other = ", or a fraction of the variance such as 0.98" if kind_of(name) == "pca" else ""
        raise DataError(f"features.{name}.n_components is {n}; allowed: at most {limit} for this training set{other}.")


def _inputs(pipe: Any, X: Any, rows: Indices | None) -> Any:
    """Return numbers as float32, texts as they are and a table's columns by role; refuse what no step can use."""
    name, step = pipe.steps[0]
    if name == "table":
        return check_cells(X, step.roles, rows)
    if X.ndim == 1:
        finite.check_texts(X, rows)
        return X
    X = _float32(X)
    finite.check_inputs(X, rows, imputes=name == "impute")
    return X


def _float32(X: Any) -> Any:
    if not issparse(X):
        return np.ascontiguousarray(X, dtype=np.float32)
    X = X.tocsr()
    # The constructor takes 32 bits for the indices wherever they suffice.
    return csr_matrix((X.data.astype(np.float32, copy=False), X.indices, X.indptr), shape=X.shape)
