"""From the results of an experiment to its report: figures, tables, one page."""

from __future__ import annotations

import os
import platform
import secrets
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import yaml

from ldsvm.experiment.config import Config, ProblemConfig
from ldsvm.experiment.prepared import Prepared
from ldsvm.experiment.record import percent
from ldsvm.experiment.results import Result, slug
from ldsvm.report import html, plotting, tables

PACKAGES = ("ldsvm", "numpy", "scipy", "scikit-learn", "numba", "mlflow", "prefect", "matplotlib")
PROTOCOL = (
    "Every method has the same split. Its grid is compared on the validation set, "
    "the best point is fitted once on the training set alone (not again on training and validation data together), "
    "and one judge scores it once on the test set. Ties go to fewer basis functions, then to the smaller C. "
    "Training time is that of the one fit of the chosen point; prediction time is the median over repeated "
    "predictions of the whole test set on one thread, after one to warm up."
)
LABELS = {"original": "as in the data", "parity": "0 for even digits, 1 for odd ones"}
SIZES = (
    "Basis functions are what a prediction must evaluate: training points for nearest neighbours, distinct support "
    "vectors for the Gaussian SVM (one machine per pair of classes on a shared list), centres for ours; a linear SVM "
    "has none."
)


def pictures(prepared: Prepared, problem: ProblemConfig, results: dict[Path, Result]) -> list[html.Picture]:
    """Return the figures of one problem. results: its results by their folders."""
    found = [_size_picture(problem, list(results.values()))]
    for folder, result in results.items():
        if result.failure:
            continue
        if (folder / "latent.npy").is_file():
            found.append(_latent_picture(folder, result, problem, prepared))
        if result.history:
            found.append(_convergence_picture(result, problem))
    return found


def _size_picture(problem: ProblemConfig, results: list[Result]) -> html.Picture:
    judged = [(r.method, r.score) for r in results if r.score]
    words = "; ".join(f"{name} {percent(s.error)} with {s.n_basis or 'no'} basis functions" for name, s in judged)
    png = plotting.error_over_size(results, f"Error against size, {problem.name}")
    return html.Picture(
        "error_over_size", png, f"Test error over basis functions: {words}.", "Lower left is better.", wide=True
    )


def _latent_picture(folder: Path, result: Result, problem: ProblemConfig, prepared: Prepared) -> html.Picture:
    Z = np.load(folder / "latent.npy")
    _, y = prepared.arrays("train", problem.labels)
    alt = f"Training set of {len(Z)} points in the latent space of {result.method}, {len(np.unique(y))} classes."
    views = {1: "one latent dimension, spread out by class.", 2: "two latent dimensions."}
    view = views.get(Z.shape[1], f"{Z.shape[1]} latent dimensions, seen in the plane that shows the classes apart.")
    part = f"{plotting.MOST_POINTS:,} of the " if len(Z) > plotting.MOST_POINTS else "The "
    caption = f"{part}{len(Z):,} training points as {result.method} sees them: {view}"
    png = plotting.latent_space(Z, y, f"Latent space, {problem.name}")
    return html.Picture(f"latent_space_{slug(result.method)}", png, alt, caption)


def _convergence_picture(result: Result, problem: ProblemConfig) -> html.Picture:
    steps, stop = len(result.history) - 1, result.stop_reason or "no reason given"
    alt = f"Objectives and errors of {result.method} over {steps} iterations of its training."
    png = plotting.convergence(result.history, f"Training of {result.method}, {problem.name}", result.best_iter)
    return html.Picture(
        f"convergence_{slug(result.method)}", png, alt, f"{steps} MAC iterations after the start (0); stopped: {stop}."
    )


def note(problem: ProblemConfig, results: list[Result]) -> str:
    """Return the Markdown text of one problem for its page in the tracking store."""
    return f"## {problem.name}\n\n{tables.markdown(tables.MAIN, tables.main_rows(results))}\n\n{PROTOCOL}\n\n{SIZES}\n"


def problem_part(problem: ProblemConfig, results: list[Result], shown: list[html.Picture], ours: str) -> str:
    """Return the page's part on one problem. ours: the method to stress."""
    failed = [r for r in results if r.failure]
    parts = [
        html.heading(problem.name),
        html.paragraph(
            f"Labels: {LABELS[problem.labels]}. Error and prediction time are of the test set; ours is marked."
        ),
        html.table(tables.DETAIL[:-1], [row[:-1] for row in tables.detail_rows(results)], strong=ours),
        html.heading("Chosen parameters", 3),
        html.facts({r.method: tables.point(r.params) for r in results if r.score}),
        *(html.paragraph(f"{r.method} failed: {r.failure}") for r in failed),
        html.figures(shown),
        html.details("Errors in each class", html.table(*tables.class_rows(results), strong=ours)),
    ]
    for result in results:
        inner = html.table(*tables.trial_rows(result), text=["remark"])
        parts.append(html.details(f"{result.method}: {len(result.trials)} points of the search", inner))
        if result.score:
            inner = html.table(*tables.confusion_rows(result))
            parts.append(html.details(f"{result.method}: confusion matrix (counts of test samples)", inner))
        if result.notes:
            parts.append(html.paragraph(f"{result.method}: {'; '.join(result.notes)}", "soft"))
    return "\n".join(parts)


def closing(config: Config, prepared: Prepared) -> str:
    """Return the page's end: how it was measured, on what data, with which versions."""
    sizes = ", ".join(f"{part} {n:,}" for part, n in prepared.sizes.items())
    data = {
        "data": f"{prepared.dataset['name']}: {prepared.dataset['source']}",
        "licence": prepared.dataset["licence"],
        "citation": prepared.dataset["citation"],
        "content sha256": prepared.dataset["sha256"],
        "inputs": f"{prepared.n_features} features, preprocess: {prepared.preprocess}",
        "split": f"{config.split.kind}: {sizes}; digest {prepared.split}",
        "seed": str(config.seed),
    }
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, n_jobs {config.n_jobs}"
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return "\n".join(
        [
            html.heading("How it was measured"),
            html.paragraph(PROTOCOL),
            html.paragraph(SIZES),
            html.heading("Data"),
            html.facts(data),
            html.heading("Machine and versions"),
            html.facts({"machine": machine, "Python": platform.python_version(), "packages": versions}),
            html.details("The whole configuration", html.code(settings(config))),
        ]
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # such as this package itself, run from a checkout without an installation
        return "not installed"


def settings(config: Config) -> str:
    """Return the configuration as YAML, without the folders of this machine."""
    text: str = yaml.safe_dump(config.model_dump(mode="json", exclude={"paths"}), sort_keys=False, allow_unicode=True)
    return text


def write(file: Path, content: str | bytes) -> Path:
    """Write a file at once or not at all."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    return file
