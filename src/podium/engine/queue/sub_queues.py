"""Moves pods between the three queues: active, backoff and unschedulable.

Active pods are tried in the order of QueueSort. Entering it, or the backoff queue, takes the consent of the PreEnqueue
plugins; a pod that one of them holds back is parked with the unschedulable ones. One record per pod is in one queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from podium.config.resolved import POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION
from podium.engine.queue.backoff_queue import BackoffQueue
from podium.engine.queue.heap import Sorter, pod_heap
from podium.engine.queue.queueing_hints import HintsByProfile, Strategy
from podium.engine.queue.unschedulable_pods import UnschedulablePods
from podium.framework.clock import Clock
from podium.framework.events import Action, Concerns, Event, Resource
from podium.framework.nominator import Nominator
from podium.framework.plugin_failures import OnPluginFailure, ignore_failure
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.framework.status import PluginError, Status
from podium.framework.timer import Timer
from podium.kube import Pod

ACTIVE, BACKOFF, UNSCHEDULABLE = "active", "backoff", "unschedulable"

POD_ADD = Event(Resource.UNSCHEDULED_POD, Action.ADD).label
OLD_POD_ADD = Event(Resource.UNSCHEDULABLE_POD, Action.ADD).label
OLD_POD_UPDATE = Event(Resource.UNSCHEDULABLE_POD, Action.UPDATE).label
OWN_POD_UPDATE = Event(Resource.TARGET_POD, Action.UPDATE).label
_NOMINATES = (POD_ADD, OLD_POD_ADD, OLD_POD_UPDATE, OWN_POD_UPDATE)
"""What may bring a new nomination along; before Kubernetes 1.37, under the old names."""
POPPED_EARLY = "PopFromBackoffQ"

PRE_ENQUEUE = "PreEnqueue"
"""Stands for the gating plugin where a PreEnqueue call broke without naming one."""

PreEnqueue = Callable[[Pod, str], Status | None]
"""(pod, plugin to ask first) → None, or why the pod may not be tried, by which plugin."""
OnMove = Callable[[QueuedPod, str, str, Any], None]
"""Called with a pod that entered a queue, the queue, the event, and the object of the event where there is one."""


class QueueSettings(NamedTuple):
    """How long pods wait, in seconds, and what differs between Kubernetes versions."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_in_unschedulable: float = POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION
    members_back_off: bool = False
    """A member of a PodGroup that failed always backs off, whatever happened meanwhile."""
    nominates_gated: bool = True
    """The nominated node of a gated pod is reserved for it."""
    names_own_changes: bool = True


class QueuePlugins(NamedTuple):
    """What plugins do in the queue, by profile, and who hears what goes wrong in one."""

    pre_enqueue: Mapping[str, PreEnqueue]
    hints: HintsByProfile
    on_failure: OnPluginFailure = ignore_failure
    report: Callable[[str], None] = lambda _message: None


