"""Calls the extenders of a configuration over HTTP, as kube-scheduler does.

Filter, prioritize and preempt block the decision they belong to, as they do in kube-scheduler; bind runs beside other
work. What is sent are whole objects or, to an extender that keeps its own copy of the nodes (`nodeCacheCapable`), names
and uids.

Also sends requests to one extender: sent at once, answered when asked for, over connections that are kept open.

The engine decides in one go, so these calls block; sending and receiving are apart so that several extenders can work
at the same time. `timeout` bounds a whole exchange, from connecting to the last byte of the reply, and the reply's size
is bounded too. Failures read as Go's HTTP client puts them, as people search for those words.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import tempfile
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from podium.config.resolved import SchedulerConfig
from podium.config.secrets import redacted
from podium.config.types import ExtenderConfig, ExtenderTLS
from podium.errors import UserError
from podium.framework.extender import ChosenVictims, ExtenderError, Filtered, HostScores, Victims
from podium.kube import Node, Pod
from podium.kube.bounds import MOST_VALUES
from podium.run.extender_messages import (
    ObjectTexts,
    RawObject,
    binding_args,
    binding_result,
    chosen_victims,
    extender_args,
    filter_result,
    host_scores,
    preemption_args,
)
from podium.run.timed_connection import TimedConnection

LARGEST_REPLY = 256 << 20
MOST_IDLE = 8
_CHUNK = 1 << 20
_BROKEN = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
"""How it shows that the other side had closed a connection that was kept open."""
USUAL_TIMEOUT = 5.0


class ExtenderConnections:
    """The connections to one extender."""

    def __init__(
        self,
        url_prefix: str,
        timeout: float,
        tls: ssl.SSLContext | None,
        server_name: str = "",
        *,
        largest_reply: int = LARGEST_REPLY,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = url_prefix.rstrip("/")
        self.timeout = timeout
        self.largest_reply = largest_reply
        self.now = now
        self._tls = tls
        self._server_name = server_name
        self._idle: deque[TimedConnection] = deque()  # several threads may bind

    def begin(self, verb: str, body: bytes, *, repeatable: bool = True) -> ExtenderCall:
        """Send a request; the call's `reply` is what it waits for.

        `repeatable`: whether it may be sent again when a kept connection turns out to be closed.
        """
        call = ExtenderCall(self, verb, f"{self._prefix}/{verb}", body, repeatable)
        call.send()
        return call

    def close(self) -> None:
        while connection := self._taken():
            connection.close()

    def connection(self, url: str, deadline: float) -> TimedConnection:
        """One that was kept, or else a new one."""
        while connection := self._taken():
            if connection.usable:
                connection.begin(deadline)
                return connection
            connection.close()
        return self._connect(url, deadline)

    def _taken(self) -> TimedConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def keep(self, connection: TimedConnection) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self, url: str, deadline: float) -> TimedConnection:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise ExtenderError(f'Post "{redacted(url)}": unsupported protocol scheme "{parts.scheme}"')
        if not parts.hostname:
            raise ExtenderError(f'Post "{redacted(url)}": http: no Host in request URL')
        port = parts.port or (443 if parts.scheme == "https" else 80)
        plain = socket.create_connection((parts.hostname, port), timeout=max(deadline - self.now(), 0.001))
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected = plain
            if parts.scheme == "https":
                assert self._tls is not None, "calls over TLS are given a context"
                connected = self._tls.wrap_socket(plain, server_hostname=self._server_name or parts.hostname)
        except BaseException:  # also an interrupt: the socket has no owner yet
            plain.close()
            raise
        connection = TimedConnection(connected, parts.hostname, port, self.now)
        connection.begin(deadline)
        return connection


class ExtenderCall:
    """One request under way."""

    def __init__(self, calls: ExtenderConnections, verb: str, url: str, body: bytes, repeatable: bool) -> None:
        self._calls = calls
        self._verb = verb
        self._url = url
        self._shown_url = redacted(url)
        self._body = body
        self._repeatable = repeatable
        self._deadline = calls.now() + calls.timeout
        self._connection: TimedConnection | None = None

    def send(self) -> None:
        with self._failing_in_words():
            try:
                self._send()
            except _BROKEN:
                if not self._may_start_over:
                    raise
                self._start_over()

    def reply(self) -> bytes:
        """The body of the answer; raises ExtenderError unless it has status 200."""
        with self._failing_in_words():
            try:
                return self._receive()
            except _BROKEN:
                if not self._may_start_over:
                    raise
                self._start_over()
                return self._receive()

    @property
    def _may_start_over(self) -> bool:
        """Whether what failed may just have been a connection that was kept for too long."""
        return self._repeatable and self._connection is not None and not self._connection.fresh

    def _start_over(self) -> None:
        self._abandon()
        self._calls.close()  # the others that were kept are no better
        self._send()

    @contextmanager
    def _failing_in_words(self) -> Iterator[None]:
        try:
            yield
        except ExtenderError:
            self._abandon()
            raise
        except Exception as error:  # whatever a call raises: the connection may be half read
            self._abandon()
            raise ExtenderError(self._in_words(error)) from error

    def _send(self) -> None:
        parts = urlsplit(self._url)
        headers = {"Content-Type": "application/json", "User-Agent": "podium", "Host": parts.netloc.rpartition("@")[2]}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._connection = self._calls.connection(self._url, self._deadline)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._connection.http.request("POST", target, self._body, headers)

    def _receive(self) -> bytes:
        connection = self._connection
        assert connection is not None, "a call is sent before it is answered"
        with connection.http.getresponse() as response:
            if response.status != http.client.OK:
                raise ExtenderError(
                    f"failed {self._verb} with extender at URL {self._shown_url}, code {response.status}"
                )
            try:
                body = self._body_of(response)
            except TimeoutError:
                raise ExtenderError(
                    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
                ) from None
        if connection.reusable:
            self._calls.keep(connection)
        else:
            connection.close()
        self._connection = None
        return body

    def _body_of(self, response: http.client.HTTPResponse) -> bytes:
        body, limit, commas = bytearray(), self._calls.largest_reply, 0
        while part := response.read(_CHUNK):
            body += part
            commas += part.count(b",")
            if len(body) > limit:
                raise ExtenderError(f"the reply of extender at URL {self._shown_url} is larger than {limit} bytes")
            if commas > MOST_VALUES:
                raise ExtenderError(
                    f"the reply of extender at URL {self._shown_url} has more than {MOST_VALUES} values"
                )
        return bytes(body)

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _in_words(self, error: Exception) -> str:
        """What went wrong, as nearly as it can be said in the words of Go's client."""
        parts = urlsplit(self._url)
        if isinstance(error, http.client.IncompleteRead):
            return "unexpected EOF"
        detail = str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            detail = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        elif isinstance(error, ConnectionRefusedError):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            detail = f"dial tcp {parts.hostname}:{port}: connect: connection refused"
        elif isinstance(error, http.client.RemoteDisconnected):
            detail = "EOF"
        elif isinstance(error, ConnectionResetError):
            detail = "read: connection reset by peer"
        elif isinstance(error, socket.gaierror):
            detail = f"dial tcp: lookup {parts.hostname}: no such host"
        elif isinstance(error, ssl.SSLCertVerificationError):
            detail = f"tls: failed to verify certificate: {error.verify_message}"
        elif isinstance(error, http.client.HTTPException):
            if isinstance(error, http.client.BadStatusLine):
                detail = f'malformed HTTP response "{detail.rstrip()}"'
            detail = f"net/http: HTTP/1.x transport connection broken: {detail}"
        return f'Post "{self._shown_url}": {detail}'


