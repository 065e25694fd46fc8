"""Filter: the nodes that a pod's volumes leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubecel.quantity import parse
from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Cycle, PluginError, Status
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod
from podium.plugins.volume_binding import VolumeBinding
from podium.plugins.volume_binding.choice import choose
from podium.plugins.volume_binding.plugin import PodClaims, claims_of
from tools.kit.builders import make_cluster, make_node, make_plugin
from tools.kit.storage import (
    HOSTNAME,
    SELECTED_NODE,
    ZONE,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    node_selector,
    pod_using,
)

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

LABELS = {
    "n1": {HOSTNAME: "n1", ZONE: "z1"},
    "n2": {HOSTNAME: "n2", ZONE: "z2"},
    "n3": {HOSTNAME: "n3", ZONE: "z2", "disk": "ssd"},
}
ALL = set(LABELS)
STATIC = make_class("static", provisioner="kubernetes.io/no-provisioner")


def cluster_with(*objects: Any) -> Cluster:
    nodes = [make_node(name, labels=labels) for name, labels in LABELS.items()]
    return make_cluster(nodes, objects=[make_class(), STATIC, *objects])


def verdicts(cluster: Cluster, pod: Pod) -> dict[str, Status]:
    """Why nodes are closed, by name; looking at nodes one by one must give the same."""
    plugin, cycle = make_plugin(VolumeBinding, cluster), Cycle(pod, cluster)
    skips = plugin.pre_filter(cycle)
    assert skips in (None, SKIP)
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert skips is None or verdict is None, "what is skipped must have nothing to say"
    found: dict[str, Status] = {}
    for name, row in cluster.row_of.items():
        alone = plugin.filter(cycle, Nodes(cluster, np.array([row])))
        status = None if verdict is None or not verdict.codes[row] else verdict.status_of(int(verdict.codes[row]))
        single = None if alone is None or not alone.codes[0] else alone.status_of(int(alone.codes[0]))
        assert status == single
        if status is not None:
            found[name] = status
    return found


def reasons(cluster: Cluster, *claims: str) -> dict[str, tuple[str, ...]]:
    """The reasons alone, for a pod with these claims; none of them can be cured by preemption."""
    found = verdicts(cluster, pod_using(*claims))
    assert all(status == Status.unresolvable(*status.reasons) for status in found.values())
    return {name: status.reasons for name, status in found.items()}


def static(name: str = "data", **more: Any) -> PersistentVolumeClaim:
    return make_claim(name, **{"storage_class": "static", **more})


def disk(name: str, node: str, **more: Any) -> PersistentVolume:
    return make_volume(name, **{"storage_class": "static", "affinity": {HOSTNAME: [node]}, **more})


def open_nodes(cluster: Cluster, *claims: str) -> set[str]:
    return ALL - set(reasons(cluster, *claims))


# Bound claims


def test_a_bound_volume_must_be_within_reach() -> None:
    cluster = cluster_with(make_claim("data", volume="v"), make_volume("v", affinity={ZONE: ["z2"]}))
    assert reasons(cluster, "data") == {"n1": (OUT_OF_REACH,)}


def test_a_bound_volume_without_affinity_is_everywhere() -> None:
    assert reasons(cluster_with(make_claim("data", volume="v"), make_volume("v")), "data") == {}


def test_a_bound_volume_that_does_not_exist_closes_every_node() -> None:
    assert reasons(cluster_with(make_claim("data", volume="gone")), "data") == dict.fromkeys(ALL, (VOLUME_MISSING,))


def test_the_first_bound_claim_in_trouble_gives_the_reason() -> None:
    objects = [make_claim("a", volume="v"), make_volume("v", affinity={ZONE: ["z2"]}), make_claim("b", volume="gone")]
    cluster = cluster_with(*objects)
    expected = {"n1": (OUT_OF_REACH,), "n2": (VOLUME_MISSING,), "n3": (VOLUME_MISSING,)}
    assert reasons(cluster, "a", "b") == expected
    assert reasons(cluster, "b", "a") == dict.fromkeys(ALL, (VOLUME_MISSING,))


def test_several_reasons_are_told_in_order() -> None:
    objects = [make_claim("a", volume="v"), make_volume("v", affinity={ZONE: ["z2"]}), static("b")]
    assert reasons(cluster_with(*objects), "a", "b")["n1"] == (OUT_OF_REACH, NO_VOLUME)
    tight = [make_claim("c"), make_driver(capacity=True), make_claim("gone", volume="gone")]
    assert reasons(cluster_with(*tight), "gone", "c")["n1"] == (NO_SPACE, VOLUME_MISSING)


def test_terms_of_a_volume_are_alternatives_and_node_fields_are_ignored() -> None:
    affinity = {"nodeAffinity": {"required": node_selector([{HOSTNAME: ["n1"]}, {"disk": ["ssd"]}])}}
    either = cluster_with(make_claim("data", volume="v"), make_volume("v", spec=affinity))
    assert set(reasons(either, "data")) == {"n2"}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    by_name = {"nodeAffinity": {"required": {"nodeSelectorTerms": [field]}}}
    assert reasons(cluster_with(make_claim("data", volume="v"), make_volume("v", spec=by_name)), "data") == {}


# In-tree volumes that moved to CSI


EBS = "kubernetes.io/aws-ebs"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def migrating(volume: PersistentVolume) -> Cluster:
    """n1 knows the zone under the in-tree label only, n2 and n3 under the driver's only; n2 has migrated."""
    labels = {"n1": {ZONE: "z1"}, "n2": {EBS_ZONE: "z1"}, "n3": {EBS_ZONE: "z1"}}
    nodes = [make_node(name, labels=each) for name, each in labels.items()]
    csi = [make_csi_node("n1"), make_csi_node("n2", migrated=["kubernetes.io/gce-pd", EBS])]
    return make_cluster(nodes, objects=[*csi, volume, make_claim("data", volume="v")])


