"""Figures and texts of the report of an experiment."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.atomic import replacing
from ldsvm.datasets.summary import facts as summary_facts
from ldsvm.datasets.words import slug
from ldsvm.experiment.compare.judge import shown_rows
from ldsvm.experiment.compare.outcome import Outcome, percent
from ldsvm.experiment.compare.record import LATENT, PLANE, answers
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import as_yaml
from ldsvm.experiment.config.schema import Config, ProblemConfig
from ldsvm.experiment.config.split import CrossValidationConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.mac.state import Reason
from ldsvm.methods import lookup
from ldsvm.metrics import DEFAULT, Answers
from ldsvm.report import claims, differences, html, metric_tables, tables
from ldsvm.report.marks import escape
from ldsvm.report.plotting import contest as plotting
from ldsvm.report.plotting.answers import MethodAnswers, answer_curves
from ldsvm.report.plotting.projections import Panel
from ldsvm.report.plotting.projections import projections as draw_projections
from ldsvm.tracking.provenance import commit

PACKAGES = ("ldsvm", "numpy", "scipy", "scikit-learn", "numba", "mlflow", "prefect", "matplotlib")
PROTOCOL = (
    "All methods have the same splits. The parameters of each are chosen on the validation set{}; ties go to fewer "
    "basis functions, then to the smaller C. The chosen model is fitted {}, and scored once on the test set. Training "
    "time is the time of the fit on the training set, with all threads of the experiment and with one. Training memory "
    "is the peak of that fit, above what its process used before. Prediction time is the median over repeated "
    "predictions of the whole test set on one thread, after a warm-up. Search time is the sum over all trials on one "
    "split. If a fit needs more memory than there is, or more time or memory than the experiment allows, the table "
    "gives the reason instead of figures."
)
FITS = {
    False: "once, on the training set without the validation set",
    True: "on the training set, which the figures show, and then on training and validation set together, for the "
    "number of iterations that the first fit kept",
}
SEVERAL = (
    " Errors are means over the splits, times and sizes medians. Figures, feature steps and the stored model are those "
    "of the first split."
)
FOLDS = (
    "Cross-validation: {} folds{}, so that every row is tested {}. Of the rows outside a fold, {:g} % are the "
    "validation set{}. "
)
MOST_COLUMNS = 20  # whose importances are drawn
LABELS = {"original": "as in the data", "parity": "0 for even digits, 1 for odd ones"}
SIZES = (
    "Basis functions are the functions that a prediction evaluates, each counted once: training points for nearest "
    "neighbours and kernel projections, distinct support vectors for Gaussian SVMs (the folded table sums them over "
    "the binary SVMs), centres for ours and for RBF networks, and landmarks, random features, hidden units or leaves. "
    "Linear methods have none."
)


def pictures(config: Config, problem: ProblemConfig, prepared: Prepared, outcome: Outcome) -> list[html.Picture]:
    """Return the figures of one of our methods on the first split, the latent space and the training; else none."""
    result, found = outcome.first, []
    if result.failure is None and result.n_latent is not None:
        found.append(_latent_picture(config, problem, prepared, outcome))
    if result.failure is None and result.history:
        found.append(_convergence_picture(result, problem))
    if result.failure is None and result.importances:
        found.append(_importances_picture(result, problem))
    return found


def title_of(config: Config, problem: ProblemConfig) -> str:
    """Return the title of a problem's figures."""
    return config.title if len(config.problems) == 1 else f"{config.title}, {problem.name}"


def overview(config: Config, problem: ProblemConfig, outcomes: list[Outcome]) -> html.Picture:
    """Return the figure that compares all methods."""
    judged = [o for o in outcomes if o.judged]
    ours = [o.method for o in outcomes if lookup(o.first.estimator).iterative]
    words = "; ".join(f"{o.method} {percent(o.error)} with {_count(o.n_basis)} basis functions" for o in judged)
    drawing = plotting.overview(judged, title_of(config, problem), ours)
    caption = (
        "Sorted by error, the smallest on top; further left is better. Methods without basis functions have no point "
        "in the middle panel."
    )
    return html.Picture(
        "overview", drawing, f"Test error, basis functions, prediction time: {words}.", caption, wide=True
    )


def _count(n_basis: float | None) -> str:
    return f"{n_basis:g}" if n_basis else "no"


def projections(
    config: Config, problem: ProblemConfig, prepared: Prepared, outcomes: Sequence[Outcome], where: str = ""
) -> list[html.Picture]:
    """Return the figure of the first split as each method reduces it; none unless there are several to compare.

    where: words on which of several experiments this is.
    """
    shown = [o for o in outcomes if o.judged and (o.folder / LATENT).is_file()]
    if len(shown) < 2 or all(o.first.n_latent is not None for o in shown):
        return []
    y = _shown_labels(prepared, problem.labels)
    panels = [Panel(f"{o.method}: {percent(o.error)}", *_latent(config, problem, prepared, o), y) for o in shown]
    alt = f"The training set as reduced by {', '.join(o.method for o in shown)}."
    most = min(len(panels[0].Z), plotting.MOST_POINTS)
    caption = (
        f"{most:,} training points as reduced by each method, with its test error. A single dimension is spread out by "
        "class; of more than two, the plane that separates the classes best is shown. A method that was trained on "
        "finer classes than the problem's shows them in its panel."
    )
    drawing = draw_projections(panels, f"{title_of(config, problem)}{where}")
    return [html.Picture("projections", drawing, alt, caption, wide=True)]


