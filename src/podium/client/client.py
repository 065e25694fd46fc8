"""Sends requests to an API server: bytes in, bytes out.

    throttle → fresh credentials → guard (writes) → send → answer, or wait and again

`timeout` covers all of that, so a caller who gives five seconds has an answer or an error after five seconds. Within
it a request is repeated when the server asks for that (429 or 5xx with Retry-After), once after a 401 if the
credentials could be renewed, and a GET also when no answer came. Without an answer a write is never repeated;
`Unreachable.sent` tells the caller, who knows what is safe, whether it may have arrived.

What does not change between requests is made beforehand, because a scheduler's day is thousands of small POSTs.

Also decides when a request is sent: how many go in a second, and whether and when one that failed is sent again.

- 429 and 5xx with Retry-After: after that time, up to ten times, as kubectl does.
- No answer to a request that only reads: a few times, waiting longer each time.
- Anything else is the caller's to judge. That holds for writes that were never sent too: those who write have
  their own way of trying again, and two on top of each other would multiply.

Waits are spread at random, so that many clients that were cut off together do not come back together, and none goes
past the deadline: where it would, the error is raised at once.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict

from podium.client.access import Access
from podium.client.api_errors import AccessError, ApiError, ClientError, TimedOut, Unreachable, refusal
from podium.client.pool import NotSentError, Pool
from podium.client.session import Chunks, Session, abandon, read_whole, unreachable
from podium.client.wire import MalformedResponseError

MOST_WAITS = 10
MOST_RECONNECTS = 4
FIRST_BACKOFF = 0.1
"""Seconds, doubled each time."""
SPREAD = 0.25
DEFAULT_BURST = 10
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"

GET_TIMEOUT = 30.0
LIST_TIMEOUT = 60.0
WRITE_TIMEOUT = 30.0
SILENT_WATCH = 150.0
"""Seconds of silence after which a watch is cut: servers send a bookmark every minute."""
CONNECTIONS = 100
MAX_LIST = 256 << 20
MAX_OBJECT = 16 << 20
"""Bytes of an answer, unpacked: to a GET (a page of a list, at most), and to a write; etcd takes objects of 1.5 MB."""
NO_ANSWER = "<error>"

T = TypeVar("T")
Params = Mapping[str, str] | None
OnRequest = Callable[[str, str, str, float], None]
"""Called after each attempt: verb, host, status code (NO_ANSWER if there was none) and seconds."""

_encode = msgspec.json.Encoder().encode
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~:@!$&'()*+,;=%?-]*").fullmatch
_PATH_SAFE = "/:@!$&'()*+,;=%?"
_FAILURES = (NotSentError, MalformedResponseError, aiohttp.ClientError, OSError)


class Repetition:
    """The repetitions of one request."""

    def __init__(self, deadline: float, rng: random.Random, *, reading: bool) -> None:
        self._deadline = deadline
        self._rng = rng
        self._reading = reading
        self._waits = 0
        self._reconnects = 0

    async def after(self, error: ClientError) -> None:
        """Returns when the request may be sent again; raises `error` where it may not."""
        seconds = self._wait(error)
        if seconds is None or asyncio.get_running_loop().time() + seconds >= self._deadline:
            raise error
        await asyncio.sleep(seconds)

    def _wait(self, error: ClientError) -> float | None:
        match error:
            case ApiError(retry_after=float(seconds)) if error.too_many or error.status >= 500:
                self._waits += 1
                if self._waits <= MOST_WAITS:
                    return seconds * (1 + SPREAD * self._rng.random())
            case Unreachable(lasting=False) if self._reading:
                self._reconnects += 1
                if self._reconnects <= MOST_RECONNECTS:
                    return FIRST_BACKOFF * 2.0 ** (self._reconnects - 1) * (1 + self._rng.random())
        return None


class Throttle:
    """The limit of one client.

    Limits the rate of one's own requests.

    A bucket of `burst` tokens fills by `qps` a second, and each request takes one. Requests go in the order they
    came: each reserves the next free moment and sleeps until then, so a queue needs no list and no wake-ups.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._interval = 1 / qps
        self._slack = ((burst if burst > 0 else DEFAULT_BURST) - 1) * self._interval
        self._next_free: float | None = None
        """When a token is free if none is saved; up to `slack` in the past, which is what was saved."""

    async def take(self, deadline: float) -> None:
        """Returns when the request may go; TimeoutError at once where that would be after `deadline` (loop time)."""
        now = asyncio.get_running_loop().time()
        oldest = now - self._slack
        free = oldest if self._next_free is None else max(self._next_free, oldest)
        if free > deadline:
            raise TimeoutError
        self._next_free = free + self._interval
        if free > now:
            await asyncio.sleep(free - now)


