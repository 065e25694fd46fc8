"""A real HTTP extender in a thread of the test: it answers as told, misbehaves on command, and remembers all it saw."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple

Json = Any


class Seen(NamedTuple):
    """A request: the verb is the last part of the path."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json
    connection: tuple[str, int]

    @property
    def verb(self) -> str:
        return self.path.rpartition("/")[2]


class Reply(NamedTuple):
    """An answer that is not simply JSON with status 200."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


class Misdeed(NamedTuple):
    """Instead of an answer: whatever this does with the connection."""

    act: Callable[[Handler], None]


class ExtenderServer:
    """`answers`: verb → what to answer to a body: plain data for JSON, a Reply, or a Misdeed. `with` starts it.

    One that is under the name "" is asked about every verb, with the path before the body.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, **answers: Callable[..., Any]) -> None:
        self.answers = answers
        self.seen: list[Seen] = []
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.extender = self  # type: ignore[attr-defined]
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._tls = tls
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ExtenderServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, verb: str) -> list[Json]:
        """The bodies of the requests with a verb."""
        return [each.body for each in self.seen if each.verb == verb]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    @property
    def extender(self) -> ExtenderServer:
        extender: ExtenderServer = self.server.extender  # type: ignore[attr-defined]
        return extender

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen = Seen(self.command, self.path, dict(self.headers), json.loads(text), self.client_address)
        self.extender.seen.append(seen)
        answers = self.extender.answers
        answer = answers[""](self.path, seen.body) if "" in answers else answers[seen.verb](seen.body)
        if isinstance(answer, Misdeed):
            self.close_connection = True
            answer.act(self)
            return
        reply = answer if isinstance(answer, Reply) else Reply(body=json.dumps(answer).encode())
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *_args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(OSError):  # the other side had enough
            super().handle()


def hang(handler: Handler) -> None:
    """Never answer, as long as the server runs."""
    handler.extender.released.wait()


def drip(handler: Handler) -> None:
    """Answer a byte at a time, for ever."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.extender.released.wait(0.02):
        handler.wfile.write(b".")
        handler.wfile.flush()


def drip_body(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
    while not handler.extender.released.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def hang_up(_handler: Handler) -> None:
    """Close without a word."""


def write(data: bytes) -> Callable[[Handler], None]:
    """Send these bytes, whatever HTTP says, and close."""

    def act(handler: Handler) -> None:
        handler.wfile.write(data)

    return act
