"""Clients of an HTTP server in one thread: each sends its next request as soon as the last one was answered.

They are light, since they share the cores with the server: plain sockets that stay open, requests that were written
beforehand, and answers that are looked at only afterwards.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

PATIENCE = 30.0  # seconds within which a server must take a connection again


def request(path: str, body: bytes, kind: str = "application/json") -> bytes:
    """Return the bytes of a POST."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass
class Traffic:
    """What a run came to. answers: number of the request, status and body of each answer; seconds: what it took.

    repeated: requests whose connection was closed before any byte of an answer, sent again on a new one, as HTTP
    clients do where that does no harm. lost: requests that were not answered all the same, or not to the end.
    """

    answers: list[tuple[int, int, bytes]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    repeated: int = 0
    lost: int = 0
    whole: float = 0.0

    def row(self) -> dict[str, Any]:
        """Return the figures of a table."""
        cuts = quantiles(self.seconds, n=100)
        failed = sum(status != 200 for _, status, _ in self.answers)
        return {
            "requests": len(self.answers), "p50_ms": 1000 * cuts[49], "p99_ms": 1000 * cuts[98],
            "max_ms": 1000 * max(self.seconds), "per_s": len(self.answers) / self.whole, "failed": failed,
            "lost": self.lost, "repeated": self.repeated,
        }  # fmt: skip


class _Client:
    def __init__(self, number: int) -> None:
        self.number, self.begun, self.got = number, 0.0, b""
        self.socket: socket.socket | None = None


class Clients:
    """Some clients of one port; requests: what they send in turn."""

    def __init__(self, port: int, requests: Sequence[bytes], count: int) -> None:
        self.port, self.requests = port, requests
        self.traffic, self.selector = Traffic(), selectors.DefaultSelector()
        self.clients = [_Client(number * len(requests) // count) for number in range(count)]

    def run(self, goes_on: Callable[[int], bool]) -> Traffic:
        """Ask until `goes_on`, called with the number of answers, says no; then wait for those that are due."""
        begun = time.perf_counter()
        for client in self.clients:
            self._next(client)
        while self.selector.get_map():
            for key, _ in self.selector.select(PATIENCE) or self._give_up():
                if self._received(client := key.data):
                    self._next(client) if goes_on(len(self.traffic.answers)) else self._leave(client)
        self.traffic.whole = time.perf_counter() - begun
        self.selector.close()
        return self.traffic

    def _next(self, client: _Client) -> None:
        client.number = (client.number + 1) % len(self.requests)
        client.begun = time.perf_counter()
        self._send(client)

    def _send(self, client: _Client) -> None:
        end = time.perf_counter() + PATIENCE
        while time.perf_counter() < end:
            try:
                if client.socket is None:
                    client.socket = socket.create_connection(("127.0.0.1", self.port))
                    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.selector.register(client.socket, selectors.EVENT_READ, client)
                client.socket.sendall(self.requests[client.number])
                return
            except OSError:
                self.traffic.repeated += client.socket is not None
                self._leave(client)
                time.sleep(0.02)
        self.traffic.lost += 1

    def _received(self, client: _Client) -> bool:
        """Return whether the answer is whole."""
        assert client.socket is not None
        piece = b""
        with suppress(OSError):
            piece = client.socket.recv(1 << 20)
        if not piece:
            self._leave(client)
            if client.got:  # cut in the middle of an answer: nothing that may be repeated unseen
                client.got = b""
                self.traffic.lost += 1
                return True
            self.traffic.repeated += 1
            self._send(client)
            return False
        client.got += piece
        head, found, body = client.got.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return False
        self.traffic.seconds.append(time.perf_counter() - client.begun)
        self.traffic.answers.append((client.number, int(head[9:12]), body))
        client.got = b""
        if b"\nconnection: close" in head.lower():
            self._leave(client)
        return True

    def _leave(self, client: _Client) -> None:
        if client.socket is not None:
            self.selector.unregister(client.socket)
            client.socket.close()
            client.socket = None

    def _give_up(self) -> list[Any]:
        """Count what was not answered for so long as lost."""
        for client in self.clients:
            self.traffic.lost += client.socket is not None
            self._leave(client)
        return []


def _length(head: bytes) -> int:
    low = head.lower()
    start = low.index(b"content-length:") + 15
    return int(low[start:].split(b"\r\n", 1)[0])
