"""Holds the pods of a gang back until all it needs can start (GangScheduling, for PodGroups of scheduling.k8s.io).

    preEnqueue  the PodGroup exists, and so do minCount of its pods
    permit      waits until minCount of its pods have a node
    placementFeasible (from Kubernetes 1.37 on)  whether minCount of them have one, or still can

Nothing is looked at but the PodGroup that the pod names; a group of the basic policy is no gang. The members are
placed together by the pod group cycle (`podium.engine.gangs`), with or without this plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final

from podium.cluster.pod_groups import PodGroupStates
from podium.framework import Action, Code, Cycle, DependsOn, Handle, Interest, Plugin, Resource, Status, Wait
from podium.framework.gang import PlacementProgress
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key

NAME: Final = "GangScheduling"
PERMIT_TIMEOUT: Final = 300.0
TOO_FEW_PODS: Final = Status.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
TOO_FEW_NODES: Final = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(kinds=(PodGroup,))

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._states = PodGroupStates.of(handle.cluster)
        self._groups = handle.cluster.objects.pod_groups

    def interests(self) -> Iterable[Interest]:
        concerns = WaitsForPodGroup()
        fewer = Interest(Resource.POD_GROUP, Action.UPDATE, _needs_fewer, by_signature=True, concerns=concerns)
        return [
            Interest(Resource.POD, Action.ADD, _is_of_same_group, by_signature=True, concerns=concerns),
            Interest(Resource.POD_GROUP, Action.ADD, _is_of_same_group, by_signature=True, concerns=concerns),
            *([fewer] if self.handle.rules.pod_groups_are_queued else ()),
        ]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = pod_group_key(pod)
        if key is None:
            return None
        group = self._groups.get(key)
        if group is None:
            name = key.partition("/")[2]
            return Status.unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        state = self._states.get(key)
        members = 0 if state is None else state.members
        return None if group.min_count is None or members >= group.min_count else TOO_FEW_PODS

    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        wanted = 1 if group.min_count is None else group.min_count
        remaining, scheduled = progress.remaining, progress.scheduled
        so_far = f"{scheduled} scheduled, {remaining} remaining"
        if remaining + scheduled < wanted:
            return Status.unschedulable(f"minCount ({wanted}) cannot be satisfied: {so_far}")
        if scheduled < wanted:
            return Status(Code.WAIT, (f"minCount ({wanted}) is not yet satisfied: {so_far}",))
        return None

    def permit(self, cycle: Cycle, node_name: str) -> Status | Wait | None:
        key = pod_group_key(cycle.pod)
        if key is None:
            return None
        group, state = self._groups.get(key), self._states.get(key)
        if group is None:
            name = key.partition("/")[2]
            return Status.error(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found')
        if group.min_count is None:
            return None
        if state is None:
            return Status.error(f"pod group state not found for pod group {key}")
        if state.scheduled < group.min_count:
            return Wait(PERMIT_TIMEOUT, TOO_FEW_NODES)
        for uid in state.placed:
            waiting = self.handle.waiting.get(uid)
            if waiting is not None:
                waiting.allow(NAME)
        return None


class WaitsForPodGroup:
    """Files waiting pods and events by the PodGroup they are about; a `Concerns`."""

    def of_pod(self, pod: Pod) -> Collection[Hashable]:
        return (pod_group_key(pod),)

    def of_event(self, before: Any, after: Any) -> Collection[Hashable]:
        return (_group_of(before if after is None else after),)


def _is_of_same_group(pod: Pod, _before: Any, after: Any) -> bool:
    key = pod_group_key(pod)
    return key is not None and key == _group_of(after)


def _needs_fewer(pod: Pod, before: Any, after: Any) -> bool:
    old, new = before.min_count, after.min_count
    return _is_of_same_group(pod, before, after) and old is not None and new is not None and new < old


def _group_of(item: Pod | PodGroup) -> str | None:
    return item.key if isinstance(item, PodGroup) else pod_group_key(item)
