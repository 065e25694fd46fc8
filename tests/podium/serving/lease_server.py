"""An API server that knows one Lease, behind a network that loses and delays: for elections in virtual time.

It has the interface of `Client`. What was sent arrives even if the sender is stopped or has given up meanwhile.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from podium.client import ApiError, TimedOut, Unreachable
from tools.kit.virtual_time import outside


class LeaseServer:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.history: list[tuple[float, str]] = []  # (when, holder) of each change

    @property
    def holder(self) -> str:
        return "" if self.lease is None else str(self.lease["spec"]["holderIdentity"])

    def handle(self, verb: str, body: Any) -> bytes:
        if verb == "GET":
            if self.lease is None:
                raise ApiError(404, "NotFound", "no such lease")
        else:
            given = msgspec.to_builtins(body)
            if verb == "POST" and self.lease is not None:
                raise ApiError(409, "AlreadyExists", "there is one already")
            if verb == "PUT":
                if self.lease is None:
                    raise ApiError(404, "NotFound", "no such lease")
                if given["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                    raise ApiError(409, "Conflict", "it was changed")
            self.version += 1
            given["metadata"]["resourceVersion"] = str(self.version)
            self.lease = given
            self.history.append((asyncio.get_running_loop().time(), self.holder))
        return msgspec.json.encode(self.lease)


class Network:
    """One process' way to the server. A message takes up to `slowness` seconds and is lost with a chance of `loss`."""

    def __init__(self, server: LeaseServer, rng: random.Random) -> None:
        self.server = server
        self.down = False
        self.slowness = 0.0
        self.loss = 0.0
        self.sent: list[float] = []  # when each request was
        self._rng = rng

    async def get(self, path: str, *, timeout: float | None = None) -> bytes:
        return await self._request("GET", None, timeout)

    async def post(self, path: str, body: Any, *, timeout: float | None = None) -> bytes:
        return await self._request("POST", body, timeout)

    async def put(self, path: str, body: Any, *, timeout: float | None = None) -> bytes:
        return await self._request("PUT", body, timeout)

    async def _request(self, verb: str, body: Any, timeout: float | None) -> bytes:
        self.sent.append(asyncio.get_running_loop().time())
        under_way = outside(self._carry(verb, body))
        try:
            async with asyncio.timeout(timeout):
                answer, error = await asyncio.shield(under_way)
        except TimeoutError:
            raise TimedOut("no answer in time", sent=True) from None
        if error is not None:
            raise error
        return answer

    async def _carry(self, verb: str, body: Any) -> tuple[bytes, Exception | None]:
        await asyncio.sleep(self._rng.uniform(0, self.slowness))
        if self.down or self._rng.random() < self.loss:
            return b"", Unreachable("the API server is away", sent=False)
        try:
            answer = self.server.handle(verb, body)
        except ApiError as refused:
            return b"", refused
        await asyncio.sleep(self._rng.uniform(0, self.slowness))
        if self._rng.random() < self.loss:
            return b"", Unreachable("the connection broke", sent=True)
        return answer, None