def answer_pictures(config: Config, problem: ProblemConfig, outcomes: Sequence[Outcome]) -> list[html.Picture]:
    """Return the figure of the probabilities on the first split's test set; none where no method's are kept."""
    methods = [
        MethodAnswers(o.method, found, found.costs is not None)
        for o in outcomes
        if o.judged and (found := _answers(o)) is not None
    ]
    if not methods:
        return []
    names = ", ".join(one.name for one in methods)
    two = len(methods[0].answers.classes) == 2
    what = "ROC, precision–recall and reliability curves" if two else "Reliability curves"
    first = f" The positive class is {methods[0].answers.classes[1]}." if two else ""
    caption = (
        "On the dotted diagonal of reliability, predictions are correct as often as their probabilities say. "
        f"Methods without probabilities have no curve.{first}"
        f"{' Points: the thresholds of least cost.' * methods[0].marked}"
    )
    drawing = answer_curves(methods, title_of(config, problem))
    return [html.Picture("answers", drawing, f"{what} of {names} on the test set.", caption, wide=two)]


def _answers(outcome: Outcome) -> Answers | None:
    """Return the answers on the first split, None where they are not kept or have no probabilities."""
    found = answers(outcome.folder)
    return None if found is None or found.probabilities is None else found


def _latent(config: Config, problem: ProblemConfig, prepared: Prepared, outcome: Outcome) -> tuple[Any, Any]:
    """Return the training rows that are shown as a method sees them (n, L), and the labels that it learnt (n,)."""
    labels = config.methods[outcome.method].labels or problem.labels
    return np.load(outcome.folder / LATENT), _shown_labels(prepared, labels)


def _shown_labels(prepared: Prepared, labels: str) -> Any:
    y = prepared.arrays("train", labels)[1]
    return named_labels(y[shown_rows(len(y))], labels)


def named_labels(y: Any, labels: str) -> Any:
    """Return labels (N,) as figures name them."""
    return np.where(y == 0, "even", "odd") if labels == "parity" else y


def _latent_picture(config: Config, problem: ProblemConfig, prepared: Prepared, outcome: Outcome) -> html.Picture:
    (Z, y), result = _latent(config, problem, prepared, outcome), outcome.first
    L, K, n = Z.shape[1], len(np.unique(y)), prepared.sizes["train"]
    alt = f"Training set of {n} points in the latent space of {result.method}, {K} classes."
    views = {1: "one latent dimension, spread out by class.", 2: "two latent dimensions."}
    view = views.get(L, f"the first two principal components of {L} latent dimensions.")
    if (file := outcome.folder / PLANE).is_file():
        view += " Beside it, the plane of the scores: the closer to the corner of a class, the more certain."
    part = f"{plotting.MOST_POINTS:,} of the " if n > plotting.MOST_POINTS else "The "
    caption = f"{part}{n:,} training points in the latent space of {result.method}: {view}"
    by_scores = np.load(file) if file.is_file() else None
    drawing = plotting.latent_space(Z, y, f"Latent space of {result.method}, {problem.name}", by_scores)
    return html.Picture(f"latent_space_{slug(result.method)}", drawing, alt, caption)


def _convergence_picture(result: Result, problem: ProblemConfig) -> html.Picture:
    steps, reasons = len(result.history) - 1, {reason.name.lower(): reason.value for reason in Reason}
    stop = reasons.get(result.stop_reason or "", "of an unknown reason")
    alt = f"Objectives and errors of {result.method} over {steps} iterations of its training."
    drawing = plotting.convergence(result.history, f"Training of {result.method}, {problem.name}", result.best_iter)
    return html.Picture(
        f"convergence_{slug(result.method)}",
        drawing,
        alt,
        f"{steps} MAC iterations after the start (iteration 0). Training stopped because {stop}.",
    )


def _importances_picture(result: Result, problem: ProblemConfig) -> html.Picture:
    shares = dict(islice(result.importances.items(), MOST_COLUMNS))
    first, n = ", ".join(islice(shares, 3)), len(result.importances)
    drawing = plotting.importances(shares, f"Columns that {result.method} uses, {problem.name}")
    few = f"The {len(shares)} most important of {n:,} columns" if n > len(shares) else f"All {n:,} columns"
    return html.Picture(
        f"importances_{slug(result.method)}",
        drawing,
        f"Importance of each column to {result.method}; the most important are {first}.",
        f"{few}: how strongly the scores of {result.method} change with each, per standard deviation. Columns with the "
        "same information share their importance.",
    )