def test_a_migrated_volume_is_judged_by_its_drivers_topology_on_migrated_nodes() -> None:
    disk_source = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    volume = make_volume("v", affinity={ZONE: ["z1"]}, spec=disk_source)
    assert reasons(migrating(volume), "data") == {"n3": (OUT_OF_REACH,)}
    labelled = make_volume("v", labels={ZONE: "z2"}, spec=disk_source)
    assert reasons(migrating(labelled), "data") == {"n2": (OUT_OF_REACH,)}
    anywhere = make_volume("v", spec=disk_source)
    assert reasons(migrating(anywhere), "data") == {}


def test_a_volume_that_cannot_be_translated_fails_migrated_nodes() -> None:
    volume = make_volume("v", affinity={ZONE: ["z1"]}, spec={"awsElasticBlockStore": {"volumeID": "aws://z/x"}})
    found = verdicts(migrating(volume), pod_using("data"))
    problem = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z/x)"
    assert found == {
        "n2": Status.error(f"could not translate pv: {problem}"),
        "n3": Status.unresolvable(OUT_OF_REACH),
    }


def test_a_failure_is_told_alone() -> None:
    cluster = migrating(make_volume("v", spec={"azureDisk": {"diskURI": "u", "kind": "Shared"}}))
    cluster.objects.csi_nodes.set("n2", make_csi_node("n2", migrated=["kubernetes.io/azure-disk"]))
    for each in (STATIC, static("none")):
        store = cluster.objects.store_of(type(each))
        assert store is not None
        store.set(each.key, each)
    found = verdicts(cluster, pod_using("data", "none"))
    assert found["n1"] == found["n3"] == Status.unresolvable(NO_VOLUME)
    assert found["n2"] == Status.error("could not translate pv: kind(Shared) is not supported in csi migration")


def test_vsphere_volumes_are_never_translated() -> None:
    volume = make_volume("v", affinity={ZONE: ["z1"]}, spec={"vsphereVolume": {"volumePath": "p"}})
    cluster = migrating(volume)
    cluster.objects.csi_nodes.set("n2", make_csi_node("n2", migrated=["kubernetes.io/vsphere-volume"]))
    assert set(reasons(cluster, "data")) == {"n2", "n3"}


# Delayed claims and free volumes


def test_a_delayed_claim_needs_a_free_volume_within_reach() -> None:
    cluster = cluster_with(
        static(), disk("a", "n1"), make_volume("b", storage_class="static", affinity={"disk": ["ssd"]})
    )
    assert reasons(cluster, "data") == {"n2": (NO_VOLUME,)}


