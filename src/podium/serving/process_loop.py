"""Runs a process that serves, from start to end: its tasks, the lease that lets it work, and an orderly stop.

What a process watches it watches while it still waits to lead, too, so that a new leader starts at once. Only a leader
works; its writes pass a guard that asks at the last moment whether the lease still holds, so a process that slept
through the end of its lease writes nothing. When the lease is lost the process ends with 1, as kube-scheduler does: its
supervisor starts it again, and the API server holds all there is to know. When a signal stops it, it first finishes
what is under way, then hands the lease over and ends with 0.

Also renews the lease from a thread while the event loop is blocked, by a plugin for example.

kube-scheduler renews in a goroutine of its own, so that no plugin can cost it the lease. Here the event loop does,
until it does not turn any more. The rules are the same: a holder that renewed in time may renew, and no other. A
process that was stopped finds its lease run out, in this thread as well. When it goes on, this thread sees that it was
late itself, and lets the loop turn first.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, Protocol

from podium.client import Client
from podium.serving.election import Election, LeadershipLost
from podium.serving.log import LOG

FINE, LOST = 0, 1


class ProcessLoop:
    """The tasks of one process. Where it has an election, writes of `client` pass the lease's guard once it leads.

    One that `reacquires_lease` does not end when another process has taken its lease, but waits for it.
    """

    def __init__(
        self, election: Election | None = None, client: Client | None = None, *, reacquires_lease: bool = False
    ) -> None:
        self.election = election
        self._client = client
        self._reacquires_lease = reacquires_lease
        self._tasks: list[asyncio.Task[Any]] = []
        self._stopping = False

    def leads(self) -> bool:
        return self.election is None or self.election.leading()

    def shutting_down(self) -> str | None:
        """The readiness check `shutdown`."""
        return "process is shutting down" if self._stopping else None

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something for as long as the process runs; where it fails, so does the process."""
        self._tasks.append(asyncio.create_task(work))
        return self._tasks[-1]

    async def run(
        self,
        stop: asyncio.Event,
        beside: Iterable[Coroutine[Any, Any, Any]],
        work: Callable[[], None] | None = None,
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> int:
        """Run until `stop` is set (0) or until the lease is lost (1).

        `beside` runs from the beginning; `work` starts what only a leader does, and `finish` ends it.
        """
        self.start(stop.wait())
        for each in beside:
            self.start(each)
        try:
            if self.election is not None and not await self._acquired(self.election):
                return FINE
            if work is not None:
                work()
            try:
                await first_ended(self._tasks)
            except LeadershipLost as loss:
                LOG.error("%s; ending, so that what starts next begins from the API server alone", loss)
                return LOST
            LOG.info("stopping: finishing what is under way")
            self._stopping = True
            if finish is not None:
                await finish()
            if self.election is not None:
                await self.election.release()
            return FINE
        finally:
            await cancel(self._tasks)

    async def _acquired(self, election: Election) -> bool:
        """Wait for the lease, and keep it from then on; False where the process is stopped first."""
        LOG.info("trying to acquire %s, as %s", election.where, election.identity)
        acquiring = self.start(election.acquire())
        await first_ended(self._tasks)
        if not acquiring.done():
            LOG.info("stopped while %s led", election.leader or "no process that is known of")
            return False
        self._tasks.remove(acquiring)
        if self._client is not None:
            self._client.guard = election.guard
        self.start(self._keep_leading(election))
        return True

    async def _keep_leading(self, election: Election) -> None:
        while True:
            try:
                await election.keep()
            except LeadershipLost as loss:
                if not self._reacquires_lease:
                    raise
                LOG.warning("%s; waiting until it can be taken again", loss)
            await election.acquire()


async def first_ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Wait until one of the tasks ends; one that failed fails the process, with its own error."""
    done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def cancel(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class WatchingThread(Protocol):
    """Watches the event loop on which it is started."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class SideThread:
    """A daemon thread beside the event loop. What runs on it ends soon after `ended` is set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self.ended = threading.Event()

    def start(self, run: Callable[..., None], *args: Any) -> None:
        self.ended.clear()
        self._thread = threading.Thread(target=run, args=args, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.ended.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None


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
