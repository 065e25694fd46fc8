"""Sends requests to a measuring server: bounded in time and size, with the credentials its settings name.

Token and password files are read at every request, certificates whenever their files change, so that all of them can be
rotated. Redirects are not followed, as they would carry the credentials elsewhere. Whatever goes wrong is one sentence
that names the server and never what is secret.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import aiohttp
from multidict import CIMultiDict

from podium.config.secrets import redacted
from podium.load.settings import SourceSettings
from podium.load.sources.sample import SourceError

CONNECTIONS = 8
BYTES_PER_VALUE = 16
"""Least bytes of an answer for each of its values, counted by its commas: two bytes can become sixty of memory."""
FEW_VALUES = 1000
"""Values that any answer may have."""


class LoadServer:
    """One server, with one kind of credentials. The session is made at the first request, on the loop it runs on."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._base = source.address.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None
        self._tls_stats: tuple[object, ...] | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, verb: str, path: str, form: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """The status and the body of the answer; any status but a redirect is the caller's to judge."""
        try:
            return await self._exchange(verb, path, form)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceError(self._sentence(error)) from None

    async def _exchange(self, verb: str, path: str, form: Mapping[str, str] | None) -> tuple[int, bytes]:
        source = self._source
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # so that what is counted is what is kept in memory
            )
        tls = await self._context() if self._base.startswith("https:") else True
        async with self._session.request(
            verb,
            self._base + path,
            data=form,
            headers=self._headers(),
            ssl=tls,
            server_hostname=source.tls.server_name or None,
            timeout=aiohttp.ClientTimeout(total=source.timeout.seconds),
            allow_redirects=False,
        ) as response:
            if 300 <= response.status < 400:
                target = response.headers.get("Location", "elsewhere")
                raise SourceError(f"{source} redirects to {redacted(target)}: write that as its address")
            encoding = response.headers.get("Content-Encoding", "identity")
            if encoding != "identity":
                raise SourceError(f"{source} answered compressed ({encoding}), which was not asked for")
            return response.status, await self._body(response)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        limit, parts, size, commas = self._source.max_response_bytes, [], 0, 0
        most_values = max(limit // BYTES_PER_VALUE, FEW_VALUES)
        async for part in response.content.iter_any():
            size += len(part)
            commas += part.count(b",")
            if size > limit or commas > most_values:
                response.close()
                most = f"{limit} bytes" if size > limit else f"{most_values} values"
                raise SourceError(
                    f"{self._source} answered with more than {most}: narrow the query or raise maxResponseBytes"
                )
            parts.append(part)
        return b"".join(parts)

    def _headers(self) -> CIMultiDict[str]:
        source = self._source
        headers = CIMultiDict({"Accept": "application/json", "User-Agent": "podium"})
        for header in source.headers:
            headers[header.name] = header.value
        headers["Accept-Encoding"] = "identity"
        if source.token or source.token_file:
            headers["Authorization"] = f"Bearer {source.token or _secret(source.token_file)}"
        elif (basic := source.basic_auth) is not None:
            password = basic.password or (_secret(basic.password_file) if basic.password_file else "")
            both = b64encode(f"{basic.username}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {both}"
        return headers

    async def _context(self) -> ssl.SSLContext:
        settings = self._source.tls
        files = (settings.ca_file, settings.cert_file, settings.key_file)
        stats = tuple(_stat(file) for file in files if file)
        if self._tls is None or stats != self._tls_stats:
            self._tls = await asyncio.to_thread(_new_context, self._source)  # reads the system's authorities: slow
            self._tls_stats = stats
        return self._tls

    def _sentence(self, error: Exception) -> str:
        server = str(self._source)
        cause: BaseException = error
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            cause = error.certificate_error
        elif isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error
        match cause:
            case TimeoutError():
                return f"{server} did not answer within {self._source.timeout}"
            case ssl.SSLCertVerificationError():
                return f"the certificate of {server} is not accepted: {cause.verify_message}; see tls.caFile"
            case ssl.SSLError():
                return f"no TLS connection to {server}: {cause.reason or 'the handshake failed'}"
            case ConnectionRefusedError():
                return f"{server} refuses connections: is it running there?"
            case socket.gaierror():
                return f"the host of {server} is not known: {cause.strerror}"
            case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
                return f"{server} closed the connection before the whole answer came"
            case OSError() if cause.filename:
                return f"{cause.filename}, named in the settings of {server}, cannot be read: {cause.strerror}"
            case OSError() if cause.strerror:
                return f"{server} cannot be reached: {cause.strerror}"
        return f"{server} cannot be asked: {type(cause).__name__}"


def _secret(file: str) -> str:
    text = Path(file).read_text().strip()
    if "\n" in text or "\r" in text:
        raise OSError(None, "it has more than one line", file)
    return text


def _stat(file: str) -> tuple[int, int, int]:
    found = Path(file).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _new_context(source: SourceSettings) -> ssl.SSLContext:
    settings = source.tls
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Go, and so Kubernetes, does not
        if settings.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except ssl.SSLError as error:
        raise SourceError(
            f"the certificates in the tls settings of {source} cannot be used: {error.reason or error}"
        ) from None
    return context
