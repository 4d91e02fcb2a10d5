"""The command line: python -m flows NAME CONFIG [key=value ...]."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import logging
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flows import PRODUCTION, ROOT

if TYPE_CHECKING:
    from ldsvm.experiment.config.schema import Config
    from ldsvm.report.studies.config import StudyConfig

NAMES = {
    "pipeline": "run the whole experiment: prepare the data, search with every method, write the report",
    "prepare": "only prepare the data: load, check, split and cache them",
    "search": "only search with our method, then write the report",
    "baselines": "only search with the methods that ours is compared with, then write the report",
    "report": "write the report again from stored results",
    "sync": "send stored results to MLflow, after its store could not be reached during a run",
    "retrain": "look for new rows and drift, train a challenger, promote it if better (needs a section production)",
    "score": "score the rows of production.score.input with the champion",
    "promote": "promote the challenger in shadow to champion (needs production.rollout)",
    "rollback": "make the previous champion the champion again",
}
SCHEMA = "print the JSON schema of an experiment file (takes no CONFIG)"
NEW = "write an experiment file for your own data; see python -m flows new --help"
SERVE = "serve predictions of the champion over HTTP; see python -m flows serve --help"
CHECK = "find problems in an experiment within a minute, before you run it; see python -m flows check --help"
DATA = "list, fetch or verify the data sets of the catalogue; see python -m flows data --help"
KEPT = "finished work is kept; run the same command again to continue."
EXAMPLES = """
with your own data, step by step:
  python -m flows new my.csv --label outcome   # writes conf/my.yaml; read it
  python -m flows check conf/my.yaml           # finds problems within a minute
  python -m flows pipeline conf/my.yaml        # compares the methods: search, test error, report
  python -m flows retrain conf/my.yaml         # trains the model to use; run it again when new rows arrive
  python -m flows score conf/my.yaml production.score='{input: new.csv, output: scored.csv}'

examples:
  python -m flows pipeline conf/digits.yaml
  python -m flows pipeline conf/digits.yaml seed=1 methods.ours.params.n_basis=50
  python -m flows search conf/experiments/mnist10.yaml 'methods.ours.search.C=[1, 10]'
  python -m flows pipeline conf/own_table.yaml dataset.path=my.csv dataset.label=outcome
  python -m flows retrain conf/production/digits.yaml dataset.path=incoming/
  python -m flows score conf/production/digits.yaml production.score='{input: new.csv, output: scored.parquet}'
  python -m flows serve conf/production/digits.yaml
  python -m flows promote conf/production/digits.yaml
  python -m flows data list

CONFIG is merged over conf/base.yaml. key=value overrides one entry: the key is dotted, the value is YAML.
Results, MLflow's store and logs go to the folder paths.runs (runs/), prepared data to paths.cache.
exit codes: 0 success, 1 failure during the run, 2 a mistake in the command, the file or the data.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one flow, or one of the commands `new`, `check`, `serve` and `data`, and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["schema"]:
        from ldsvm.experiment.config.schema import Config

        print(json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False))
        return 0
    if given[:1] == ["data"]:
        return _data(given[1:])
    if given[:1] in (["new"], ["check"], ["serve"]):
        return int(importlib.import_module(f"flows.{given[0]}").main(given[1:]))
    asked = _parser().parse_args(given)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without µ shows ? instead of failing
    from flows import _cli
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.experiment.config.places import is_full

    try:
        read = _cli.load_any if asked.name == "pipeline" else _cli.experiment
        config = read(asked.config, asked.overrides)
        if asked.name in PRODUCTION:
            _cli.production_section(config, asked.name)
    except ConfigError as error:
        return _complain(str(error), 2)
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    log = config.paths.runs / "logs" / f"{asked.name}-{config.name}-{stamp}.log"
    try:
        return _run(asked, config, log)
    except KeyboardInterrupt:
        return _complain(f"stopped; {KEPT}", 130)
    except Exception as error:  # one sentence on the screen, the traceback in the log
        from ldsvm.datasets import DataError
        from ldsvm.experiment.search.failure import sentence
        from ldsvm.production.retraining import Alarm
        from ldsvm.tracking.server import redacted

        if isinstance(error, ConfigError | DataError):
            return _complain(str(error), 2)
        if is_full(config.paths.runs):
            return _complain(f"{asked.name} failed: no space left in {config.paths.runs}; {KEPT}", 1)
        where = ""
        if log.exists():
            logging.getLogger("flows").exception("the flow failed")
            where = f" (log: {log})"
        if isinstance(error, Alarm):
            return _complain(redacted(f"{error}{where}"), 1)
        return _complain(redacted(f"{asked.name} failed: {sentence(error)}{where}"), 1)


def _data(arguments: Sequence[str]) -> int:
    from flows import data
    from ldsvm.experiment.config.load import ConfigError, cache_folder

    overrides = [text for text in arguments if "=" in text and not text.startswith("-")]
    try:
        folder = cache_folder(overrides, root=ROOT)
    except ConfigError as error:
        return _complain(str(error), 2)
    try:
        return data.main([text for text in arguments if text not in overrides], cache_dir=folder)
    except OSError as error:
        return _complain(f"paths.cache is {folder}, which cannot be used ({error.strerror}).", 2)


