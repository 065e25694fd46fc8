"""Reported storage capacity, by class and place."""

from __future__ import annotations

from tools.kit.builders import make_node
from tools.kit.storage import ZONE, make_capacity

from podium.cluster import Cluster
from podium.cluster.storage_pools import volume_limit

GIB = 2**30


def reachable(cluster: Cluster, size: int = 1) -> list[int]:
    pools = cluster.storage_pools.of_class("late")
    counts: list[int] = pools.count(cluster.labels, None, lambda limit: limit >= size).tolist()
    return counts


def two_zones() -> Cluster:
    cluster = Cluster()
    cluster.set_node(make_node("n1", labels={ZONE: "z1"}))
    cluster.set_node(make_node("n2", labels={ZONE: "z2"}))
    return cluster


def test_the_largest_volume_counts_where_it_is_known() -> None:
    assert volume_limit(make_capacity(capacity="10Gi")) == 10 * GIB
    assert volume_limit(make_capacity(capacity="10Gi", largest="2Gi")) == 2 * GIB
    assert volume_limit(make_capacity(capacity=None)) is None


def test_pools_are_reached_by_topology_and_forgotten_when_they_go() -> None:
    cluster = two_zones()
    capacities = cluster.objects.csi_capacities
    for each in (
        make_capacity("zonal", topology={"matchLabels": {ZONE: "z1"}}),
        make_capacity("everywhere", capacity="1Gi", topology={}),
        make_capacity("nowhere"),
        make_capacity("malformed", topology={"matchExpressions": [{"key": ZONE, "operator": "Near"}]}),
        make_capacity("unknown", capacity=None, topology={}),
        make_capacity("other", storage_class="other", topology={}),
    ):
        capacities.set(each.key, each)
    assert reachable(cluster) == [2, 1]
    assert reachable(cluster, 5 * GIB) == [1, 0]
    smaller = make_capacity("zonal", capacity="4Gi", topology={"matchLabels": {ZONE: "z1"}})
    capacities.set(smaller.key, smaller)
    assert reachable(cluster, 5 * GIB) == [0, 0]
    capacities.discard(smaller.key)
    assert reachable(cluster) == [1, 1]
