"""What flows share on the command line: experiment files in, progress out. Imports Prefect only inside a flow run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from uuid import UUID

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from flows import PRODUCTION, ROOT
from ldsvm.datasets.files import snapshots
from ldsvm.datasets.files.find import find
from ldsvm.experiment import prepared
from ldsvm.experiment.config import places
from ldsvm.experiment.config.load import ConfigError, load_config, variants
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production.scoring_rows import places as scored_places
from ldsvm.report import marks
from ldsvm.report.studies.config import StudyConfig, is_study, load_study

QUIET_SECONDS = 5.0
PAGE_SECONDS = 3.0  # each update of Prefect's page is a request
TRIES = 3  # failures in a row after which the bar is given up; a busy server refuses some updates
START = time.monotonic()
console = Console(stderr=True, highlight=False, emoji=False)
ever_shown: list[str] = []


def experiment(config: str, overrides: Sequence[str]) -> Config:
    """Load and check the experiment of a file with "key=value" overrides; raise ConfigError with one sentence.

    Studies and experiments that vary a setting are refused: only the flow pipeline runs them.
    """
    found = load_any(config, overrides)
    if isinstance(found, StudyConfig):
        raise ConfigError(f"{config} is a study; run it with python -m flows pipeline.")
    if found.vary is not None:
        raise ConfigError(f"{config} varies {found.vary.key}; run it with python -m flows pipeline, or set vary=null.")
    return found


def load_any(config: str, overrides: Sequence[str]) -> Config | StudyConfig:
    """Load and check the experiment or study of a file; raise ConfigError with one sentence.

    In runs deployed by `make up`, paths.runs is the folder in LDSVM_RUNS unless an override sets another.
    """
    if places.is_deployed():
        places.confine({"config": ROOT / config}, ROOT, [ROOT / "conf"])
    load = load_study if is_study(config, root=ROOT) else load_config
    found = load(config, _with_service_runs(overrides), root=ROOT)
    if not places.is_deployed():
        return found
    if isinstance(found, StudyConfig):
        places.confine({"paths.cache": found.paths.cache}, ROOT)
        return found
    for one in [found, *(load_variants(found, config, overrides) if found.vary is not None else [])]:
        places.check_deployed(one, ROOT)
    return found


def load_variants(config: Config, path: str, overrides: Sequence[str]) -> list[Config]:
    """Return one experiment for each value of the setting that it varies."""
    return variants(config, path, _with_service_runs(overrides), root=ROOT)


def _with_service_runs(overrides: Sequence[str]) -> list[str]:
    runs = os.environ.get("LDSVM_RUNS")
    return [*([f"paths.runs={json.dumps(runs)}"] if runs else []), *overrides]


def production_section(config: Config | StudyConfig, name: str) -> ProductionConfig:
    """Return the section production of a file; raise ConfigError when it lacks what the flow `name` needs."""
    found = None if isinstance(config, StudyConfig) else config.production
    if found is None:
        raise ConfigError(f"{config.name} has no section production; add one, as in conf/production/digits.yaml.")
    if name == "score" and found.score is None:
        raise ConfigError(f"{config.name} has no section production.score; add one with the keys input and output.")
    return found


def check_inputs(config: Config | StudyConfig, name: str) -> None:
    """Raise DataError with one sentence, before any server starts, when the flow `name` cannot read its input.

    A user's files are read as the flow will read them; the flow then finds them in the cache.
    """
    if not isinstance(config, Config) or name in ("promote", "rollback"):
        return
    if name == "score":
        production_section(config, name)
        spec, _ = scored_places(config, ROOT)
        find(snapshots.plain(spec, config.paths.cache / snapshots.FOLDER))
    elif config.dataset.files is not None:
        with working(f"read {config.dataset.name}"):
            source = prepared.load_source(config)
            if config.vary is None and name != "retrain":  # these draw their splits elsewhere
                prepared.draw_split(config, source, config.seed)


def say(text: str) -> None:
    """Print one line with the seconds since the start; a deployed run logs it to Prefect too."""
    console.print(f"[dim]{time.monotonic() - START:6.1f} s[/dim]  {escape(text)}", soft_wrap=True)
    if os.environ.get("LDSVM_RUNS"):  # of `make up`
        note(text)


def note(text: str) -> None:
    """Write a line into the log of the current Prefect run, if there is one."""
    from prefect import get_run_logger
    from prefect.exceptions import MissingContextError

    with suppress(MissingContextError):
        get_run_logger().info(text)


def run_name() -> str:
    """Return the name of a run, such as "retrain digits 2026-11-29 03:30": flow, model or experiment, and time.

    Prefect calls it when the flow begins. The time is the scheduled one, however late the run begins.
    """
    from prefect.runtime import flow_run

    given, what = flow_run.parameters, ""
    with suppress(Exception):  # what is wrong with the file the flow says itself
        config = load_any(str(given["config"]), tuple(given.get("overrides", ())))
        asked = config.production if isinstance(config, Config) and flow_run.flow_name in PRODUCTION else None
        what = asked.model if asked else config.name
    when = flow_run.scheduled_start_time or datetime.now(UTC)
    words = [flow_run.flow_name, what or Path(str(given.get("config", ""))).stem]
    return " ".join([*filter(None, words), f"{when.astimezone():%Y-%m-%d %H:%M}"])


def tag_run(**facts: str) -> None:
    """Add tags such as "model digits version 3" to Prefect's run, so that its pages can filter by them.

    Errors are ignored. In the other direction, MLflow's runs have the id of Prefect's run as their tag ldsvm.pipeline.
    """
    from prefect.client.orchestration import get_client
    from prefect.runtime import flow_run

    if flow_run.id is None:
        return
    with suppress(Exception), get_client(sync_client=True) as client:
        known = client.read_flow_run(UUID(flow_run.id)).tags
        client.update_flow_run(UUID(flow_run.id), tags=[*known, *(f"{key} {value}" for key, value in facts.items())])


class News:
    """Shows the progress of one piece of work: call it with a text and, if known, the share that is done, 0 to 1."""

    def __init__(self, text: str, status: Status, page: _Page) -> None:
        self._text, self._status, self._page = text, status, page
        self._last, self._printed, self._shown = "", "", time.monotonic()

    def __call__(self, more: str, share: float | None = None) -> None:
        """Show this text instead of the last one."""
        self._last = f"{self._text} · {more}"
        self._status.update(Text(self._last))  # rich would replace codes of emoji in a plain string
        self._page.show(self._last, share)
        if not console.is_terminal and time.monotonic() - self._shown > QUIET_SECONDS:
            self._shown, self._printed = time.monotonic(), self._last
            say(self._last)

    def end(self) -> None:
        """Print the last text, so that it stays on the screen."""
        if self._last != self._printed or not self._last:
            say(self._last or self._text)
        self._page.show(self._last or self._text, 1.0, last=True)


class _Page:
    """A progress bar with a text on the page of Prefect's task run; without `key` there is none."""

    def __init__(self, key: str | None) -> None:
        self._key, self._share, self._shown, self._left = key, 0.0, -PAGE_SECONDS, TRIES
        self._number: UUID | None = None

    def show(self, text: str, share: float | None, last: bool = False) -> None:
        """Show it, at most every PAGE_SECONDS; errors of Prefect are ignored, since they must not end the work."""
        self._share = self._share if share is None else share
        if time.monotonic() - self._shown < PAGE_SECONDS and not last:
            return
        while self._key is not None and self._left:
            self._shown = time.monotonic()
            with suppress(Exception):
                self._send(text)
                self._left = TRIES
                return
            self._left -= 1
            if not last:
                return
            time.sleep(1.0)

    def _send(self, text: str) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        percent, text = round(100 * self._share, 1), marks.escape(text)
        if self._number is None:
            self._number = cast(UUID, create_progress_artifact(percent, self._key, text))
        else:
            update_progress_artifact(self._number, percent, text)


def key(*words: str) -> str:
    """Return an artifact key for Prefect: lower-case ASCII letters and digits, and dashes."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else "-" for c in word.lower()) for word in words)


@contextmanager
def working(text: str, page: str | None = None, long: bool = False) -> Iterator[News]:
    """Show that work on `text` goes on. Yields a function that reports progress; its last report stays on the screen.

    page: key of a progress bar on the page of the current task run. long: whether the work takes many seconds.
    """
    if not console.is_terminal and (long or not ever_shown):
        say(f"{text} …")  # without a terminal there is no moving line, so long waits are announced
    ever_shown.append(text)
    with console.status(Text(text)) as status:  # draws nothing without a terminal
        news = News(text, status, _Page(page))
        yield news
    news.end()
