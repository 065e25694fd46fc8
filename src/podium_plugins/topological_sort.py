"""Orders the pods of an AppGroup as their workloads depend on each other (TopologicalSort).

    between AppGroups, and pods without one   higher priority first, then the one that has waited longer
    inside an AppGroup                        by the workload's index in status.topologyOrder, none first, then as above

That alone is no order: of two workloads of a group the second may have waited longest, and a pod without a group be
between them. So the waiting pods of a group have one place among all others: with the highest priority that one of
them has, since the first of them came. Inside, priorities do not count.

A pod whose AppGroup is not there is sorted as if it named none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from podium import FieldError, FieldPath, Handle, Plugin, QueuedPod
from podium.kube import Pod
from podium_plugins.app_group import APP_GROUP_LABEL, RESOURCE, WORKLOAD_LABEL, AppGroups

NAME: Final = "TopologicalSort"
NO_INDEX: Final = -1
"""The index of pods whose workload has no place in the order: they go first."""


class TopologicalSortArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    namespaces: tuple[str, ...] = ("default",)
    """Where AppGroups are looked for, in this order."""

    def __post_init__(self) -> None:
        if not self.namespaces:
            msgspec.structs.force_setattr(self, "namespaces", ("default",))

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for number, namespace in enumerate(self.namespaces):
            if not namespace:
                at = path.child("namespaces").index(number)
                yield FieldError.required(at, "name a namespace in which AppGroups are looked for")


class WaitingMembers:
    """The waiting pods of one AppGroup, and their place among all others."""

    __slots__ = ("pods", "priority", "since")

    def __init__(self, priority: int) -> None:
        self.pods: dict[str, Pod] = {}
        self.priority = priority
        """The highest of those that came since none waited."""
        self.since: float | None = None


class TopologicalSort(Plugin):
    name = NAME
    trusted = True
    Args = TopologicalSortArgs
    resources = (f"{RESOURCE}/v1alpha1",)

    def __init__(self, args: TopologicalSortArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: TopologicalSortArgs = args
        self._waiting: dict[str, WaitingMembers] = {}
        self._groups = AppGroups(handle, self._order_changed)
        handle.cluster.objects.pending_pods.follow(self._pod_changed)

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (self.sort_key(a), a.sequence) < (self.sort_key(b), b.sequence)

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """It changes with the AppGroup and its waiting pods; these are sorted again then."""
        pod = queued.pod
        name = pod.metadata.labels.get(APP_GROUP_LABEL)
        group = self._groups.of_pod(pod, self.args.namespaces) if name else None
        if name is None or group is None:
            return -pod.priority, queued.timestamp
        index = group.order.get(pod.metadata.labels.get(WORKLOAD_LABEL, ""), NO_INDEX)
        members = self._waiting.get(name)
        if members is None:
            return -pod.priority, queued.timestamp, name, index, queued.timestamp
        if members.since is None:
            members.since = queued.timestamp
        return -members.priority, members.since, name, index, queued.timestamp

    def _pod_changed(self, key: str, before: Pod | None, after: Pod | None) -> None:
        was, now = _group_name(before), _group_name(after)
        if was and was != now:
            members = self._waiting[was]
            del members.pods[key]
            if not members.pods:
                del self._waiting[was]
        if now and after is not None:
            waiting = self._waiting.get(now)
            if waiting is None:
                waiting = self._waiting[now] = WaitingMembers(after.priority)
            waiting.pods[key] = after
            if after.priority > waiting.priority:
                waiting.priority = after.priority
                self.handle.resort(waiting.pods.values())

    def _order_changed(self, name: str) -> None:
        members = self._waiting.get(name)
        if members is not None:
            self.handle.resort(members.pods.values())


def _group_name(pod: Pod | None) -> str | None:
    return None if pod is None else pod.metadata.labels.get(APP_GROUP_LABEL)
