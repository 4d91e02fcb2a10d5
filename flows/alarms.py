"""Alarms that flows raise: what a run adds to them, hooks of Prefect, and events that its automations can react to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from flows._cli import load_any, say
from ldsvm.experiment.config.places import is_deployed
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.production.alarms import Kind, Message, journal, send
from ldsvm.production.retraining import Alarm


def raise_alarm(config: Config, kind: Kind, sentence: str, **more: str) -> None:
    """Tell people, if the experiment's production.alarms names this kind; more: version, data, run, link."""
    asked = config.production or ProductionConfig(model="none")
    if kind in asked.alarms:
        model = asked.model if config.production else ""
        from prefect.runtime import flow_run

        run = {} if flow_run.id is None else {"run": str(flow_run.name), "link": _page(str(flow_run.id))}
        _tell(Message(kind, sentence, model=model, **{**run, **more}), config.paths.runs)


def on_failure(flow: Any, flow_run: Any, state: Any) -> None:
    """Tell people that a run has failed, or that it was stopped since its data should be looked at; a hook."""
    from ldsvm.experiment.search.failure import sentence
    from ldsvm.tracking.server import redacted

    error: Any = state.message or "the reason is unknown"
    with suppress(Exception):
        error = state.result(raise_on_failure=False)
    looked_at = isinstance(error, Alarm)  # whose every line is a reason
    said = sentence(error) if isinstance(error, Exception) and not looked_at else str(error)
    kind: Kind = "drift" if looked_at else "failed"
    _of_run(flow_run, kind, redacted(" ".join(said.split())))


def on_crashed(flow: Any, flow_run: Any, state: Any) -> None:
    """Tell people that a deployed run has died; a hook, which the worker calls when the run's process was killed."""
    if is_deployed() and not _is_known(_page(str(flow_run.id))):  # else it is the user's own command, most often Ctrl-C
        name, why = _name(flow_run), str(state.message).partition(". ")[0]
        _of_run(flow_run, "crashed", f"{name} has crashed ({why})")


def on_refused(flow_run: Any, error: Exception) -> None:
    """Tell people that a deployed run could not even load its flow, after which no hook is called."""
    from ldsvm.experiment.search.failure import sentence

    _of_run(flow_run, "failed", sentence(error))


def _is_known(link: str) -> bool:
    """Whether an alarm on this deployed run's failure was sent before; its process then ends with an error too."""
    return any(one.get("link") == link for one in journal(Path(os.environ["LDSVM_RUNS"])))


def _of_run(flow_run: Any, kind: Kind, sentence: str) -> None:
    given = flow_run.parameters
    more = {"run": _name(flow_run), "link": _page(str(flow_run.id))}
    try:
        config = load_any(str(given["config"]), tuple(given.get("overrides", ())))
    except Exception:  # which may be why it failed
        config = None
    if isinstance(config, Config):
        raise_alarm(config, kind, sentence, **more)
    elif config is not None or is_deployed():
        _tell(Message(kind, sentence, **more), config.paths.runs if config else Path())


def _tell(message: Message, runs: Path) -> None:
    """Send a message. runs: of the experiment; a deployed run may have been refused since it names another folder."""
    send(message, Path(os.environ["LDSVM_RUNS"]) if is_deployed() else runs, say)
    if is_deployed():  # a server is there, whose automations may send it elsewhere, such as by e-mail
        from prefect.events import emit_event

        resource = {"prefect.resource.id": f"ldsvm.{message.model or 'run'}"}
        with suppress(Exception):
            emit_event(f"ldsvm.alarm.{message.kind}", resource=resource, payload=message.body())


def _name(flow_run: Any) -> str:
    """Return the name that a run has now: the worker knows only the one that it had before it began."""
    from prefect.client.orchestration import get_client

    with suppress(Exception), get_client(sync_client=True) as client:
        return str(client.read_flow_run(UUID(str(flow_run.id))).name)
    return str(flow_run.name)


def _page(number: str) -> str:
    """Return the page of a run of `make up`; others have no page that stays.

    In a container the address of the API is none that a browser finds, so PREFECT_UI_URL says where the pages are.
    """
    pages = os.environ.get("PREFECT_UI_URL") or os.environ.get("PREFECT_API_URL", "").removesuffix("/api")
    return f"{pages.rstrip('/')}/runs/flow-run/{number}" if is_deployed() and pages else ""
