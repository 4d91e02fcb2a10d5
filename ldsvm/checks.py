"""Checks of the estimator's inputs. Every error is one sentence: the thing, its value, and what is allowed."""

from __future__ import annotations

import re
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsvm.typing import Array

PLAIN = "biuU"  # kinds of labels that need no look of scikit-learn's, which a process of Ray's need not load for them
LARGEST = 1e150  # beyond this squares leave float64
# What pandas calls the index of rows where it writes it, and where it reads it again.
NAMELESS = re.compile(r"|__index_level_\d+__|Unnamed: \d+(_level_\d+)?(\.\d+)?")


def shown(value: Any) -> Any:
    """Return a label or number as text, without NumPy's type around it."""
    return value.item() if isinstance(value, np.generic) else value


def index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema in which pandas stored the row index; a plain range has no column."""
    try:
        return [name for name in (schema.pandas_metadata or {})["index_columns"] if isinstance(name, str)]
    except (ValueError, LookupError, TypeError):  # anybody may have written the metadata
        return []


def check_X(estimator: Any, X: Any, *, sparse: bool, reset: bool, largest: float = LARGEST) -> Any:
    """X (N, D) as float32 or float64, dense or CSR, finite and at most ``largest`` in size.

    ``reset`` learns the number and names of features, otherwise they are checked.
    """
    from sklearn.utils.validation import _get_feature_names, validate_data

    if sp.issparse(X) and not sparse:
        raise TypeError(
            f"Sparse data was passed for X, but map={estimator.map!r} needs dense data: use X.toarray(), a reduction "
            "such as sklearn.decomposition.TruncatedSVD before it, or map='linear'."
        )
    names = _get_feature_names(X)
    X = validate_data(
        estimator, X, accept_sparse="csr" if sparse else False, dtype=[np.float64, np.float32],
        ensure_all_finite=False, reset=reset,
    )  # fmt: skip
    check_values(X, names, largest)
    return X


def check_values(X: Any, names: Any = None, largest: float = LARGEST) -> None:
    """Raise ValueError naming the first column of X with NaN, infinity or a value beyond ``largest``."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0 or (float(values.min()) >= -largest and float(values.max()) <= largest):  # NaN fails both
        return
    bad = ~(np.abs(values.astype(np.float64, copy=False)) <= largest)
    columns = X.indices[bad] if sp.issparse(X) else np.flatnonzero(bad.any(axis=0))
    column = int(columns.min())
    found = X[:, [column]].toarray() if sp.issparse(X) else X[:, column]
    what = f"a value beyond {largest:g}"
    if np.isnan(found).any():
        what = "NaN"
    elif np.isinf(found).any():
        what = "infinity (inf)"
    name = f"{column} ({names[column]!r})" if names is not None else str(column)
    allowed = f"a finite number of at most {largest:g}"
    raise ValueError(f"Input X contains {what} in column {name}; every value must be {allowed}.")


def check_labels(y: Any) -> Any:
    """Labels y (N,) of a classification problem, without missing ones or infinity; see `label_array`."""
    y = label_array(y)
    if y.dtype.kind in PLAIN and (len(y) <= 20 or 2 * len(np.unique(y)) <= len(y)):
        return y  # the rest would have nothing to say
    from sklearn.utils import assert_all_finite
    from sklearn.utils.multiclass import check_classification_targets

    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def label_array(y: Any, name: str = "y") -> Any:
    """Labels y (N,) as an array of texts or of numbers, all as given. Raises ValueError for missing or mixed ones.

    Examples
    --------
    >>> label_array(["spam", "ham", None])
    Traceback (most recent call last):
    ValueError: y has a missing label in row 2; every row needs one.
    """
    kind = y.dtype.kind if isinstance(getattr(y, "dtype", None), np.dtype) else "O"  # pandas has types of its own
    values = y
    if kind in "OT":
        with suppress(ValueError):  # rows of different lengths
            values = np.array(y, dtype=object)
    if not np.size(values) or (np.ndim(values) != 1 and np.shape(values)[1:] != (1,)):
        from sklearn.utils import column_or_1d

        return column_or_1d(y)  # says what is wrong
    missing = np.zeros(0, dtype=np.intp)
    if kind in "OT":
        missing = np.flatnonzero([_missing(label) for label in np.ravel(values)])
    elif kind in "fmM":
        missing = np.flatnonzero(np.isnan(values) if kind == "f" else np.isnat(values))
    if missing.size:
        raise ValueError(f"{name} has a missing label in row {missing[0]}; every row needs one.")
    values = _column(values)
    if values.dtype != object:
        return values
    found = _of_one_kind(values, name)
    return np.array(found.tolist()) if isinstance(y, list | tuple) else found


