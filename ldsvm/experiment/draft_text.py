"""The text of a first experiment file: YAML, with comments for people who have never seen one."""

from __future__ import annotations

import json
import os
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.datasets.column import INPUTS, ROLES
from ldsvm.datasets.dataset import DataError, absent
from ldsvm.datasets.files import FileSpec
from ldsvm.datasets.files.databases import is_address
from ldsvm.datasets.files.roles import listed
from ldsvm.datasets.folds import FEW_TEST
from ldsvm.datasets.labels import FLAGS, rare_classes
from ldsvm.datasets.summary import facts, summarise
from ldsvm.datasets.words import shown
from ldsvm.experiment.config.yaml_merge import found as located
from ldsvm.experiment.draft import Found, find_out, name_of
from ldsvm.memory import GIB
from ldsvm.methods import METHODS

WIDTH = 116
MANY = 60  # columns of one role that the file names
SMALL, LARGE = 5_000, 20_000  # training rows with a thorough search at most, and with a kernel SVM at most
TRAIN, TEST = 0.6, 0.2
PLAIN = re.compile(r"[A-Za-z_/]([A-Za-z0-9_. /-]*[A-Za-z0-9_/-])?")


def written(found: Found, *, name: str, path: str, file: str) -> str:
    """Return the text of the file. path: of the data, as written in the file. file: its own path, for its commands."""
    parts = [
        f"# Written by `python -m flows new` for {plain(path)}. Read it, correct it, and then run, in this order:",
        *(f"# {line}" for line in next_steps(file)),
        "# All other keys and their defaults are in conf/base.yaml.",
        "",
        f"name: {scalar(name)}",
        f"title: {scalar(name.replace('_', ' '))}",
        "",
        *_dataset(found, name, path),
        "",
        *_features(found),
        "",
        *_split(found),
        "",
        *_methods(found),
        "",
        _line("judge: {refit: true}", "fit the chosen model once more, to training and validation rows together"),
        "",
        "limits:",
        _line(f"  fit_s: {_seconds(found)}", "seconds after which a single fit is stopped"),
        _line(
            f"  task_s: {1800 if _train_rows(found) <= SMALL else 24 * _seconds(found)}",
            "seconds after which a method with all its fits is stopped",
        ),
        "",
        *_comment("For python -m flows retrain and score; all keys are in conf/production/digits.yaml.", indent=""),
        f"production: {{model: {scalar(name)}, method: ours}}",
    ]
    return "\n".join(parts) + "\n"


def next_steps(file: str) -> list[str]:
    """Return the commands to run next, in their order, with what each does. file: quoted for a shell."""
    steps = {
        f"check {file}": "finds problems within a minute",
        f"pipeline {file}": "compares the methods: search, test error, report",
        f"retrain {file}": "trains the model to use; run it again when new rows arrive",
        f"score {file} production.score='{{input: new.csv, output: scored.csv}}'": "predicts new rows with that model",
    }
    width = max(map(len, [*steps][:-1]))
    return [f"  python -m flows {step:{width}s}   # {about}" for step, about in steps.items()]


def later_rows(found: Found) -> list[str]:
    """Return where to put rows that arrive later; nothing for data in a single file other than a table."""
    spec = found.spec
    if is_address(spec.path):
        return ["For retrain, add new rows to the database."]
    if not Path(spec.path).is_file():
        return ["For retrain, add files with new rows there."]
    table = found.rows.columns is not None
    return ["For retrain, add new rows to this file, or put files in a folder and give the folder as path."] * table


