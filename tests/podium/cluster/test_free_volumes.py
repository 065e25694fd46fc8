"""Free and claimed volumes follow the store; reported storage capacity is filed by class and place."""

from __future__ import annotations

from podium.cluster import Cluster
from podium.cluster.free_volumes import Make, volume_limit
from podium.kube import PersistentVolume
from tools.kit.builders import make_node
from tools.kit.storage import ZONE, make_capacity, make_claim, make_volume

GIB = 2**30


def free(cluster: Cluster, storage_class: str = "late") -> dict[str, Make]:
    """Names of the free volumes of a class, each with its make."""
    makes = cluster.free_volumes.of_class(storage_class)
    return {volume.name: make for make, places in makes.items() for volume in places}


def cluster_with(*volumes: PersistentVolume) -> Cluster:
    cluster = Cluster()
    for volume in volumes:
        cluster.objects.volumes.set(volume.key, volume)
    return cluster


def test_a_volume_is_free_while_available_unclaimed_and_not_going_away() -> None:
    claim = make_claim()
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster = cluster_with(
        make_volume("free"),
        make_volume("released", phase="Released"),
        make_volume("unknown", phase=""),
        make_volume("going", metadata=going),
        make_volume("taken", claim=claim),
        make_volume("other", storage_class="other"),
    )
    assert list(free(cluster)) == ["free"]
    assert list(free(cluster, "other")) == ["other"]
    assert [volume.name for volume in cluster.free_volumes.claimed_for(claim.key)] == ["taken"]


def test_the_old_annotation_names_the_class() -> None:
    annotated = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    assert list(free(cluster_with(make_volume(metadata=annotated)), "old")) == ["volume"]


def test_assuming_a_claim_takes_a_volume_out_and_restoring_puts_it_back() -> None:
    claim = make_claim()
    cluster = cluster_with(make_volume("v"))
    cluster.objects.volumes.assume("v", make_volume("v", claim=claim))
    assert free(cluster) == {}
    assert [volume.name for volume in cluster.free_volumes.claimed_for(claim.key)] == ["v"]
    cluster.objects.volumes.restore("v")
    assert list(free(cluster)) == ["v"]
    assert list(cluster.free_volumes.claimed_for(claim.key)) == []


def test_a_deleted_volume_is_gone() -> None:
    cluster = cluster_with(make_volume("v"), make_volume("w"))
    cluster.objects.volumes.discard("v")
    assert list(free(cluster)) == ["w"]
    cluster.objects.volumes.discard("w")
    assert cluster.free_volumes.of_class("late") == {}


def test_volumes_that_differ_only_in_name_and_place_are_of_one_make() -> None:
    cluster = cluster_with(
        make_volume("a", affinity={"host": ["a"]}),
        make_volume("b", affinity={"host": ["b"]}, labels={"x": "y"}),
        make_volume("c", spec={"volumeMode": "Filesystem"}),
        make_volume("d", size="2Gi"),
        make_volume("e", spec={"volumeMode": "Block"}),
        make_volume("f", spec={"volumeAttributesClassName": "gold"}),
        make_volume("g", modes=["ReadOnlyMany"]),
    )
    makes = free(cluster)
    assert makes["a"] == makes["b"] == makes["c"]
    assert len({makes[name] for name in "adefg"}) == 5


def reachable(cluster: Cluster, size: int = 1) -> list[int]:
    pools = cluster.storage_pools.of_class("late")
    counts: list[int] = pools.count(cluster.labels, None, lambda pool: pool.limit >= size).tolist()
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
