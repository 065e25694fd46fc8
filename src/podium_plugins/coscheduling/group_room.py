"""Tells what room a cluster has for a group: what it lacks of `minResources`, and which domains of a label fit best.

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

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium.cluster import CORE_RESOURCES, Cluster, PodFacts
from podium.kube import MILLI, NANO, format_nano, milli, units
from podium_plugins.coscheduling.group_records import GroupRecord

PODS = "pods"


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
