"""VolumeZone: volumes with zone labels are used from their zone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Action, Cycle, Resource, Status
from podium.kube import Pod
from podium.plugins.volume_zone import VolumeZone, volume_zones
from tools.kit.builders import make_cluster, make_node, make_plugin
from tools.kit.storage import ephemeral_volume, make_claim, make_class, make_volume, pod_using, pod_with

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = Status.unresolvable("node(s) had no available volume zone")


def refused(volume_labels: dict[str, str], *node_labels: dict[str, str]) -> list[bool] | None:
    """Which nodes refuse a pod with a volume labelled so; None when the plugin skips it."""
    nodes = [make_node(f"n{number}", labels=labels) for number, labels in enumerate(node_labels)]
    volume = make_volume("v", labels=volume_labels)
    cluster = make_cluster(nodes, objects=[volume, make_claim("data", volume="v")])
    plugin, cycle = make_plugin(VolumeZone, cluster), Cycle(pod_using("data"), cluster)
    if plugin.pre_filter(cycle) == SKIP:
        return None
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert verdict is not None
    assert verdict.status_of(1) == ELSEWHERE
    for row in range(len(nodes)):
        alone = plugin.filter(cycle, Nodes(cluster, np.array([row])))
        assert alone is not None
        assert alone.codes[0] == verdict.codes[row]
    answer: list[bool] = (verdict.codes != 0).tolist()
    return answer


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, False),
        ({ZONE: "a"}, {ZONE: "b"}, True),
        ({ZONE: "a__b"}, {ZONE: "b"}, False),
        ({ZONE: " a __ b "}, {ZONE: "b"}, False),
        ({ZONE: "a"}, {}, False),
        ({ZONE: "a"}, {"other": "label"}, False),
        ({ZONE: "a"}, {REGION: "r"}, True),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, False),
        ({BETA_ZONE: "a"}, {ZONE: "b"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "a", ZONE: "b"}, False),
        ({BETA_REGION: "r"}, {REGION: "r"}, False),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, True),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "r"}, False),
        ({ZONE: "a", BETA_ZONE: "b"}, {ZONE: "a"}, True),
    ],
)
def test_a_node_must_show_one_of_the_values_of_each_label(
    volume: dict[str, str], node: dict[str, str], expected: bool
) -> None:
    assert refused(volume, node) == [expected]


@pytest.mark.parametrize("labels", [{}, {"other": "label"}, {ZONE: ""}, {ZONE: "a__"}, {ZONE: "a__ __b"}])
def test_a_volume_without_a_readable_zone_says_nothing(labels: dict[str, str]) -> None:
    assert refused(labels, {ZONE: "b"}) is None


LABELS = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(["a", "b", "a__b"]) for key in (ZONE, REGION, BETA_ZONE, BETA_REGION)}
)


@given(LABELS, st.lists(LABELS, min_size=1, max_size=4))
def test_all_nodes_at_once_equal_one_node_at_a_time(volume: dict[str, str], nodes: list[dict[str, str]]) -> None:
    def refuses(node: dict[str, str]) -> bool:
        if not node:
            return False
        current = {BETA_ZONE: ZONE, BETA_REGION: REGION}
        return any(
            node.get(key, node.get(current.get(key, key))) not in value.split("__") for key, value in volume.items()
        )

    expected = [refuses(node) for node in nodes]
    assert refused(volume, *nodes) == (expected if volume else None)


def outcome(pod: Pod, *objects: Any) -> Status | None:
    cluster = make_cluster([make_node("n1", labels={ZONE: "a"})], objects=objects)
    return make_plugin(VolumeZone, cluster).pre_filter(Cycle(pod, cluster))


@pytest.mark.parametrize(
    ("claim", "objects", "reason"),
    [
        (make_claim(storage_class=None), [], "PersistentVolumeClaim had no pv name and storageClass name"),
        (make_claim(storage_class=""), [], "PersistentVolumeClaim had no pv name and storageClass name"),
        (make_claim(), [], 'storageclass.storage.k8s.io "late" not found'),
        (make_claim(), [make_class(mode=None)], 'VolumeBindingMode not set for StorageClass "late"'),
        (make_claim(), [make_class(mode="Immediate")], "PersistentVolume had no name"),
        (make_claim(volume="gone"), [], 'persistentvolume "gone" not found'),
    ],
)
def test_a_claim_that_should_have_a_volume_and_has_none_is_refused(claim: Any, objects: list[Any], reason: str) -> None:
    assert outcome(pod_using("data"), claim, *objects) == Status.unresolvable(reason)


def test_missing_and_nameless_claims_are_refused() -> None:
    assert outcome(pod_using("data")) == Status.unresolvable('persistentvolumeclaim "data" not found')
    assert outcome(pod_using("")) == Status.unresolvable("PersistentVolumeClaim had no name")


def test_claims_waiting_for_a_consumer_and_ephemeral_volumes_are_passed_over() -> None:
    assert outcome(pod_using("data"), make_claim(), make_class()) == SKIP
    assert outcome(pod_with(ephemeral_volume("x"))) == SKIP
    assert outcome(pod_with()) == SKIP


def test_without_its_notes_the_filter_looks_again() -> None:
    cluster = make_cluster([make_node("n1", labels={ZONE: "a"})], objects=[])
    plugin = make_plugin(VolumeZone, cluster)
    verdict = plugin.filter(Cycle(pod_using("data"), cluster), Nodes(cluster))
    assert verdict is not None
    assert verdict.codes.tolist() == [1]
    assert verdict.status_of(1) == Status.unresolvable('persistentvolumeclaim "data" not found')
    assert plugin.filter(Cycle(pod_with(), cluster), Nodes(cluster)) is None


def test_the_answer_key_is_the_zones_asked_for() -> None:
    claims = [make_claim(name, volume=f"v-{name}") for name in ("a", "b", "anywhere")]
    volumes = [
        make_volume("v-a", labels={ZONE: "z1"}),
        make_volume("v-b", labels={ZONE: "z1"}),
        make_volume("v-anywhere"),
    ]
    cluster = make_cluster([], objects=[*claims, *volumes])
    plugin = make_plugin(VolumeZone, cluster)
    assert plugin.answer_key(pod_with(ephemeral_volume("x"))) == ()
    assert plugin.answer_key(pod_using("missing")) is None
    before = plugin.answer_key(pod_using("a"))
    assert before == plugin.answer_key(pod_using("b"))
    assert plugin.answer_key(pod_using("anywhere")) not in (before, ()), "the next pod's volume may have a zone"
    cluster.objects.volumes.set("v-a", make_volume("v-a", labels={ZONE: "z2"}))
    assert plugin.answer_key(pod_using("a")) != before


def hint(resource: str, pod: Pod, before: Any, after: Any) -> bool:
    interests = make_plugin(VolumeZone, Cluster()).interests()
    found = next(each for each in interests if each.resource == resource)
    assert found.hint is not None
    return found.hint(pod, before, after)


def test_it_wakes_for_what_may_move_a_volume_or_a_node() -> None:
    found = make_plugin(VolumeZone, Cluster()).interests()
    assert [(each.resource, each.action, each.hint is None) for each in found] == [
        (Resource.STORAGE_CLASS, Action.ADD, False),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, True),
        (Resource.PVC, Action.ADD | Action.UPDATE, False),
        (Resource.PV, Action.ADD | Action.UPDATE, False),
    ]


def test_hints() -> None:
    pod = pod_with(*pod_volumes())
    assert hint(Resource.STORAGE_CLASS, pod, None, make_class())
    assert not hint(Resource.STORAGE_CLASS, pod, None, make_class(mode="Immediate"))
    assert not hint(Resource.STORAGE_CLASS, pod, None, make_class(mode=None))
    assert hint(Resource.PVC, pod, None, make_claim("data"))
    assert not hint(Resource.PVC, pod, None, make_claim("data", namespace="other"))
    assert not hint(Resource.PVC, pod, None, make_claim("p1-x"))
    here, there = make_volume("v", labels={ZONE: "a"}), make_volume("v", labels={ZONE: "b"})
    assert hint(Resource.PV, pod, None, here)
    assert hint(Resource.PV, pod, here, there)
    assert not hint(Resource.PV, pod, here, make_volume("v", size="2Gi", labels={ZONE: "a", "other": "x"}))


def pod_volumes() -> list[dict[str, Any]]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, ephemeral_volume("x")]


def test_zones_are_read_in_a_fixed_order() -> None:
    volume = make_volume("v", labels={REGION: "r", BETA_ZONE: "b__a"})
    assert [(zone.key, zone.values) for zone in volume_zones(volume)] == [(BETA_ZONE, ("a", "b")), (REGION, ("r",))]
