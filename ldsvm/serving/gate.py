"""What every request passes: the token, the rate, and the count of what was answered."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ldsvm.serving import metrics
from ldsvm.serving.champion import as_json

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Any, Send], Awaitable[None]]
OPEN = ("/health", "/ready")  # for those who watch the server, without a token and a rate
PATHS = (*OPEN, "/", "/predict", "/invocations", "/schema", "/metrics")


class Rate:
    """Lets at most `rate` requests a second through, and as many at once; 0 sets no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self.room, self.at = max(1.0, rate), clock()

    def allows(self) -> bool:
        """Return whether one more request may come now."""
        if not self.rate:
            return True
        now = self.clock()
        self.room = min(max(1.0, self.rate), self.room + (now - self.at) * self.rate)
        self.at = now
        if self.room < 1.0:
            return False
        self.room -= 1.0
        return True


class Gate:
    """An ASGI application around another one. token: what requests must have; None asks for none."""

    def __init__(self, app: App, token: str | None, rate: Rate) -> None:
        self.app, self.rate = app, rate
        self.expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer 401 and 429, or let the request through, and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, counted = time.perf_counter(), False
        path = scope["path"] if scope["path"] in PATHS else "other"

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal counted
            if "status" in message:  # counted before it is sent: a process that is killed loses no count of an answer
                metrics.REQUESTS.labels(path, str(message["status"])).inc()
                counted = True
            if scope["method"] == "HEAD" and "body" in message:
                message = {**message, "body": b""}  # else gunicorn warns of each
            await send(message)

        try:
            if (refusal := self._refusal(scope)) is None:
                await self.app(scope, receive, noted)
            else:
                await _refuse(noted, *refusal)
        finally:
            if not counted:
                metrics.REQUESTS.labels(path, "500").inc()
            metrics.LATENCY.labels(path).observe(time.perf_counter() - begun)

    def _refusal(self, scope: Scope) -> tuple[int, str, tuple[bytes, bytes]] | None:
        if scope["path"] in OPEN:
            return None
        if self.expected is not None:
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, self.expected):
                sentence = "The request has no token or a wrong one; allowed: the header Authorization: Bearer TOKEN."
                return 401, sentence, (b"www-authenticate", b"Bearer")
        if not self.rate.allows():
            sentence = "Too many requests; try again in a second."
            return 429, sentence, (b"retry-after", b"1")
        return None


async def _refuse(send: Send, status: int, sentence: str, header: tuple[bytes, bytes]) -> None:
    body = as_json({"error": sentence})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), header]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