def build_extenders(
    config: SchedulerConfig,
    raw_pod: RawObject,
    raw_node: RawObject,
    *,
    may_bind: bool = True,
    guard: Callable[[], None] = lambda: None,
) -> list[HttpExtender]:
    """The configured extenders in the order they are called in; raises ExtenderSettingsError for bad certificates.

    raw_pod ("namespace/name") and raw_node (name) give objects as the API server wrote them, or None. `guard` is called
    before one is asked to bind, and may raise to stop that; without `may_bind` none is ever asked to.
    """
    texts = ObjectTexts(raw_pod, raw_node)
    return [
        HttpExtender(extender, texts, may_bind=may_bind, guard=guard) for extender in config.extenders_in_call_order
    ]


class HttpExtender:
    """One configured extender."""

    def __init__(
        self,
        config: ExtenderConfig,
        texts: ObjectTexts,
        *,
        may_bind: bool = True,
        guard: Callable[[], None] = lambda: None,
        largest_reply: int = LARGEST_REPLY,
    ) -> None:
        self.name = redacted(config.url_prefix)
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.is_filter = bool(config.filter_verb)
        self.is_prioritizer = bool(config.prioritize_verb)
        self.is_binder = may_bind and bool(config.bind_verb)
        self.supports_preemption = bool(config.preempt_verb)
        self._config = config
        self._texts = texts
        self._guard = guard
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        timeout = config.http_timeout.seconds
        settled = config.tls_config is not None or config.enable_https or config.url_prefix.lower().startswith("https:")
        self._calls = ExtenderConnections(
            config.url_prefix,
            timeout if timeout > 0 else USUAL_TIMEOUT,
            tls_context(config) if settled else None,
            config.tls_config.server_name if config.tls_config is not None else "",
            largest_reply=largest_reply,
        )

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._calls.close()

    def is_interested(self, pod: Pod) -> bool:
        """Whether it manages a resource that some container names; without managed resources, always."""
        if not self._managed:
            return True
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            if not self._managed.isdisjoint(container.resources.requests):
                return True
            if not self._managed.isdisjoint(container.resources.limits):
                return True
        return False

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        reply = self._calls.begin(self._config.filter_verb, self._args(pod, nodes)).reply()
        return filter_result(reply, by_name=self._config.node_cache_capable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], HostScores]:
        call = self._calls.begin(self._config.prioritize_verb, self._args(pod, nodes))
        return lambda: host_scores(call.reply())

    def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, ChosenVictims]:
        text = None if self._config.node_cache_capable else self._texts.pod
        body = preemption_args(self._texts.pod(pod), victims, text)
        return chosen_victims(self._calls.begin(self._config.preempt_verb, body).reply())

    async def bind(self, pod: Pod, node_name: str) -> None:
        """The extender binds through the API itself; a request that may have arrived is not sent twice."""
        self._guard()
        await asyncio.to_thread(self._bind, binding_args(pod, node_name))

    def _bind(self, body: bytes) -> None:
        binding_result(self._calls.begin(self._config.bind_verb, body, repeatable=False).reply())

    def _args(self, pod: Pod, nodes: Iterable[Node]) -> bytes:
        text = self._texts.pod(pod)
        if self._config.node_cache_capable:
            return extender_args(text, names=[node.name for node in nodes])
        return extender_args(text, nodes=map(self._texts.node, nodes))