@pytest.mark.parametrize(
    ("claim", "volume", "fits"),
    [
        ({}, {}, True),
        ({"size": "2Gi"}, {"size": "1Gi"}, False),
        ({"size": "1Gi"}, {"size": "1073741824"}, True),
        ({"size": "1073741825"}, {"size": "1Gi"}, False),
        ({"size": None}, {}, True),
        ({}, {"storage_class": "late"}, False),
        ({}, {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "late"}}}, False),
        ({}, {"phase": "Released"}, False),
        ({}, {"phase": "Bound"}, False),
        ({}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
        ({"spec": {"volumeMode": "Block"}}, {}, False),
        ({"spec": {"volumeMode": "Filesystem"}}, {}, True),
        ({}, {"spec": {"volumeMode": "Block"}}, False),
        ({"spec": {"volumeMode": "Block"}}, {"spec": {"volumeMode": "Block"}}, True),
        ({"modes": ["ReadWriteMany"]}, {}, False),
        ({"modes": ["ReadWriteOnce"]}, {"modes": ["ReadOnlyMany", "ReadWriteOnce"]}, True),
        ({"modes": []}, {}, True),
        ({"spec": {"volumeAttributesClassName": "gold"}}, {}, False),
        ({"spec": {"volumeAttributesClassName": ""}}, {}, True),
        ({}, {"spec": {"volumeAttributesClassName": "gold"}}, False),
        (
            {"spec": {"volumeAttributesClassName": "gold"}},
            {"spec": {"volumeAttributesClassName": "gold"}},
            True,
        ),
        ({"spec": {"selector": {"matchLabels": {"speed": "fast"}}}}, {}, False),
        ({"spec": {"selector": {"matchLabels": {"speed": "fast"}}}}, {"labels": {"speed": "fast"}}, True),
        ({"spec": {"selector": {}}}, {}, True),
    ],
)
def test_which_free_volume_suits_a_claim(claim: dict[str, Any], volume: dict[str, Any], fits: bool) -> None:
    cluster = cluster_with(static(**claim), disk("v", "n1", **volume))
    assert open_nodes(cluster, "data") == ({"n1"} if fits else set())


def test_a_volume_is_not_given_twice() -> None:
    cluster = cluster_with(static("a"), static("b"), disk("v", "n1"), disk("w", "n2"), disk("x", "n2"))
    assert open_nodes(cluster, "a", "b") == {"n2"}


def test_smaller_claims_are_served_first_so_that_large_ones_find_large_volumes() -> None:
    volumes = [disk("small", "n1", size="1Gi"), disk("large", "n1", size="5Gi")]
    cluster = cluster_with(static("big", size="4Gi"), static("little", size="1Gi"), *volumes)
    assert open_nodes(cluster, "big", "little") == {"n1"}


def test_a_volume_reserved_for_the_claim_goes_first_and_only_where_it_is() -> None:
    claim = static()
    reserved = disk("mine", "n2", claim=claim, phase="Pending", modes=["ReadOnlyMany"])
    assert open_nodes(cluster_with(claim, reserved, disk("free", "n1")), "data") == {"n2"}


