"""Finds out whether all missing replicas could be placed, where they are worth something only together.

An eviction for one replica of a concurrent controller helps no one while another is missing. So there must be places
for all that wait: on nodes that could take the pod, what is free and what may be evicted for it hold so many of them.
That is counted in CPU, memory, storage and numbers of pods; what other filters say is found out pod by pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium import Nominator
from podium.cluster import CORE_RESOURCES, Cluster, PlacedPod, PodFacts, Rows
from podium_plugins.qos.account import ControllerAccount, TimeUse


def missing_replicas(account: ControllerAccount, nominator: Nominator) -> int:
    """Replicas that have neither a node nor one that is being freed for them."""
    return sum(
        1
        for each in account.slots
        if each is not None
        and each.state is TimeUse.WAITING
        and not each.allocating
        and nominator.node_of(each.uid) is None
    )


def places(cluster: Cluster, rows: Rows, facts: PodFacts, victims: Iterable[PlacedPod]) -> int:
    """How many such pods the nodes of `rows` could take if all victims went."""
    resources, core = cluster.resources, len(CORE_RESOURCES)
    left = resources.allocatable - resources.requested
    slots = resources.allowed_pods - resources.pod_count
    for victim in victims:
        left[:, victim.row] += victim.facts.counted[:core]
        slots[victim.row] += 1
    found = slots[rows]
    for number, amount in enumerate(facts.counted[:core].tolist()):
        if amount:
            found = found.clip(max=left[number, rows] // amount)
    return int(found.clip(min=0).sum())
