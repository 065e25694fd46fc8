"""Sends requests to a model server, bounded in time and size whatever the server does.

A decision waits for a request until its deadline and no longer: every wait on the socket gets what is left of it.
Looking up the host, connecting and the TLS handshake can't be bounded like that, so they run in a thread of their own,
with the first questions about the model (`check`); the decision waits for them only until its deadline, and a
connection that comes later serves the next one. There is at most one such thread.

Token and certificate files are read again when they changed.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from podium.kube.printable import printable
from podium.load.settings import Tls
from podium.run.timed_connection import TimedConnection
from podium_lab.model_score.question import ModelError

CONNECT_SECONDS: Final = 5.0
"""How long connecting and checking may take in the background."""
LARGEST_SMALL_REPLY: Final = 1 << 20
_CHUNK: Final = 1 << 16
_CLOSED: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
"""How it shows that the server had closed a connection that was kept."""
_UNREADY: Final = frozenset({401, 403, 404, 502, 503})
MOST_QUOTED: Final = 200


class HttpReply(NamedTuple):
    """The answer to a request."""

    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


class ServerAccess(NamedTuple):
    """How a server is reached."""

    url: str
    tls: Tls
    token_file: str


Exchange = Callable[[str, str], HttpReply]
"""Sends a request without a body over a connection that is being checked: method and path."""


class Channel:
    """A connection to one server, made again when it breaks."""

    def __init__(self, access: ServerAccess, check: Callable[[Exchange], None]) -> None:
        """`check` asks what must be known of the server before the first question, and raises ModelError."""
        parts = urlsplit(access.url)
        self._access = access
        self._check = check
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._netloc = parts.netloc
        self._open_connection: TimedConnection | None = None
        self._attempt: _Attempt | None = None
        self._unchecked = True
        self._tls: ssl.SSLContext | None = None
        self._tls_stamps: object = None

    def prepare(self) -> None:
        """Begin to connect, unless that is under way or done."""
        if self._open_connection is None and self._attempt is None:
            self._attempt = _Attempt(self._connect)

    def ready(self, deadline: float) -> None:
        """Wait until there is a connection to a server that was checked; raises ModelError."""
        try:
            self._connection(deadline)
        except ModelError:
            raise
        except Exception as error:  # whatever connecting raises, in words
            raise self._failure(error) from None

    def close(self) -> None:
        self._drop()
        self._unchecked = True

    def __del__(self) -> None:
        """Plugins have no method that is called when they end."""
        self._drop()
        attempt = self._attempt
        if attempt is not None and attempt.connection is not None:
            attempt.connection.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str], deadline: float, largest: int) -> HttpReply:
        """The answer to one request; raises ModelError. It's sent a second time where a kept connection was closed."""
        try:
            connection, fresh = self._connection(deadline)
            try:
                return self._exchange(connection, ("POST", path, body, headers), deadline, largest)
            except _CLOSED:
                if fresh:
                    raise
                self.close()
                connection, _fresh = self._connection(deadline)
                return self._exchange(connection, ("POST", path, body, headers), deadline, largest)
        except BaseException as error:  # also an interrupt: the connection may be half read
            self.close()
            if isinstance(error, ModelError) or not isinstance(error, Exception):
                raise
            raise self._failure(error) from None

    def _connection(self, deadline: float) -> tuple[TimedConnection, bool]:
        """A connection, and whether it's a new one."""
        if self._open_connection is not None:
            if self._open_connection.usable:
                return self._open_connection, False
            self._drop()
        self.prepare()
        attempt = self._attempt
        assert attempt is not None
        if not attempt.done.wait(max(deadline - time.monotonic(), 0.0)):
            raise TimeoutError
        self._attempt = None
        if attempt.error is not None:
            raise attempt.error
        assert attempt.connection is not None
        self._open_connection, self._unchecked = attempt.connection, False
        return self._open_connection, True

    def _exchange(
        self,
        connection: TimedConnection,
        request: tuple[str, str, bytes, Mapping[str, str]],
        deadline: float,
        largest: int,
    ) -> HttpReply:
        method, path, body, headers = request
        connection.begin(deadline)
        connection.http.request(method, self._prefix + path, body or None, {**self._headers(), **headers})
        with connection.http.getresponse() as response:
            status, found = response.status, {name.lower(): value for name, value in response.getheaders()}
            text = bytearray()
            while part := response.read(_CHUNK):
                text += part
                if len(text) > largest:
                    raise ModelError("exception", f"{self._access.url} answered with more than {largest:,} bytes")
        if not connection.reusable and connection is self._open_connection:
            self._drop()
        if status != http.client.OK:
            excerpt = printable(bytes(text[:MOST_QUOTED]).decode(errors="replace")).strip()
            reason = "no_model" if status in _UNREADY else "exception"
            raise ModelError(reason, f"{self._access.url}{path} answered HTTP {status}: {excerpt}".rstrip(": "))
        return HttpReply(found, bytes(text))

    def _headers(self) -> dict[str, str]:
        headers = {"Host": self._netloc, "User-Agent": "podium", "Accept-Encoding": "identity"}
        if self._access.token_file:
            token = Path(self._access.token_file).read_text().strip()
            if not token or not token.isprintable():
                raise OSError(None, "it must hold one line of text", self._access.token_file)
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _drop(self) -> None:
        if self._open_connection is not None:
            self._open_connection.close()
            self._open_connection = None

    # In the background

    def _connect(self) -> TimedConnection:
        """A connection to a server that was checked, where that is due."""
        deadline = time.monotonic() + CONNECT_SECONDS
        connection = self._open()

        def exchange(method: str, path: str) -> HttpReply:
            nonlocal connection
            connection = self._still_open(connection)
            return self._exchange(connection, (method, path, b"", {}), deadline, LARGEST_SMALL_REPLY)

        try:
            if self._unchecked:
                self._check(exchange)
            connection = self._still_open(connection)
            connection.fresh = True
            return connection
        except BaseException as error:  # also an interrupt: the connection has no owner yet
            connection.close()
            if isinstance(error, ModelError) or not isinstance(error, Exception):
                raise
            raise self._failure(error, reason="no_model") from None

    def _still_open(self, connection: TimedConnection) -> TimedConnection:
        """The connection, or a new one where the server closed it after an answer."""
        if connection.http.sock is not None:
            return connection
        connection.close()
        return self._open()

    def _open(self) -> TimedConnection:
        try:
            plain = socket.create_connection((self._host, self._port), timeout=CONNECT_SECONDS)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connected = plain
                if self._secure:
                    name = self._access.tls.server_name or self._host
                    connected = self._context().wrap_socket(plain, server_hostname=name)
            except BaseException:  # also an interrupt: the socket has no owner yet
                plain.close()
                raise
        except Exception as error:  # whatever connecting raises, in words
            raise self._failure(error, reason="no_model") from None
        connection = TimedConnection(connected, self._host, self._port, time.monotonic)
        connection.http.auto_open = 0  # it would connect by itself, within a decision and without TLS
        return connection

    def _context(self) -> ssl.SSLContext:
        settings = self._access.tls
        files = [each for each in (settings.ca_file, settings.cert_file, settings.key_file) if each]
        stamps = [(Path(each).stat().st_mtime_ns, Path(each).stat().st_ino) for each in files]
        if self._tls is None or stamps != self._tls_stamps:
            context = ssl.create_default_context(cafile=settings.ca_file or None)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Go, and so Kubernetes, does not
            if settings.insecure_skip_verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if settings.cert_file:
                context.load_cert_chain(settings.cert_file, settings.key_file)
            self._tls, self._tls_stamps = context, stamps
        return self._tls

    def _failure(self, error: Exception, *, reason: str = "exception") -> ModelError:
        server = self._access.url
        match error:
            case TimeoutError():
                return ModelError("timeout", f"{server} did not answer in time")
            case http.client.CannotSendRequest() | http.client.NotConnected():
                return ModelError(reason, f"{server} closed the connection")
            case ssl.SSLCertVerificationError():
                return ModelError(
                    reason, f"the certificate of {server} is not accepted: {error.verify_message}; see tls.caFile"
                )
            case ssl.SSLError():
                return ModelError(reason, f"no TLS connection to {server}: {error.reason or 'the handshake failed'}")
            case ConnectionRefusedError():
                return ModelError("no_model", f"{server} refuses connections: is it running there?")
            case socket.gaierror():
                return ModelError("no_model", f"the host of {server} is not known: {error.strerror}")
            case http.client.IncompleteRead() | ConnectionError():
                return ModelError(reason, f"{server} closed the connection before the whole answer came")
            case OSError() if error.filename:
                return ModelError(reason, f"{error.filename}, named for {server}, cannot be read: {error.strerror}")
            case http.client.HTTPException():
                return ModelError(reason, f"{server} answered with something that is no HTTP: {type(error).__name__}")
        return ModelError(reason, f"{server} cannot be asked: {type(error).__name__}: {printable(str(error))}")


class _Attempt:
    """A connection that is being made in a thread; `done` is set when there is one, or an error."""

    def __init__(self, connect: Callable[[], TimedConnection]) -> None:
        self.done = threading.Event()
        self.connection: TimedConnection | None = None
        self.error: Exception | None = None
        self._connect = connect
        threading.Thread(target=self._run, name="model-connection", daemon=True).start()

    def _run(self) -> None:
        try:
            self.connection = self._connect()
        except Exception as error:  # it is raised again where the connection is waited for
            self.error = error
        finally:
            self.done.set()
