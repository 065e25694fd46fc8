"""A scheduling queue in a world of its own: time that stands still, a nominator, and all that was counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.cluster.objects import Store
from podium.engine.queue.scheduling_queue import SchedulingQueue
from podium.engine.queue.sub_queues import QueuePlugins, QueueSettings
from podium.framework import Action, Event, Interest, ManualClock, QueuedPod, Resource, Status
from podium.framework.nominator import Nominator
from podium.framework.plugin_failures import PluginFailure
from podium.framework.timer import Untimed
from podium.kube import Pod, PodGroup

PROFILE = "default-scheduler"

NODE_ADD = Event(Resource.NODE, Action.ADD)
NODE_LABEL = Event(Resource.NODE, Action.UPDATE_NODE_LABEL)
POD_GONE = Event(Resource.ASSIGNED_POD, Action.DELETE)


class ByLess:
    """Priority, then time, as a comparison."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (-a.pod.priority, a.timestamp) < (-b.pod.priority, b.timestamp)


class ByKey(ByLess):
    """The same, as a key."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        return (-queued.pod.priority, queued.timestamp)


class Gate:
    """PreEnqueue of one profile: holds back the pods (by name) that `holding` lists under a plugin's name."""

    def __init__(self) -> None:
        self.holding: dict[str, set[str]] = {}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, pod: Pod, first: str) -> Status | None:
        self.asked.append((pod.name, first))
        for plugin in sorted(self.holding, key=lambda name: name != first):
            if pod.name in self.holding[plugin]:
                return Status.unresolvable("held back").by(plugin)
        return None


class Entries(Untimed):
    """Counts the pods that enter each queue."""

    def __init__(self, counted: list[tuple[str, str]]) -> None:
        self._counted = counted

    def entered(self, queue: str, event: str, members: int = 0) -> None:
        self._counted.append((queue, event))

    stayed = entered


class World:
    def __init__(
        self,
        hints: Mapping[str, Sequence[Interest]] | None = None,
        *,
        sorter: ByLess | None = None,
        start: float = 1000.0,
        queued_groups: Store[PodGroup] | None = None,
        **settings: Any,
    ) -> None:
        self.clock = ManualClock(start)
        self.nominator = Nominator()
        self.gate = Gate()
        self.counted: list[tuple[str, str]] = []
        self.reports: list[str] = []
        self.failures: list[PluginFailure] = []
        self.queue = SchedulingQueue(
            sorter or ByKey(),
            self.clock,
            self.nominator,
            QueuePlugins({PROFILE: self.gate}, {PROFILE: hints or {}}, self.failures.append, self.reports.append),
            QueueSettings(**settings),
            timer=Entries(self.counted),
            queued_groups=queued_groups,
        )

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.queue.add(pod)

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None, "no pod is ready"
        return queued

    def pop_names(self) -> list[str]:
        """The names of all pods that can be popped, in order; they stay in flight."""
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod.name)
        return names

    def fail(self, queued: QueuedPod, *plugins: str, pending: Sequence[str] = ()) -> None:
        """Give a popped pod back, rejected by these plugins, or failed by an error when there are none."""
        queued.unschedulable_plugins, queued.pending_plugins = set(plugins), set(pending)
        assert self.queue.add_unschedulable(queued)

    def rejected(self, pod: Pod, *plugins: str, pending: Sequence[str] = ()) -> QueuedPod:
        """Add a pod, try it, and have it rejected."""
        self.queue.add(pod)
        queued = self.pop()
        assert queued.pod is pod, "another pod was ahead"
        self.fail(queued, *plugins, pending=pending)
        return queued

    def place(self, name: str) -> str:
        queued = self.queue.get(f"default/{name}")
        return "" if queued is None else queued.queue


def says(answer: bool) -> Callable[[Pod, Any, Any], bool]:
    """A hint that always answers the same."""
    return lambda _pod, _before, _after: answer