class ExtenderSettingsError(UserError):
    """An extender cannot be called with the settings it has; one sentence that says which and why."""


def tls_context(extender: ExtenderConfig) -> ssl.SSLContext:
    """Builds the TLS context for an extender from its configuration.

    Without any setting the system's authorities count. An authority of one's own takes their place. `insecure`
    turns the check off, and so, as in kube-scheduler, does `enableHTTPS` where no authority is given. A certificate
    to be shown needs its key; one without the other is left out.
    """
    settings = extender.tls_config or ExtenderTLS()
    try:
        return _context(settings, unchecked=settings.insecure or (extender.enable_https and not _authority(settings)))
    except (OSError, ValueError) as error:
        detail = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        raise ExtenderSettingsError(
            f"the certificates of extender {redacted(extender.url_prefix)} cannot be used ({detail}); "
            "look at its tlsConfig in extenders"
        ) from None


def _context(settings: ExtenderTLS, *, unchecked: bool) -> ssl.SSLContext:
    authority = _authority(settings)
    context = ssl.create_default_context(cadata=authority.decode()) if authority else ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Go, and so Kubernetes, does not
    if unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _text(settings.cert_data, settings.cert_file)
    key = _text(settings.key_data, settings.key_file)
    if certificate and key:
        with tempfile.TemporaryDirectory() as folder:  # certificates can only be loaded from files
            both = Path(folder) / "pair"
            both.touch(mode=0o600)
            both.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(both)
    return context


def _authority(settings: ExtenderTLS) -> bytes:
    return _text(settings.ca_data, settings.ca_file)


def _text(data: bytes, path: str) -> bytes:
    """What is given in place goes before what is given as a file."""
    return data or (Path(path).read_bytes() if path else b"")
