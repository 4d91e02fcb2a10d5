"""Every method under one judge: the experiments mnist10 and pcmac without the pipeline around them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import ROOT, Bar, Result, progress
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.record import compete
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import prepare
from ldsvm.experiment.search.worker import Worker
from ldsvm.methods import lookup
from ldsvm.report import tables

FULL: dict[str, list[str]] = {"conf/experiments/mnist10.yaml": [], "conf/experiments/pcmac.yaml": []}
# The same on scikit-learn's digits, which are there in any case, with some of the methods.
SMALL = [
    "dataset={name: digits}", "features=[]", "judge.repeats=1", "claims=[]",
    "methods={ours: {estimator: ldsvm, params: {n_basis: 20}}, NN: {estimator: nearest_neighbour}, "
    "linear SVM: {estimator: linear_svm}, Gaussian SVM: {estimator: gaussian_svm}}",
]  # fmt: skip
QUICK = {
    "conf/experiments/mnist10.yaml": [*SMALL, "split={kind: random, train: 300, validation: 300, test: 300}"],
    "conf/experiments/pcmac.yaml": [
        *SMALL,
        "split={kind: random, train: 300, validation: 300, test: 300}",
        "problems=[{name: odd or even, labels: parity}]",
    ],
}
# The paper's table; other rows are shown, but have no published figure to be near to.
NEAR = ("NN", "linear SVM", "Gaussian SVM, one to all", "LDA (9) + Gaussian SVM", *(
    f"PCA ({L}) + Gaussian SVM" for L in (5, 10, 40)
))  # fmt: skip


def run(quick: bool = False) -> Result:
    with Worker() as worker:
        return _run(worker, quick)


def _run(worker: Worker, quick: bool) -> Result:
    result = Result(settings={"experiments": QUICK if quick else FULL})
    for file, overrides in (QUICK if quick else FULL).items():
        with TemporaryDirectory() as runs:
            config = load_config(file, [*overrides, f"paths.runs={runs}"], root=ROOT)
            outcomes = _contest(config, worker)
        header, rows = tables.detail(outcomes)
        header[2] = "interval or std"
        result.rows += [{"experiment": config.name} | dict(zip(header[:-1], row, strict=False)) for row in rows]
        result.settings[config.name] = {o.method: o.params if o.judged else o.failure for o in outcomes}
        result.bars += _bars(config, {o.method: 100 * o.error for o in outcomes if o.judged})
    return result


def _contest(config: Config, worker: Worker) -> list[Outcome]:
    found, splits = [], prepare(config)
    for name in config.methods:
        results = [
            compete(config, prepared, config.problems[0], name, worker, lambda *_: None, lambda _: None)[0]
            for prepared in splits
        ]
        found.append(Outcome(Path(name), tuple(results)))
        progress(f"{config.name}, {name}: " + (found[-1].failure or f"{100 * found[-1].error:.2f} %"))
    return found


def _bars(config: Config, errors: dict[str, float]) -> list[Bar]:
    published = {figure.method: figure.error for figure in config.published}
    if config.name == "mnist10":
        near = [name for name in NEAR if name in errors]
        return [Bar(f"{name}: |here - published|", abs(errors[name] - published[name]), "<=", 0.5) for name in near]
    if config.name != "pcmac":
        return []
    ours = {name for name, method in config.methods.items() if lookup(method.estimator).iterative}
    paper = [errors[name] for name in published if name in errors and name not in ours]
    others = [errors[name] for name in errors if name not in ours]
    return [
        Bar(f"{name}: error - best of {what}", errors[name] - min(rivals), "<=", 0.0)
        for what, rivals in (("the paper's baselines", paper), ("all baselines", others))
        for name in ours & errors.keys()
    ]


TITLES = {"mnist10": "MNIST, 10,000 training images", "pcmac": "PC or Mac, mean (std) of ten splits"}


def quoted_tables(result: Result) -> str:
    """Return the tables of the page of results: test errors in %, here and in the paper, two methods to a line."""
    return "\n".join(_side_by_side(name, [r for r in result.rows if r["experiment"] == name]) for name in TITLES)


def _side_by_side(name: str, rows: list[dict[str, str]]) -> str:
    config = load_config(f"conf/experiments/{name}.yaml", root=ROOT)
    paper = {figure.method: f"{figure.error:.2f}" for figure in config.published}
    cells = [
        f"{row['method']} | {row['error %']}{_spread(name, row)} | {paper.get(row['method'], '')}"
        for row in rows if row["method"] in config.methods
    ]  # fmt: skip
    half = -(-len(cells) // 2)
    pairs = zip(cells[:half], [*cells[half:], " | | "][:half], strict=True)
    head = f"| {TITLES[name]} | here | paper | | here | paper |\n| --- | --- | --- | --- | --- | --- |\n"
    return head + "".join(f"| {left} | {right} |\n" for left, right in pairs)


def _spread(name: str, row: dict[str, str]) -> str:
    return f" ({row['interval or std']})" if name == "pcmac" else ""
