"""Keep-alive HTTPS connections to one server, shared by threads.

A TLS handshake costs more than a create request, so connections are kept and handed out again. http.client is enough:
the tests are synchronous, and a parsed connection pool library would be one more dependency.
"""

import http.client
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionPool:
    """Requests to `server` (https://host:port, or http://…), whose certificate `ca_path` must have signed; None trusts
    anybody, for components that sign their own."""

    def __init__(
        self, server: str, *, ca_path: Path | None, headers: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("https", "http") or parts.hostname is None or parts.port is None:
            raise ValueError(f"{server!r} is no https://host:port or http://host:port address")
        self._host, self._port = parts.hostname, parts.port
        self._plain = parts.scheme == "http"
        self._tls = ssl.create_default_context(cafile=None if ca_path is None else str(ca_path))
        if ca_path is None:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """One request and its whole answer, whatever its status."""
        connection = self._take()
        try:
            answer = self._send(connection, method, path, body, headers)
            response = Response(answer.status, dict(answer.getheaders()), answer.read())
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return response

    @contextmanager
    def stream(self, path: str, *, timeout: float) -> Iterator[http.client.HTTPResponse]:
        """The answer to a GET as an open stream, on a connection of its own that closes with the block."""
        connection = self._open(timeout)
        try:
            connection.request("GET", path, headers=self._headers)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def close(self) -> None:
        """Close the idle connections; a later request opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
    ) -> http.client.HTTPResponse:
        used_before = connection.sock is not None
        all_headers = self._headers | dict(headers or {})
        try:
            connection.request(method, path, body, all_headers)
            return connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            # A server may close an idle connection at the moment it is used again; only then is a second try right.
            if not used_before:
                raise
            connection.close()
            connection.request(method, path, body, all_headers)
            return connection.getresponse()

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._open(self._timeout)

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        if self._plain:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)
