"""Counts the members of every group, from what the cluster knows: pods that wait, pods that have a node.

A member counts as assigned from the moment it has a node in memory, so that members are counted the same after a
restart, and whoever bound them. Records are shared by all profiles of a scheduler.

Records also tell what room the cluster has for a group: what it lacks of `minResources`, and which domains of a label
fit best.

Of `minResources`, free resources of all nodes are added up, nothing else asked:

    demand = minResources with pods: minMember
    free   = allocatable − requested, with the group's own pods taken off

Nodes are gone through one by one and a resource counts as found as soon as its demand is met. So a node with less than
nothing free makes the gap wider for the nodes behind it.

Domains of a node label (zones, racks) are ordered by how well a gang fits: the fullest that has room goes first. Room
is counted as if every member needed no more than the least of them: a domain that has too little even so cannot take
the gang and is left out. Taints, affinity and the like are for the filters to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium import ObjectProblems, custom_reference
from podium.cluster import CORE_RESOURCES, Cluster, PlacedPod, PodFacts
from podium.kube import MILLI, NANO, Pod, format_nano, milli, units
from podium_plugins.coscheduling.pod_group import API_VERSION, RESOURCE, GroupRules, group_key, read_group

PODS = "pods"
INVALID, DELETED = "InvalidPodGroup", "PodGroupDeleted"
"""Reasons of events on groups."""


class GroupRecord:
    """One group: its PodGroup, its members, and how it fared."""

    __slots__ = (
        "_sources",
        "backed_off_until",
        "domain",
        "elsewhere",
        "gated",
        "group",
        "key",
        "last_failed",
        "pending",
        "permitted_until",
        "placed",
        "version",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.group: GroupRules | None = None
        self.pending: dict[str, Pod] = {}
        """Pods without a node in the API, by uid."""
        self.placed: dict[str, PlacedPod] = {}
        """Pods that have a node, in memory or bound."""
        self.elsewhere: dict[str, Pod] = {}
        """Pods without a node that are another scheduler's."""
        self.gated = 0
        self.last_failed: float | None = None
        self.permitted_until = self.backed_off_until = float("-inf")
        self.domain: str | None = None
        """The domain that members are confined to while the gang is tried."""
        self.version = 0
        """Moves with all that PreFilter looks at, but for time and free resources."""
        self._sources: dict[str, int] = {}

    @property
    def members(self) -> int:
        """Pods with the group's label that have not ended, each once."""
        return len(self._sources)

    @property
    def empty(self) -> bool:
        return self.group is None and not self._sources

    def change(self, pods: dict[str, Any], uid: str, value: Any | None) -> None:
        """Set or (None) remove a pod in one of the dictionaries above."""
        known = uid in pods
        if value is not None:
            pods[uid] = value
        elif known:
            del pods[uid]
        number = (value is not None) - known
        if number:
            sources = self._sources.get(uid, 0) + number
            if sources:
                self._sources[uid] = sources
            else:
                del self._sources[uid]
            if not sources or sources == number:  # the member came or went
                self.version += 1


