"""The parts of the scheduler that are timed when somebody observes it: taking in news, and binding.

Each does what the part it stands in for does. A change in the cluster can mean several events (a node's labels and its
taints changed; a waiting pod is gone and a placed one has come): each is said to have taken as long as all together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from podium.engine.binding import BIND, PRE_BIND, PREFLIGHT, Binding
from podium.engine.changes import pod_events
from podium.engine.intake import Intake
from podium.engine.places import POD_ADD, POD_UPDATE
from podium.engine.queue import SchedulingQueue
from podium.framework.cycle import Cycle
from podium.framework.events import Action, Event, Resource
from podium.framework.handle import Effect
from podium.framework.observed import code_of
from podium.framework.observer import Observer, Stopwatch
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, PluginError, Status
from podium.framework.waiting import WaitingPod
from podium.kube import Pod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler

POD_DELETE = Event(Resource.UNSCHEDULED_POD, Action.DELETE).label

_POINTS = {PREFLIGHT: "PreBindPreFlight", PRE_BIND: "PreBind", BIND: "Bind"}


class ObservedIntake(Intake):
    def __init__(self, scheduler: Scheduler, observer: Observer) -> None:
        super().__init__(scheduler)
        self._observer = observer
        self._now = observer.now
        self._told: dict[str, None] = {}
        self._queue: Any = _Overheard(scheduler.queue, self._told)

    def set(self, item: Any) -> None:
        began = self._now()
        super().set(item)
        self._report(began)

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

    def __init__(self, queue: SchedulingQueue, told: dict[str, None]) -> None:
        self._queue = queue
        self._told = told

    def add(self, pod: Pod) -> None:
        self._told[POD_ADD] = None
        self._queue.add(pod)

    def update(self, before: Pod, after: Pod) -> None:
        self._told[POD_UPDATE] = None
        for event in pod_events(before, after):
            self._told[event.label] = None
        self._queue.update(before, after)

    def delete(self, pod: Pod) -> None:
        self._told[POD_DELETE] = None
        self._queue.delete(pod)

    def on_event(self, event: Event, before: Any, after: Any, *, precheck: Callable[[Pod], bool] | None = None) -> bool:
        self._told[event.label] = None
        return self._queue.on_event(event, before, after, precheck=precheck)


class ObservedBinding(Binding):
    __slots__ = ("_observer", "_sampled", "_watch")

    def __init__(
        self,
        scheduler: Scheduler,
        runtime: ProfileRuntime,
        cycle: Cycle,
        queued: QueuedPod,
        node_name: str,
        observer: Observer,
        watch: Stopwatch,
    ) -> None:
        super().__init__(scheduler, runtime, cycle, queued, node_name)
        self._observer = observer
        self._watch = watch
        self._sampled = watch.sampled

    async def run_after(self, waiting: WaitingPod) -> None:
        self._observer.waited(code_of(waiting.outcome), self._scheduler.now() - waiting.since)
        await super().run_after(waiting)

    async def _with_work(self) -> list[Any]:
        began = self._watch.now()
        try:
            plugins = await super()._with_work()
        except PluginError:
            self._watch.took("PreBindPreFlight", Code.ERROR, began)
            raise
        self._watch.took("PreBindPreFlight", Code.SUCCESS if plugins else Code.SKIP, began)
        return plugins

    async def _pre_bind(self, plugins: list[Any]) -> Status | None:
        began = self._watch.now()
        try:
            status = await super()._pre_bind(plugins)
        except PluginError:
            self._watch.took("PreBind", Code.ERROR, began)
            raise
        self._watch.took("PreBind", code_of(status), began)
        return status

    async def _bind(self) -> Status | None:
        began = self._watch.now()
        try:
            status = await super()._bind()
        except PluginError:
            self._watch.took("Bind", Code.ERROR, began)
            raise
        self._watch.took("Bind", code_of(status), began)
        return status

    def _post_bind(self) -> None:
        began = self._watch.now()
        super()._post_bind()
        self._watch.took("PostBind", Code.SUCCESS, began)

    def _ask(self, what: str, plugin: Any, method: Callable[..., Any]) -> Effect:
        return self._timed(what, plugin, method) if self._sampled else super()._ask(what, plugin, method)

    async def _timed(self, what: str, plugin: Any, method: Callable[..., Any]) -> Status | None:
        began, point = self._watch.now(), _POINTS[what]
        try:
            answer = super()._ask(what, plugin, method)
            status = await answer if isinstance(answer, Awaitable) else answer
        except PluginError:
            self._watch.plugin_took(plugin.name, point, Code.ERROR, began)
            raise
        self._watch.plugin_took(plugin.name, point, code_of(status), began)
        return status