class SubQueues:
    """The active, the backoff and the unschedulable pods, and the ways between them."""

    def __init__(
        self,
        sorter: Sorter,
        clock: Clock,
        nominator: Nominator,
        plugins: QueuePlugins,
        concerns: Mapping[str, Concerns],
        settings: QueueSettings,
        timer: Timer,
    ) -> None:
        self._clock = clock
        self._nominator = nominator
        self._pre_enqueue = plugins.pre_enqueue
        self._count, self._count_stay = timer.entered, timer.stayed
        self._report = plugins.report
        self.on_move: OnMove | None = None
        self.cause: Any = None
        """The object of the event that is being handled."""
        self._pods: dict[str, QueuedPod] = {}
        self.active = pod_heap(sorter)
        self.backoff = BackoffQueue(
            sorter, clock, settings.initial_backoff, settings.max_backoff, pod_groups=settings.members_back_off
        )
        self.unschedulable = UnschedulablePods(concerns)

    def get(self, key: str) -> QueuedPod | None:
        return self._pods.get(key)

    def pop(self) -> QueuedPod | None:
        """The first active pod, else the one whose backoff ends first; it is in no queue afterwards."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop_early()
            if queued is None:
                return None
            self._count(ACTIVE, POPPED_EARLY)
        del self._pods[queued.key]
        queued.queue = ""
        return queued

    def requeue(self, queued: QueuedPod, strategy: Strategy, label: str) -> None:
        """Put a pod where an event, or its failure, sends it."""
        if strategy is Strategy.SKIP:
            self._park(queued, label)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff.waiting(queued):
            self._to_backoff(queued, label)
        else:
            self.to_active(queued, label)

    def stays_gated(self, queued: QueuedPod, label: str) -> bool:
        """Whether a gated pod that an event calls is held back by the same plugin still; it then stays as it is filed,
        though it counts as having come in again."""
        gate, rejectors, pod = queued.gating_plugin, queued.unschedulable_plugins, queued.pod
        if not gate:
            return False
        self._ask_to_enqueue(queued)
        if queued.gating_plugin != gate or queued.unschedulable_plugins is not rejectors or queued.pod is not pod:
            return False
        self._count_stay(UNSCHEDULABLE, label, queued.group_size)
        return True

    def to_active(self, queued: QueuedPod, label: str) -> bool:
        """Make a pod active unless a PreEnqueue plugin objects. One that was backing off has been asked about."""
        if queued.queue != BACKOFF:
            self._ask_to_enqueue(queued)
        known = self._pods.get(queued.key)
        if queued.gating_plugin:
            if known is None or known.queue == UNSCHEDULABLE:
                self._park(queued, label)
            return False
        if known is not None:
            self.take_out(known)
        if queued.initial_attempt is None:
            queued.initial_attempt = self._clock.now()
        grouped = isinstance(queued, QueuedGroup)
        for member in queued.members if grouped else ():
            member.initial_attempt = member.initial_attempt or queued.initial_attempt
        self.active.push(queued)
        self._enter(queued, ACTIVE, label)
        if label in _NOMINATES and not grouped:
            self._nominator.nominate(queued.pod)
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        self._ask_to_enqueue(queued)
        if queued.gating_plugin:
            self._park(queued, label)
            return
        if queued.queue == UNSCHEDULABLE:
            self.take_out(queued)
        self.backoff.add(queued)
        self._enter(queued, BACKOFF, label)

    def _park(self, queued: QueuedPod, label: str) -> None:
        known = self._pods.get(queued.key)
        self.unschedulable.put(queued)
        if known is None:
            self._enter(queued, UNSCHEDULABLE, label)
        else:  # A pod that stays where it is does not enter.
            queued.queue = UNSCHEDULABLE
            self._pods[queued.key] = queued

    def _enter(self, queued: QueuedPod, queue: str, label: str) -> None:
        queued.queue = queue
        self._pods[queued.key] = queued
        self._count(queue, label, queued.group_size)
        for member in queued.members:
            member.queue = queue
            if self.on_move is not None:
                self.on_move(member, queue, label, self.cause)

    def take_out(self, queued: QueuedPod) -> None:
        del self._pods[queued.key]
        if queued.queue == ACTIVE:
            self.active.remove(queued.key)
        elif queued.queue == BACKOFF:
            self.backoff.remove(queued.key)
        else:
            self.unschedulable.remove(queued.key)
        queued.queue = ""

    def _ask_to_enqueue(self, queued: QueuedPod) -> None:
        """Ask the PreEnqueue plugins, the one that objected last time first, and note who objects now. A pod group is
        held back while any member is."""
        if isinstance(queued, QueuedGroup):
            members = queued.members
            for member in members:
                self._ask_to_enqueue(member)
            gated = [member for member in members if member.gated]
            shown = gated[-1] if gated else members[0]
            queued.pod, queued.gating_plugin = shown.pod, shown.gating_plugin
            queued.flushed = queued.flushed and not gated
            return
        ask = self._pre_enqueue.get(queued.pod.spec.scheduler_name)
        try:
            status = None if ask is None else ask(queued.pod, queued.gating_plugin)
        except PluginError as error:
            self._report(str(error))
            status = Status.error(str(error)).by(PRE_ENQUEUE)
        if status is None:
            queued.gating_plugin = ""
            return
        queued.gating_plugin = status.plugin
        queued.flushed = False
        if status.plugin not in queued.unschedulable_plugins:
            queued.unschedulable_plugins = queued.unschedulable_plugins | {status.plugin}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.active
        yield from self.backoff
        yield from self.unschedulable