def _column(y: Any) -> Any:
    """Labels (N,) as an array; a column (N, 1) comes with a warning."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in f"{PLAIN}f":
        return np.ascontiguousarray(y)
    from sklearn.utils import column_or_1d

    return column_or_1d(y, warn=True)


def _missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has an array, which is refused later
        return False


def _of_one_kind(y: Any, name: str) -> Any:
    """Python's objects as texts or numbers: what is a number in one row must not be a text in another."""
    texts = [isinstance(label, str | bytes) for label in y]
    numbers = [isinstance(label, Real | np.bool_) for label in y]
    if all(texts):
        return y
    if all(numbers):
        return np.array(y.tolist())
    strange = [not (text or number) for text, number in zip(texts, numbers, strict=True)]
    row = strange.index(True) if any(strange) else texts.index(not texts[0])
    before = f", that of row 0 is {shown(y[0])!r}" if row else ""
    raise ValueError(
        f"{name} has the label {shown(y[row])!r} in row {row}{before}; labels must be all texts, or all numbers."
    )


def check_class_weight(class_weight: Any, classes: Any, y: Any, sample_weight: Array | None) -> Array:
    """The weight of every class (K,), finite and not negative."""
    from sklearn.utils import compute_class_weight

    try:
        weight = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)
    except (TypeError, ValueError) as error:
        raise ValueError(f"class_weight={class_weight!r} cannot be used: {error}") from None
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            f"class_weight gives the class {shown(classes[bad[0]])!r} the weight {shown(weight[bad[0]])}; every weight "
            "must be finite and not negative."
        )
    if np.count_nonzero(weight) < 2:
        which = "all classes but one" if weight.any() else "every class"
        raise ValueError(f"class_weight={class_weight!r} is zero for {which}; at least two must be positive.")
    return weight


def check_start(init: Any, n_rows: int, n_components: int | str) -> Array | None:
    """Given starting coordinates (N, L) as float64, or None where ``init`` is a name."""
    if isinstance(init, str):
        return None
    try:
        Z = np.array(init)
        numbers = Z.dtype.kind in "fiub" and Z.ndim == 2 and Z.shape[1] > 0
    except ValueError:  # rows of different lengths
        numbers = False
    if not numbers:
        raise ValueError("init must be a name or an array of real numbers of shape (n_samples, n_components).")
    wanted = (n_rows, Z.shape[1] if n_components == "auto" else n_components)
    if Z.shape != wanted or not np.isfinite(Z).all():
        raise ValueError(f"init must be a finite array of shape {wanted} (n_samples, n_components), got {Z.shape}.")
    return Z.astype(np.float64)


def check_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Sample weights (N,) in float64, or None when all are equal to one."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must be a number or one number per row, got {type(sample_weight).__name__}."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"sample_weight: Sample weights must be 1D array or scalar, got shape {weight.shape}.")
    if weight.shape[0] != n_rows:
        raise ValueError(f"sample_weight has {weight.shape[0]} values but X has {n_rows} rows; they must be equal.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise ValueError(f"sample_weight[{bad}] is {weight[bad]}; every weight must be finite and not negative.")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one weight must be positive.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ValueError(f"sample_weight has values up to {weight.max():g}, whose sum is infinite; lower them.")
    return None if np.all(weight == 1.0) else weight


def check_classes(classes: Any, n_rows: int) -> None:
    """Raise ValueError unless there are two or more classes."""
    if len(classes) < 2:
        raise ValueError(
            f"y contains one class only, {shown(classes[0])!r}, in {n_rows} rows with positive weight; a classifier "
            "needs at least two classes."
        )