def _run(asked: argparse.Namespace, config: Config | StudyConfig, log: Path) -> int:
    from flows import environment
    from flows._cli import check_inputs, working
    from ldsvm.experiment.compare.results import MethodFailed
    from ldsvm.experiment.config.places import check_runs
    from ldsvm.tracking.client import Tracker, TrackingFailed

    check_inputs(config, asked.name)
    environment.check_api()
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)  # unwind as on Ctrl-C: mark runs, stop the server
    runs = config.paths.runs
    check_runs(runs)
    environment.configure(runs)
    handler = _log_to(log)
    with environment.api(runs) as wait_for_api:
        with working("start the tracking store and Prefect"):
            try:
                experiment_id = Tracker(runs, config.name).experiment_id
            except TrackingFailed as error:
                return _complain(str(error), 2)  # nothing has started yet, so the path is wrong
            flow = getattr(importlib.import_module(f"flows.{asked.name}"), asked.name)
            _set_only_handler(handler)
            wait_for_api()
        state = flow(asked.config, asked.overrides, return_state=True)
        found = state.result(raise_on_failure=False)
        own = isinstance(found, MethodFailed | TrackingFailed)  # the report is written, so it can be shown
        if isinstance(found, BaseException) and not own:
            raise found
        if asked.name in PRODUCTION and not own:
            print(f"{found}\nMLflow UI   {_pages(runs)}, then the experiment {config.name}")
        elif found is not None:
            own_runs = None if asked.name == "report" else str(state.state_details.flow_run_id)
            _show(asked, config, experiment_id, own_runs)
    return _complain(f"{found} (log: {log})", 1) if own else 0


def _show(asked: argparse.Namespace, config: Config | StudyConfig, experiment_id: str, pipeline: str | None) -> None:
    from rich.console import Console

    from flows._cli import load_variants
    from ldsvm.experiment.config.schema import Config
    from ldsvm.report import curves, tables
    from ldsvm.report.publish import REPORT
    from ldsvm.tracking.client import link
    from ldsvm.tracking.server import remote

    console = Console(highlight=False, emoji=False)
    console.width = max(console.width, 100)  # without a terminal rich assumes 80 and folds numbers
    experiment = config if isinstance(config, Config) else None
    variants = load_variants(experiment, asked.config, asked.overrides) if experiment else []
    for title, header, rows in curves.summary(config.results, experiment, variants):
        console.print(tables.terminal(title, header, rows))
    pages = _pages(config.paths.runs)
    if remote() is None:
        ui = [("MLflow UI", pages), ("", f"then open {link(experiment_id, 5000, pipeline)}")]
    else:
        ui = [("MLflow UI", f"{pages}, then the experiment {config.name}")]
    for name, what in [("report", config.results / REPORT), *ui]:
        console.print(f"{name:12s}{what}", soft_wrap=True, markup=False)


def _pages(runs: Path) -> str:
    """Return where MLflow's pages are: the user's server, or the command that starts one for a folder of runs.

    The command is `make ui` where there is a Makefile; a container image has none.
    """
    from ldsvm.tracking.server import redacted, remote

    if (server := remote()) is not None:
        return redacted(server)
    if (ROOT / "Makefile").is_file():
        return shlex.join(["make", "-C", str(ROOT), "ui", f"RUNS={runs}".replace("$", "$$")])
    store = f"sqlite:///{runs / 'mlflow.db'}"
    return shlex.join(["mlflow", "server", "--port", "5000", "--backend-store-uri", store])


def _log_to(file: Path) -> logging.Handler:
    """Send every log line to a file, so that the screen shows progress and results only."""
    file.parent.mkdir(parents=True, exist_ok=True)
    logging.raiseExceptions = False  # on a full disk every line would be a traceback on the screen
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    _set_only_handler(handler)
    return handler


class _Redacting(logging.Formatter):
    """Format log lines and tracebacks, leaving out the user and password of URLs."""

    def format(self, record: logging.LogRecord) -> str:
        from ldsvm.tracking.server import redacted

        return redacted(super().format(record))


def _set_only_handler(handler: logging.Handler) -> None:
    """Log through this handler alone; remove those that Prefect and MLflow added when they were imported."""
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # one line for each request otherwise
    every = [one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    for logger in every:
        if logger.name.split(".")[0] in ("prefect", "mlflow"):
            logger.handlers = []
            logger.propagate = True


def _show_warning(message: Warning | str, *_: object) -> None:
    """Print a warning as one sentence, without the line of code that raised it."""
    from flows._cli import say
    from ldsvm.tracking.server import redacted

    say(redacted(f"warning: {message}"))


def _complain(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(
        f"  {name:10s} {what}"
        for name, what in {"new": NEW, "check": CHECK, **NAMES, "serve": SERVE, "data": DATA, "schema": SCHEMA}.items()
    )
    parser = argparse.ArgumentParser(
        prog="python -m flows",
        description=f"Run an experiment described by a YAML file.\n\nnames:\n{names}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", choices=NAMES, help="what to run; see above")
    parser.add_argument("config", metavar="CONFIG", help="the experiment, such as conf/digits.yaml")
    parser.add_argument("overrides", metavar="key=value", nargs="*", default=[], help="override entries of the file")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before anything has begun
        sys.exit(_complain("stopped.", 130))
