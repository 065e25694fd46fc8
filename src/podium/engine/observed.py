"""Parts of the scheduler that are timed when somebody observes it: taking in news, and plugins that bind.

Each does what the part it stands in for does. A change in the cluster can mean several events (a node's labels and its
taints changed; a waiting pod is gone and a placed one has come): each is said to have taken as long as all together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from podium.engine.binding import BIND, PRE_BIND, PREFLIGHT, Binding
from podium.engine.intake import Intake
from podium.engine.queue import SchedulingQueue
from podium.framework.events import Action, Event, Resource
from podium.framework.handle import Effect
from podium.framework.observer import Observer
from podium.framework.status import Code, Status, code_of
from podium.kube import Pod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler

POD_ADD = Event(Resource.UNSCHEDULED_POD, Action.ADD)
POD_UPDATE = Event(Resource.UNSCHEDULED_POD, Action.UPDATE)
POD_DELETE = Event(Resource.UNSCHEDULED_POD, Action.DELETE)

_POINTS = {PREFLIGHT: "PreBindPreFlight", PRE_BIND: "PreBind", BIND: "Bind"}


class ObservedIntake(Intake):
    def __init__(self, scheduler: Scheduler, observer: Observer) -> None:
        super().__init__(scheduler)
        self._observer = observer
        self._now = observer.now
        self._told: list[Event] = []
        self._queue: Any = _Overheard(scheduler.queue, self._told)

    def set(self, item: Any) -> None:
        began = self._now()
        Intake.set(self, item)
        if self._told:
            self._observer.heard(self._told, began)
            self._told.clear()

    def delete(self, item: Any) -> None:
        began = self._now()
        super().delete(item)
        self._report(began)

    def set_custom(self, resource: str, key: str, value: Any | None) -> None:
        began = self._now()
        super().set_custom(resource, key, value)
        self._report(began)

    def _report(self, began: float) -> None:
        if self._told:
            self._observer.heard(self._told, began)
            self._told.clear()


class _Overheard:
    """The queue, with a note of every event it is told of."""

    def __init__(self, queue: SchedulingQueue, told: list[Event]) -> None:
        self._queue = queue
        self._told = told

    def add(self, pod: Pod) -> None:
        self._told.append(POD_ADD)
        self._queue.add(pod)

    def update(self, before: Pod, after: Pod) -> None:
        self._told.append(POD_UPDATE)
        self._queue.update(before, after)

    def delete(self, pod: Pod) -> None:
        self._told.append(POD_DELETE)
        self._queue.delete(pod)

    def on_event(self, event: Event, before: Any, after: Any, *, precheck: Callable[[Pod], bool] | None = None) -> bool:
        self._told.append(event)
        return self._queue.on_event(event, before, after, precheck=precheck)


class SampledBinding(Binding):
    """A binding whose plugins are timed one by one."""

    __slots__ = ()

    def _ask(self, what: str, plugin: Any, method: Callable[..., Any]) -> Effect:
        return self._timed(what, plugin, method)

    async def _timed(self, what: str, plugin: Any, method: Callable[..., Any]) -> Status | None:
        watch = self._runtime.watch
        assert watch is not None
        began, code = watch.now(), Code.ERROR
        try:
            answer = super()._ask(what, plugin, method)
            status = await answer if isinstance(answer, Awaitable) else answer
            code = code_of(status)
            return status
        finally:
            watch.plugin_took(plugin.name, _POINTS[what], code, began)
