"""An API server that misbehaves: a proxy in front of the real one that sometimes answers by itself, or not at all.

It speaks HTTPS with a certificate of the control plane's own authority and passes the caller's token on: all a client
needs is a kubeconfig with its address. What it does is drawn from one seeded generator, request by request, and noted.
The nastiest fault is the lost answer: the API server has done what was asked, and the client cannot know.

    with FaultProxy(plane, Faults(conflict=0.05, lost_answer=0.02), seed=1) as proxy:
        kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig", server=proxy.url)
        ...
        proxy.faults = Faults()  # the storm is over
    assert proxy.counts["conflict"] > 0
"""

import asyncio
import random
import ssl
import threading
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from tools.testbed.cluster import ControlPlane
from tools.testbed.ports import LOOPBACK

# What belongs to one connection and must not be passed on; the lengths are set again.
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te", "trailer"}


@dataclass(frozen=True)
class Faults:
    """How likely each fault is for one request, from 0 to 1."""

    conflict: float = 0.0  # a write is answered with 409
    too_many: float = 0.0  # 429 with Retry-After: 1
    server_error: float = 0.0  # 500
    delay: float = 0.0  # the request waits up to `longest_delay` seconds first
    lost_answer: float = 0.0  # a write is carried out, then the connection closes without a word
    false_error: float = 0.0  # a write is carried out, then answered with 500 all the same, as when etcd is slow
    refused: float = 0.0  # the connection closes and nothing is carried out
    truncated: float = 0.0  # a watch ends after up to 20 kB, likely in the middle of an event; a list after half of it
    longest_delay: float = 0.5
    watch_lag: float = 0.0  # seconds by which watches are behind


class Injected(NamedTuple):
    fault: str
    method: str
    path: str


class FaultProxy:
    """`url` is its address, `faults` what it does (may be set at any time), `injected` what it did."""

    def __init__(self, plane: ControlPlane, faults: Faults, *, seed: int = 0) -> None:
        self.faults = faults
        self.injected: list[Injected] = []
        self._plane = plane
        self._rng = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._ended: asyncio.Event | None = None
        self._watches: dict[int, web.BaseRequest] = {}  # by id: requests cannot be hashed

    def __enter__(self) -> "FaultProxy":
        address: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, args=(address,), name="http-faults", daemon=True)
        self._thread.start()
        self.url = address.result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._ended is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(timeout=30)

    def cut_watches(self) -> int:
        """Close every watch that is open now, between two bytes; how many there were."""
        cut: Future[int] = Future()
        self._loop.call_soon_threadsafe(lambda: cut.set_result(self._cut_watches()))
        return cut.result(timeout=30)

    @property
    def counts(self) -> Counter[str]:
        """How often it did what."""
        return Counter(each.fault for each in self.injected)

    def _run(self, address: "Future[str]") -> None:
        try:
            self._loop.run_until_complete(self._serve(address))
        except BaseException as error:
            if address.done():
                raise
            address.set_exception(error)
        finally:
            self._loop.run_until_complete(_end_all())
            self._loop.close()

    async def _serve(self, address: "Future[str]") -> None:
        pair = self._plane.authority.issue("http-faults", hosts=(LOOPBACK, "localhost"))
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(pair.certificate, pair.key)
        trusting = ssl.create_default_context(cafile=str(self._plane.ca_path))
        self._ended = asyncio.Event()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusting, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as self._session:
            server = web.Server(self._handle, access_log=None)
            runner = web.ServerRunner(server, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, LOOPBACK, 0, ssl_context=serving)
            await site.start()
            address.set_result(f"https://{LOOPBACK}:{runner.addresses[0][1]}")
            await self._ended.wait()
            still_open = [each.transport for each in server.connections if each.transport is not None]
            await runner.cleanup()
            for transport in still_open:
                transport.abort()  # TLS would wait for the other side to close as well, and outlive the loop

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        faults = self.faults
        writes = request.method not in ("GET", "HEAD", "OPTIONS")
        body = await request.read()
        if self._draw(faults.delay, "delay", request):
            await asyncio.sleep(self._rng.uniform(0, faults.longest_delay))
        if self._draw(faults.refused, "refused", request):
            return _hang_up(request)
        if self._draw(faults.too_many, "too_many", request):
            return _refusal(429, "TooManyRequests", {"Retry-After": "1"})
        if self._draw(faults.server_error, "server_error", request):
            return _refusal(500, "InternalError")
        if writes and self._draw(faults.conflict, "conflict", request):
            return _refusal(409, "Conflict")
        try:
            return await self._forward(request, body, faults, writes)
        except aiohttp.ClientError:  # the real one is away: no answer here either
            return _hang_up(request)

    async def _forward(self, request: web.BaseRequest, body: bytes, faults: Faults, writes: bool) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = f"{self._plane.server}{request.rel_url.raw_path_qs}"
        async with self._session.request(
            request.method, URL(url, encoded=True), headers=headers, data=body or None
        ) as answer:
            passed_on = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            if request.query.get("watch") in ("1", "true") and answer.status == 200:
                return await self._stream(
                    request, answer, passed_on, self._draw(faults.truncated, "truncated", request)
                )
            content = await answer.read()
            if writes and self._draw(faults.lost_answer, "lost_answer", request):
                return _hang_up(request)
            if writes and self._draw(faults.false_error, "false_error", request):
                return _refusal(500, "InternalError")
            if not writes and self._draw(faults.truncated, "truncated", request):
                return await _half(request, answer.status, passed_on, content)
            return web.Response(status=answer.status, headers=passed_on, body=content)

    async def _stream(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: dict[str, str], cut: bool
    ) -> web.StreamResponse:
        passed_on = web.StreamResponse(status=answer.status, headers=headers)
        await passed_on.prepare(request)
        self._watches[id(request)] = request
        try:
            return await self._pass_on(request, answer, passed_on, cut)
        finally:
            del self._watches[id(request)]

    async def _pass_on(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, passed_on: web.StreamResponse, cut: bool
    ) -> web.StreamResponse:
        left = self._rng.randint(0, 20_000)  # bytes until the cut
        async for chunk in answer.content.iter_any():
            if self.faults.watch_lag:
                await asyncio.sleep(self.faults.watch_lag)
            if cut and len(chunk) > left:
                await passed_on.write(chunk[:left])
                return _hang_up(request)
            await passed_on.write(chunk)
            left -= len(chunk)
        await passed_on.write_eof()
        return passed_on

    def _cut_watches(self) -> int:
        for request in self._watches.values():
            self.injected.append(Injected("cut", request.method, request.path))
            _hang_up(request)
        return len(self._watches)

    def _draw(self, likelihood: float, fault: str, request: web.BaseRequest) -> bool:
        happens = likelihood > 0 and self._rng.random() < likelihood
        if happens:
            self.injected.append(Injected(fault, request.method, request.path))
        return happens


async def _half(request: web.BaseRequest, status: int, headers: dict[str, str], content: bytes) -> web.StreamResponse:
    promised = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(content))})
    await promised.prepare(request)
    await promised.write(content[: len(content) // 2])
    return _hang_up(request)


def _hang_up(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return web.Response()  # will not be read


def _refusal(code: int, reason: str, headers: dict[str, str] | None = None) -> web.StreamResponse:
    status = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": "the test's proxy says no",
        "reason": reason,
        "code": code,
    }
    body = msgspec.json.encode(status)
    return web.Response(status=code, headers=headers, body=body, content_type="application/json")


async def _end_all() -> None:
    """End what still runs; connections that were given up are closed a moment later."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0.05)
