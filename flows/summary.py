"""What the command line prints at the end: tables of any kind of experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flows.environment import repeated
from ldsvm.experiment.config.schema import Config
from ldsvm.report import claims, tables
from ldsvm.report.curves import table
from ldsvm.report.publish import collect
from ldsvm.report.studies.config import StudyConfig

Shown = tuple[str, list[str], list[list[str]]]
VERDICTS = ["claim", "holds here", "measured"]


def summary(config: Config | StudyConfig, path: str, overrides: Sequence[str]) -> Iterator[Shown]:
    """Yield title, header and rows of each table: results, then the claims on them."""
    if isinstance(config, Config):
        each = repeated(config, path, overrides)
        for problem in config.problems:
            series = [collect(one, problem) for one in each]
            if config.vary is not None:
                yield (f"{problem.name}, test set", *table(config, series))
            elif series[0]:
                yield (f"{problem.name}, test set", *tables.main(series[0]))
    for name, verdicts in claims.read(config.results).items():
        if verdicts:
            yield f"{name}, claims", VERDICTS, claims.rows(verdicts)
