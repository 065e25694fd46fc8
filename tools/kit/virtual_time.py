"""Runs asyncio in virtual time, which passes only while no task can run, with processes to be paused and killed.

Hours take milliseconds, and a run is the same each time. Tasks started `within` a VirtualProcess belong to it, and
so does all that they start. While it is paused none of its callbacks run, as after SIGSTOP, and what came meanwhile
runs in order when it goes on. Connections are made through the loop's `network`, if it is given one, without sockets.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

ENDLESS = 200_000
"""Rounds of the loop without time passing, after which a task is taken to be running in circles."""

ROUNDS = 1000
"""Rounds of the loop that code gets to unwind before it is cancelled again."""


class Connects(Protocol):
    """A network, as far as a loop has to know it."""

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...


class VirtualProcess:
    """Tasks that belong together, as to an operating system: paused and killed as one."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.killed = False
        self.paused_until = 0.0
        self.deferred: list[tuple[Callable[..., None], contextvars.Context]] = []
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def within(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        context = contextvars.Context()
        context.run(_PROCESS.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that have not ended, in no order."""
        return [task for task in self._tasks if not task.done()]

    def pause(self, seconds: float) -> None:
        self.paused_until = max(self.paused_until, asyncio.get_running_loop().time() + seconds)

    async def kill(self) -> None:
        """End it. Its code still unwinds, but a network does not hear from one that was killed."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.killed = True
        self.paused_until = 0.0
        loop.go_on(self)
        while self.tasks:
            for task in self.tasks:
                task.cancel()
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
                if not self.tasks:
                    break

    def own(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)


_PROCESS: contextvars.ContextVar[VirtualProcess] = contextvars.ContextVar("process")


def current_process() -> VirtualProcess | None:
    """The process that the running code belongs to."""
    return _PROCESS.get(None)


def outside(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that belongs to no process, wherever it is started: the network, a server."""
    return asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class _Selector(selectors.DefaultSelector):
    """Instead of waiting, moves the time."""

    now = 0.0
    rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            self.rounds += 1
            if self.rounds > ENDLESS:
                raise RuntimeError(f"at {self.now:.3f} s a task runs in circles: time cannot pass")
            return ready
        if timeout is None:
            raise RuntimeError("every task waits for another one, and no time will change that")
        self.rounds = 0
        self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.network: Connects | None = None
        self.set_task_factory(_new_task)

    def time(self) -> float:
        return self._virtual.now

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str = "", port: int = 0, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if self.network is None:
            return await super().create_connection(protocol_factory, host, port, **options)
        return await self.network.connect(protocol_factory, host, port)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        context = contextvars.copy_context() if context is None else context  # an empty one is false
        if _PROCESS not in context:
            return super().call_soon(callback, *args, context=context)
        run = _Stoppable(self, callback, args, context)
        handle = super().call_soon(run, context=context)
        run.handle = handle
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        context = contextvars.copy_context() if context is None else context  # an empty one is false
        if _PROCESS not in context:
            return super().call_at(when, callback, *args, context=context)
        run = _Stoppable(self, callback, args, context)
        handle = super().call_at(when, run, context=context)
        run.handle = handle
        return handle

    def defer(self, process: VirtualProcess, run: Callable[..., None], context: contextvars.Context) -> None:
        process.deferred.append((run, context))
        if len(process.deferred) == 1:
            super().call_at(process.paused_until, self.go_on, process, context=contextvars.Context())

    def go_on(self, process: VirtualProcess) -> None:
        """Run what was put off, if the pause is over."""
        if process.paused_until > self.time():
            super().call_at(process.paused_until, self.go_on, process, context=contextvars.Context())
            return
        for run, context in process.deferred:
            super().call_soon(run, context=context)
        process.deferred = []


class _Stoppable:
    """A callback that is put off while its process is paused, and forgotten if it was cancelled meanwhile."""

    __slots__ = ("_args", "_callback", "_context", "_loop", "handle")

    def __init__(
        self,
        loop: VirtualLoop,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context,
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._args = args
        self._context = context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if self.handle is not None and self.handle.cancelled():
            return
        process = self._context[_PROCESS]
        if process.paused_until > self._loop.time():
            self._loop.defer(process, self, self._context)
        else:
            self._callback(*self._args)


def _new_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context)
    process = _PROCESS.get(None) if context is None else context.get(_PROCESS)
    if process is not None:
        process.own(task)
    return task
