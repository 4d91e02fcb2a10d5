"""How flexible F must be: two spirals, maps from linear to one basis function for each sample (fig. f:2spirals)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ldsvm.estimator import LDSVMClassifier
from ldsvm.report.html import Picture
from ldsvm.report.plotting import spirals as plotting
from ldsvm.report.studies import base, spirals
from ldsvm.report.studies.collapse import within_to_between
from ldsvm.typing import Array


class Params(spirals.SpiralParams):
    """The paper's protocol, as far as stated: 1,000 samples per class, two latent dimensions, random centres.

    n_basis: sizes of the RBF maps; one that is at least the number of samples takes every sample as a centre. spread:
    standard deviation of the starting coordinates, which are random sample by sample.
    """

    n_samples: int = Field(default=1000, ge=2, le=100_000)
    turns: float = Field(default=2.0, ge=0, le=100)
    noise: float = Field(default=0.02, ge=0, le=10)
    n_basis: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (4, 10, 20, 40, 100, 200, 2000)
    spread: spirals.Positive = 0.01


def compute(params: Params, context: base.Context) -> base.Found:
    """Choose width and penalty with the largest map, then fit and measure each map, and its error at each width."""
    rows = spirals.data(params, 2, context.seed)
    tried = _tried(params, rows, context)
    best = spirals.choice(tried)
    widths = _by_width(params, rows, context, best["C"])
    facts: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {"X": rows.train[0].astype(np.float32), "y": rows.train[1]}
    for i, n_basis in enumerate((0, *params.n_basis)):
        fitted = spirals.fit(_model(params, context, n_basis, best["gamma"]), rows, [best["C"]])[0]
        facts.append({"n_basis": n_basis} | _measured(fitted, rows))
        arrays |= {f"{name}_{i}": array for name, array in _drawn(fitted, rows, params.pixels).items()}
    return base.Found({"tried": tried, "maps": facts, "widths": widths}, arrays)


def show(params: Params, found: base.Found) -> base.Page:
    """Make the page: boundary and latent space of every map, its numbers, and what the paper observes."""
    maps = found.facts["maps"]
    picture = Picture(
        "maps",
        plotting.by_map([_panel(found, i, fact) for i, fact in enumerate(maps)]),
        "Two rows of panels, one column for each map. Above, the two spirals and the curve that separates them; below, "
        f"the same samples in the latent space. Training errors: {_listed(maps)}.",
        "Two spirals. Above: training samples and decision boundary for a linear map and for M basis functions. Below: "
        "the samples in the latent space with the SVM's boundary (line) and margins (dashed), each panel in its "
        "own units.",
        wide=True,
    )
    return base.Page(_lede(maps), _claims(maps), _tables(params, found), [picture], _protocol(params))


def _tried(params: Params, rows: spirals.Data, context: base.Context) -> list[dict[str, float]]:
    """Validation error of the largest map at each width and penalty."""
    tried = []
    for step, gamma in enumerate(params.gammas):
        context.tell(f"gamma = {gamma:g}", 0.4 * step / len(params.gammas))
        estimator = _model(params, context, max(params.n_basis), gamma)
        models = spirals.fit(estimator, rows, params.penalties)
        tried += spirals.means(gamma, params.penalties, [spirals.valid_errors(models)])
    return tried


def _by_width(params: Params, rows: spirals.Data, context: base.Context, C: float) -> list[list[float]]:
    """Training errors, a row for each RBF map and a column for each width."""
    errors = []
    for step, n_basis in enumerate(params.n_basis):
        context.tell(f"M = {n_basis:,} at each width", 0.4 + 0.4 * step / len(params.n_basis))
        fits = [spirals.fit(_model(params, context, n_basis, gamma), rows, [C])[0] for gamma in params.gammas]
        errors.append([spirals.error(fitted, rows.train) for fitted in fits])
    return errors


def _model(params: Params, context: base.Context, n_basis: int, gamma: float) -> LDSVMClassifier:
    """0 basis functions are the linear map."""
    N = 2 * params.n_samples
    # random sample by sample: the simplex would put all samples on a line from the start
    init = params.spread * np.random.default_rng(context.seed).standard_normal((N, 2))
    kind: dict[str, Any] = {"map": "linear"} if n_basis == 0 else {"n_basis": n_basis if n_basis < N else None}
    return spirals.model(params, context, n_components=2, gamma=gamma, init=init, **kind)


def _measured(fitted: LDSVMClassifier, rows: spirals.Data) -> dict[str, Any]:
    """What the table shows of a map; line: share of the latent variance along the first principal direction."""
    Z, y = fitted.transform(rows.train[0]), rows.train[1]
    spread = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2
    return {
        "train_error": spirals.error(fitted, rows.train),
        "test_error": spirals.error(fitted, rows.test),
        "neighbour_error": _neighbour_error(fitted, rows),
        "nc1": within_to_between(Z, y),
        "line": float(spread[0] / spread.sum()),
        "iterations": int(fitted.best_iter_),
        "stop": fitted.stop_reason_,
    }


def _neighbour_error(fitted: LDSVMClassifier, rows: spirals.Data) -> float:
    """Test error of the nearest neighbour in the latent space."""
    from sklearn.neighbors import KNeighborsClassifier

    nearest = KNeighborsClassifier(1).fit(fitted.transform(rows.train[0]), rows.train[1])
    return float(np.mean(nearest.predict(fitted.transform(rows.test[0])) != rows.test[1]))


def _drawn(fitted: LDSVMClassifier, rows: spirals.Data, pixels: int) -> dict[str, Array]:
    """Latent coordinates, decision values over the square, and the SVM (its two weights and its bias)."""
    values = fitted.decision_function(spirals.square(pixels)).reshape(pixels, pixels)
    svm = np.append(fitted.latent_coef_[0], fitted.intercept_[0])
    return {"Z": fitted.transform(rows.train[0]).astype(np.float32), "g": values.astype(np.float32), "svm": svm}


def _panel(found: base.Found, i: int, fact: dict[str, Any]) -> plotting.MapPanel:
    a = found.arrays
    title = f"{_name(fact)}\n{100 * fact['train_error']:.3g} % wrong"
    return plotting.MapPanel(title, a["X"], a["y"], a[f"g_{i}"], a[f"Z_{i}"], a[f"svm_{i}"], spirals.EDGE)


def _name(fact: dict[str, Any]) -> str:
    return "linear" if fact["n_basis"] == 0 else f"M = {fact['n_basis']:,}"


def _listed(maps: list[dict[str, Any]]) -> str:
    return ", ".join(f"{_name(fact)} {100 * fact['train_error']:.3g} %" for fact in maps)


def _lede(maps: list[dict[str, Any]]) -> str:
    solved = [fact for fact in maps if fact["train_error"] == 0]
    linear = f"A linear map gets {100 * maps[0]['train_error']:.1f} % of the training samples wrong"
    if not solved:
        return f"{linear}; none of the maps separates the two spirals."
    spread = ", ".join(f"{fact['nc1']:.2g} with {fact['n_basis']:,}" for fact in (maps[1], maps[-1]))
    return (
        f"{linear}; {solved[0]['n_basis']:,} basis functions separate the two spirals without an error. NC1, the "
        f"spread within classes, is {spread} basis functions."
    )


def _claims(maps: list[dict[str, Any]]) -> list[base.Claim]:
    """The four observations of the section, and the remark on nearest neighbours."""
    rbf, enough = maps[1:], [fact for fact in maps if fact["n_basis"] >= 100]
    nc1 = [fact["nc1"] for fact in rbf]
    listed = ", ".join(f"{_name(fact)} {fact['nc1']:.2g}" for fact in rbf)
    last, chance = maps[-1], 100 * maps[0]["train_error"]
    lines = ", ".join(f"{_name(fact)} {100 * fact['line']:.1f} %" for fact in rbf)
    return [
        base.Claim(
            "Paper: with a linear map the classes overlap severely (taken as: over a quarter of the samples wrong).",
            chance > 25, f"The training error is {chance:.1f} %.",
        ),
        base.Claim(
            "Paper: the more flexible the map, the more the classes collapse (taken as: NC1 falls with every M).",
            all(after < before for before, after in pairwise(nc1)), f"NC1: {listed}.",
        ),
        base.Claim(
            "Paper: a few basis functions classify perfectly, 100 more than suffice.",
            bool(enough) and all(fact["train_error"] == 0 for fact in enough), f"Training errors: {_listed(maps)}.",
        ),
        base.Claim(
            "Paper: with every sample a centre, nearest neighbour in the latent space would do very well (taken as: at "
            "most 1 % of fresh samples wrong).",
            last["neighbour_error"] <= 0.01, f"It gets {100 * last['neighbour_error']:.2f} % wrong.",
        ),
        base.Claim(
            "Paper: the samples in the latent space lie nearly on a line, so one dimension is enough for two classes "
            "(taken as: 95 % of the variance along it).",
            all(fact["line"] >= 0.95 for fact in rbf), f"Share of the variance along the line: {lines}.",
        ),
    ]  # fmt: skip


def _tables(params: Params, found: base.Found) -> list[base.Table]:
    maps, tried = found.facts["maps"], found.facts["tried"]
    rows = [
        [
            _name(fact), f"{100 * fact['train_error']:.2f}", f"{100 * fact['test_error']:.2f}",
            f"{100 * fact['neighbour_error']:.2f}", f"{fact['nc1']:.2g}", f"{100 * fact['line']:.1f}",
            str(fact["iterations"]),
        ]
        for fact in maps
    ]  # fmt: skip
    header = [
        "map", "training error, %", "error on fresh spirals, %", "nearest neighbour in latent space, %", "NC1",
        "variance along a line, %", "MAC iterations",
    ]  # fmt: skip
    note = "NC1 is the spread within classes in units of the distance between them. The paper shows pictures only."
    return [
        base.Table("What each map makes of two spirals", header, rows, text=("map",), note=note),
        _width_table(params, found),
        spirals.choice_table(tried, f"The map of {max(params.n_basis):,} basis functions"),
    ]


def _width_table(params: Params, found: base.Found) -> base.Table:
    rows = [
        [f"M = {n_basis:,}", *(f"{100 * error:.2f}" for error in errors)]
        for n_basis, errors in zip(params.n_basis, found.facts["widths"], strict=True)
    ]
    return base.Table(
        "Training error at other widths, %",
        ["map", *(f"gamma = {gamma:g}" for gamma in params.gammas)],
        rows,
        text=("map",),
        note="At the C that was chosen: how many basis functions suffice depends on their width.",
    )


def _protocol(params: Params) -> str:
    return (
        f"Two spirals of {params.turns:g} turns with {params.n_samples:,} samples each and Gaussian noise of standard "
        f"deviation {params.noise:g}; two latent dimensions; centres drawn at random from the samples; lambda = "
        f"{params.alpha:g} as in the paper. Width and C are the same for all maps, and chosen with the largest map on "
        "validation spirals, much as the paper takes the width from a Gaussian SVM. Validation and fresh spirals "
        "differ from the training spirals only in their noise; fresh ones are used for measuring only. "
        f"Training starts from random coordinates, normal with standard deviation {params.spread:g}, and stops "
        f"when the validation error has not fallen for {params.patience} iterations; mu starts at 2 and grows by half. "
        "The Z-step moves a sample only across the boundary, never along it, so the spread along the boundary is "
        "what the map keeps of the start. The paper gives no turns, noise, widths or numerical results."
    )
