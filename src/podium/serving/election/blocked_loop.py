"""Renews the lease from a thread while the event loop is blocked, by a plugin for example.

kube-scheduler renews in a goroutine of its own, so that no plugin can cost it the lease. Here the event loop does,
until it does not turn any more. The rules are the same: a holder that renewed in time may renew, and no other. A
process that was stopped finds its lease run out, in this thread as well. When it goes on, this thread sees that it was
late itself, and lets the loop turn first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from podium.client import Client
from podium.serving.election.election import Election
from podium.serving.process_loop import SideThread


class BlockedLoopRenewal:
    """Watches the loop on which it is started; `connect` makes a client for a loop of the thread's own."""

    def __init__(self, election: Election, connect: Callable[[], Client], report: Callable[[str], None]) -> None:
        self._election = election
        self._connect = connect
        self._report = report
        self._thread = SideThread("lease-renewal")
        self._turned_at = 0.0

    def start(self) -> None:
        self._turn()
        self._thread.start(self._run, asyncio.get_running_loop())

    def stop(self) -> None:
        self._thread.stop()

    def _turn(self) -> None:
        self._turned_at = time.monotonic()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        period = self._election.retry_period
        reported = False
        while True:
            looked_at = time.monotonic()
            if self._thread.ended.wait(period / 2):
                return
            paused = time.monotonic() - looked_at > period
            blocked = time.monotonic() - self._turned_at
            if blocked > 2 * period and not paused:
                if self._renewed() and not reported:
                    self._report(f"the event loop has been blocked for {blocked:.1f} s: a thread renews the lease")
                    reported = True
                continue
            reported = False
            try:
                loop.call_soon_threadsafe(self._turn)
            except RuntimeError:  # the loop is closed
                return

    def _renewed(self) -> bool:
        try:
            return asyncio.run(self._renew())
        except Exception as error:  # whatever the renewal raises: the next turn tries again
            self._report(f"renewing the lease while the event loop is blocked: {type(error).__name__}: {error}")
            return False

    async def _renew(self) -> bool:
        async with self._connect() as client:
            return await self._election.renew_by(client)
