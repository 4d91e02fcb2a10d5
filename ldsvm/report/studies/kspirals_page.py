"""The page of `kspirals`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from ldsvm.report.html import Picture
from ldsvm.report.plotting import kspirals as plotting
from ldsvm.report.studies import base, spirals
from ldsvm.report.studies.collapse import least_from_simplex
from ldsvm.report.studies.kspirals import LONG_TOL, Params, some

POINT_BAR, SIMPLEX_BAR = 0.1, 0.1  # NC1 and NC2 below which classes count as points, and these as a simplex
Fact = dict[str, Any]

NC1 = (
    "The first measure of neural collapse (Papyan, Han and Donoho, 2020), of F(X) on the training samples: trace(S_W "
    "S_B^+) / K with the covariances S_W within and S_B between classes; 0 when each class is a point."
)
NC2 = (
    "The second measure of neural collapse (Zhu et al., 2021): |G / |G| - S / |S||, with the Gram matrix G of the "
    "centred class means and S = I - 11'/K of a regular simplex; 0 if the means are its corners, as two always are."
)


def show(params: Params, found: base.Found) -> base.Page:
    """Return the page of what was found."""
    fits = found.facts["fits"]
    tables = [
        _table(
            "Training error, %",
            params,
            fits,
            lambda fact: f"{100 * fact['train_error']:.2f}",
            "The paper shows pictures only, without errors from L = K - 1 on.",
        ),
        _table("NC1, spread within classes", params, fits, lambda fact: f"{fact['nc1']:.2g}", NC1),
        _table("NC2, distance of the class means from a simplex", params, fits, lambda fact: f"{fact['nc2']:.3f}", NC2),
        _ideal_table(_ideal(fits), found.facts["long"], params),
        spirals.choice_table(found.facts["tried"], "Means over all K, with L = K - 1 from the simplex"),
    ]
    pictures = [*(_spaces(params, found, start) for start in params.starts), *_curves(fits)]
    return base.Page(_lede(params, fits), claims(params, fits), tables, pictures, _protocol(params))


def claims(params: Params, fits: list[Fact]) -> list[base.Claim]:
    """Return what the section observes, start by start, and whether it holds here."""
    for_each = [claim for start in params.starts for claim in _claims(start, _of(fits, start))]
    return [*for_each, _two_dimensions(params, fits)]


def _spaces(params: Params, found: base.Found, start: str) -> Picture:
    arrays, rows, fits = found.arrays, [], _of(found.facts["fits"], start)
    errors = {(fact["K"], fact["L"]): fact["train_error"] for fact in fits}
    for K in params.n_classes:
        cells = {L: (arrays[f"Z {K} {start} {L}"], errors[K, L]) for L in params.n_latent}
        y = some(params, K) // params.n_samples
        rows.append(plotting.Row(K, arrays[f"X {K}"], y, arrays[f"g {K} {start}"], cells, spirals.EDGE))
    return Picture(
        f"latent-{start}",
        plotting.latent_spaces(rows),
        f"A row of panels for each number of spirals, a column for each number of latent dimensions, from the {start} "
        f"start. Training errors with K - 1 dimensions: "
        f"{_listed(_ideal(fits), 'train_error', 100, ' %')}.",
        f"Start: {start}. First column: the spirals with the boundary at L = K - 1. Others: training samples in the "
        "latent space, for L > 2 in its first two principal components, for L = 1 on a line for each class; below, the "
        "training error. Framed: L = K - 1.",
        wide=True,
    )


def _curves(fits: list[Fact]) -> tuple[Picture, Picture]:
    errors = Picture(
        "errors",
        plotting.errors(fits),
        "Training errors in per cent, a row for each number of classes and a column for each number of latent "
        "dimensions, as in the table.",
        "Training errors in %, from each start: darker is larger. Framed: L = K - 1.",
        wide=True,
    )
    collapse = Picture(
        "collapse",
        plotting.collapse(fits, least_from_simplex),
        "NC1 and NC2 over the latent dimensions, a line for each number of classes, a row of panels for each start; "
        "the tables give the numbers.",
        "Over the latent dimensions L, from each start: NC1, the spread within classes, and NC2, the distance of the "
        "class means from a regular simplex. Rings mark L = K - 1, dotted lines the smallest NC2 that so few "
        "dimensions allow.",
        wide=True,
    )
    return errors, collapse


def _of(fits: list[Fact], start: str) -> list[Fact]:
    return [fact for fact in fits if fact["start"] == start]


def _ideal(fits: list[Fact]) -> list[Fact]:
    return [fact for fact in fits if fact["L"] == fact["K"] - 1]


def _listed(fits: list[Fact], key: str, scale: float = 1.0, unit: str = "") -> str:
    return ", ".join(f"K = {fact['K']}: {scale * fact[key]:.2g}{unit}" for fact in fits)


def _lede(params: Params, fits: list[Fact]) -> str:
    parts = []
    for start in params.starts:
        ideal = _ideal(_of(fits, start))
        worst, far = max(100 * fact["train_error"] for fact in ideal), max(fact["nc2"] for fact in ideal)
        kept = "on" if far < SIMPLEX_BAR else "not on"
        parts.append(
            f"from the {start} start the training error is at most {worst:.2g} %, with the classes {kept} the corners "
            f"of a regular simplex (NC2 up to {far:.2g})"
        )
    return f"With K - 1 latent dimensions, for every K: {'; '.join(parts)}."


def _claims(start: str, fits: list[Fact]) -> list[base.Claim]:
    ideal, more = _ideal(fits), [fact for fact in fits if fact["L"] >= fact["K"]]
    worst = max(more, key=lambda fact: fact["train_error"], default=ideal[0])
    said = [
        (
            "no training error with L = K - 1",
            all(fact["train_error"] == 0 for fact in ideal),
            f"Training errors: {_listed(ideal, 'train_error', 100, ' %')}.",
        ),
        (
            "no training error with more dimensions either",
            all(fact["train_error"] == 0 for fact in more),
            f"The largest is {100 * worst['train_error']:.2g} %, at K = {worst['K']} and L = {worst['L']}.",
        ),
        (
            f"with L = K - 1 each class is like a point (taken as: NC1 below {POINT_BAR:g})",
            all(fact["nc1"] < POINT_BAR for fact in ideal),
            f"NC1: {_listed(ideal, 'nc1')}.",
        ),
        (
            f"with L = K - 1 the classes lie on the corners of a regular simplex (taken as: NC2 below {SIMPLEX_BAR:g})",
            all(fact["nc2"] < SIMPLEX_BAR for fact in ideal),
            f"NC2: {_listed(ideal, 'nc2')}.",
        ),
    ]
    return [base.Claim(f"Paper, {start} start: {text}.", holds, measured) for text, holds, measured in said]


def _two_dimensions(params: Params, fits: list[Fact]) -> base.Claim:
    two = [fact for fact in fits if fact["L"] == 2 < fact["K"] - 1]
    each = (f"{start} start, {_listed(_of(two, start), 'train_error', 100, ' %')}" for start in params.starts)
    return base.Claim(
        "Paper: two dimensions do not always suffice for one-vs-all SVMs.",
        any(fact["train_error"] > 0 for fact in two),
        f"Training errors with L = 2: {'; '.join(each)}.",
    )


def _table(title: str, params: Params, fits: list[Fact], cell: Callable[[Fact], str], note: str = "") -> base.Table:
    cells = {(fact["start"], fact["K"], fact["L"]): cell(fact) for fact in fits}
    rows = [
        [start, str(K), *(cells[start, K, L] for L in params.n_latent)]
        for start, K in product(params.starts, params.n_classes)
    ]
    return base.Table(title, ["start", "K", *(f"L = {L}" for L in params.n_latent)], rows, ("start",), note)


def _ideal_table(stopped: list[Fact], long: list[Fact], params: Params) -> base.Table:
    """L = K - 1: results with early stopping, and what longer training changes."""
    rows = [
        [
            fact["start"], str(fact["K"]), training, str(fact["iterations"]), f"{fact['nested']:.4g}",
            f"{100 * fact['train_error']:.2f}", f"{100 * fact['test_error']:.2f}", f"{fact['nc1']:.2g}",
            f"{fact['nc2']:.3f}",
        ]
        for pair in zip(stopped, long, strict=True)
        for fact, training in zip(pair, ("stopped early", "long"), strict=True)
    ]  # fmt: skip
    header = [
        "start", "K", "training", "MAC iterations", "nested objective", "training error, %", "fresh spirals, %", "NC1",
        "NC2",
    ]  # fmt: skip
    note = (
        f"Long: without validation spirals, to a tolerance of {LONG_TOL:g} instead of 0.01, {params.long_iter:,} "
        "iterations at most. The simplex start begins on the corners, so it only shows whether training stays there; "
        "the random start has to find them. The hinge loss rewards margins, not tight classes, so the objective can "
        "fall further while the classes spread again."
    )
    return base.Table("L = K - 1, and what longer training changes", header, rows, ("start", "training"), note)


def _protocol(params: Params) -> str:
    return (
        f"K spirals of {params.turns:g} turns with {params.n_samples:,} samples each and Gaussian noise of standard "
        f"deviation {params.noise:g}; every sample is a centre; one-vs-all SVMs; lambda = {params.alpha:g} as in "
        "the paper. Width and C are the same for all K and L and chosen on validation spirals. Validation and fresh "
        "spirals differ from the training spirals only in their noise. Training stops when the "
        f"validation error has not fallen for {params.patience} iterations; mu starts at 2 and grows by half. The "
        "simplex start puts every class on a corner of a regular simplex, as the paper does; the random start gives "
        "every class one random centroid. The paper's other start, a random point for each sample, does not work here: "
        "with four or more classes, exactly solved one-vs-all SVMs get zero weights from it. The paper gives no turns, "
        "noise, widths or numerical results."
    )
