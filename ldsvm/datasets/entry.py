"""Entries of the catalogue of data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One raw file: its name, array shape, and the size and SHA-256 of its uncompressed bytes."""

    name: str
    shape: tuple[int, ...]
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set of the catalogue.

    ``sources`` maps a kind of source to its sentence, in the order to try them. ``sha256`` is that of the content, ""
    for generated data, whose content depends on options. ``rows`` and ``test_rows`` (0: no official test set) count
    samples; ``features`` is None for texts; ``size`` counts the bytes of the raw data, uncompressed. ``folder`` is
    the data set's own folder in the user's ``data_home``; files are looked for in ``data_home`` too, unless
    ``only_in_folder``, for files named like another data set's. ``files`` are the raw files that have checksums of
    their own.
    """

    name: str
    title: str
    licence: str
    citation: str
    sources: Mapping[str, str]
    rows: int
    test_rows: int = 0
    features: int | None
    classes: int
    size: int
    sha256: str = ""
    folder: str = ""
    only_in_folder: bool = False
    files: tuple[File, ...] = ()
