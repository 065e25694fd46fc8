"""An asyncio loop whose time passes only while nobody has anything to do, with processes that can be stopped.

Hours take milliseconds, and a run is the same each time. Tasks started `within` a Process belong to it, with all that
they start; while it is paused none of its callbacks run, as after SIGSTOP, and what came meanwhile runs in order when
it goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Process:
    def __init__(self) -> None:
        self.paused_until = 0.0
        self.deferred: list[tuple[Callable[..., None], contextvars.Context]] = []

    def within(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        context = contextvars.Context()
        context.run(_PROCESS.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context)

    def pause(self, seconds: float) -> None:
        self.paused_until = max(self.paused_until, asyncio.get_running_loop().time() + seconds)


_PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


def outside(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that belongs to no process, whoever starts it: the network, a server."""
    return asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main)


class _Selector(selectors.DefaultSelector):
    """Instead of waiting, moves the time."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everybody waits for somebody else, and no time will change that")
            self.now += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        context = contextvars.copy_context() if context is None else context  # an empty one is false
        run = _Stoppable(self, callback, args, context)
        handle = super().call_soon(run, context=context)
        run.handle = handle
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        context = contextvars.copy_context() if context is None else context  # an empty one is false
        run = _Stoppable(self, callback, args, context)
        handle = super().call_at(when, run, context=context)
        run.handle = handle
        return handle

    def defer(self, process: Process, run: Callable[..., None], context: contextvars.Context) -> None:
        process.deferred.append((run, context))
        if len(process.deferred) == 1:
            super().call_at(process.paused_until, self._go_on, process, context=contextvars.Context())

    def _go_on(self, process: Process) -> None:
        if process.paused_until > self.time():
            super().call_at(process.paused_until, self._go_on, process, context=contextvars.Context())
            return
        for run, context in process.deferred:
            super().call_soon(run, context=context)
        process.deferred = []


class _Stoppable:
    """A callback that is put off while its process is paused, and forgotten if it was cancelled meanwhile."""

    def __init__(
        self,
        loop: _VirtualLoop,
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
        process = self._context.get(_PROCESS)
        if process is not None and process.paused_until > self._loop.time():
            self._loop.defer(process, self, self._context)
        else:
            self._callback(*self._args)
