"""Command line: one benchmark, its table, a line per bar, and the exit status."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.harness import write_json
from ldsvm.datasets import DataError

NAMES = {
    "accuracy": "test error on MNIST against the paper's figures (minutes)",
    "z_step": "the exact Z-step against OSQP and qpsolvers",
    "g_step": "the interior-point g-step against LIBSVM and LIBLINEAR (minutes)",
    "fit": "a whole fit and prediction against scikit-learn's Gaussian SVC",
    "adaptive": "learned centres: error, size and training time against SVC and Nystroem (half an hour)",
    "predict": "prediction with learned centres against SVC, all at once and one by one (minutes)",
    "scale": "time and memory of a fit with learned centres over the training rows (minutes)",
    "baselines": "every method the paper compares with and today's, on MNIST and two newsgroups (an hour)",
    "data": "seconds and peak memory of preparing MNIST and 20 newsgroups",
    "story": "a model's life in production: retrained, refused, promoted, scoring, serving, rolled back (minutes)",
    "pipeline": "what Prefect, Ray, MLflow and the journal cost beside the work that they arrange (ten minutes)",
    "shards": "one fit on blocks of rows: the same model, two million rows, Ray, its costs (40 minutes, 2 GB of disk)",
    "imports": "the cost of `import ldsvm` against `import sklearn.svm`",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run one benchmark. Exit status 0 when every bar holds, 1 when one falls short.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="benchmarks:\n"
        + "\n".join(f"  {name:9s} {text}" for name, text in NAMES.items())
        + "\n\nAll but pipeline, story and imports need MNIST, data and baselines also 20 newsgroups: set\n"
        "LDSVM_DATA_HOME to their folder, or be online. With --quick none needs more than what is installed.",
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help="one of the names below")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write rows, bars, machine and versions here")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, on scikit-learn's digits, to see that it works: bars are shown but do not count;"
        " seconds, but minutes for pipeline, shards and story, which start servers",
    )
    arguments = parser.parse_args()
    if arguments.json and (arguments.json.is_dir() or not arguments.json.resolve().parent.is_dir()):
        parser.error(f"--json {arguments.json} must be a file in a folder that exists")
    try:
        result = import_module(f"benchmarks.{arguments.name}").run(quick=arguments.quick)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(result.table())
    for bar in result.bars:
        print(bar)
    if arguments.json:
        write_json(arguments.json, arguments.name, result, arguments.quick)
    return 0 if arguments.quick or all(bar.holds for bar in result.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