@pytest.mark.parametrize(
    "unusable",
    [
        {"size": "1Mi"},
        {"spec": {"volumeMode": "Block"}},
        {"spec": {"volumeAttributesClassName": "gold"}},
        {"storage_class": "late"},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_a_reserved_volume_that_does_not_fit_leaves_the_others_open(unusable: dict[str, Any]) -> None:
    claim = static()
    cluster = cluster_with(claim, disk("mine", "n2", claim=claim, **unusable), disk("free", "n1"))
    assert open_nodes(cluster, "data") == {"n1"}


def test_a_volume_reserved_for_a_former_claim_of_the_same_name_is_nobodys() -> None:
    former = static(metadata={"uid": "former"})
    cluster = cluster_with(static(), disk("v", "n1", claim=former))
    assert open_nodes(cluster, "data") == set()
    nameless = static(metadata={"uid": ""})
    assert open_nodes(cluster_with(static(), disk("v", "n1", claim=nameless)), "data") == {"n1"}


def test_a_claim_used_by_two_volumes_of_the_pod_needs_two_volumes() -> None:
    claim = static()
    mine = disk("mine", "n1", claim=claim)
    assert open_nodes(cluster_with(claim, mine), "data", "data") == set()
    assert open_nodes(cluster_with(claim, mine, disk("free", "n1"), disk("other", "n2")), "data", "data") == {"n1"}


def test_a_selector_that_cannot_be_read_fails_the_cycle() -> None:
    broken = static(spec={"selector": {"matchExpressions": [{"key": "speed", "operator": "Faster"}]}})
    found = verdicts(cluster_with(broken), pod_using("data"))
    operator = '"Faster" is not a valid label selector operator'
    message = f"error creating internal label selector for claim: default/data: {operator}"
    assert found == dict.fromkeys(ALL, Status.error(message))


# Delayed claims whose volume must be made


def test_a_class_with_a_provisioner_makes_what_is_missing() -> None:
    assert reasons(cluster_with(make_claim()), "data") == {}
    without = make_class("late", provisioner="")
    assert reasons(cluster_with(make_claim(), without), "data") == dict.fromkeys(ALL, (NO_VOLUME,))


@pytest.mark.parametrize(
    ("topologies", "expected"),
    [
        ([{ZONE: ["z1"]}], {"n1"}),
        ([{ZONE: ["z1", "z2"]}], ALL),
        ([{ZONE: ["z2"], "disk": ["ssd"]}], {"n3"}),
        ([{ZONE: ["z1"]}, {"disk": ["ssd"]}], {"n1", "n3"}),
        ([{}], set()),
        ([{"not a label!": ["x"]}, {ZONE: ["z1"]}], {"n1"}),
    ],
)
def test_a_class_may_restrict_where_volumes_are_made(
    topologies: list[Mapping[str, list[str]]], expected: set[str]
) -> None:
    cluster = cluster_with(make_claim(), make_class(topologies=topologies))
    assert open_nodes(cluster, "data") == expected


@pytest.mark.parametrize(
    ("driver", "pools", "expected"),
    [
        (None, [], ALL),
        (make_driver(), [], ALL),
        (make_driver(capacity=False), [], ALL),
        (make_driver(capacity=True), [], set()),
        (make_driver(capacity=True), [make_capacity(topology={})], ALL),
        (make_driver(capacity=True), [make_capacity()], set()),
        (make_driver(capacity=True), [make_capacity(topology={"matchLabels": {ZONE: "z1"}})], {"n1"}),
        (make_driver(capacity=True), [make_capacity(topology={"matchLabels": {HOSTNAME: "n2", ZONE: "z1"}})], set()),
        (make_driver(capacity=True), [make_capacity(capacity="1Gi", topology={})], ALL),
        (make_driver(capacity=True), [make_capacity(capacity="1073741823", topology={})], set()),
        (make_driver(capacity=True), [make_capacity(largest="1Mi", topology={})], set()),
        (make_driver(capacity=True), [make_capacity(capacity="1Mi", largest="2Gi", topology={})], ALL),
        (make_driver(capacity=True), [make_capacity(capacity=None, topology={})], set()),
        (make_driver(capacity=True), [make_capacity(storage_class="other", topology={})], set()),
    ],
)
def test_a_driver_that_reports_its_capacity_needs_a_large_enough_pool_within_reach(
    driver: Any, pools: list[Any], expected: set[str]
) -> None:
    cluster = cluster_with(make_claim(size="1Gi"), *pools, *([] if driver is None else [driver]))
    found = reasons(cluster, "data")
    assert ALL - set(found) == expected
    assert set(found.values()) <= {(NO_SPACE,)}


def test_a_claim_without_a_size_needs_no_pool() -> None:
    assert reasons(cluster_with(make_claim(size=None), make_driver(capacity=True)), "data") == {}


def test_the_first_claim_that_cannot_be_served_gives_the_reason() -> None:
    objects = [make_claim("small", size="1Mi"), static("big", size="2Mi"), make_driver(capacity=True)]
    assert set(reasons(cluster_with(*objects), "big", "small").values()) == {(NO_SPACE,)}
    objects = [make_claim("big", size="2Mi"), static("small", size="1Mi"), make_driver(capacity=True)]
    assert set(reasons(cluster_with(*objects), "big", "small").values()) == {(NO_VOLUME,)}


# Delayed claims that were given a node before


def test_a_claim_that_was_given_a_node_waits_for_it() -> None:
    claim = make_claim(annotations={SELECTED_NODE: "n2"})
    assert reasons(cluster_with(claim), "data") == {"n1": (NO_VOLUME,), "n3": (NO_VOLUME,)}
    gone = make_claim(annotations={SELECTED_NODE: "gone"})
    assert open_nodes(cluster_with(gone), "data") == set()


def test_a_claim_that_was_given_a_node_takes_no_free_volume() -> None:
    claim = static(annotations={SELECTED_NODE: "n1"})
    assert reasons(cluster_with(claim, disk("v", "n1")), "data")["n1"] == (NO_VOLUME,)


def test_other_nodes_are_closed_before_selectors_are_read() -> None:
    placed = make_claim("placed", annotations={SELECTED_NODE: "n2"})
    broken = static("broken", spec={"selector": {"matchExpressions": [{"key": "k", "operator": "Odd"}]}})
    found = verdicts(cluster_with(placed, broken), pod_using("placed", "broken"))
    assert found["n1"] == Status.unresolvable(NO_VOLUME)
    assert found["n2"].message.startswith("error creating internal label selector")


def test_without_its_notes_the_filter_fails() -> None:
    cluster = cluster_with()
    with pytest.raises(PluginError, match=r"^not found$"):
        make_plugin(VolumeBinding, cluster).filter(Cycle(pod_using("data"), cluster), Nodes(cluster))


# All nodes at once against one node at a time


SIZES = st.integers(1, 4).map(lambda size: f"{size}Gi")


@st.composite
def stocks(draw: st.DrawFn) -> tuple[list[PersistentVolumeClaim], list[PersistentVolume]]:
    selectors = [
        None,
        {"matchLabels": {"speed": "fast"}},
        {"matchExpressions": [{"key": "speed", "operator": "Exists"}]},
    ]
    claims = [
        static(f"c{number}", size=draw(SIZES), spec={"selector": draw(st.sampled_from(selectors))})
        for number in range(draw(st.integers(1, 3)))
    ]
    volumes: list[PersistentVolume] = []
    for number in range(draw(st.integers(0, 7))):
        place = draw(
            st.sampled_from([{HOSTNAME: ["n1"]}, {HOSTNAME: ["n2"]}, {ZONE: ["z2"]}, {ZONE: ["z1", "z2"]}, None])
        )
        owner = draw(st.sampled_from([None, None, None, *claims]))
        if any(
            owner is not None and v.spec.claim_ref is not None and v.spec.claim_ref.name == owner.name for v in volumes
        ):
            owner = None  # which of several reserved volumes is taken is not defined
        labels = draw(st.sampled_from([{}, {"speed": "fast"}, {"speed": "slow"}]))
        size = (
            f"{1024 * draw(st.integers(1, 5)) + number}Mi"  # no two alike: which of equal ones is taken is not defined
        )
        volumes.append(
            make_volume(f"v{number}", storage_class="static", size=size, affinity=place, claim=owner, labels=labels)
        )
    return claims, volumes


@settings(deadline=None)
@given(stocks())
def test_matching_all_nodes_at_once_equals_matching_one_node_volume_by_volume(
    stock: tuple[list[PersistentVolumeClaim], list[PersistentVolume]],
) -> None:
    claims, volumes = stock
    cluster = cluster_with(*claims, *volumes)
    pod = pod_using(*(claim.name for claim in claims))
    expected = {name: one_by_one(claims, volumes, labels) for name, labels in LABELS.items()}
    assert open_nodes(cluster, *(claim.name for claim in claims)) == {name for name, got in expected.items() if got}
    sorted_claims = claims_of(pod, cluster)
    assert isinstance(sorted_claims, PodClaims)
    for name, matched in expected.items():
        if matched is not None:
            choice = choose(sorted_claims.delayed, cluster, name)
            assert {binding.claim.name: binding.volume.name for binding in choice.bindings} == matched
            assert choice.provisions == []


def one_by_one(
    claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], labels: dict[str, str]
) -> dict[str, str] | None:
    """The volume of each claim on a node; None when one gets none."""

    def reachable(volume: PersistentVolume) -> bool:
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return True
        (term,) = affinity.required.node_selector_terms
        return all(labels.get(each.key) in each.values for each in term.match_expressions)

    def selected(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        selector = claim.spec.selector
        if selector is None:
            return True
        speed = volume.labels.get("speed")
        return speed == "fast" if selector.match_labels else speed is not None

    matched: dict[str, str] = {}
    for claim in sorted(claims, key=lambda each: parse(each.spec.resources.requests["storage"])):
        need = parse(claim.spec.resources.requests["storage"])
        best: PersistentVolume | None = None
        for volume in volumes:
            owner = volume.spec.claim_ref
            if volume.name in matched.values() or parse(volume.spec.capacity["storage"]) < need:
                continue
            if owner is not None:
                if owner.name == claim.name:
                    best = volume if reachable(volume) else None
                    break
                continue
            if reachable(volume) and selected(claim, volume):
                smaller = best is None or parse(volume.spec.capacity["storage"]) < parse(best.spec.capacity["storage"])
                best = volume if smaller else best
        if best is None:
            return None
        matched[claim.name] = best.name
    return matched
