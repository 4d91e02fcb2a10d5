"""Fitted models as bytes that run no code when they are read, whoever wrote them.

The format is skops's. A file names a class for each object, and skops calls what is named with arguments from the
file. It trusts all of scikit-learn by itself, so we compare every object of a file with an exact list of our own
before anything is built.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from ldsvm.datasets.transformers import LIST, permitted

# Classes that are made without a call of the class; each is read by skops's ObjectNode.
OURS = (
    "ldsvm.methods.reduced.ReducedLDSVM",
    "ldsvm.datasets.raw_table.RawTable",
    "ldsvm.datasets.relevance.RelevanceScaler",
    "ldsvm.datasets.unit_rows.UnitRows",
    "ldsvm.datasets.table_parts.DateParts",
    "ldsvm.datasets.table_parts.Gaps",
    "ldsvm.datasets.table_parts.Words",
    "ldsvm.datasets.table_step.TableFeatures",
    "ldsvm.datasets.text.DensifyingPCA",
    "ldsvm.datasets.text.StripHeaders",
    "ldsvm.calibration.Calibrator",
    "ldsvm.estimator.LDSVMClassifier",
    "ldsvm.methods.decision.AtThreshold",
    "ldsvm.methods.label_map.Coarser",
    "ldsvm.mac.scheme.Scheme",
    "ldsvm.maps.features.BasisMap",
    "ldsvm.maps.linear.Identity",
    "ldsvm.maps.rbf.Gaussians",
)
# Modules of classes above, by the names that they had when older models were written.
MOVED = {
    "ldsvm.baselines.reduced": "ldsvm.methods.reduced",
    "ldsvm.datasets.lengths": "ldsvm.datasets.unit_rows",
    "ldsvm.experiment.coarser": "ldsvm.methods.label_map",
}
FOLDS = "sklearn.model_selection._split.StratifiedKFold"  # of a TargetEncoder
SCIKIT_LEARN = (
    "sklearn.cluster._kmeans.KMeans",
    "sklearn.cluster._kmeans.MiniBatchKMeans",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.impute._base.SimpleImputer",
    FOLDS,
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.QuantileTransformer",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._target_encoder.TargetEncoder",
)
# What skops has a reader of its own for: (reader, names).
VALUES = {
    "DictNode": ("builtins.dict",),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "SliceNode": ("builtins.slice",),  # which features are whose, in a ColumnTransformer
    "JsonNode": ("builtins.str",),  # text, numbers, truth values and None
    "TypeNode": ("builtins.bool", "builtins.float", "builtins.int", "builtins.str", "numpy.float32"),
    "DTypeNode": ("numpy.dtype",),
    "NdArrayNode": ("numpy.bool", "numpy.float32", "numpy.float64", "numpy.int64", "numpy.ndarray"),
}
OLD = tuple(
    f"{old}.{name.removeprefix(f'{new}.')}" for old, new in MOVED.items() for name in OURS if name.startswith(f"{new}.")
)
ALLOWED = frozenset(
    [("ObjectNode", name) for name in (*OURS, *OLD, *SCIKIT_LEARN)]
    + [(reader, name) for reader, names in VALUES.items() for name in names]
)
CODED = "ldsvm.methods.coded_labels.CodedLabels"
OF_OTHERS = frozenset({  # what classifiers of other packages may hold besides what the user trusts
    ("ObjectNode", CODED), ("ObjectNode", "sklearn.preprocessing._label.LabelEncoder"), ("TypeNode", "numpy.str_"),
    ("DefaultDictNode", "collections.defaultdict"), ("BytearrayNode", "builtins.bytearray"),
})  # fmt: skip
TRUSTED = [*OURS, FOLDS, "numpy.dtype"]
SCHEMA = "schema.json"  # of skops: the tree of objects


class UntrustedModel(ValueError):
    """A file holds what no model of ours holds; the message is one sentence."""


def dumps(fitted: Any, more: Collection[str] | None = None) -> bytes:
    """Return a fitted estimator of ours, or a pipeline of our feature steps around it, in skops's format.

    more: for a classifier that is not ours, the import paths of classes that the user trusts. Raises UntrustedModel
    when it holds an object that `loads` would refuse.
    """
    from skops.io import dumps as to_bytes

    data: bytes = to_bytes(fitted)
    check(data, more)
    return data


def loads(data: bytes, more: Collection[str] | None = None) -> Any:
    """Return what `dumps` was given. Raises UntrustedModel, before anything is built, for other content."""
    from skops.io import loads as from_bytes

    check(data, more)
    others = [] if more is None else [CODED, *more]
    return from_bytes(_with_names_of_today(data), trusted=[*trusted(), *others])


def trusted() -> list[str]:
    """Return what skops must trust beyond scikit-learn's estimators when it reads a model of ours."""
    return [*TRUSTED, *permitted()]