def protocol(config: Config) -> str:
    """Return how the figures of an experiment were found."""
    objective, split, folds = config.search.objective, config.split, ""
    if isinstance(split, CrossValidationConfig):
        again, often = (
            ("", "once") if split.repeats == 1 else (f", drawn {split.repeats} times", f"{split.repeats} times")
        )
        whole = ", and rows of a group stay together" if config.dataset.group else ""
        folds = FOLDS.format(split.folds, again, often, 100 * split.validation, whole)
    return folds + PROTOCOL.format("" if objective == DEFAULT else f" by {objective}", FITS[config.judge.refit])


def note(config: Config, problem: ProblemConfig, outcomes: list[Outcome]) -> str:
    """Return the Markdown text of one problem for its page in the tracking store."""
    found = [tables.markdown(*tables.main(outcomes))]
    if metric_tables.names(outcomes):
        found += [tables.markdown(*metric_tables.metric_rows(outcomes)), *metric_tables.reasons(outcomes)]
    header, rows = differences.difference_rows(config, outcomes)
    if rows:
        found += [tables.markdown(header, rows), differences.sentence(config, outcomes)]
    return "\n\n".join([f"## {escape(problem.name)}", *found, protocol(config), SIZES]) + "\n"


def part(config: Config, problem: ProblemConfig, outcomes: list[Outcome]) -> dict[str, Any]:
    """Return what the page shows of one problem, but for figures."""
    about = (
        f"Labels: {LABELS[problem.labels]}. {_sentence_on_labels(config, problem, outcomes)}"
        "Error and prediction time are measured on the test set; our method is highlighted."
        f"{SEVERAL if len(outcomes[0].results) > 1 else ''}"
    )
    return {
        "name": problem.name,
        "about": about,
        "outcomes": outcomes,
        "objective": config.search.objective,
        "ours": next((o.method for o in outcomes if lookup(o.first.estimator).iterative), None),
        "differences": (found := differences.difference_rows(config, outcomes)),
        "tested": differences.sentence(config, outcomes) if found[1] else "",
        "chosen": {o.method: tables.point(o.params) for o in outcomes if o.judged},
        "claims": claims.table(claims.judge_claims(config, [(problem.name, outcomes)])),
        "published": config.published and {"table": tables.published(config, outcomes), "sources": _sources(config)},
    }


def _sentence_on_labels(config: Config, problem: ProblemConfig, outcomes: Sequence[Outcome]) -> str:
    """Return a sentence about methods that learn other labels than the problem's."""
    names = [o.method for o in outcomes if config.methods[o.method].labels not in (None, problem.labels)]
    if not names:
        return ""
    text = "was trained on the labels as in the data: its predictions are converted, the errors in its figures are not"
    return f"{' and '.join(names)} {text}. "


def _sources(config: Config) -> str:
    """Return where published figures are from, with the methods' names but for the source of most."""
    named: dict[str, list[str]] = {}
    for figure in config.published:
        named.setdefault(figure.source, []).append(figure.method)
    first, *others = sorted(named, key=lambda source: -len(named[source]))
    return "; ".join([first, *(f"{', '.join(named[source])}: {source}" for source in others)])


def closing(config: Config, splits: Sequence[Prepared]) -> dict[str, Any]:
    """Return what the page's end shows: how it was measured, on what data, with which versions."""
    first = splits[0]
    sizes = ", ".join(f"{part} {n:,}" for part, n in first.sizes.items())
    steps = "; ".join(first.features) or "as they are"
    data = {
        "data": f"{first.dataset['name']}: {first.dataset['source']}",
        "licence": first.dataset["licence"],
        "citation": first.dataset["citation"] or "–",
        "content sha256": first.dataset["sha256"],
        **summary_facts(first.summary),
        "features": f"{first.n_features:,}: {steps}",
        "split": f"{config.split.kind}: {sizes}; digest {', '.join(prepared.split for prepared in splits)}",
        "prepared as": first.folder.name,
        "seed": ", ".join(str(prepared.seed) for prepared in splits),
    }
    return {
        "protocol": protocol(config),
        "sizes": SIZES,
        "data": data,
        "remarks": list(dict.fromkeys(note for prepared in splits for note in prepared.notes)),
        "machine": circumstances(config.n_jobs),
        "configuration": as_yaml(config),
    }


def circumstances(n_jobs: int) -> dict[str, str]:
    """Return machine and versions."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, n_jobs {n_jobs}"
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    known = {"machine": machine, "Python": platform.python_version(), "packages": versions}
    found = commit(Path(__file__).parent)
    return known | ({"commit": found} if found else {})


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # this package itself, if it is not installed
        return "not installed"


def write(file: Path, content: str | bytes) -> Path:
    """Write a file at once or not at all."""
    with replacing(file) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return file
