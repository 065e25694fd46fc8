"""Binds a placed pod: PreBind, Bind, PostBind.

Preparing and binding may talk to the API server, so this is a coroutine; the scheduler does not wait for it. A driver
whose writer answers at once runs it to the end on the spot. Whatever fails here undoes the placement and puts the pod
back. A pod that will take its time, held at Permit or prepared by a plugin, is said to be nominated meanwhile, so that
others know where it is going; and while it is being prepared, a more important pod may still have it called off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from podium.framework.answers import describe, running, status_of
from podium.framework.cycle import Cycle
from podium.framework.extender import Extender, ExtenderError
from podium.framework.handle import Effect
from podium.framework.methods import PreBindMethods
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import OnNode
from podium.framework.queued import QueuedPod
from podium.framework.status import SKIP, SKIPPED, SUCCESS, Code, PluginError, Status, WrongAnswerError, code_of
from podium.framework.timer import Step, timed, timed_binding
from podium.framework.waiting import WaitingPod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler


class BindingSteps:
    """The plugins' methods that binding calls in one profile, timed one by one or not."""

    __slots__ = ("binds", "post_binds", "pre_binds", "runtime")

    def __init__(self, runtime: ProfileRuntime, *, each_plugin_timed: bool = False) -> None:
        self.runtime, timer = runtime, runtime.timer
        self.pre_binds, self.binds, self.post_binds = runtime.pre_binds, runtime.binds, runtime.post_binds
        if each_plugin_timed:
            self.pre_binds = tuple(plugin.timed(timer) for plugin in self.pre_binds)
            self.binds = tuple(plugin.timed(timer) for plugin in self.binds)


def _preflight_code(plugins: list[PreBindMethods]) -> Code:
    return SUCCESS if plugins else SKIPPED


def _success(_answer: None) -> Code:
    return SUCCESS


class PodBinding:
    """One pod's binding, once a node is chosen."""

    __slots__ = (
        "_called_off",
        "_cycle",
        "_node_name",
        "_plugins",
        "_queued",
        "_runtime",
        "_scheduler",
        "_steps",
        "task",
        "timer",
    )

    def __init__(
        self, scheduler: Scheduler, steps: BindingSteps, cycle: Cycle, queued: QueuedPod, node_name: str
    ) -> None:
        self._scheduler = scheduler
        self._steps = steps
        self._runtime = steps.runtime
        self.timer = steps.runtime.timer
        self._cycle = cycle
        self._queued = queued
        self._node_name = node_name
        self._plugins: list[PreBindMethods] | None = None
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
            plugins = await self._preflight()
        except Exception as error:  # whatever a plugin's or the driver's part raises undoes the placement
            self._scheduler.waiting.remove(self._queued.pod.uid)
            self._undo(Status.error(describe(error)))
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
        """Prepare and bind; what fails undoes the placement."""
        scheduler = self._scheduler
        scheduler.queue.done(self._queued.pod.uid)
        try:
            if self._plugins is None:
                self._plugins = await self._preflight()
                if self._plugins:
                    await self._nominate()
            status = await self._pre_bind()
            if status is None:
                status = await self._bind()
        except Exception as error:  # even a mistake of ours must not leave the pod placed for ever
            status = Status.error(describe(error))
        if status is not None:
            self._undo(status)
            return
        scheduler.bound(self._queued, self._node_name)
        self._post_bind(self._cycle, self._node_name)
        if self._cycle.pods_to_activate:
            scheduler.activate(self._cycle)

    async def _nominate(self) -> None:
        """Let others know where the pod is going; that it could not be said does not stop it."""
        pod, handle = self._queued.pod, self._runtime.handle
        if pod.status.nominated_node_name == self._node_name:
            return
        try:
            answer = handle.writer.nominate(pod, self._node_name)
            if answer is not None and not isinstance(answer, Status):
                answer = await answer
        except Exception as error:  # whatever the driver's writer raises: the pod is bound without a nomination
            answer = Status.error(describe(error))
        if answer is not None and answer.code != SUCCESS:
            handle.report(f"nominating {self._node_name} for pod {pod.key}: {answer.message}")

    # The steps

    @timed_binding(Step.PREFLIGHT, _preflight_code)
    async def _preflight(self) -> list[PreBindMethods]:
        """The plugins whose PreBind has something to do for this pod."""
        plugins = []
        for plugin in self._steps.pre_binds:
            if plugin.pre_bind_preflight is not None:
                status = self._ask(Step.PREFLIGHT, plugin.name, plugin.pre_bind_preflight)
                if status is not None and not isinstance(status, Status):
                    status = await status
                if status is not None:
                    try:
                        _check_skips(status)
                    except PluginError as error:
                        raise self._failed(Step.PREFLIGHT, plugin.name, error) from error
                    continue
            plugins.append(plugin)
        return plugins

    @timed_binding(Step.PRE_BIND, code_of)
    async def _pre_bind(self) -> Status | None:
        """Prepare; a more important pod may call it off meanwhile."""
        plugins = self._plugins
        if not plugins:
            return None
        uid, under_way = self._queued.pod.uid, self._runtime.handle.pre_binding
        under_way[uid] = self._call_off
        try:
            for group in _groups(self._steps.pre_binds, plugins):
                status = await self._prepare(group)
                if status is not None:
                    return status
        finally:
            del under_way[uid]
            if self._called_off and hasattr(self.task, "uncancel"):
                self.task.uncancel()
        return Status.error(self._called_off) if self._called_off else None

    async def _prepare(self, group: Sequence[PreBindMethods]) -> Status | None:
        """PreBind of plugins that run together; where one fails, the others are stopped."""
        awaited: dict[str, Awaitable[Status | None]] = {}
        failure: Status | None = None
        for plugin in group:
            answer = self._ask(Step.PRE_BIND, plugin.name, plugin.pre_bind)
            if isinstance(answer, Status):
                failure = _failure(Step.PRE_BIND, plugin.name, answer)
                break
            if answer is not None:
                awaited[plugin.name] = answer
        if failure is None and len(awaited) == 1:
            ((name, only),) = awaited.items()
            status = await self._unless_called_off(only)
            return None if status is None else _failure(Step.PRE_BIND, name, status)
        if not awaited:
            return failure
        return await self._unless_called_off(_first_failure(awaited, failure))

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

    @timed_binding(Step.BIND, code_of)
    async def _bind(self) -> Status | None:
        """Bind by the first extender or plugin that does."""
        for extender in self._runtime.handle.extenders:
            if extender.is_binder and extender.is_interested(self._queued.pod):
                failure = await self._bind_by(extender)
                if failure is None or not extender.ignorable:
                    return None if failure is None else Status.error(failure)
                self._runtime.handle.report(f"binding {self._queued.pod.key}: extender {extender.name}: {failure}")
        for plugin in self._steps.binds:
            status = self._ask(Step.BIND, plugin.name, plugin.bind)
            if status is not None and not isinstance(status, Status):
                status = await status
            if status is None:
                return None
            if status.code != SKIPPED:
                return _failure(Step.BIND, plugin.name, status)
        return Status.error(f"no bind plugin would bind pod {self._queued.pod.key}")

    async def _bind_by(self, extender: Extender) -> str | None:
        """Have an extender bind the pod; None when it did, else what went wrong."""
        try:
            answer = extender.bind(self._queued.pod, self._node_name)
            if answer is not None:
                await answer
        except ExtenderError as error:
            return str(error)
        except Exception as error:  # an extender that is handed in may raise anything
            return f'extender "{extender.name}": {describe(error)}'
        return None

    @timed(Step.POST_BIND, _success)
    def _post_bind(self, cycle: Cycle, node_name: str) -> None:
        """Let plugins know that the pod is bound."""
        for plugin in self._steps.post_binds:
            try:
                plugin.post_bind(cycle, node_name)
            except Exception as error:  # whatever the plugin raises
                self._failed(Step.POST_BIND, plugin.name, error)

    def _ask(self, step: Step, plugin: str, method: OnNode) -> Effect:
        """A plugin's answer, at once or when awaited; None for success."""
        try:
            answer = method(self._cycle, self._node_name)
            if answer is None or answer is SKIP:
                return answer
            if isinstance(answer, Status) or not isawaitable(answer):
                return status_of(step, answer)
        except Exception as error:  # whatever the plugin raises
            raise self._failed(step, plugin, error) from error
        return self._awaited(step, plugin, answer)

    async def _awaited(self, step: Step, plugin: str, answer: Awaitable[object]) -> Status | None:
        try:
            return status_of(step, await answer)
        except Exception as error:  # whatever the plugin raises
            raise self._failed(step, plugin, error) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise PluginError(f"{running(step, plugin)}: what it waited for was cancelled") from None

    def _failed(self, step: Step, plugin: str, error: Exception) -> PluginError:
        return self._runtime.failed(step, plugin, error, self._queued.pod, self._node_name)

    def _undo(self, status: Status, *, at_permit: bool = False) -> None:
        self._scheduler.not_bound(
            self._runtime, self._cycle, self._queued, self._node_name, status, at_permit=at_permit
        )


