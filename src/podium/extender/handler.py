"""Handles every request, whichever way it came in: finds its endpoint, times the answer, reports what went wrong.

Nothing that goes wrong in an answer leaves this without words: an exception of ours becomes an `Error` like any other,
with its trace in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from time import perf_counter

from podium.client.problem_reports import ReportLimit
from podium.extender.metrics import ExtenderMetrics
from podium.extender.responses import error, filter_error
from podium.extender.routes import BIND, FILTER, Endpoint, Routes
from podium.extender.service import FAILED, OK, Reply
from podium.serving.browser_guard import FORBIDDEN, UNSUPPORTED_MEDIA_TYPE
from podium.serving.log import LOG

ANSWERED, REFUSED, FAILURE = "answered", "refused", "failed"
TOO_LARGE, NO_SUCH_PATH, WRONG_METHOD, BUSY = 413, 404, 405, 503
JSON = "application/json"
REPEAT = 10.0
"""Seconds between two lines about the same problem."""


class ExtenderHandler:
    """The answers of one port."""

    def __init__(self, routes: Routes, metrics: ExtenderMetrics, *, max_body: int) -> None:
        self.routes = routes
        self.metrics = metrics
        self.max_body = max_body
        self._limit = ReportLimit(REPEAT, perf_counter)

    def find(self, path: str) -> Endpoint | None:
        return self.routes.find(path)

    def answer_now(self, endpoint: Endpoint, body: bytes) -> Reply:
        """The answer of an endpoint that does not wait for anything."""
        began = perf_counter()
        try:
            reply = endpoint.answer(body)
            assert isinstance(reply, Reply)
        except Exception as failure:  # whatever an endpoint raises is answered with 500
            reply = self._failed(endpoint, failure)
        self._note(endpoint, reply, began, len(body))
        return reply

    async def answer(self, endpoint: Endpoint, body: bytes) -> Reply:
        if endpoint.verb != BIND:
            return self.answer_now(endpoint, body)
        began = perf_counter()
        try:
            reply = endpoint.answer(body)
            if isawaitable(reply):
                reply = await reply
        except Exception as failure:  # whatever an endpoint raises is answered with 500
            reply = self._failed(endpoint, failure)
        self._note(endpoint, reply, began, len(body))
        return reply

    def too_large(self, endpoint: Endpoint, size: int | None) -> Reply:
        self.metrics.rejected("size")
        what = "the request" if size is None else f"the request of {size:,} bytes"
        message = f"{what} is larger than the {self.max_body:,} bytes allowed (--max-body)"
        self._report(endpoint, message)
        return Reply(TOO_LARGE, _refusal(endpoint, message), message)

    def busy(self, endpoint: Endpoint) -> Reply:
        self.metrics.rejected("busy")
        message = "too many large requests at once: try again"
        self._report(endpoint, message)
        return Reply(BUSY, _refusal(endpoint, message), message)

    def nowhere(self, path: str) -> Reply:
        self.metrics.rejected("path")
        shown = ", ".join(self.routes.paths[:12])
        return Reply(NO_SUCH_PATH, error(f"there is nothing at {path[:200]}; POST to one of {shown}"))

    def wrong_method(self, method: str, path: str) -> Reply:
        self.metrics.rejected("method")
        return Reply(WRONG_METHOD, error(f"{method} {path[:200]}: only POST is answered here"))

    def forbidden(self, message: str) -> Reply:
        self.metrics.rejected("browser")
        return Reply(FORBIDDEN, error(message))

    def wrong_type(self, content_type: str) -> Reply:
        self.metrics.rejected("type")
        return Reply(UNSUPPORTED_MEDIA_TYPE, error(f"Content-Type is {content_type[:80]!r}: send {JSON}"))

    def _failed(self, endpoint: Endpoint, failure: Exception) -> Reply:
        LOG.error("answering %s of %s failed", endpoint.verb, endpoint.agent, exc_info=failure)
        message = f"internal error: {type(failure).__name__}: {failure}"
        return Reply(OK if endpoint.verb in (FILTER, BIND) else FAILED, _refusal(endpoint, message), message)

    def _note(self, endpoint: Endpoint, reply: Reply, began: float, size: int) -> None:
        took = perf_counter() - began
        agent, verb = endpoint.agent, endpoint.verb
        self.metrics.seconds_of(agent, verb).record(took)
        if not reply.problem:
            self.metrics.answered(agent, verb, ANSWERED)
        else:
            self.metrics.answered(agent, verb, FAILURE if "internal error" in reply.problem else REFUSED)
            if not reply.logged:
                self._report(endpoint, reply.problem)
        if LOG.isEnabledFor(logging.DEBUG):
            fields = {"agent": agent, "verb": verb, "bytes": size, "status": reply.status, "seconds": round(took, 6)}
            LOG.debug("%s of %s answered in %.6f s", verb, agent, took, extra={"fields": fields})

    def _report(self, endpoint: Endpoint, message: str) -> None:
        """Log a problem, but not a thousand times a second."""
        if not self._limit.due((endpoint.agent, endpoint.verb, message)):
            return
        fields = {"agent": endpoint.agent, "verb": endpoint.verb, "error": message}
        LOG.warning("%s of %s: %s", endpoint.verb, endpoint.agent, " ".join(message.split()), extra={"fields": fields})


def _refusal(endpoint: Endpoint, message: str) -> bytes:
    return filter_error(message) if endpoint.verb == FILTER else error(message)


class InFlightLimits:
    """What is in flight now, and the most that may be.

    Limits how many bytes of requests are in flight and how many connections are open, over all ports of a process.

    A request is in flight from when its head has come until its answer has been sent off: an answer may be as large.
    """

    def __init__(self, most_bytes: int, most_connections: int = 1000) -> None:
        self._most_bytes = most_bytes
        self.most_connections = most_connections
        self.bytes = 0
        self.usual_connections = 0
        self.others: list[Callable[[], int]] = []
        """Each returns how many connections have been handed to a general server."""

    def has_room_for(self, length: int) -> bool:
        return self.bytes == 0 or self.bytes + length <= self._most_bytes

    @property
    def crowded(self) -> bool:
        return self.usual_connections + sum(count() for count in self.others) > self.most_connections

    @contextmanager
    def reserved(self, length: int) -> Iterator[Reservation]:
        """Room for one request, given back at the end."""
        reservation = Reservation(self, length)
        try:
            yield reservation
        finally:
            self.bytes -= reservation.bytes


class Reservation:
    """The room of one request, which grows where its length was not known at first."""

    def __init__(self, limits: InFlightLimits, length: int) -> None:
        self._limits = limits
        self.bytes = length
        limits.bytes += length

    def covers(self, length: int) -> bool:
        """Whether there is room for so many bytes in all; it is taken then."""
        more = length - self.bytes
        if more > 0:
            if self._limits.bytes > self.bytes and not self._limits.has_room_for(more):
                return False
            self._limits.bytes += more
            self.bytes = length
        return True
