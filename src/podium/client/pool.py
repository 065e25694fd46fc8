"""Holds open connections to one server: the last one used is used next, and a limit holds for requests at once.

A connection made with other certificates than those of now is closed instead of being used again, so rotated ones
take effect with the next request. One that was idle for long is closed too: the server is about to do the same, and a
request that meets that moment cannot know whether it arrived.

Time-outs need no timer for each request: one is set for the earliest deadline of all, and looks for the next when it
goes off. As nearly every answer comes long before, that is once in half a minute.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from podium.client.wire import WireConnection, WireResponse

T = TypeVar("T")

MAX_IDLE = 60.0
"""Seconds; kube-apiserver closes idle connections after 90."""


class NotSentError(Exception):
    """The exchange failed before anything was sent; `__cause__` says how."""


class Pool:
    """The connections to one server, at most `limit` in use at a time."""

    def __init__(self, host: str, port: int, *, server_name: str | None, limit: int, max_answer: int) -> None:
        self._host = host
        self._port = port
        self._server_name = server_name
        self._max_answer = max_answer
        self._free_slots = limit
        self._queue: deque[asyncio.Future[None]] = deque()
        self._idle: list[WireConnection] = []
        self._open: dict[WireConnection, None] = {}  # in the order they were made, unlike a set
        self._tls: ssl.SSLContext | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = float("inf")

    async def exchange(
        self, request: bytes, tls: ssl.SSLContext | None, deadline: float, guard: Callable[[], None] | None
    ) -> WireResponse:
        """Sends `request` on a free connection; `guard` is asked at the last moment. NotSentError where it never left,
        TimeoutError, OSError or MalformedError where it may have."""
        loop = asyncio.get_running_loop()
        if tls is not self._tls:
            self._tls = tls
            self._drop_idle()
        if self._free_slots > 0:
            self._free_slots -= 1
        else:
            await _within(self._take_slot(loop), deadline)
        try:
            connection = self._idle_connection(loop.time())
            if connection is None:
                connection = await _within(self._connect(loop, tls), deadline)
            try:
                if guard is not None:
                    guard()
                waiter = connection.send(request, deadline)
                if deadline < self._alarm_at:
                    self._set_alarm(loop, deadline)
                return await waiter
            except asyncio.CancelledError:
                connection.abort()  # the answer may still be coming
                raise
            finally:
                if connection.reusable and tls is self._tls:
                    connection.idle_since = loop.time()
                    self._idle.append(connection)
                else:
                    connection.abort()
        finally:
            self._give_slot()

    async def close(self) -> None:
        self._idle.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            await asyncio.wait([connection.lost for connection in self._open], timeout=1)

    async def _take_slot(self, loop: asyncio.AbstractEventLoop) -> None:
        slot: asyncio.Future[None] = loop.create_future()
        self._queue.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():  # it was given at the same moment
                self._give_slot()
            raise

    def _give_slot(self) -> None:
        while self._queue:
            slot = self._queue.popleft()
            if not slot.done():
                slot.set_result(None)
                return
        self._free_slots += 1

    def _idle_connection(self, now: float) -> WireConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and now - connection.idle_since < MAX_IDLE:
                return connection
            connection.abort()
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> WireConnection:
        _, connection = await loop.create_connection(
            lambda: WireConnection(loop, self._max_answer),
            self._host,
            self._port,
            ssl=tls,
            server_hostname=(self._server_name or self._host) if tls is not None else None,
        )
        self._open[connection] = None
        connection.lost.add_done_callback(lambda _: self._open.pop(connection, None))
        return connection

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = loop.call_at(deadline, self._end_overdue, loop)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        overdue = self._alarm_at
        self._alarm_at = float("inf")
        for connection in list(self._open):
            if connection.waiting and connection.deadline <= overdue:
                connection.expire()
        later = [connection.deadline for connection in self._open if connection.waiting]
        if later:
            self._set_alarm(loop, min(later))


async def _within(step: Coroutine[Any, Any, T], deadline: float) -> T:
    """The steps before sending: whatever goes wrong there, the server knows nothing of the request."""
    try:
        async with asyncio.timeout_at(deadline):
            return await step
    except OSError as error:  # among them TimeoutError, ssl.SSLError and failed look-ups of the name
        raise NotSentError from error
