"""Tells what a cluster lacks of a group's `minResources`: free resources of all nodes added up, nothing else asked.

    demand = minResources with pods: minMember
    free   = allocatable − requested, with the group's own pods taken off

Nodes are gone through one by one and a resource counts as found as soon as its demand is met. So a node with less than
nothing free makes the gap wider for the nodes behind it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubecel.quantity import MILLI, NANO, format_nano, milli, units
from podium.cluster import Cluster
from podium.cluster.resources import CORE_RESOURCES
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
            free[placed.row] += dict(facts.scarce).get(name, 0)
    return free


def _amount(name: str, amount: int) -> str:
    return format_nano(amount * MILLI) if name == "cpu" else format_nano(amount * NANO, binary=amount >= 1 << 20)
