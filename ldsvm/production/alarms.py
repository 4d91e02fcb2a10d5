"""Alarms for people: each is a line of RUNS/alarms.jsonl, and sent to a webhook where there is one. No framework.

The address of the webhook is a secret: it comes from the environment, and no message, log or file of ours has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import Any, Literal, get_args

from ldsvm.atomic import alone, append_line
from ldsvm.experiment.config.alarm_kinds import AlarmKind

Kind = AlarmKind | Literal["given_up"]  # the last: a server that is not started again
KINDS: tuple[Kind, ...] = (*get_args(AlarmKind), "given_up")
VARIABLE = "LDSVM_WEBHOOK"
FILE_VARIABLE = "LDSVM_WEBHOOK_FILE"  # of a file with the address, as secrets are handed to containers
JOURNAL = "alarms.jsonl"
PAUSES = (1.0, 3.0, 9.0)  # seconds between the tries
TIMEOUT = 5.0  # seconds of one try
REPEAT_SECONDS = 3600.0  # an alarm that says the same is not sent again before
BUSY = (408, 425, 429)  # answers, besides those from 500 on, after which another try may help


@dataclass(frozen=True)
class Message:
    """A message to people.

    kind: one of KINDS. sentence: what happened. model, version, data: name in the registry, its version, and digest of
    the data. run: name of Prefect's run. link: page of MLflow or Prefect.
    """

    kind: Kind
    sentence: str
    model: str = ""
    version: str = ""
    data: str = ""
    run: str = ""
    link: str = ""

    def body(self) -> dict[str, str]:
        """Return what is sent: all of this, the time, and under `text` one line on it, as Slack and others show it.

        Examples
        --------
        >>> Message("promoted", "version 3 is the champion", model="digits").body()["text"]
        'promoted: digits: version 3 is the champion'
        """
        model = "" if self.sentence.startswith(self.model) else self.model  # which need not be named twice
        text = ": ".join(filter(None, [self.kind.replace("_", " "), model, self.sentence]))
        return {
            "text": f"{text} {self.link}".strip(),
            **asdict(self),
            "time": datetime.now(UTC).isoformat("T", "seconds"),
        }

    @property
    def digest(self) -> str:
        """Equal for alarms that say the same, whichever run says it."""
        said = json.dumps([self.kind, self.sentence, self.model, self.version, self.data])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def send(message: Message, runs: Path, tell: Callable[[str], None]) -> bool:
    """Record an alarm, and send it unless an equal one was sent within REPEAT_SECONDS; return whether it was sent.

    runs: the folder of results, which has the record. tell: gets one sentence when it could not be sent. Takes at most
    half a minute, and raises nothing: what raised the alarm matters more than the alarm.
    """
    try:
        with alone(runs / "logs" / "alarms"):  # two that say the same at once are one
            if _sent_lately(message, runs):
                return False
            failure = _post(message.body())
            line = {**message.body(), "digest": message.digest, "sent": not failure, "why": failure}
            append_line(runs / JOURNAL, json.dumps(line).encode())
    except OSError as error:
        tell(f"the alarm could not be recorded ({error.strerror}): {message.sentence}")
        return False
    if failure and failure != _NONE:
        tell(f"the alarm was not sent to the webhook ({failure}); it is kept in {runs / JOURNAL}")
    return not failure


_NONE = f"neither {VARIABLE} nor {FILE_VARIABLE} is set"


def _post(body: dict[str, str]) -> str:
    """Send a body; return why it was not accepted ("" if it was), without mentioning the address."""
    url, failure = _address()
    if failure:
        return failure
    head = {"Content-Type": "application/json", "User-Agent": "ldsvm"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    for pause in (*PAUSES, None):
        failure, again = _tried(request)
        if pause is None or not again:
            break
        time.sleep(pause)
    return failure


def _tried(request: urllib.request.Request) -> tuple[str, bool]:
    """Send once; return why it was not accepted, and whether another try may help. Takes TIMEOUT at most."""
    found = (f"no answer within {TIMEOUT:g} s", True)

    def attempt() -> None:
        nonlocal found
        with suppress(TimeoutError):
            found = _answer(request)

    # In a thread, since the time limit of a socket begins anew with each byte.
    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return found


def _answer(request: urllib.request.Request) -> tuple[str, bool]:
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT):
            return "", False
    except urllib.error.HTTPError as error:
        error.close()
        return f"answer {error.code}", error.code >= 500 or error.code in BUSY
    except TimeoutError:
        raise
    except (OSError, HTTPException, ValueError) as error:  # whose texts may hold the address
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise TimeoutError from None
        why = getattr(cause, "strerror", None) or type(cause).__name__
        return why, not isinstance(error, ValueError | InvalidURL)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: urllib would go there without the alarm, by GET, and take the answer for success."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _address() -> tuple[str, str]:
    """Return the address of the webhook, and why there is none."""
    name, url = VARIABLE, os.environ.get(VARIABLE, "").strip()
    if not url and (file := os.environ.get(FILE_VARIABLE, "").strip()):
        try:
            name, url = FILE_VARIABLE, Path(file).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            return "", f"{FILE_VARIABLE} is {file}, which cannot be read ({why})"
    if not url:
        return "", _NONE
    if not re.fullmatch(r"https?://[^@/?#]+([/?#].*)?", url, re.IGNORECASE) or not re.fullmatch("[!-~]+", url):
        rule = "one that begins with https:// or http://, in ASCII characters, without USER:PASSWORD@"
        return "", f"{name} is not a valid address; allowed: {rule}"
    return url, ""


def _sent_lately(message: Message, runs: Path) -> bool:
    now = datetime.now(UTC)
    for line in journal(runs):
        with suppress(KeyError, ValueError, TypeError):
            age = (now - datetime.fromisoformat(line["time"])).total_seconds()
            if line["digest"] == message.digest and line["sent"] and age < REPEAT_SECONDS:
                return True
    return False


def journal(runs: Path) -> Iterator[dict[str, Any]]:
    """Yield what is known of each alarm, the oldest first; a line that a full disk cut off is left out."""
    with suppress(FileNotFoundError), (runs / JOURNAL).open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with suppress(ValueError):
                yield json.loads(line)
