"""The steps an experiment file may name under ``features``, their parameters, and what each may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.transformers import is_path
from ldsvm.datasets.words import unknown


@dataclass(frozen=True)
class Step:
    """One step as the experiment file names it, with the parameters it gives, checked by `parse`."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: in words, and as a test."""

    allowed: str
    holds: Callable[[Any], bool]


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _range(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_count, value)) and value[0] <= value[1]


def _pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and re.compile(value).groups <= 1
    except re.error:
        return False


FLAG = Rule("true or false", lambda value: isinstance(value, bool))


COUNT = Rule("a whole number of at least 1", _count)


DOCUMENTS = "a number of documents such as 6, or a share of them such as 0.01, above 0 and below 1"


STEPS: Mapping[str, Mapping[str, Rule]] = {
    "strip_headers": {"footers": FLAG, "quotes": FLAG},
    "tfidf": {
        "min_df": Rule(DOCUMENTS, lambda value: _count(value) or _share(value)),
        "max_df": Rule(
            f"{DOCUMENTS}; 1.0 for all", lambda value: _count(value) or (isinstance(value, float) and 0 < value <= 1)
        ),
        "max_features": COUNT,
        "ngram_range": Rule("the shortest and the longest run of words, such as [1, 2]", _range),
        "token_pattern": Rule("a regular expression with at most one group", _pattern),
        "stop_words": Rule("english or null", lambda value: value in (None, "english")),
        "norm": Rule("l1, l2 or null", lambda value: value in (None, "l1", "l2")),
        **dict.fromkeys(("sublinear_tf", "lowercase", "binary", "use_idf"), FLAG),
    },
    "pca": {
        "n_components": Rule(
            f"{COUNT.allowed}, or a fraction of the variance such as 0.98, above 0 and below 1",
            lambda value: _count(value) or _share(value),
        ),
        "whiten": FLAG,
    },
    "svd": {"n_components": COUNT},
    "scale": {"with_mean": FLAG},
    "minmax": {},
    "max_abs": {},
    "normalize": {},
    "relevance": {"max_iter": COUNT},
    "table": {
        "gaps": Rule("median or own", lambda value: value in ("median", "own")),
        "numbers": Rule("standard, quantile or robust", lambda value: value in ("standard", "quantile", "robust")),
        "rare": Rule(
            "a number of rows such as 5, or a share of them such as 0.01, above 0 and below 1",
            lambda value: _count(value) or _share(value),
        ),
        "many": COUNT,
        "max_features": COUNT,
    },
}


def parse(value: Any) -> tuple[Step, ...]:
    """Return the steps of the key ``features`` of an experiment file: a list of names, or of ``name: {parameter: …}``.

    A name with a dot is the import path of a transformer, see `ldsvm.datasets.transformers`. None and an empty list are
    no steps: the inputs stay as they are. Raises `DataError` for another shape, unknown names and values that are not
    allowed.

    Examples
    --------
    >>> parse(["strip_headers", {"pca": {"n_components": 0.98}}])
    (Step(name='strip_headers', params={}), Step(name='pca', params={'n_components': 0.98}))
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DataError(
            f"features is {value!r}; allowed: a list of steps such as [strip_headers, tfidf: {{min_df: 6}}]."
        )
    return tuple(_step(f"features[{i}]", entry) for i, entry in enumerate(value))


def _step(place: str, entry: Any) -> Step:
    named = {entry: None} if isinstance(entry, str) else entry
    if not isinstance(named, dict) or len(named) != 1:
        raise DataError(f'{place} is {entry!r}; allowed: one step, "name" or "name: {{parameter: value}}".')
    [(name, params)] = named.items()
    if isinstance(name, str) and is_path(name):
        return _by_path(name, {} if params is None else params)
    if name not in STEPS:
        raise DataError(unknown(f'{place} "{name}"', name, STEPS))
    params = {} if params is None else params
    if not isinstance(params, dict):
        example = next(iter(STEPS[name]), None)
        allowed = f"parameters by name, such as {{{example}: …}}" if example else "no parameters"
        raise DataError(f"features.{name} is {params!r}; allowed: {allowed}.")
    for key, value in params.items():
        if key not in STEPS[name]:
            raise DataError(unknown(f"features.{name}.{key}", key, STEPS[name]))
        if not STEPS[name][key].holds(value):
            raise DataError(f"features.{name}.{key} is {value!r}; allowed: {STEPS[name][key].allowed}.")
    if "n_components" in STEPS[name] and "n_components" not in params:
        raise DataError(f"features.{name} needs n_components: {STEPS[name]['n_components'].allowed}.")
    return Step(name, params)


def _by_path(name: str, params: Any) -> Step:
    """Return a step that names a class; nothing is imported yet."""
    if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
        raise DataError(f"features.{name} is {params!r}; allowed: columns, and parameters by name.")
    columns = params.get("columns", "all")
    names = columns if isinstance(columns, list) else [columns]
    if not names or not all(isinstance(one, str) for one in names):
        raise DataError(f"features.{name}.columns is {columns!r}; allowed: a name, or a list of names.")
    return Step(name, params)
