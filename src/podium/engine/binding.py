"""Binding a placed pod: prepare (PreBind), bind, tell the others (PostBind).

Preparing and binding may talk to the API server, so this is a coroutine; the scheduler does not wait for it. A driver
whose writer answers at once runs it to the end on the spot. Whatever fails here undoes the placement and puts the pod
back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, PluginError, Status
from podium.framework.waiting import WaitingPod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler


class Binding:
    """One pod's binding."""

    __slots__ = ("_cycle", "_node_name", "_queued", "_runtime", "_scheduler")

    def __init__(
        self, scheduler: Scheduler, runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod, node_name: str
    ) -> None:
        self._scheduler = scheduler
        self._runtime = runtime
        self._cycle = cycle
        self._queued = queued
        self._node_name = node_name

    async def run_after(self, waiting: WaitingPod) -> None:
        """Bind a pod whose wait at Permit is over, or undo its placement when it was turned down."""
        self._scheduler.waiting.remove(self._queued.pod.uid)
        if waiting.outcome is None:
            await self.run()
        else:
            self._undo(waiting.outcome)

    async def run(self) -> None:
        scheduler = self._scheduler
        scheduler.queue.done(self._queued.pod.uid)
        try:
            status = await self._pre_bind() or await self._bind()
        except PluginError as error:
            status = Status.error(str(error))
        if status is not None:
            self._undo(status if status.code == Code.ERROR else Status.error(status.message))
            return
        for plugin in self._runtime.at("postBind"):
            try:
                plugin.post_bind(self._cycle, self._node_name)
            except Exception as error:
                self._runtime.handle.report(f'running PostBind plugin "{plugin.name}": {error}')
        scheduler.bound(self._cycle, self._queued, self._node_name)

    async def _pre_bind(self) -> Status | None:
        for plugin in self._runtime.at("preBind"):
            what = f'running PreBind plugin "{plugin.name}"'
            if hasattr(plugin, "pre_bind_preflight"):
                ready = self._ask(what, plugin.pre_bind_preflight)
                if ready is not None:
                    ready = await _settled(what, ready)
                    if ready is not None and ready.code == Code.SKIP:
                        continue
                    if ready is not None and ready.code != Code.SUCCESS:
                        return Status.error(f"{what}: {ready.message}")
            status = self._ask(what, plugin.pre_bind)
            if status is not None:
                status = await _settled(what, status)
                if status is not None and status.code != Code.SUCCESS:
                    return Status.error(f"{what}: {status.message}")
        return None

    async def _bind(self) -> Status | None:
        for plugin in self._runtime.at("bind"):
            what = f'running Bind plugin "{plugin.name}"'
            status = self._ask(what, plugin.bind)
            if status is None:
                return None
            status = await _settled(what, status)
            if status is None or status.code == Code.SUCCESS:
                return None
            if status.code != Code.SKIP:
                return Status.error(f"{what}: {status.message}")
        return Status.error(f"no bind plugin would bind pod {self._queued.pod.key}")

    def _ask(self, what: str, method: Callable[..., Any]) -> Any:
        try:
            return method(self._cycle, self._node_name)
        except Exception as error:
            raise PluginError(f"{what}: {error}") from error

    def _undo(self, status: Status) -> None:
        self._scheduler.not_bound(self._runtime, self._cycle, self._queued, self._node_name, status)


async def _settled(what: str, answer: Any) -> Status | None:
    """An answer that may still have to be waited for."""
    if not isinstance(answer, Status) and isawaitable(answer):
        try:
            answer = await answer
        except Exception as error:
            raise PluginError(f"{what}: {error}") from error
    if answer is None or isinstance(answer, Status):
        return answer
    raise PluginError(f"{what}: it must give None or a Status, got {type(answer).__name__}")


def run_at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never really waits, as when the writer answers at once."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("this driver cannot wait: its writer must answer at once")
