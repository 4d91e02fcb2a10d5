"""From the path a user gives to the files that are read, in a fixed order, and their format."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path

from ldsvm.datasets import local
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.files import faults
from ldsvm.datasets.files.csv_text import DELIMITERS
from ldsvm.datasets.files.opening import COMPRESSED
from ldsvm.datasets.files.partitions import Values, is_partition, partitions
from ldsvm.datasets.files.spec import FileSpec
from ldsvm.datasets.words import cut, shown

# What a name may end in, without .gz and other compressions.
ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "semicolon": (),  # these three only by their names: such files end in .csv too
    "pipe": (),
    "blanks": (),
    "tsv": (".tsv", ".tab"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npz": (".npz",),
    "svmlight": (".svm", ".libsvm", ".svmlight"),
    "idx": ("-ubyte", ".idx", ".idx3", ".idx3-ubyte"),
}
LOOSE = (".txt", ".dat", ".data")  # of tables of text, too, where the format is given
TABLES = ("parquet", *DELIMITERS, "arrow")
FORMATS = (*ENDINGS, "text")


@dataclass(frozen=True)
class Found:
    """Files to read as one set: the path as given, the format, the folder their names start at, and the files.

    For IDX the files are the images and their labels, for texts every text of every class folder. values: of the
    columns that the folders of a file give, see `partitions`.
    """

    given: str
    format: str
    root: Path
    files: tuple[Path, ...]
    values: Mapping[Path, Values] = field(default_factory=dict)


def find(spec: FileSpec) -> tuple[Found, Found | None]:
    """Return the files of ``spec.path`` and of ``spec.test_path``; raise `DataError` for what cannot be found."""
    if spec.format is not None and spec.format not in FORMATS:
        raise DataError(
            f"dataset.format={shown(spec.format)} is unknown{faults.nearest(spec.format, FORMATS)}: "
            f"use one of {', '.join(FORMATS)}."
        )
    train = _looked_up(spec.path, spec.format, spec.label)
    if spec.test_path is None:
        return train, None
    test = _looked_up(spec.test_path, spec.format, None)
    if train.format != test.format and not {train.format, test.format} <= set(TABLES):
        raise DataError(
            f"{spec.path} is {train.format} but {spec.test_path} is {test.format}: both must have the same format."
        )
    return train, test


def holds(given: str, file: Path) -> bool:
    """Tell whether a path, as `find` takes it, would stand for ``file`` too once that is there."""
    path, wanted = Path(given).expanduser(), file.resolve()
    if path.exists() or not glob.has_magic(given):
        inside = wanted.relative_to(path.resolve()).parts[:-1] if wanted.is_relative_to(path.resolve()) else ("",)
        return wanted == path.resolve() or (path.is_dir() and all(map(is_partition, inside)))
    fixed = _fixed(path)
    pattern = str(fixed.resolve() / path.relative_to(fixed))
    return fnmatch(str(wanted), pattern.replace("**/", "*")) if "**" in pattern else wanted.match(pattern)


def _looked_up(given: str, format: str | None, label: str | None) -> Found:
    try:
        return _locate(given, format, label)
    except (OSError, RuntimeError) as error:  # a name too long, a folder not to be entered, "~" of an unknown user
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{cut(given, 200)}: cannot be looked up ({reason}).") from error


def _locate(given: str, format: str | None, label: str | None) -> Found:
    path = Path(given).expanduser()
    if path.is_dir():
        found = _in_folder(given, path, format)
    elif path.exists():
        local.refuse_special(path)
        found = Found(given, format or _format_of(path), path.parent, (path,))
    elif glob.has_magic(given):
        found = _matching(given, format)
    else:
        raise DataError(f"{given}: no such file or folder.")
    if found.format == "text" and not path.is_dir():
        raise DataError(f"{given}: format text needs a folder with one subfolder per class.")
    if found.format not in (*TABLES, "text") and len(found.files) > 1:
        raise DataError(f"{given}: stands for {len(found.files)} files, but {found.format} data are one file.")
    if found.format == "idx":
        images = found.files[0]
        return Found(given, "idx", found.root, (images, _labels_beside(images, label)))
    return found


def _in_folder(given: str, folder: Path, format: str | None) -> Found:
    visible = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    kinds = {entry: _ending_of(entry.name) for entry in visible if entry.is_file()}
    formats = sorted({kind for kind in kinds.values() if kind is not None})
    classes = [entry for entry in visible if entry.is_dir()]
    if classes and not formats and all(is_partition(entry.name) for entry in classes):
        found = _partitioned(given, folder, format)
        if found is not None:
            return found
    chosen = format or (formats[0] if len(formats) == 1 else "text")
    if format is None and len(formats) > 1:
        raise DataError(
            f"{given}: holds files of {len(formats)} formats; set dataset.format to one of {', '.join(formats)}."
        )
    if chosen == "text":
        texts = _texts(given, classes)
        tables = [file for file in texts if _ending_of(file.name)] if format is None else []
        if tables:
            raise DataError(f"{given}: {tables[0].relative_to(folder)} is not a text; give a glob such as {given}/*/*.")
        return Found(given, "text", folder, texts)
    ending = chosen if ENDINGS[chosen] else "csv"
    files = tuple(file for file, kind in kinds.items() if kind == ending)
    if not files and chosen in DELIMITERS:
        files = tuple(file for file in kinds if uncompressed_name(file).endswith(LOOSE))
    if not files:
        raise DataError(f"{given}: holds no {chosen} file (ending in {', '.join(ENDINGS[ending])}).")
    return Found(given, chosen, folder, files)


def _partitioned(given: str, folder: Path, format: str | None) -> Found | None:
    """Return the tables in folders such as year=2024; None where there are other files, which may be texts."""
    inside = [(file, file.relative_to(folder).parts) for file in sorted(folder.rglob("*")) if file.is_file()]
    files = [file for file, parts in inside if not any(part.startswith((".", "_")) for part in parts)]
    formats = {_ending_of(file.name) or "" for file in files} if format is None else {format}
    if not files or not formats <= set(TABLES):
        return None
    if len(formats) > 1:
        raise DataError(
            f"{given}: holds files of {len(formats)} formats; set dataset.format to one of "
            f"{', '.join(sorted(formats))}."
        )
    return Found(given, formats.pop(), folder, tuple(files), partitions(given, folder, files))


def _texts(given: str, classes: list[Path]) -> tuple[Path, ...]:
    if not classes:
        raise DataError(f"{given}: holds neither files of a known format nor one subfolder of texts per class.")
    if {folder.name.lower() for folder in classes} == {"train", "test"}:
        raise DataError(f"{given}: holds train and test instead of classes; give one as path, the other as test_path.")
    found: list[Path] = []
    for folder in classes:
        _check_name(folder)
        inside = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
        visible = [name for name in sorted(inside) if not any(part.startswith(".") for part in name.parts)]
        if not visible:
            raise DataError(f"{given}: the class folder {shown(folder.name)} is empty; remove it or put texts into it.")
        found.extend(inside[name] for name in visible)
    return tuple(found)


def _check_name(folder: Path) -> None:
    try:
        folder.name.encode()  # it is going to be a label
    except UnicodeEncodeError as error:
        raise DataError(f"{shown(folder.name)}: the name of this class folder is not UTF-8; rename it.") from error


def _matching(given: str, format: str | None) -> Found:
    pattern = str(Path(given).expanduser())
    files = tuple(path for path in sorted(Path(name) for name in glob.glob(pattern, recursive=True)) if path.is_file())
    if not files:
        raise DataError(f"{given}: no file matches this pattern.")
    formats = sorted({_format_of(file) for file in files}) if format is None else [format]
    if len(formats) > 1:
        raise DataError(
            f"{given}: matches files of {len(formats)} formats ({', '.join(formats)}); all must have the same."
        )
    # The plain folders in front do not belong to the files' names, so that a moved folder keeps them.
    return Found(given, formats[0], _fixed(Path(pattern)), files)


def _fixed(pattern: Path) -> Path:
    """Return the plain folders in front of a pattern."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _ending_of(name: str) -> str | None:
    plain = uncompressed_name(name)
    found = next((format for format, endings in ENDINGS.items() if plain.endswith(endings)), None)
    allowed = {**dict.fromkeys((*DELIMITERS, "svmlight"), COMPRESSED), "idx": (".gz",)}
    return found if plain == name.lower() or name.lower().endswith(allowed.get(str(found), ())) else None


def uncompressed_name(file: Path | str) -> str:
    """Return the name of a file in small letters, without the ending of its compression."""
    name = Path(file).name.lower()
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)


def _format_of(path: Path) -> str:
    found = _ending_of(path.name)
    if found is None:
        raise DataError(
            f"{path}: its format is unclear from its name; set dataset.format to one of {', '.join(FORMATS)}."
        )
    return found


def _labels_beside(images: Path, label: str | None) -> Path:
    derived = images.name.replace("images", "labels").replace("idx3", "idx1")
    wanted = images.parent / (label or derived)
    candidates = [wanted, Path(f"{wanted}.gz"), wanted.with_suffix("") if wanted.suffix == ".gz" else wanted]
    found = next((path for path in candidates if path.is_file() and path != images), None)
    if found is None:
        rule = "name their file as label" if label is None else "leave dataset.label out to have them found by name"
        raise DataError(f"{images}: the labels {wanted.name} are not beside the images; {rule}.")
    return found
