"""Binding a placed pod: prepare (PreBind), bind, tell the others (PostBind).

Preparing and binding may talk to the API server, so this is a coroutine; the scheduler does not wait for it. A driver
whose writer answers at once runs it to the end on the spot. Whatever fails here undoes the placement and puts the pod
back. A pod that will take its time, held at Permit or prepared by a plugin, is said to be nominated meanwhile, so that
others know where it is going; and while it is being prepared, a more important pod may still have it called off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from podium.config.points import Point
from podium.framework.answers import ask, status_of, told
from podium.framework.cycle import Cycle
from podium.framework.extender import Extender, ExtenderError
from podium.framework.handle import Effect
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import SKIP, SKIPPED, SUCCESS, Code, PluginError, Status, code_of
from podium.framework.waiting import WaitingPod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler

PREFLIGHT = 'running PreBindPreFlight "{}"'
PRE_BIND = 'running PreBind plugin "{}"'
BIND = 'running Bind plugin "{}"'


class Binding:
    """One pod's binding."""

    __slots__ = ("_called_off", "_cycle", "_node_name", "_plugins", "_queued", "_runtime", "_scheduler", "task")

    def __init__(
        self, scheduler: Scheduler, runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod, node_name: str
    ) -> None:
        self._scheduler = scheduler
        self._runtime = runtime
        self._cycle = cycle
        self._queued = queued
        self._node_name = node_name
        self._plugins: list[Any] | None = None
        self._called_off = ""
        self.task: Any = None
        """What the driver made of the coroutine; if it can be cancelled, so can the preparation."""

    @property
    def ready(self) -> bool:
        """Whether all is done that comes before the wait at Permit."""
        return self._plugins is not None

    async def get_ready(self, waiting: WaitingPod) -> None:
        """What comes before the wait at Permit: who will have work then, and where the pod is going."""
        try:
            plugins = await self._with_work_timed()
        except Exception as error:
            self._scheduler.waiting.remove(self._queued.pod.uid)
            self._undo(Status.error(told(error)))
            return
        await self._nominate()
        self._plugins = plugins
        if waiting.settled:
            await self.run_after(waiting)

    async def run_after(self, waiting: WaitingPod) -> None:
        """Bind a pod whose wait at Permit is over, or undo its placement when it was turned down."""
        self._scheduler.waiting.remove(self._queued.pod.uid)
        outcome = waiting.outcome
        if outcome is None:
            await self.run()
        elif outcome.rejected:
            self._undo(outcome, at_permit=True)
        else:
            self._undo(Status.error(f"waiting on permit for pod: {outcome.message}"))

    async def run(self) -> None:
        scheduler, watch = self._scheduler, self._runtime.watch
        scheduler.queue.done(self._queued.pod.uid)
        point, began, plugins = "", 0.0, self._plugins
        try:
            if plugins is None:
                plugins = await (self._with_work() if watch is None else self._with_work_timed())
                if plugins:
                    await self._nominate()
            if watch is not None:
                point, began = "PreBind", watch.now()
            status = await self._pre_bind(plugins) if plugins else None
            if watch is not None:
                watch.took[point][code_of(status)](watch.now() - began)
                point, began = "Bind", watch.now()
            if status is None:
                status = await self._bind()
                if watch is not None:
                    watch.took[point][code_of(status)](watch.now() - began)
        except Exception as error:  # even a mistake of ours must not leave the pod placed for ever
            status = Status.error(told(error))
            if watch is not None and point:
                watch.took[point][Code.ERROR](watch.now() - began)
        if status is not None:
            self._undo(status)
            return
        scheduler.bound(self._queued, self._node_name)
        began = 0.0 if watch is None else watch.now()
        self._post_bind()
        if watch is not None:
            watch.took["PostBind"][SUCCESS](watch.now() - began)
        scheduler.activate(self._cycle)

    async def _with_work_timed(self) -> list[Any]:
        watch = self._runtime.watch
        if watch is None:
            return await self._with_work()
        began, code = watch.now(), Code.ERROR
        try:
            plugins = await self._with_work()
            code = SUCCESS if plugins else SKIPPED
            return plugins
        finally:
            watch.took["PreBindPreFlight"][code](watch.now() - began)

    async def _nominate(self) -> None:
        """Let others know where the pod is going; that it could not be said does not stop it."""
        pod, handle = self._queued.pod, self._runtime.handle
        if pod.status.nominated_node_name == self._node_name:
            return
        try:
            answer = handle.writer.nominate(pod, self._node_name)
            if answer is not None and not isinstance(answer, Status):
                answer = await answer
        except Exception as error:
            answer = Status.error(told(error))
        if answer is not None and answer.code != SUCCESS:
            handle.report(f"nominating {self._node_name} for pod {pod.key}: {answer.message}")

    async def _with_work(self) -> list[Any]:
        """The plugins whose PreBind has something to do for this pod."""
        plugins = []
        for plugin in self._runtime.at(Point.PRE_BIND):
            if hasattr(plugin, "pre_bind_preflight"):
                status = self._ask(PREFLIGHT, plugin, plugin.pre_bind_preflight)
                if status is not None and not isinstance(status, Status):
                    status = await status
                if status is not None:
                    _check_skips(plugin, status)
                    continue
            plugins.append(plugin)
        return plugins

    async def _pre_bind(self, plugins: list[Any]) -> Status | None:
        uid, under_way = self._queued.pod.uid, self._runtime.handle.pre_binding
        under_way[uid] = self._call_off
        try:
            for plugin in plugins:
                status = self._ask(PRE_BIND, plugin, plugin.pre_bind)
                if status is not None and not isinstance(status, Status):
                    status = await self._unless_called_off(status)
                if status is not None:
                    return _failure(PRE_BIND, plugin, status)
        finally:
            del under_way[uid]
            if self._called_off and hasattr(self.task, "uncancel"):
                self.task.uncancel()
        return Status.error(self._called_off) if self._called_off else None

    def _call_off(self, message: str) -> None:
        """End the preparation: a more important pod takes the place."""
        self._called_off = message
        if hasattr(self.task, "cancel"):
            self.task.cancel()

    async def _unless_called_off(self, answer: Awaitable[Status | None]) -> Status | None:
        try:
            return await answer
        except BaseException:  # drivers have their own ways to cancel
            if not self._called_off:
                raise
            return Status.error(self._called_off)

    async def _bind(self) -> Status | None:
        for extender in self._runtime.handle.extenders:
            if extender.is_binder and extender.is_interested(self._queued.pod):
                failure = await self._bind_by(extender)
                if failure is None or not extender.ignorable:
                    return None if failure is None else Status.error(failure)
                self._runtime.handle.report(f"binding {self._queued.pod.key}: extender {extender.name}: {failure}")
        for plugin in self._runtime.at(Point.BIND):
            status = self._ask(BIND, plugin, plugin.bind)
            if status is not None and not isinstance(status, Status):
                status = await status
            if status is None:
                return None
            if status.code != SKIPPED:
                return _failure(BIND, plugin, status)
        return Status.error(f"no bind plugin would bind pod {self._queued.pod.key}")

    async def _bind_by(self, extender: Extender) -> str | None:
        """Have an extender bind the pod; None when it did, else what went wrong."""
        try:
            answer = extender.bind(self._queued.pod, self._node_name)
            if answer is not None:
                await answer
        except ExtenderError as error:
            return str(error)
        except Exception as error:
            return f'extender "{extender.name}": {told(error)}'
        return None

    def _post_bind(self) -> None:
        for plugin in self._runtime.at(Point.POST_BIND):
            try:
                plugin.post_bind(self._cycle, self._node_name)
            except Exception as error:
                self._runtime.handle.report(f'running PostBind plugin "{plugin.name}": {told(error)}')

    def _ask(self, what: str, plugin: Any, method: Callable[..., Any]) -> Effect:
        """A plugin's answer, at once or when awaited; None for success."""
        answer = ask(what, plugin, method, self._cycle, self._node_name)
        if answer is None or answer is SKIP:
            return answer
        if isinstance(answer, Status) or not isawaitable(answer):
            return status_of(what.format(plugin.name), answer)
        return _awaited(what.format(plugin.name), answer)

    def _undo(self, status: Status, *, at_permit: bool = False) -> None:
        self._scheduler.not_bound(
            self._runtime, self._cycle, self._queued, self._node_name, status, at_permit=at_permit
        )


async def _awaited(what: str, answer: Awaitable[Any]) -> Status | None:
    try:
        status = await answer
    except Exception as error:
        raise PluginError(f"{what}: {told(error)}") from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise PluginError(f"{what}: what it waited for was cancelled") from None
    return status_of(what, status)


def _check_skips(plugin: Any, status: Status) -> None:
    """The only answers before PreBind are that there is work (None), that there is none, and errors."""
    if status.code == SKIPPED:
        return
    what = PREFLIGHT.format(plugin.name)
    if status.code == Code.ERROR:
        raise PluginError(f"{what}: {status.message}")
    raise PluginError(f"{what}: it must give None, SKIP or an error, got {status.code.name}: {status.message}")


def _failure(what: str, plugin: Any, status: Status) -> Status:
    """A rejection speaks for itself; everything else is an error."""
    if status.rejected:
        return status.by(plugin.name)
    return Status.error(f"{what.format(plugin.name)}: {status.message}")


def run_at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never really waits, as when the writer answers at once; one that does is made to fail."""
    try:
        work.send(None)
        work.throw(PluginError("this driver cannot wait: what it awaits must answer at once"))
    except StopIteration:
        return
    work.close()
    raise RuntimeError("this driver cannot wait, and the binding would not end")