class Client:
    """One server, asked as one user.

    `guard` is called at the last moment before a write is sent and may raise to stop it; `on_request` is called after
    every attempt.
    """

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
        self._throttle = Throttle(qps, burst) if qps > 0 else None
        self._server = access.server
        self._host = access.host
        self._prefix = access.url.raw_path.rstrip("/")
        self._session = Session(
            limit=CONNECTIONS,
            proxy=access.route.proxy,
            server_name=access.route.tls_server_name,
            compression=access.route.compression,
            connector=access.route.connector,
        )
        self._large_answers = asyncio.Lock()
        self._pool = None if access.route.proxy else self._new_pool()
        self._version = -1
        self._heads: dict[str, bytes] = {}
        self._headers: dict[str, CIMultiDict[str]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        await self._session.close()

    async def get(self, path: str, params: Params = None, *, timeout: float | None = None) -> bytes:
        if timeout is None:
            timeout = LIST_TIMEOUT if names_a_collection(path) else GET_TIMEOUT
        return await self._request("GET", path, params, None, JSON, timeout)

    async def post(self, path: str, body: Any, params: Params = None, *, timeout: float | None = None) -> bytes:
        return await self._request("POST", path, params, body, JSON, timeout)

    async def put(self, path: str, body: Any, params: Params = None, *, timeout: float | None = None) -> bytes:
        return await self._request("PUT", path, params, body, JSON, timeout)

    async def patch(
        self, path: str, body: Any, kind: str = MERGE_PATCH, params: Params = None, *, timeout: float | None = None
    ) -> bytes:
        return await self._request("PATCH", path, params, body, kind, timeout)

    async def delete(
        self, path: str, body: Any = None, params: Params = None, *, timeout: float | None = None
    ) -> bytes:
        return await self._request("DELETE", path, params, body, JSON, timeout)

    @asynccontextmanager
    async def stream(self, path: str, params: Params = None, *, idle: float = SILENT_WATCH) -> AsyncIterator[Chunks]:
        """A watch: the bytes of the answer as they come. TimedOut when nothing came for `idle` seconds."""
        target = _target(path, params)
        deadline = asyncio.get_running_loop().time() + GET_TIMEOUT
        response = await self._persist(lambda: self._open(target, idle, deadline), deadline, reading=True)
        try:
            yield Chunks(response, self._host)
        finally:
            abandon(response)

    async def _request(
        self, verb: str, path: str, params: Params, body: Any, kind: str, timeout: float | None
    ) -> bytes:
        deadline = asyncio.get_running_loop().time() + (WRITE_TIMEOUT if timeout is None else timeout)
        if body is not None and not isinstance(body, bytes):
            body = _encode(body)
        target = _target(path, params)
        if verb == "GET" or self._pool is None:
            ask = partial(self._ask_session, verb, target, body, kind, deadline)
        else:
            ask = partial(self._ask_pool, self._pool, verb, target, body, kind, deadline)
        return await self._persist(ask, deadline, reading=verb == "GET")

    async def _persist(self, attempt: Callable[[], Awaitable[T]], deadline: float, *, reading: bool) -> T:
        """Attempts until there is an answer or nothing more can be done."""
        access = self.access
        repetition: Repetition | None = None
        renewed = False
        while True:
            if self._throttle is not None:
                await self._take_turn(self._throttle, deadline)
            if access.version != self._version or asyncio.get_running_loop().time() >= access.due:
                await self._refresh(deadline)
            version = self._version
            try:
                return await attempt()
            except ClientError as failure:
                error = failure
            if isinstance(error, ApiError) and error.unauthorized:
                if renewed or not await self._renew(version, deadline):
                    raise self._explained(error)
                renewed = True
                continue
            if repetition is None:
                repetition = Repetition(deadline, self._rng, reading=reading)
            await repetition.after(error)

    async def _ask_pool(
        self, pool: Pool, verb: str, target: str, body: bytes | None, kind: str, deadline: float
    ) -> bytes:
        head = self._heads.get(kind) or self._new_head(kind)
        content = body or b""
        line = f"{verb} {self._prefix}{target} HTTP/1.1\r\nContent-Length: {len(content)}\r\n"
        began = asyncio.get_running_loop().time()
        code = NO_ANSWER
        try:
            answer = await pool.exchange(
                b"".join((line.encode(), head, content)), self.access.tls, deadline, self.guard
            )
            code = str(answer.status)
        except _FAILURES as error:
            raise unreachable(error, self._host) from None
        finally:
            if self.on_request is not None:
                self.on_request(verb, self._host, code, asyncio.get_running_loop().time() - began)
        if answer.status >= 300:
            raise refusal(answer.status, answer.body, _seconds(answer.header(b"retry-after")))
        return answer.body

    async def _ask_session(self, verb: str, target: str, body: bytes | None, kind: str, deadline: float) -> bytes:
        if verb != "GET" and self.guard is not None:
            self.guard()
        left = max(deadline - asyncio.get_running_loop().time(), 0.001)
        response = await self._send(verb, target, body, kind, aiohttp.ClientTimeout(total=left))
        try:
            async with asyncio.timeout_at(deadline):
                limit = MAX_LIST if verb == "GET" else MAX_OBJECT
                content = await read_whole(response, limit, self._large_answers)
        except _FAILURES as error:
            raise unreachable(error, self._host) from None
        if response.status >= 300:
            raise refusal(response.status, content, _seconds(response.headers.get("Retry-After")))
        return content

    async def _open(self, target: str, idle: float, deadline: float) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=idle)
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._send("GET", target, None, JSON, timeout, streaming=True)
        except TimeoutError:
            raise TimedOut(f"{self._host} did not answer in time", sent=True) from None
        if response.status < 300:
            return response
        try:
            async with asyncio.timeout_at(deadline):
                content = await read_whole(response, MAX_OBJECT, self._large_answers)
        except _FAILURES as error:
            raise unreachable(error, self._host) from None
        raise refusal(response.status, content, _seconds(response.headers.get("Retry-After")))

    async def _send(
        self,
        verb: str,
        target: str,
        body: bytes | None,
        kind: str,
        timeout: aiohttp.ClientTimeout,
        *,
        streaming: bool = False,
    ) -> aiohttp.ClientResponse:
        began = asyncio.get_running_loop().time()
        code = NO_ANSWER
        try:
            response = await self._session.open(
                verb,
                f"{self._server}{target}",
                self._headers.get(kind) or self._new_headers(kind),
                body,
                self.access.tls,
                timeout,
                streaming=streaming,
            )
            code = str(response.status)
            return response
        except _FAILURES as error:
            raise unreachable(error, self._host) from None
        finally:
            if self.on_request is not None:
                self.on_request(verb, self._host, code, asyncio.get_running_loop().time() - began)

    async def _take_turn(self, throttle: Throttle, deadline: float) -> None:
        try:
            await throttle.take(deadline)
        except TimeoutError:
            raise TimedOut("the limit on one's own requests (qps) leaves no time for this one", sent=False) from None

    async def _refresh(self, deadline: float) -> None:
        with _credentials_in_time(self.access):
            async with asyncio.timeout_at(deadline):
                await self.access.refresh()
        if self.access.version != self._version:
            self._version = self.access.version
            self._heads.clear()
            self._headers.clear()

    async def _renew(self, version: int, deadline: float) -> bool:
        with _credentials_in_time(self.access):
            async with asyncio.timeout_at(deadline):
                return await self.access.renew(version)

    def _explained(self, error: ApiError) -> ApiError:
        expired = self.access.expired_certificate()
        message = expired or f"{self._host} does not know the credentials it was given: {error.message or error}"
        return ApiError(error.status, error.reason, message, error.details)

    def _new_pool(self) -> Pool:
        url = self.access.url
        return Pool(
            url.host or "",
            url.port or 443,
            server_name=self.access.route.tls_server_name,
            limit=CONNECTIONS,
            max_answer=MAX_OBJECT,
        )

    def _new_headers(self, kind: str) -> CIMultiDict[str]:
        fixed = (("Accept", JSON), ("User-Agent", self._user_agent), ("Content-Type", kind))
        headers = self._headers[kind] = CIMultiDict([*fixed, *self.access.headers])
        return headers

    def _new_head(self, kind: str) -> bytes:
        headers = (("Host", self._host), *self._new_headers(kind).items())
        head = self._heads[kind] = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers) + b"\r\n"
        return head


@contextmanager
def _credentials_in_time(access: Access) -> Iterator[None]:
    try:
        yield
    except AccessError as error:
        raise Unreachable(str(error), sent=False, lasting=True) from None
    except TimeoutError:
        raise TimedOut(f"{access.awaited}, and the request had no more time", sent=False) from None


def names_a_collection(path: str) -> bool:
    """Whether a GET of `path` lists: /api/v1/pods, /apis/GROUP/V/namespaces/NS/RESOURCE."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) == 3 and rest[0] == "namespaces":
        return rest[2] not in ("status", "finalize")
    return len(rest) == 1


def _target(path: str, params: Params) -> str:
    if not _PLAIN_PATH(path):
        path = quote(path, safe=_PATH_SAFE)
    return f"{path}?{urlencode(params, quote_via=quote)}" if params else path


def _seconds(retry_after: bytes | str | None) -> float | None:
    """Retry-After in seconds; the form with a date is not used by API servers."""
    try:
        return None if retry_after is None else max(float(int(retry_after)), 0.0)
    except ValueError:
        return None