def _check_skips(status: Status) -> None:
    """The only answers before PreBind are that there is work (None), that there is none, and errors."""
    if status.code == SKIPPED:
        return
    if status.code == Code.ERROR:
        raise PluginError(status.message)
    raise WrongAnswerError(f"it must give None, SKIP or an error, got {status.code.name}: {status.message}")


def _failure(step: Step, plugin: str, status: Status) -> Status:
    """A rejection speaks for itself; everything else is an error."""
    if status.rejected:
        return status.by(plugin)
    return Status.error(f"{running(step, plugin)}: {status.message}")


def _groups(plugins: Sequence[PreBindMethods], at_work: Sequence[PreBindMethods]) -> Iterator[list[PreBindMethods]]:
    """Those that have work, neighbours together that allow it. One that does not parts them even where it has none."""
    group: list[PreBindMethods] = []
    for plugin in plugins:
        if plugin.in_parallel:
            if plugin in at_work:
                group.append(plugin)
            continue
        if group:
            yield group
            group = []
        if plugin in at_work:
            yield [plugin]
    if group:
        yield group


async def _first_failure(awaited: Mapping[str, Awaitable[Status | None]], failure: Status | None) -> Status | None:
    """Await the answers of several plugins, until all have come or one is a failure; the others are stopped then."""
    tasks = {asyncio.ensure_future(answer): name for name, answer in awaited.items()}
    waiting = set(tasks)
    try:
        if failure is not None:
            await asyncio.sleep(0)  # what is stopped must have begun
            return failure
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task, name in tasks.items():
                status = task.result() if task in done else None
                if status is not None:
                    return _failure(Step.PRE_BIND, name, status)
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run_at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never really waits, as when the writer answers at once; one that does is made to fail."""
    try:
        work.send(None)
        work.throw(PluginError("this driver cannot wait: what it awaits must answer at once"))
    except StopIteration:
        return
    work.close()
    raise RuntimeError("this driver cannot wait, and the binding would not end")
