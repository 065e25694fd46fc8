"""Runs the scheduler of `podium up` in a thread, on an event loop of its own.

A plugin that blocks then holds up the scheduler alone: the API, the controllers and the nodes go on. What belongs to
one loop is never touched from the other: a stop and the wish for a picture are handed over to the scheduler's loop, and
what comes of them returns in a future.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import Final, Generic, TypeVar

from podium.engine.scheduler import Scheduler
from podium.kube.decode import read_types
from podium.run.assembly import RunOptions, serve_plugin_pages
from podium.run.process import SchedulerProcess
from podium.serving.environment import new_event_loop
from podium.serving.log import LOG
from podium_cluster.up.picture import EMPTY_ENGINE, EnginePicture, take_engine_picture, take_held
from podium_cluster.up.pod_tracker import PodDecision

PATIENCE: Final = 0.1
"""Seconds that the view waits for a picture of the engine."""
SILENT: Final = 2.0
"""Seconds without an answer from which on the view says so."""
PROMPT: Final = 2.0
"""Seconds after which a stop that takes long is explained."""


T = TypeVar("T")
BuildScheduler = Callable[[AsyncExitStack], SchedulerProcess]
"""Makes a scheduler process, on its thread; the stack closes its connections."""


class SchedulerThread:
    """A scheduler process in a thread, which may be replaced by another one while the cluster goes on."""

    def __init__(self, build: BuildScheduler, options: RunOptions) -> None:
        self._build = build
        self._before: BuildScheduler | None = None
        self._next: BuildScheduler | None = None
        self._options = options
        self._loop = new_event_loop()
        self._stop = asyncio.Event()
        self._ending = False
        self._process: SchedulerProcess | None = None
        self._ended: Future[int] = Future()
        self.stands: Future[None] = Future()
        """Done once the first scheduler is built and serves its page."""
        self._picture = _Question(self, take_engine_picture, EMPTY_ENGINE)
        self._held: _Question[list[PodDecision]] = _Question(self, take_held, [])

    async def run(self, stop: asyncio.Event) -> int:
        """Schedule until `stop` is set; the exit code of the process, or its error."""
        read_types()
        threading.Thread(target=self._run, name="scheduler", daemon=True).start()
        ended = asyncio.wrap_future(self._ended)
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        self._hand_over(self._end)
        await asyncio.wait((ended,), timeout=PROMPT)
        if not ended.done():
            LOG.warning("stopping: the scheduler still finishes what is under way; a second signal ends it at once")
        return await ended

    def replace(self, build: BuildScheduler) -> None:
        """Let the scheduler finish what is under way, and another one take over."""
        read_types()  # the new plugins may have brought some

        def end_this_one() -> None:
            self._next = build
            self._stop.set()

        self._hand_over(end_this_one)

    async def engine_picture(self) -> EnginePicture:
        """The engine as it is now, or as it was last seen where a plugin blocks it."""
        picture, age = await self._picture.answer()
        return picture._replace(silent=age if age >= SILENT else 0.0)

    async def held(self) -> list[PodDecision]:
        """The pods that plugins hold at Permit."""
        return (await self._held.answer())[0]

    def ask(self, take: Callable[[Scheduler], T], otherwise: T) -> Future[T]:
        """What `take` makes of the engine, on the scheduler's loop; `otherwise` while there is no engine."""
        return self.ask_process(lambda process: take(process.live.engine), otherwise)

    def ask_process(self, take: Callable[[SchedulerProcess], T], otherwise: T) -> Future[T]:
        """What `take` makes of the process, on the scheduler's loop; `otherwise` while there is none."""
        wanted: Future[T] = Future()

        def answer() -> None:
            try:
                wanted.set_result(otherwise if self._process is None else take(self._process))
            except Exception as error:  # the thread that waits for the answer raises it
                wanted.set_exception(error)

        self._hand_over(answer)
        return wanted

    def _hand_over(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process has ended
            self._loop.call_soon_threadsafe(call)

    # On the scheduler's thread

    def _end(self) -> None:
        self._ending = True
        self._stop.set()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                code = runner.run(self._schedule())
        except BaseException as error:  # also what asks the process to exit: the main thread does
            self._ended.set_exception(error)
        else:
            self._ended.set_result(code)

    async def _schedule(self) -> int:
        while True:
            async with AsyncExitStack() as stack:
                self._process = self._built(stack)
                await serve_plugin_pages(self._process, self._options, stack)
                if not self.stands.done():
                    self.stands.set_result(None)
                code = await self._process.run(self._stop)
            if self._next is None or self._ending:
                return code
            self._before, self._build, self._next = self._build, self._next, None
            self._stop.clear()

    def _built(self, stack: AsyncExitStack) -> SchedulerProcess:
        try:
            return self._build(stack)
        except Exception as error:  # whatever the new plugins raise: the scheduler before them goes on
            if self._before is None:
                raise
            LOG.error("the scheduler goes on as it was: %s: %s", type(error).__name__, error)
            self._build = self._before
            return self._build(stack)


class _Question(Generic[T]):
    """Something to be known of the engine again and again: its last answer counts while the next one is awaited."""

    def __init__(self, thread: SchedulerThread, take: Callable[[Scheduler], T], first: T) -> None:
        self._thread = thread
        self._take = take
        self._first = self._last = first
        self._answered = time.monotonic()
        self._next: asyncio.Future[T] | None = None

    async def answer(self) -> tuple[T, float]:
        """The newest answer, and how many seconds old it is."""
        if self._next is None:
            self._next = asyncio.wrap_future(self._thread.ask(self._take, self._first))
        await asyncio.wait((self._next,), timeout=PATIENCE)
        if self._next.done():
            self._last, self._next = self._next.result(), None
            self._answered = time.monotonic()
        return self._last, time.monotonic() - self._answered
