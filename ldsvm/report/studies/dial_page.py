"""The page of the dial: curves over basis functions and over time, and what was expected of them."""

from __future__ import annotations

from typing import Any

from ldsvm.experiment.compare.judge import wilson
from ldsvm.report.html import Picture
from ldsvm.report.plotting.dial import Line, dial
from ldsvm.report.studies.base import Claim, Found, Page, Table
from ldsvm.report.studies.dial import NAMES, RIDGE, SVM, Params

FEWER, FASTER = 10, 100  # how many times, where errors do not differ by more than chance

Run = dict[str, Any]


def show(params: Params, found: Found) -> Page:
    """Make the page: errors over sizes and times, and the smallest map that is as good as the Gaussian SVM."""
    runs = found.facts["runs"]
    lines = {name: [run for run in runs if run["method"] == name] for name in NAMES}
    (svm,) = (run for run in runs if run["method"] == "svm")
    highest = 100 * wilson(svm["n_wrong"], svm["n_test"])[1]
    good = [run for run in lines["learned"] if _error(run) <= highest]
    smallest = min(good, key=lambda run: run["n_basis"], default=None)
    return Page(
        lede=_lede(lines, svm, smallest),
        claims=_claims(params, lines, svm, smallest),
        tables=[_errors(params, lines), _details(lines, svm)],
        pictures=[_picture(lines, svm)],
        protocol=_protocol(params),
    )


def _error(run: Run) -> float:
    """Test error in per cent."""
    return float(100 * run["n_wrong"] / run["n_test"])


def _lede(lines: dict[str, list[Run]], svm: Run, smallest: Run | None) -> str:
    start = f"The {SVM} has {_error(svm):.2f} % test error with {svm['n_basis']:,} support vectors"
    if smallest is None:
        learned, fixed = lines["learned"][-1], lines["fixed"][-1]
        return (
            f"{learned['n_basis']:,} learned basis functions have {_error(learned):.2f} % test error, and as many "
            f"k-means centres {_error(fixed):.2f} %. {start}; more basis functions than here are needed to match it."
        )
    ratio = svm["predict_us"] / smallest["predict_us"]
    return (
        f"{start}; {smallest['n_basis']:,} learned basis functions have {_error(smallest):.2f} % and predict "
        f"{ratio:,.0f} times as fast."
    )


def _claims(params: Params, lines: dict[str, list[Run]], svm: Run, smallest: Run | None) -> list[Claim]:
    wrong = []
    for learned, *others in zip(*lines.values(), strict=True):
        best = min(others, key=_error)
        if _error(learned) >= _error(best):
            wrong.append(f"{learned['size']:,}: {_error(learned):.2f} %, {NAMES[best['method']]} {_error(best):.2f} %")
    total = len(params.sizes)
    measured = f"At {total - len(wrong)} of {total} sizes" + (f"; not at {'; '.join(wrong)}." if wrong else ".")
    claims = [
        Claim("At every size, learned centres are better than fixed ones and Nystroem features.", not wrong, measured)
    ]
    size, speed = (0.0, 0.0) if smallest is None else (
        svm["n_basis"] / smallest["n_basis"], svm["predict_us"] / smallest["predict_us"],
    )  # fmt: skip
    nothing = f"At these sizes no learned map is as good as the {SVM}."
    text = f"{FEWER} times fewer basis functions reach the {SVM}'s error, within its 95 % interval."
    claims.append(Claim(text, size >= FEWER, f"{size:.1f} times fewer." if size else nothing))
    text = f"That map predicts at least {FASTER} times as fast as the {SVM} on one thread, from principal components."
    claims.append(Claim(text, speed >= FASTER, f"{speed:,.0f} times as fast." if speed else nothing))
    return claims


def _errors(params: Params, lines: dict[str, list[Run]]) -> Table:
    header = ["test error %, basis functions", *(f"{size:,}" for size in params.sizes)]
    rows = [[NAMES[name], *(f"{_error(run):.2f}" for run in runs)] for name, runs in lines.items()]
    return Table("Test error by number of basis functions", header, rows)


def _details(lines: dict[str, list[Run]], svm: Run) -> Table:
    header = [
        "method",
        "basis functions",
        "validation error %",
        "test error %",
        "predict µs",
        "kB",
        "train s",
        "alpha",
        "C",
    ]
    rows = [
        [
            NAMES.get(run["method"], SVM), f"{run['n_basis']:,}", f"{100 * run['valid_error']:.2f}",
            f"{_error(run):.2f}", f"{run['predict_us']:.1f}", f"{run['parameter_bytes'] / 1000:.0f}",
            f"{run['train_s']:.1f}",
            f"{run['alpha']:g}" if "alpha" in run else "–", f"{run['C']:g}",
        ]
        for run in [*(run for runs in lines.values() for run in runs), svm]
    ]  # fmt: skip
    note = "Training time of the chosen model; prediction time per sample on one thread, all test rows at once."
    return Table("Every size", header, rows, text=("method",), note=note)


def _picture(lines: dict[str, list[Run]], svm: Run) -> Picture:
    drawn = [
        Line(
            NAMES[name],
            [run["n_basis"] for run in runs],
            [run["predict_us"] for run in runs],
            [_error(r) for r in runs],
        )
        for name, runs in lines.items()
    ]
    drawn.append(Line(SVM, [svm["n_basis"]], [svm["predict_us"]], [_error(svm)]))
    alt = "Test error against basis functions and against prediction time; the tables below have the numbers."
    caption = "Lower and further left is better. Both axes are logarithmic."
    return Picture("dial", dial(drawn, "Error against cost"), alt, caption, wide=True)


def _protocol(params: Params) -> str:
    ridges = ", ".join(f"{alpha:g}" for alpha in params.alphas)
    rows = "the official test set" if params.test == 0 else f"{params.test:,} test rows"
    return (
        f"{params.dataset}: {params.train:,} training rows; {params.validation:,} validation rows for early stopping "
        f"and the choice of C (and, for learned centres, of the ridge among {ridges}; with fixed ones it is "
        f"{RIDGE:g}); {rows}, on which each model is scored once. All methods use {params.components} principal "
        f"components, fitted to the training rows. Fixed centres, landmarks and the {SVM} have gamma "
        f"{params.gamma:g}; learned widths start at {params.learned_gamma:g}."
    )
