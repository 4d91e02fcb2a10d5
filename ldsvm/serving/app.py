"""The routes, as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ldsvm.datasets import DataError
from ldsvm.serving import metrics
from ldsvm.serving.bodies import rows_of
from ldsvm.serving.champion import Champion, as_json
from ldsvm.serving.current import Current
from ldsvm.serving.folder import TOKEN, Folder
from ldsvm.serving.gate import Gate, Rate

LOG = logging.getLogger(__name__)
LONG = 50_000  # bytes of a request that is worked on beside the others
ABOUT = {
    "POST /predict": 'rows {"rows": [{"column": cell, ...}]}, or lists of cells, or texts; or CSV as text/csv',
    "POST /invocations": "the same for clients of MLflow: dataframe_split, dataframe_records, instances, inputs, CSV",
    "GET /schema": "the columns of a row, and the classes",
    "GET /health": "whether the server is alive",
    "GET /ready": "whether a version is loaded, and which",
    "GET /metrics": "numbers for Prometheus",
}


def application(folder: Folder) -> Gate:
    """Return the application that answers with the version that the folder says."""
    settings = folder.settings()
    current = Current(folder, settings)
    routes = Routes(current, settings.max_body)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await current.look()
        follow = asyncio.create_task(current.follow())
        yield
        follow.cancel()
        with suppress(asyncio.CancelledError):
            await follow

    app = Starlette(
        routes=[
            Route("/predict", routes.predict, methods=["POST"]),
            Route("/invocations", routes.invocations, methods=["POST"]),
            Route("/", routes.about),
            Route("/schema", routes.schema),
            Route("/health", routes.health),
            Route("/ready", routes.ready),
            Route("/metrics", routes.metrics),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _fault},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return Gate(app, os.environ.get(TOKEN), Rate(settings.max_rate / settings.workers))


class Routes:
    """What is answered at each path. max_body: bytes of a request."""

    def __init__(self, current: Current, max_body: int) -> None:
        self.current, self.max_body = current, max_body

    async def predict(self, request: Request) -> Response:
        """Answer with class, probability, margin and latent coordinates of each row, all by one version."""
        return await self._answered(
            request, lambda champion, answers: {"version": champion.version, "answers": answers}
        )

    async def invocations(self, request: Request) -> Response:
        """Answer with what `mlflow models serve` says: the classes, or the probabilities where these are wanted."""

        def said(_: Champion, answers: list[dict[str, Any]]) -> dict[str, Any]:
            return {"predictions": [one.get("probabilities", one["class"]) for one in answers]}

        return await self._answered(request, said)

    async def about(self, _: Request) -> Response:
        """Return the routes."""
        return _json({"model": self.current.settings.model, "routes": ABOUT})

    async def schema(self, _: Request) -> Response:
        """Return the columns of a row, and the classes."""
        champion = self.current.champion
        if champion is None:
            return _error(503, self.current.sentence())
        kind = "texts" if champion.texts else "table" if champion.named else f"lists of {champion.width} numbers"
        return _json(
            {"version": champion.version, "classes": champion.classes, "rows": kind, "columns": champion.inputs()}
        )

    async def health(self, _: Request) -> Response:
        """Return that the process is alive."""
        return _json({"status": "alive"})

    async def ready(self, _: Request) -> Response:
        """Return which version is loaded."""
        champion = self.current.champion
        if champion is None:
            return _error(503, self.current.sentence())
        problem = {"problem": said} if (said := self.current.sentence()) else {}
        return _json({"model": self.current.settings.model, "version": champion.version, **problem})

    async def metrics(self, _: Request) -> Response:
        """Return the metrics for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _answered(self, request: Request, said: Any) -> Response:
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return _error(400, "The request ended before its body was complete.")
        if body is None:
            return _error(413, f"The request has more than {self.max_body:,} bytes; send fewer rows at a time.")
        if self.current.champion is None:  # another process may have one already, and have said that it is ready
            await self.current.look()
        champion = self.current.champion  # of the whole answer
        if champion is None:
            return _error(503, self.current.sentence())
        kind = request.headers.get("content-type", "application/json")
        try:
            if len(body) > LONG:
                answers, remarks = await asyncio.to_thread(_work, champion, body, kind)
            else:
                answers, remarks = _work(champion, body, kind)
            answer = said(champion, answers)
            answer |= {"remarks": remarks} if remarks else {}
            response = _json(answer)
        except DataError as error:
            return _error(400, str(error))
        except Exception as error:
            LOG.exception("A prediction failed.")
            return _error(500, f"The model failed with {type(error).__name__}; the log of the server has the reason.")
        metrics.ROWS.inc(len(answers))
        if remarks:
            metrics.ODD.inc()
        return response

    async def _body(self, request: Request) -> bytes | None:
        """Return the body, None where it is too large, of which the rest is not read."""
        said = request.headers.get("content-length", "0")
        if said.isdecimal() and int(said) > self.max_body:
            return None
        body, more = b"", True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > self.max_body:
                return None
            more = message.get("more_body", False)
        return body


def _work(champion: Champion, body: bytes, kind: str) -> tuple[list[dict[str, Any]], list[str]]:
    return champion.answer(*rows_of(body, kind))


def _json(answers: Any, status: int = 200) -> Response:
    return Response(as_json(answers), status, media_type="application/json")


def _error(status: int, sentence: str) -> Response:
    closed = {"connection": "close"} if status == 413 else None  # the rest of the body is not read
    return Response(as_json({"error": sentence}), status, headers=closed, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = ", ".join(ABOUT)
    what = {
        404: f"There is nothing at {request.url.path[:40]!r}",
        405: f"{request.method} is not allowed for this path",
    }
    response = _error(error.status_code, f"{what.get(error.status_code, error.detail)}; allowed: {allowed}.")
    response.headers.update(error.headers or {})
    return response


async def _fault(_: Request, error: Exception) -> Response:
    return _error(500, f"The server failed with {type(error).__name__}; its log has the reason.")
