"""The page of the study of starts, from what it measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ldsvm.experiment.judge import wilson
from ldsvm.report.html import Picture
from ldsvm.report.plotting.starts import Curve, curves
from ldsvm.report.tables import seconds
from ldsvm.studies.base import Claim, Found, Page, Table

if TYPE_CHECKING:
    from ldsvm.studies.starts import Params

NAMES = {"simplex": "simplex", "random": "random centroids", "rows": "random rows"}
PAPER_SIMPLEX, PAPER_RANDOM, PAPER_ERROR = 1, 18, 2.99  # iterations, iterations and test error % on MNIST, L = 10
ALIKE = 0.1  # relative difference of nested objectives that still counts as similar: ours, the paper gives none
Run = dict[str, Any]


def show(params: Params, found: Found) -> Page:
    """Make the page: iterations, objectives and errors of each start, and curves of every run."""
    groups = {p.name: [run for run in found.facts["runs"] if run["problem"] == p.name] for p in params.problems}
    claims = [claim for name, runs in groups.items() for claim in _claims(name, _by_start(runs))]
    tables = [_summary(name, _by_start(runs)) for name, runs in groups.items()]
    mnist = [name for name in groups if any(p.name == name and p.dataset == "mnist" for p in params.problems)]
    tables += [_paper(name, _by_start(groups[name])) for name in mnist[:1]]
    tables += [_by_C(name, _by_start(runs), params.C) for name, runs in groups.items()]
    return Page(
        lede=_lede({name: _by_start(runs) for name, runs in groups.items()}),
        claims=claims,
        tables=tables,
        pictures=[_picture(k, name, runs) for k, (name, runs) in enumerate(groups.items())],
        protocol=_protocol(params),
    )
