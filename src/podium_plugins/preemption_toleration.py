"""Evicts pods of lower priority, but spares those whose class tolerates it for a while (PreemptionToleration).

The victim's PriorityClass says with annotations up to which priority of the preemptor it tolerates, and for how long
after the pod was scheduled:

    preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority   (the class's value + 1)
    preemption-toleration.scheduling.x-k8s.io/toleration-seconds             (0: not at all; below 0: forever)

Enable it at postFilter in place of DefaultPreemption. What was found is never cached, because it changes with time; a
pod that found no victims is tried again when the first toleration ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from podium import (
    Cycle,
    DependsOn,
    Diagnosis,
    Handle,
    Interest,
    Plugin,
    PluginError,
    PostFilterResult,
    Status,
    read_whole,
)
from podium.cluster import PlacedPod
from podium.kube import ObjectReference, Pod, PriorityClass, parse_time
from podium.preemption import (
    VICTIM_GONE,
    ByPriority,
    CandidateNodesArgs,
    Evictions,
    LowestPriorities,
    objection_to_preempting,
    random_start,
    refused,
    unschedulable_rows,
)

NAME: Final = "PreemptionToleration"
PREFIX: Final = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM_PREEMPTABLE_PRIORITY: Final = f"{PREFIX}minimum-preemptable-priority"
TOLERATION_SECONDS: Final = f"{PREFIX}toleration-seconds"
FOREVER: Final = float("inf")


class PreemptionTolerationArgs(CandidateNodesArgs, frozen=True):
    """How many nodes are tried."""


class PreemptionToleration(Plugin):
    name = NAME
    trusted = True
    Args = PreemptionTolerationArgs
    depends_on = DependsOn(kinds=(PriorityClass,))

    def __init__(self, args: PreemptionTolerationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evictions = Evictions(NAME, handle)
        self._lowest = LowestPriorities(handle.cluster)
        self._reported: set[tuple[str, str]] = set()

    def interests(self) -> Iterable[Interest]:
        return [VICTIM_GONE]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        why_not = objection_to_preempting(cycle, diagnosis)
        if why_not:
            return refused(why_not)
        rows = unschedulable_rows(cycle, diagnosis)
        offset = random_start(self.handle, rows)
        hopeless = self._lowest.hopeless(cycle.pod)
        now = self.handle.clock.now()
        ends: list[float] = []

        def rule(pods: Collection[PlacedPod], preemptor: Pod) -> ByPriority:
            evictable = []
            for each in pods:
                end = self._spared_until(each.pod, preemptor)
                if end > now:
                    ends.append(end)
                else:
                    evictable.append(each)
            return ByPriority(evictable, preemptor)

        wanted = self.args.wanted(len(rows))
        result = self._evictions.make_room(cycle, rows, rule, hopeless, offset=offset, wanted=wanted, known=None)
        first = min(ends, default=FOREVER)
        if first < FOREVER and not result.node_name:
            self.handle.wake_at(cycle.pod, first)
        return result

    def _spared_until(self, victim: Pod, preemptor: Pod) -> float:
        """Until when a pod is spared; minus FOREVER where it is not."""
        name = victim.spec.priority_class_name
        if victim.priority >= preemptor.priority or not name:
            return -FOREVER
        priority_class = self.handle.cluster.objects.priority_classes.get(name)
        if priority_class is None:
            raise PluginError(f'priorityclass.scheduling.k8s.io "{name}" not found')
        toleration = read_toleration(priority_class)
        if isinstance(toleration, str):
            if (name, toleration) not in self._reported:
                self._reported.add((name, toleration))
                regarding = ObjectReference(
                    api_version="scheduling.k8s.io/v1",
                    kind="PriorityClass",
                    name=name,
                    uid=priority_class.metadata.uid,
                    resource_version=priority_class.metadata.resource_version,
                )
                self.handle.problems.mention(regarding, "InvalidPreemptionToleration", toleration)
            return -FOREVER
        return spared_until(toleration, victim, preemptor)


class ClassToleration(NamedTuple):
    """What a PriorityClass tolerates."""

    minimum_preemptable_priority: int
    seconds: int


def read_toleration(priority_class: PriorityClass) -> ClassToleration | str:
    """The toleration of a class, or what is wrong with it."""
    written = priority_class.metadata.annotations
    numbers = [priority_class.value + 1, 0]
    for place, (name, bits) in enumerate(((MINIMUM_PREEMPTABLE_PRIORITY, 31), (TOLERATION_SECONDS, 63))):
        if name in written:
            number = read_whole(written[name])
            if number is None or not -(2**bits) <= number < 2**bits:
                problem = f'annotation {name}: "{written[name]}" is no whole number of {bits + 1} bits'
                return f"{problem}; its pods tolerate no preemption"
            numbers[place] = number
    return ClassToleration(*numbers)


def spared_until(toleration: ClassToleration, victim: Pod, preemptor: Pod) -> float:
    """Until when a pod of lower priority is spared; minus FOREVER where it is not.

    >>> from podium.kube import PodSpec
    >>> low, high = (Pod(spec=PodSpec(priority=each)) for each in (8000, 9000))
    >>> spared_until(ClassToleration(10000, -1), low, high), spared_until(ClassToleration(9000, -1), low, high)
    (inf, -inf)
    """
    if preemptor.spec.preemption_policy == "Never":
        return FOREVER
    if preemptor.priority >= toleration.minimum_preemptable_priority:
        return -FOREVER
    if toleration.seconds < 0:
        return FOREVER
    scheduled = next((each for each in victim.status.conditions if each.type == "PodScheduled"), None)
    if scheduled is None or scheduled.status != "True" or scheduled.last_transition_time is None:
        return FOREVER
    return parse_time(scheduled.last_transition_time) + toleration.seconds
