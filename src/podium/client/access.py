"""Holds the address of an API server and the credentials for it, and refreshes them while Podium runs.

    kubeconfig, or a pod's service account → Access → the client asks `tls` and `headers` for each request

Tokens, certificates and authorities may be rotated underneath. `Access` looks at most once a second, when a request
is about to be sent (`due`), and puts new headers or a new TLS context in place; requests under way keep the old ones.
When the server answers 401, `renew` asks at once. Nothing that cannot be used replaces something that can.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from aiohttp import BaseConnector
from yarl import URL

from podium.client.api_errors import AccessError
from podium.client.credentials import Credentials, FixedCredentials, Identity, RotatedFile, bearer
from podium.client.session import TcpConnector
from podium.client.tls import tls_context
from podium.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
ALWAYS, NEVER = float("-inf"), float("inf")

Headers = tuple[tuple[str, str], ...]
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME = 0xA0, 0x17


class Trust:
    """Whose certificate a server may show: an authority (a file that may be rotated, or its content), the system's
    authorities, or any at all."""

    def __init__(
        self,
        *,
        file: RotatedFile | None = None,
        content: bytes | None = None,
        insecure: bool = False,
        origin: str = "the certificate authority",
    ) -> None:
        self.file = file
        self.insecure = insecure
        self.origin = origin
        self._content = content

    def read(self, now: float) -> bytes | None:
        if self.file is None:
            return self._content
        try:
            return self.file.read(now)
        except OSError as error:
            raise AccessError(f"{self.origin} {self.file.path} cannot be read: {error.strerror}") from None


class Route(NamedTuple):
    """The way to a server. `connector` makes what connects aiohttp's session (at most so many connections at once),
    where that is not over TCP."""

    proxy: str | None = None
    tls_server_name: str | None = None
    compression: bool = True
    connector: Callable[[int], BaseConnector] = TcpConnector


DIRECT = Route()


class Access:
    """A server and the means to be let in. `token` is short for credentials that are one fixed token."""

    def __init__(
        self,
        server: str,
        *,
        trust: Trust | None = None,
        credentials: Credentials | None = None,
        token: str | None = None,
        impersonation: Sequence[tuple[str, str]] = (),
        namespace: str = "default",
        route: Route = DIRECT,
        clock: Clock | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.url = URL(self.server)
        self.namespace = namespace
        self.route = route
        self.tls: ssl.SSLContext | None = None
        self.headers: Headers = tuple(impersonation)
        self.version = 0
        """Moves when `tls` or `headers` do."""
        self.due = ALWAYS
        """From when on (loop time) `refresh` wants to be called before a request."""
        self._trust = trust or Trust()
        if credentials is None:
            credentials = FixedCredentials(Identity(bearer(token) if token else None))
        self._credentials = credentials
        self._impersonation = tuple(impersonation)
        self._identity: Identity | None = None
        self._authority: bytes | None = None
        self._looked = False
        self._problem = ""
        self._failure: AccessError | None = None
        self._failed_until = ALWAYS
        self._looking: asyncio.Future[None] | None = None
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"Access({self.server!r})"

    @property
    def awaited(self) -> str:
        """What a request waits for that gets no credentials in time."""
        return self._credentials.awaited

    @property
    def host(self) -> str:
        return self.url.authority.rpartition("@")[2]

    def adopt(self, identity: Identity) -> None:
        """Be this from now on, so that whatever is wrong with it, or with the authority, is known before the first
        request. Raises AccessError."""
        self._adopt(identity, self._trust.read(0.0))

    async def refresh(self) -> None:
        """Puts what changed in place, if a look is due. AccessError where there are no credentials."""
        if self._failure is not None and asyncio.get_running_loop().time() < self._failed_until:
            raise self._failure
        if self._looking is None and asyncio.get_running_loop().time() < self.due:
            return
        await self._look_together(renew=False)

    async def renew(self, version: int) -> bool:
        """After a 401 to what was sent as of `version`: whether there is something else to try."""
        if self._looking is not None:
            await self._look_together(renew=False)
        if self.version == version and self._credentials.changing:
            await self._look_together(renew=True)
        return self.version != version

    def expired_certificate(self) -> str | None:
        """A sentence about the client certificate if it has ended."""
        if self._identity is None or self._identity.certificate is None:
            return None
        ends = expiry(self._identity.certificate)
        if ends is None or ends.timestamp() > self._clock.now():
            return None
        return f"{self._identity.origin}: the client certificate expired on {ends:%Y-%m-%d at %H:%M} UTC: renew it"

    async def _look_together(self, *, renew: bool) -> None:
        """One look at a time, for all who wait for it. It goes on when one of them gives up: a plugin may take longer
        than a request has time, and the next request then finds what it said."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look(renew=renew))
            self._looking.add_done_callback(self._end_of_look)
        await asyncio.shield(self._looking)

    def _end_of_look(self, looking: asyncio.Future[None]) -> None:
        self._looking = None
        if not looking.cancelled():
            looking.exception()  # perhaps no request waits for it any more

    async def _look(self, *, renew: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            identity = await self._credentials.identity(loop.time(), renew=renew)
            usable = self._try(identity, loop.time())
        except AccessError as error:
            self._failure = error  # requests until the next look end the same way, without asking again
            self._failed_until = loop.time() + LOOK_EVERY
            self.due = ALWAYS
            raise
        self._failure = None
        changing = self._credentials.changing or self._trust.file is not None or not usable
        self.due = loop.time() + LOOK_EVERY if changing else NEVER

    def _try(self, identity: Identity, now: float) -> bool:
        """Whether it could be put in place; where not, what was used before stays, if anything was."""
        try:
            self._adopt(identity, self._trust.read(now))
        except AccessError as error:
            if not self._looked:
                raise
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("%s; what was in use before stays in use", error)
            return False
        self._looked = True
        self._problem = ""
        return True

    def _adopt(self, identity: Identity, authority: bytes | None) -> None:
        if identity == self._identity and authority == self._authority:
            return
        if identity.authorization is not None and not identity.authorization.isprintable():
            raise AccessError(f"{identity.origin or self.server}: the token or password has a line break inside")
        if self.url.scheme == "https":
            self.tls = tls_context(
                authority,
                authority_from=self._trust.origin,
                insecure=self._trust.insecure,
                certificate=identity.certificate,
                key=identity.key,
                certificate_from=identity.origin,
            )
        own = () if identity.authorization is None else (("Authorization", identity.authorization),)
        self.headers = (*own, *self._impersonation)
        self._identity = identity
        self._authority = authority
        self.version += 1


def expiry(pem: bytes) -> datetime | None:
    """When the first certificate of `pem` ends; None if that cannot be read.

    Reads from a certificate when it expires.

    An API server answers an expired client certificate with a bare 401, and Python's ssl does not tell the dates of
    one's own certificate. X.509 puts them at a fixed place, so a few steps through its DER encoding (tag, length,
    content) lead there: Certificate → tbsCertificate → [version] serial algorithm issuer **validity** → notAfter.
    """
    text = pem.decode("ascii", errors="replace")
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 or end < start:
        return None
    try:
        der = ssl.PEM_cert_to_DER_cert(text[start : end + len(_END)] + "\n")
        return _not_after(der)
    except (ValueError, IndexError):
        return None


def _not_after(der: bytes) -> datetime:
    _, certificate, _ = _element(der)
    _, body, _ = _element(certificate)
    tag, _, rest = _element(body)
    for _ in range(3 if tag == _VERSION else 2):  # serial number, algorithm, issuer; the version may be left out
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, after_not_before = _element(validity)
    tag, moment, _ = _element(after_not_before)
    pattern = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(moment.decode("ascii"), pattern).replace(tzinfo=UTC)


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content and what follows of the first element."""
    tag, length, start = der[0], der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    if len(der) < start + length:
        raise ValueError("cut short")
    return tag, der[start : start + length], der[start + length :]