class GroupRecords:
    """The records of one cluster, by "namespace/name"; a `PodAccount`: `GroupRecords.of(cluster)`."""

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        self._records: dict[str, GroupRecord] = {}
        self._problems = problems
        cluster.follow_pods(self)
        cluster.objects.pending_pods.follow(self._pending)
        cluster.objects.custom_store(RESOURCE).follow(self._group)

    @staticmethod
    def of(cluster: Cluster, problems: ObjectProblems) -> GroupRecords:
        return cluster.account(GroupRecords) or GroupRecords(cluster, problems)

    def get(self, pod: Pod) -> GroupRecord | None:
        """The record of the pod's group; None for a pod without one, or of which nothing is known."""
        key = group_key(pod)
        return None if key is None else self._records.get(key)

    def _joined(self, pod: Pod) -> GroupRecord | None:
        """The record that the pod counts in."""
        key = group_key(pod)
        return None if key is None else self._of(key)

    def __iter__(self) -> Iterator[GroupRecord]:
        return iter(list(self._records.values()))

    def by_key(self, key: str) -> GroupRecord | None:
        return self._records.get(key)

    def _of(self, key: str) -> GroupRecord:
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = GroupRecord(key)
        return record

    def _drop_if_empty(self, record: GroupRecord) -> None:
        if record.empty:
            self._records.pop(record.key, None)

    # What happens to pods and groups

    def pod_added(self, placed: PlacedPod) -> None:
        record = self._joined(placed.pod)
        if record is not None:
            record.change(record.placed, placed.pod.uid, placed)

    def pod_removed(self, placed: PlacedPod) -> None:
        record = self._joined(placed.pod)
        if record is not None:
            record.change(record.placed, placed.pod.uid, None)
            self._drop_if_empty(record)

    def _pending(self, _key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            record = self._joined(before)
            if record is not None and (after is None or group_key(after) != record.key or after.uid != before.uid):
                self._set_pending(record, before, None)
        if after is not None:
            record = self._joined(after)
            if record is not None:
                self._set_pending(record, after, after)

    def _set_pending(self, record: GroupRecord, pod: Pod, value: Pod | None) -> None:
        known = record.pending.get(pod.uid)
        gates = bool(value and value.spec.scheduling_gates) - bool(known and known.spec.scheduling_gates)
        if gates:
            record.gated += gates
            record.version += 1
        record.change(record.pending, pod.uid, value)
        self._drop_if_empty(record)

    def set_elsewhere(self, pod: Pod, value: Pod | None) -> None:
        """A pod without a node that another scheduler is to place came or (None) is no longer that."""
        record = self._joined(pod)
        if record is not None:
            record.change(record.elsewhere, pod.uid, value)
            self._drop_if_empty(record)

    def _group(self, key: str, before: Any, after: Any) -> None:
        record = self._of(key)
        regarding = custom_reference(API_VERSION, "PodGroup", key, before if after is None else after)
        found = None if after is None else read_group(after)
        if isinstance(found, str):
            note = f"{found}; its pods are scheduled one by one until that is put right"
            self._problems.set(regarding, INVALID, note)
            found = GroupRules(min_member=0, created=None)
        else:
            self._problems.clear(regarding)
        waiting = [pod for uid, pod in record.pending.items() if uid not in record.placed and not pod.terminating]
        if found is None and record.group is not None and waiting:
            note = f"it was deleted while {len(waiting)} of its pods have no node; they wait until there is one again"
            self._problems.mention(regarding, DELETED, note)
        if found != record.group:
            record.group = found
            record.version += 1
        self._drop_if_empty(record)


# Room


def resource_gap(cluster: Cluster, record: GroupRecord) -> str | None:
    """What is missing, as text; None where there is enough."""
    group = record.group
    if group is None or group.min_resources is None:
        return None
    gap = {}
    for name, amount in sorted({**group.min_resources, PODS: group.min_member}.items()):
        demand = milli(amount) if name == "cpu" else units(amount)
        found = np.cumsum(_free(cluster, record, name)[cluster.order.rows])
        if demand > 0 and not (len(found) and int(found.max()) >= demand):
            gap[name] = demand - (int(found[-1]) if len(found) else 0)
    if not gap:
        return None
    return "map[" + " ".join(f"{name}:{_amount(name, missing)}" for name, missing in gap.items()) + "]"


def _free(cluster: Cluster, record: GroupRecord, name: str) -> NDArray[np.int64]:
    resources = cluster.resources
    if name == PODS:
        free = resources.allowed_pods - resources.pod_count
    else:
        free = resources.allocatable_of(name) - resources.requested_of(name)
    for placed in record.placed.values():
        facts = placed.facts
        if name == PODS:
            free[placed.row] += 1
        elif name in CORE_RESOURCES:
            free[placed.row] += facts.counted[CORE_RESOURCES.index(name)]
        else:
            free[placed.row] += dict(facts.scalar).get(name, 0)
    return free


def _amount(name: str, amount: int) -> str:
    return format_nano(amount * MILLI) if name == "cpu" else format_nano(amount * NANO, binary=amount >= 1 << 20)


def domains(cluster: Cluster, key: str, members: Sequence[PodFacts], missing: int, *, spill: bool) -> list[str]:
    """The values of a label, the best first; where none has room for all, the roomiest first.

    Without `spill` those that cannot take all are left out; where none can, the roomiest stays, to say why.
    """
    column = cluster.labels.column(key)
    room = column.sums(np.where(cluster.present, _room(cluster, members), 0))
    nodes = column.sums(cluster.present.astype(np.int64))
    found = [(int(room[number]), value) for number, value in enumerate(column.values) if number and nodes[number]]
    fitting = sorted(each for each in found if each[0] >= missing)
    others = sorted((each for each in found if each[0] < missing), key=lambda each: (-each[0], each[1]))
    if spill:
        return [value for _room, value in (*fitting, *others)]
    return [value for _room, value in (fitting or others[:1])]


def _room(cluster: Cluster, members: Sequence[PodFacts]) -> NDArray[np.int64]:
    """int64[rows]: how many pods that ask for the least that any member asks for fit on each node."""
    resources = cluster.resources
    room: NDArray[np.int64] = resources.allowed_pods - resources.pod_count
    least = np.min([facts.counted[: len(CORE_RESOURCES)] for facts in members], axis=0).tolist()
    needed = dict(zip(CORE_RESOURCES, least, strict=True))
    for name in {name for facts in members for name, _amount in facts.scalar}:
        needed[name] = min(dict(facts.scalar).get(name, 0) for facts in members)
    for name, amount in needed.items():
        if amount:
            room = np.minimum(room, (resources.allocatable_of(name) - resources.requested_of(name)) // amount)
    return np.maximum(room, 0)
