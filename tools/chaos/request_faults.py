"""Injects faults into requests: which one hits which request is drawn from the seed, request by request.

A scenario leaves out some kinds of faults and draws a rate for each of the others. `REQUEST_FAULTS` lists the kinds and
the requests they can hit; faults that come at a moment of their own are in `timed_faults.py`. Nothing goes wrong while
`active` is false, but what went wrong before stays: a silent watch stays silent.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from podium_cluster.apiserver.api import EmbeddedApi
from tools.chaos.mangling import DOUBLED, REORDERED, Mangling
from tools.chaos.network import End, Link
from tools.chaos.transcript import Transcript
from tools.kit.virtual_time import VirtualProcess

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

BIND, LEASE, WRITE, READ, LIST, WATCH = "bind", "lease", "write", "read", "list", "watch"
WRITES = (BIND, LEASE, WRITE)
ALL_BUT_WATCHES = (BIND, LEASE, WRITE, READ, LIST)

CUT_BEFORE = "connection cut before the request was read"
CUT_AFTER = "connection cut after the request was carried out"
CUT_WITHIN = "connection cut within the answer"
LOST = "request lost without a word"
UNANSWERED = "request carried out, answer lost without a word"
LATE = "answer late"
HELD = "request carried out late"
CONFLICT, TOO_MANY, INTERNAL, UNAVAILABLE, TIMEOUT = "409", "429 with Retry-After", "500", "503", "504"
HIDDEN = "504 though carried out"
COMPACTED = "history compacted before a watch (410)"
SILENT_WATCH, CUT_WATCH = "watch silent without a word", "watch cut within an event"
PAUSED = "scheduler paused while it binds"

REQUEST_FAULTS: dict[str, tuple[str, ...]] = {
    CUT_BEFORE: (*ALL_BUT_WATCHES, WATCH),
    CUT_AFTER: WRITES,
    CUT_WITHIN: ALL_BUT_WATCHES,
    LOST: ALL_BUT_WATCHES,
    UNANSWERED: WRITES,
    LATE: ALL_BUT_WATCHES,
    HELD: ALL_BUT_WATCHES,
    CONFLICT: WRITES,
    TOO_MANY: (*ALL_BUT_WATCHES, WATCH),
    INTERNAL: (*ALL_BUT_WATCHES, WATCH),
    UNAVAILABLE: (*ALL_BUT_WATCHES, WATCH),
    TIMEOUT: (*ALL_BUT_WATCHES, WATCH),
    HIDDEN: WRITES,
    COMPACTED: (WATCH, LIST),
    SILENT_WATCH: (WATCH,),
    CUT_WATCH: (WATCH,),
    PAUSED: (BIND,),
}
OFTENER = {BIND: 3.0, LEASE: 2.0}
"""Where most is at stake."""
EVENT_FAULTS = (DOUBLED, REORDERED)

_REFUSALS = {
    CONFLICT: (409, "Conflict", "the object has been modified; please apply your changes to the latest version"),
    TOO_MANY: (429, "TooManyRequests", "too many requests, please try again later"),
    INTERNAL: (500, "InternalError", "an error on the server has prevented the request from succeeding"),
    UNAVAILABLE: (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    TIMEOUT: (504, "Timeout", "the server was unable to return a response in the time allotted"),
    HIDDEN: (504, "Timeout", "the server was unable to return a response in the time allotted"),
}


class RequestFaults:
    """Decides what happens to each request while `active`, and counts what did happen."""

    def __init__(self, rng: random.Random, api: EmbeddedApi, transcript: Transcript) -> None:
        self._rng = rng
        self._api = api
        self._transcript = transcript
        self.active = False
        self.without_lease: dict[VirtualProcess, None] = {}
        """Processes whose writes to the lease fail, all of them."""
        self.injected: Counter[str] = Counter()
        self.rates = {
            **{fault: _rate(rng, 0.06) for fault in REQUEST_FAULTS},
            **{fault: _rate(rng, 0.3) for fault in EVENT_FAULTS},
            HELD: _rate(rng, 0.2),
            PAUSED: _rate(rng, 0.03),
            COMPACTED: _rate(rng, 0.4),
            SILENT_WATCH: _rate(rng, 0.15),
            CUT_WATCH: _rate(rng, 0.25),
        }

    def over(self, handler: Handler) -> Handler:
        """The handler of a server on which these faults fall."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            end = request.transport
            assert isinstance(end, End)
            kind = kind_of_request(request.method, request.path, "watch" in request.query)
            fault = self._draw(kind, end.link.process)
            if kind == WATCH:
                end.filter = Mangling(self.chance, self._rng)
            if fault is None:
                return await handler(request)
            self.injected[fault] += 1
            self._transcript.note("fault", f"{fault}: {request.method} {request.path} of {end.link.client_name}")
            return await self._with(fault, handler, request, end.link)

        return handle

    def chance(self, fault: str) -> bool:
        """Whether a fault of this kind happens now; if so, it is counted."""
        if not self.active or self._rng.random() >= self.rates[fault]:
            return False
        self.injected[fault] += 1
        return True

    def _draw(self, kind: str, process: VirtualProcess | None) -> str | None:
        if not self.active:
            return None
        if kind == LEASE and process in self.without_lease:
            return self._rng.choice([INTERNAL, LOST, CUT_BEFORE, TIMEOUT])
        for fault, kinds in REQUEST_FAULTS.items():
            if kind in kinds and self._rng.random() < self.rates[fault] * OFTENER.get(kind, 1.0):
                return fault
        return None

    async def _with(self, fault: str, handler: Handler, request: web.BaseRequest, link: Link) -> web.StreamResponse:
        if fault == CUT_BEFORE:
            link.cut()
            return web.Response()
        if fault == LOST:
            link.silent = True
            return web.Response()
        if fault in _REFUSALS and fault != HIDDEN:
            return self._refusal(fault)
        if fault in (CUT_WITHIN, CUT_WATCH):
            link.server.cut_after = self._rng.randrange(1, 300 if fault == CUT_WITHIN else 12_000)
        elif fault == SILENT_WATCH:
            asyncio.get_running_loop().call_later(self._rng.uniform(0, 20), _fall_silent, link)
        elif fault == COMPACTED:
            self._api.store.forget()
        elif fault == PAUSED and link.process is not None:
            link.process.pause(self._rng.uniform(5, 40))
        elif fault == HELD:  # for less than a lease counts after its holder has stopped
            await asyncio.sleep(self._rng.uniform(0.05, 4))
        response = await handler(request)
        if fault == CUT_AFTER:
            link.cut()
        elif fault == UNANSWERED:
            link.silent = True
        elif fault == LATE:
            await asyncio.sleep(self._rng.choice([0.5, 3.0, 12.0, 45.0]) * self._rng.random())
        elif fault == HIDDEN:
            return self._refusal(fault)
        return response

    def _refusal(self, fault: str) -> web.Response:
        code, reason, message = _REFUSALS[fault]
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        body = msgspec.json.encode({**status, "reason": reason, "code": code})
        headers = {"Retry-After": str(self._rng.randint(1, 3))} if fault == TOO_MANY else {}
        return web.Response(status=code, body=body, content_type="application/json", headers=headers)


def kind_of_request(method: str, path: str, watch: bool) -> str:
    if method == "GET":
        if watch:
            return WATCH
        return LIST if path.count("/") in (3, 4) and "namespaces/" not in path else READ
    if "/leases" in path:
        return LEASE
    return BIND if path.endswith("/binding") else WRITE


def _rate(rng: random.Random, most: float) -> float:
    """Half of the kinds are left out; small rates are likelier than large ones."""
    return 0.0 if rng.random() < 0.5 else most * rng.random() ** 2


def _fall_silent(link: Link) -> None:
    link.silent = True
