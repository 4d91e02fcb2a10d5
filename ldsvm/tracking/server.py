"""A tracking server that somebody else runs: its address, and its errors as TrackingFailed. No MLflow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ldsvm.tracking.store import TrackingFailed

VARIABLE = "MLFLOW_TRACKING_URI"
OWN = ("sqlite:", "file:")  # those of a folder of results, which needs no variable
DATABASES = ("psycopg2.", "sqlalchemy.", "pymysql.")  # whose errors are those of a database that is not there


def remote() -> str | None:
    """Return the address of the server that the user names, None without one."""
    uri = os.environ.get(VARIABLE, "")
    return uri if "://" in uri and not uri.startswith(OWN) else None


SECRET = re.compile(r"(^|//)(?:[^\s/?#]*@|[^\s/]*:(?!//)\S*@)")  # the second also where a / is in the password
ASKED = re.compile(r"([?&](?:user|password|passwd|token|api_key)=)[^&\s]*", re.IGNORECASE)


def redacted(text: str) -> str:
    """Return an address, or a text with addresses, without user and password, for messages.

    >>> redacted("http://me:secret@host:4200/api"), redacted("postgresql://host/db?user=me&password=secret")
    ('http://host:4200/api', 'postgresql://host/db?user=…&password=…')
    """
    return ASKED.sub(r"\1…", SECRET.sub(r"\1", text))


class Server:
    """A tracking server, or a database, at an address."""

    def __init__(self, uri: str) -> None:
        self.uri = redacted(uri)
        # MLflow tries again by itself, but for minutes; what is not tracked now is by `python -m flows sync`.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn what the network, or the database, says in the block into TrackingFailed."""
        try:
            yield
        except TrackingFailed:
            raise
        except Exception as error:
            if (cause := _cause(error)) is None:
                raise
            why = redacted(" ".join(str(cause).split()))[:200]
            raise TrackingFailed(
                f"{VARIABLE} {self.uri} does not answer ({why}); start the server, or unset the variable."
            ) from error


def _cause(error: BaseException) -> BaseException | None:
    """Return what the network or a database raised below MLflow's errors, if one did."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) or f"{type(found).__module__}.".startswith(DATABASES):
            return found
        found = found.__cause__ or found.__context__
    return None
