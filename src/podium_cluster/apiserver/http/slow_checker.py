"""Runs checks that take long in one thread, so that the API answers other requests meanwhile.

One check runs at a time, the others wait; beyond MOST_WAITING they are turned away for a moment (429). A check ends
when its time is over (504), when its client leaves, or when the server stops.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kubecel.limits import TookTooLongError, time_limit
from podium_cluster.apiserver.errors import StatusError, too_many_requests
from podium_cluster.apiserver.http.handler import RequestHandler, failure
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.store.watcher import WatchRequest
from podium_cluster.apiserver.validation.slow_checks import Causes, SlowCheck, Verdicts

SECONDS: Final = 60.0
"""The most that one check may take, as long as kube-apiserver gives a whole request."""
MOST_WAITING: Final = 64
_WITHOUT_CHECKS: Final = ("GET", "HEAD", "DELETE")
_ATTEMPTS: Final = 5
"""How often an object may change while it is checked."""


class SlowChecker:
    """Until it is started, every check runs within its request."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._thread: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._stopped = False

    def start(self) -> None:
        self._thread = ThreadPoolExecutor(1, "slow check")
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def handled(self, handler: RequestHandler, request: ApiRequest) -> ApiResponse | WatchRequest:
        """The answer to the request, after every check that it needs."""
        verdicts: Verdicts | None = None if self._thread is None or request.method in _WITHOUT_CHECKS else {}
        for _ in range(_ATTEMPTS):
            found = handler.attempt(request, verdicts)
            if not isinstance(found, SlowCheck):
                return found
            assert verdicts is not None, "only with verdicts is a check left out"
            try:
                verdicts[found.key] = await self._verdict(found)
            except StatusError as error:
                return failure(error)
        return failure(too_many_requests("the object keeps changing while it is checked; try again", 1))

    async def _verdict(self, check: SlowCheck) -> Causes:
        if self._thread is None or self._waiting >= MOST_WAITING:
            raise too_many_requests("too many objects wait for their rules to be evaluated; try again", 1)
        left = False

        def run() -> Causes:
            with time_limit(self._seconds, lambda: left or self._stopped):
                return check.run()

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except TookTooLongError:
            why = f"the rules of the definition took longer than {self._seconds:g} s"
            message = f"Timeout: request did not complete within the allotted timeout: {why}"
            raise StatusError(504, "Timeout", message, {}) from None
        finally:
            left = True
            self._waiting -= 1
