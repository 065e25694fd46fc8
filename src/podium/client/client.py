"""Requests to an API server: bytes in, bytes out, on connections that are kept.

Everything that does not change between requests is made beforehand (headers, the encoded start of the URL, time-outs),
because a scheduler's day is thousands of small POSTs a second. Watches have a connection pool of their own, so that
however many run, requests never wait for one of theirs.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from podium.client.access import Access
from podium.client.errors import ClientError, TimedOut, Unreachable, refusal

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

JSON = "application/json"
CONNECTIONS = 100
TIMEOUT = 30.0
IDLE = 120.0
"""Seconds after which a silent watch is given up: servers send bookmarks about once a minute."""

Params = Mapping[str, str] | None
OnRequest = Callable[[str, str, str, float], None]
"""Told after each request sent: verb, host, status code (or "<error>") and seconds."""


class Client:
    """One server, asked as one user."""

    def __init__(
        self,
        access: Access,
        *,
        qps: float = 0,
        burst: int = 0,
        user_agent: str = "podium",
        rng: random.Random | None = None,
    ) -> None:
        self.access = access
        self.on_request: OnRequest | None = None
        self.guard: Callable[[], None] | None = None
        self._user_agent = user_agent
        self._rng = rng or random.Random()
        self._host = URL(access.server).authority
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def get(self, path: str, params: Params = None, *, timeout: float | None = None) -> bytes:
        return await self._request("GET", path, params, None, JSON, timeout)

    async def post(self, path: str, body: Any, params: Params = None, *, timeout: float | None = None) -> bytes:
        return await self._request("POST", path, params, _encoded(body), JSON, timeout)

    async def put(self, path: str, body: Any, params: Params = None, *, timeout: float | None = None) -> bytes:
        return await self._request("PUT", path, params, _encoded(body), JSON, timeout)

    async def patch(
        self, path: str, body: Any, kind: str = MERGE_PATCH, params: Params = None, *, timeout: float | None = None
    ) -> bytes:
        return await self._request("PATCH", path, params, _encoded(body), kind, timeout)

    async def delete(
        self, path: str, body: Any = None, params: Params = None, *, timeout: float | None = None
    ) -> bytes:
        content = None if body is None else _encoded(body)
        return await self._request("DELETE", path, params, content, JSON, timeout)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params = None, *, idle: float = IDLE
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch: the answer's bytes as they come; TimedOut when nothing came for `idle` seconds."""
        timeout = aiohttp.ClientTimeout(total=None, connect=TIMEOUT, sock_read=idle)
        try:
            response = await self._send("GET", path, params, None, JSON, timeout, streaming=True)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error, self._host) from None
        try:
            if response.status >= 300:
                raise refusal(response.status, await response.read())
            yield self._chunks(response)
        finally:
            response.close()

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error, self._host) from None

    async def _request(
        self, verb: str, path: str, params: Params, body: bytes | None, kind: str, seconds: float | None
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT if seconds is None else seconds)
        try:
            response = await self._send(verb, path, params, body, kind, timeout)
            content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error, self._host) from None
        if response.status >= 300:
            raise refusal(response.status, content)
        return content

    async def _send(
        self,
        verb: str,
        path: str,
        params: Params,
        body: bytes | None,
        kind: str,
        timeout: aiohttp.ClientTimeout,
        *,
        streaming: bool = False,
    ) -> aiohttp.ClientResponse:
        if verb != "GET" and self.guard is not None:
            self.guard()
        text = f"{self.access.server}{path}"
        if params:
            text = f"{text}?{urlencode(params, quote_via=quote)}"
        headers = {**self.access.headers, "Accept": JSON, "Content-Type": kind, "User-Agent": self._user_agent}
        began = asyncio.get_running_loop().time()
        code = "<error>"
        try:
            response = await self._session(streaming).request(
                verb,
                URL(text, encoded=True),
                data=body,
                headers=headers,
                timeout=timeout,
                ssl=self.access.ssl or True,
                allow_redirects=False,
            )
            code = str(response.status)
            return response
        finally:
            if self.on_request is not None:
                self.on_request(verb, self._host, code, asyncio.get_running_loop().time() - began)

    def _session(self, streaming: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(streaming)
        if session is None:
            session = self._sessions[streaming] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0 if streaming else CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            session._retry_connection = False  # aiohttp would send a PUT or DELETE again by itself
        return session


def _encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def _unreachable(error: Exception, host: str) -> ClientError:
    sent = not isinstance(
        error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError
    )
    if isinstance(error, TimeoutError):
        return TimedOut(f"{host} did not answer in time", sent=sent)
    return Unreachable(f"{host} cannot be reached: {error or type(error).__name__}", sent=sent)
