"""Decides which events give members of a group another chance.

A pod of the group that got a node, and a PodGroup that came or changed. Beyond scheduler-plugins: for groups with
minResources or a topology key also nodes that came and pods that went.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from podium import Clock, Hint
from podium.kube import Pod
from podium_plugins.coscheduling.group_records import GroupRecords
from podium_plugins.coscheduling.pod_group import group_key


class WaitsForGroup:
    """Files waiting pods and events by the group they are about; a `Concerns`."""

    def of_pod(self, pod: Pod) -> Collection[Hashable]:
        return (group_key(pod),)

    def of_event(self, before: Any, after: Any) -> Collection[Hashable]:
        return (_group_of(before if after is None else after),)


def pod_helps(records: GroupRecords, clock: Clock) -> Hint:
    """A pod came: it is a mate with a node, or the group has backed off long enough."""

    def helps(pod: Pod, _before: Pod | None, after: Pod) -> bool:
        record = records.get(pod)
        if record is None:
            return False
        return record.key == group_key(after) or float("-inf") < record.backed_off_until <= clock.now()

    return helps


def spec_changed(pod: Pod, before: Any, after: Any) -> bool:
    """The pod's group came, or what scheduling reads of it changed."""
    if group_key(pod) != _group_of(after):
        return False
    return before is None or _read(before) != _read(after)


def made_room(records: GroupRecords) -> Hint:
    """A node came or changed, or a pod went: that may matter where more than single nodes is looked at."""

    def helps(pod: Pod, _before: Any, _after: Any) -> bool:
        record = records.get(pod)
        group = None if record is None else record.group
        return group is not None and (group.min_resources is not None or bool(group.topology_key))

    return helps


def _group_of(item: Any) -> str | None:
    if isinstance(item, Pod):
        return group_key(item)
    meta = item["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def _read(item: Any) -> tuple[Any, Any]:
    return item.get("spec"), item["metadata"].get("annotations")
