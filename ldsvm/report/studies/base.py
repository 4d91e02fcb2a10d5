"""What every study has: parameters that a file sets, a computation whose outcome is kept, and a page made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ldsvm.experiment.config.schema import Frozen
from ldsvm.report.claims import Claim as Claim
from ldsvm.report.html import Picture

# The modules of this folder that are studies, by the name that files give them.
NAMES = ("alternating", "dial", "kspirals", "speedup", "spirals2", "starts")


class Params(Frozen):
    """Base of a study's parameters: frozen, unknown keys refused, a default for each."""


@dataclass(frozen=True)
class Context:
    """Where a study runs. cache: folder of prepared data. tell: shows progress, a text and the share done, 0 to 1."""

    seed: int
    n_jobs: int
    cache: Path
    tell: Callable[[str, float], None] = lambda text, share: None


@dataclass(frozen=True)
class Found:
    """What a study computed: plain values that JSON holds, and arrays by name. All of its page is made from these."""

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table of cells as they are shown. text: names of the columns that hold words."""

    title: str
    header: list[str]
    rows: list[list[str]]
    text: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Page:
    """What is shown of a study. lede: the answer in a sentence or two. protocol: how it was measured."""

    lede: str
    claims: list[Claim]
    tables: list[Table]
    pictures: list[Picture]
    protocol: str


@dataclass(frozen=True)
class Study:
    """What a study's module holds, and the one of its page where that is another.

    compute: does the work; the same parameters, seed and machine give the same outcome, but for times. show: makes the
    page, without computing anything anew.
    """

    Params: type[Params]
    compute: Callable[[Any, Context], Found]
    show: Callable[[Any, Found], Page]


def study(name: str) -> Study:
    """Return a study by its name; raise KeyError with the names that there are."""
    if name not in NAMES:
        raise KeyError(f'"{name}"; allowed: {", ".join(NAMES)}')
    module, page = (f"ldsvm.report.studies.{name}{end}" for end in ("", "_page"))
    computes: Any = import_module(module)
    shows: Any = import_module(page) if find_spec(page) else computes
    return Study(computes.Params, computes.compute, shows.show)