def scalar(value: Any) -> str:
    """Return a value as YAML, in quotes where YAML would otherwise read something else.

    Examples
    --------
    >>> scalar("zip code"), scalar("no"), scalar("?"), scalar(-999)
    ('zip code', '"no"', '"?"', '-999')
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and value.lower() not in {*FLAGS, "null"} and len(value) < WIDTH:
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def plain(text: str) -> str:
    """Return a text for a comment: in one line."""
    return " ".join(text.split()) if text.strip() and text.isprintable() else shown(text)


def _dataset(found: Found, name: str, path: str) -> list[str]:
    spec, rows = found.spec, found.rows
    known = rows.y[~absent(rows.y)]
    lines = ["dataset:", f"  name: {scalar(name.replace('_', ' ').strip() or name)}", f"  path: {scalar(path)}"]
    lines += [line for text in later_rows(found) for line in _comment(text)]
    if spec.format is not None:
        marks = {"semicolon": "semicolons", "tsv": "tabs", "csv": "commas", "pipe": "| marks", "blanks": "blanks"}
        line = f"  format: {spec.format}"
        lines.append(_line(line, f"fields separated by {marks[spec.format]}") if spec.format in marks else line)
    lines += [] if spec.header else [_line("  header: false", "the columns are c0, c1, …, in this order")]
    more = {"encoding": spec.encoding, "sheet": spec.sheet, "table": spec.table, "query": spec.query}
    lines += [f"  {key}: {scalar(value)}" for key, value in more.items() if value is not None]
    about = facts(summarise(rows.take(~absent(rows.y)), None))
    lines += [*_comment(f"The labels to predict: {about['classes']} in {about['rows']}.")]
    lines += [line for text in rare_classes(known) for line in _comment(f"Note: {text}")]
    lines += [f"  label: {scalar(spec.label)}"] if spec.label is not None else []
    if spec.group is not None:
        why = f": {found.why_group}" if found.why_group else ""
        lines += _comment(f"Rows with the same group stay in one part of the split{why}.")
        lines.append(f"  group: {scalar(spec.group)}")
    lines += [_line(f"  time: {scalar(spec.time)}", "the oldest rows train, the newest test")] if spec.time else []
    lines += [_line('  decimal: ","', "numbers are written like 1,5")] if spec.decimal == "," else []
    lines += [_line(f"  thousands: {scalar(spec.thousands)}", "the mark between thousands")] if spec.thousands else []
    if spec.missing_values:
        line = f"  missing_values: {_flow(spec.missing_values)}"
        lines.append(_line(line, "marks of missing values, besides empty fields and NA"))
    lines += _missing(found)
    lines += [f"  drop: {_flow(spec.drop)}"] if spec.drop else []
    return [*lines, *_columns(found)]


def _missing(found: Found) -> list[str]:
    gone = int(absent(found.rows.y).sum())
    lines = [_line("  unlabelled: drop", f"{gone:,} rows without a label are left out")] if gone else []
    imputed = [_line("  missing: impute", "missing values become the median of the training rows")]
    return lines + (imputed if found.missing == "impute" else [])


def _columns(found: Found) -> list[str]:
    columns, codes = found.columns, found.codes[:MANY]
    if not columns:
        return []
    lines = _comment("Roles of the columns, guessed from their values:")
    for role in INPUTS:
        names = [plain(column.name) for column in columns if column.role == role]
        more = [f"and {len(names) - MANY:,} more"] if len(names) > MANY else []
        lines += _comment(f"{role}: {', '.join(names[:MANY] + more)}", "  ") if names else []
    out = [column for column in columns if not column.used]
    for column in out[:MANY]:
        lines += _comment(f"left out: {plain(column.name)} ({column.role}: {plain(column.reason)})", "  ")
    lines += [line for column in columns if column.doubt for line in _comment(f"Note: {plain(column.doubt)}")][:MANY]
    first = next((column.name for column in columns if column.used), columns[0].name)
    which = "such as numbers that may be codes:" if codes else "such as:"
    lines += _comment(f"To change roles (to {', '.join(ROLES)}), list only the columns to change, {which}")
    return [*lines, f"  # columns: {{{', '.join(f'{scalar(name)}: category' for name in codes or [first])}}}"]


def _features(found: Found) -> list[str]:
    about = {
        "table": "numbers scaled, missing values filled, categories one-hot encoded, dates and texts split into parts",
        "dense": "scaled to mean 0 and variance 1 on the training rows",
        "sparse": "reduced by a truncated SVD",
        "text": "tf-idf of words in at least three texts, reduced by a truncated SVD",
    }[found.rows.kind]
    return [f"# Features: {about}", f"features: {_flow(found.steps)}"]


def _split(found: Found) -> list[str]:
    spec = found.spec
    kind = "time" if spec.time is not None else "grouped" if spec.group is not None else "stratified"
    about = {
        "time": "the oldest rows train, the newest test",
        "grouped": "rows of a group stay together",
        "stratified": "classes in proportion",
    }[kind]
    lines = [f"split: {{kind: {kind}, train: {TRAIN}, validation: 0.2, test: {TEST}}}   # {about}"]
    if kind != "time" and (n := int(TEST * np.count_nonzero(~absent(found.rows.y)))) < FEW_TEST:
        lines += _comment(
            f"Only {n} test rows. To test on all rows instead (without the section production):", indent=""
        )
        lines.append("# split: {kind: cross_validation, folds: 5}")
    if kind == "stratified" and found.dates:
        lines += _comment(
            f"{shown(found.dates[0])} is a date. If the model is for rows later than its training data, add the line "
            f"time: {plain(found.dates[0])} to dataset, and write kind: time here.", indent="",
        )  # fmt: skip
    return lines


def _methods(found: Found) -> list[str]:
    from ldsvm.maps.families import scaled_size  # which loads scikit-learn

    rows = _train_rows(found)
    if found.streams:
        return _by_blocks(found)
    lines = [
        "methods:",
        _line("  ours:", "trained on the training rows; the values below are chosen on the validation rows"),
        "    estimator: ldsvm",
    ]
    if found.rows.kind == "text":
        return [*lines, "    params: {map: linear}", "    search: {C: [0.1, 1, 10, 100]}", *_linear()]
    most = max(1, min(scaled_size(rows, len(set(found.rows.y[~absent(found.rows.y)]))), rows // 2))
    sizes = [most // 3, most, min(3 * most, 3 * rows // 4)] if most >= 30 and rows <= SMALL else [most]
    gammas = [float(f"{factor / found.width:.2g}") for factor in ((0.3, 1, 3) if rows <= LARGE else (0.5, 2))]
    lines += [
        "    search:",
        _line(f"      n_basis: {_flow(sizes)}", "basis functions: more are more accurate and slower"),
        _line(
            f"      C: {_flow([0.3, 1, 3, 10] if rows <= LARGE else [1, 10])}",
            "a larger C fits the training rows more closely",
        ),
        "    # gamma (width) and alpha (ridge) are chosen in each fit, from its training rows.",
    ]
    if rare_classes(found.rows.y[~absent(found.rows.y)]):
        lines.append("    # params: {class_weight: balanced}   # rare classes count as much as frequent ones")
    if rows <= LARGE:
        space: dict[str, list[Any]] = {"gamma": gammas, "C": [1, 10, 100] if rows <= SMALL else [1, 10]}
        lines += _method("Gaussian SVM", "gaussian_svm", space)
    else:
        lines.append(f"  # An approximation of the Gaussian SVM, whose kernel takes hours with {rows:,} rows:")
        space = {"reduce__n_components": [300], "reduce__gamma": gammas, "classify__C": [1, 10]}
        lines += _method("Nystroem SVM", "nystroem_svm", space)
    trees = ("random forest", "random_forest")
    lines += _method(*(trees if trees[1] in METHODS else ("boosted trees", "hist_gradient_boosting")), {})
    return [*lines, *_linear()]


def _by_blocks(found: Found) -> list[str]:
    rows, width = _train_rows(found), found.width
    blocks = [
        _line("    executor: {kind: serial, memory_mib: 512}", "reads the rows block by block"),
        _line(
            "    strategy: {factor: 4, resource: n_samples, min_resources: 20000}",
            "the best of 4 is fitted to all rows",
        ),
    ]
    return [
        "methods:",
        _line("  ours:", "trained on the training rows; the values below are chosen on the validation rows"),
        "    estimator: ldsvm",
        "    params: {n_basis: 100, max_iter: 20}",
        _line("    search: {C: [0.1, 0.3, 1, 10]}", "gamma (width) and alpha (ridge) are chosen in each fit"),
        *blocks,
        "  linear:",
        "    estimator: ldsvm",
        "    params: {map: linear, max_iter: 20}",
        "    search: {C: [0.01, 0.1, 1, 10]}",
        *blocks,
        *_comment(
            f"Methods that hold all rows in memory, such as hist_gradient_boosting, linear_svm and nystroem_svm, are "
            f"left out: they make several copies of {rows:,} rows of {width:,} features, and each takes "
            f"{8 * rows * width / GIB:,.1f} GiB. Add them if you have the memory."
        ),
    ]


def _linear() -> list[str]:
    return _method("linear SVM", "linear_svm", {"C": [0.01, 0.1, 1, 10]})


def _method(name: str, estimator: str, space: Mapping[str, Sequence[Any]]) -> list[str]:
    tried = ", ".join(f"{key}: {_flow(values)}" for key, values in space.items())
    return [
        f"  {name}:",
        f"    estimator: {estimator}",
        *([f"    search: {{{tried}}}"] if tried else ["    search: default"]),
    ]


def _train_rows(found: Found) -> int:
    return int(TRAIN * np.count_nonzero(~absent(found.rows.y)))


def _seconds(found: Found) -> int:
    return 60 if _train_rows(found) <= SMALL else 3600 if found.streams else 600


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(one) for one in value) + "]"
    return scalar(value)


def _line(text: str, comment: str) -> str:
    return f"{text:34s}  # {comment}"


def _comment(text: str, more: str = "", indent: str = "  ") -> list[str]:
    start = f"{indent}# {more}"
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=f"{start}  ", break_on_hyphens=False)


def write(data: str, root: Path, *, header: bool | None = None, output: Path | None = None, **asked: Any) -> list[str]:
    """Write an experiment file for a user's own data, and return sentences about the data and on what to do next.

    data: as in dataset.path. root: the project's folder. header: whether the first line holds names; None detects it.
    output: the file, by default conf/NAME.yaml there. asked: other fields of a `FileSpec`, where they are known.
    Raises `DataError`, one sentence, for data that cannot be read, and for a file that exists.
    """
    spec = FileSpec(data, **{**asked, "drop": tuple(asked.get("drop", ()))})
    name = name_of(data if spec.table is None else f"{data}/{spec.table}")
    file = root / "conf" / f"{name}.yaml" if output is None else output.expanduser()
    if os.path.lexists(file):
        raise DataError(f"{file} already exists and is not overwritten; name another file, such as --output new.yaml.")
    place = located(data, root) or data
    place = place if is_address(place) else str(Path(place).expanduser().absolute())
    found = find_out(replace(spec, path=place), header)
    shown_file, path = _short(file.absolute(), root), place if is_address(place) else _short(Path(place), root)
    text = written(found, name=name, path=path, file=shlex.quote(shown_file))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise DataError(f"{file} cannot be written ({error.strerror}).") from None
    about = facts(summarise(found.rows.take(~absent(found.rows.y)), None))
    if Path.cwd().resolve() != root.resolve():
        shown_file = str(file.absolute())  # by default it is not below the folder where the command ran
    return [
        f"{shown_file} was written for {about['rows']}, {about['classes']}.",
        *found.sentences,
        *(listed(found.columns) if found.columns else []),
        *([f"The split is by group, {shown(found.spec.group)}: {found.why_group}."] if found.why_group else []),
        *(f"Note: {text}" for text in rare_classes(found.rows.y[~absent(found.rows.y)])),
        "Read it, and then run, in this order:",
        *next_steps(shlex.quote(shown_file)),
        *later_rows(found),
    ]


def _short(place: Path, root: Path) -> str:
    """Return a path relative to the project's folder, where the paths of a file start; in full if it is elsewhere."""
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else str(place)
