"""The command `python -m flows check`: find problems in an experiment before it runs. It starts no server."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from collections.abc import Sequence

EXAMPLES = """
examples:
  python -m flows check conf/my.yaml
  python -m flows check conf/my.yaml dataset.label=outcome 'dataset.columns={zip: category}'

Reads and splits the data and computes the features as the pipeline does (which then finds them in the cache), and fits
each method once on at most 500 rows. Prints "ready" in the last line, or what must be changed first.
exit codes: 0 ready, 2 something must be changed first.
"""
WIDTH = 110


def main(arguments: Sequence[str]) -> int:
    """Print what is found, and return the exit code."""
    asked = _parser().parse_args(arguments)
    from flows import _cli
    from ldsvm.experiment import trial_run
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.experiment.search.worker import Worker

    try:
        config = _cli.experiment(asked.config, asked.overrides)
        with _cli.working(f"check {asked.config}") as news, Worker() as worker:
            remarks = list(trial_run.look_over(config, worker, news))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    for kind, title in (("fact", "Found"), ("odd", "Worth a look"), ("wrong", "Must be changed")):
        of_kind = [remark for remark in remarks if remark.kind == kind]
        if of_kind:
            print(f"{title}:")
        for remark in of_kind:
            start = f"  {remark.about:14s}"
            print(textwrap.fill(f"{start} {remark.text}", WIDTH, subsequent_indent=" " * 17, break_long_words=False))
    if any(remark.kind == "wrong" for remark in remarks):
        return 2
    print(f"ready: python -m flows pipeline {shlex.join([asked.config, *asked.overrides])}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows check",
        description="Find problems in an experiment before you spend time on training.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", metavar="CONFIG", help="the experiment, such as conf/my.yaml")
    parser.add_argument("overrides", metavar="key=value", nargs="*", default=[], help="override entries of the file")
    return parser