def check(data: bytes, more: Collection[str] | None = None) -> None:
    """Raise UntrustedModel unless all objects in `data` are of the list above, or classes that may be used here.

    It builds nothing of the file, and imports nothing that the file names.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> check(dumps(StandardScaler()))
    >>> dumps(FunctionTransformer())
    Traceback (most recent call last):
    ...
    ldsvm.experiment.storing.UntrustedModel: The model holds sklearn.preprocessing._function_transformer.\
FunctionTransformer (ObjectNode), which no model of ours needs; allowed: models that ldsvm has written, with \
transformers that LDSVM_TRANSFORMERS lists.
    """
    try:
        with ZipFile(BytesIO(data)) as file:
            if packed := [one.filename for one in file.infolist() if one.compress_type != ZIP_STORED]:
                raise UntrustedModel(f"The model's {packed[0]!r:.60} is compressed; allowed: models written by ldsvm.")
            tree = json.loads(file.read(SCHEMA))
    except (BadZipFile, KeyError, ValueError, RecursionError, NotImplementedError) as error:
        if isinstance(error, UntrustedModel):
            raise
        raise UntrustedModel(
            f"The model cannot be read ({error!s:.100}); allowed: models in skops's format."
        ) from error
    allowed = ALLOWED | {("ObjectNode", name) for name in permitted()}
    if more is not None:
        _check_other(tree, allowed | OF_OTHERS, more)
    for node in _objects(tree) if more is None else ():
        reader, name = _kind(node)
        if (reader, name) not in allowed:
            raise UntrustedModel(
                f"The model holds {name:.100} ({reader:.30}), which no model of ours needs; "
                f"allowed: models that ldsvm has written, with transformers that {LIST} lists."
            )
    _check_repeats(tree)


def _check_other(tree: Any, allowed: Collection[tuple[str, str]], more: Collection[str]) -> None:
    """Raise UntrustedModel with everything that a classifier of another package holds and the user does not trust."""
    kinds = {_kind(node) for node in _objects(tree)}
    if new := sorted({name for reader, name in kinds if (reader, name) not in allowed and name not in more}):
        raise UntrustedModel(
            f"it holds {', '.join(new)}; add to the method, if you trust this: trusted: [{', '.join(new)}]"
        )


def _kind(node: dict[str, Any]) -> tuple[str, str]:
    """Return the name of an object's reader, and of its class."""
    return str(node.get("__loader__")), f"{node.get('__module__')}.{node.get('__class__')}"


def _check_repeats(tree: Any) -> None:
    """Raise UntrustedModel unless every number means one object, and every file one array.

    skops makes an object once for each number. So a small file could name its array a thousand times, or nest lists
    that each repeat another, and fill the memory. An object that is there twice is written out twice, equal but for
    the numbers and files of what was made only to write it.
    """
    objects: dict[int, Any] = {}
    arrays: dict[str, int] = {}
    for node in _objects(tree):
        number: Any = node.get("__id__")
        file = str(node.get("file"))
        first = objects.setdefault(number, node) if isinstance(number, int) else None
        if first is None or (first is not node and _content(first) != _content(node)):
            raise UntrustedModel(f"The model's object {number!r:.30} is not unique; allowed: models written by ldsvm.")
        if "file" in node and arrays.setdefault(file, number) != number:
            raise UntrustedModel(f"The model's {file!r:.60} is read twice; allowed: models written by ldsvm.")


def _content(node: Any) -> Any:
    """Return a part of a tree without numbers of objects and names of files."""
    if isinstance(node, dict):
        return {key: _content(value) for key, value in node.items() if key not in ("__id__", "file")}
    return [_content(value) for value in node] if isinstance(node, list) else node


def _with_names_of_today(data: bytes) -> bytes:
    """Return a file that has passed `check` with the names that its classes' modules have now."""
    with ZipFile(BytesIO(data)) as file:
        schema = before = file.read(SCHEMA).decode()
        for old, new in MOVED.items():
            schema = schema.replace(f'"{old}"', f'"{new}"')
        if schema == before:
            return data
        target = BytesIO()
        with ZipFile(target, "w", ZIP_STORED) as written:
            for name in file.namelist():
                written.writestr(name, schema if name == SCHEMA else file.read(name))
    return target.getvalue()


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in skops's tree, at whatever place it stands."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if {"__loader__", "__class__", "__module__"} & node.keys():
                yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)
