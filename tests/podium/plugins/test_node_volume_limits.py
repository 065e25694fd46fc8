"""NodeVolumeLimits: how many volumes a driver can attach to a node.

The volumes promised to nodes equal those worked out anew, whatever is nominated and whatever claims lead to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.framework import SKIP, Action, Code, Cycle, Handle, Resource, Status
from podium.kube import Pod
from podium.plugins.node_volume_limits import NodeVolumeLimits, PromisedVolumes
from tools.kit.builders import make_cluster, make_handle, make_node, make_plugin, make_pod
from tools.kit.effort import examples
from tools.kit.storage import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    owned_by,
    pod_using,
    pod_with,
)

DRIVER = "csi.example.test"
EBS = "ebs.csi.aws.com"
TOO_MANY = Status.unschedulable("node(s) exceed max volume count")
PODS = [
    pod_with(claim_volume("a", "v"), name="one"),
    pod_with(claim_volume("a", "v"), claim_volume("b", "w"), name="two"),
    pod_with(ephemeral_volume("own"), claim_volume("b", "w"), name="three"),
    pod_with({"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}}, name="four"),
]
VOLUMES = ["d/handle-v1", "e/handle-v1", "d/handle-v2", "ebs.csi.aws.com/vol-1"] + [
    f"{driver}/podium-to-be-made-default/{claim}" for driver in "de" for claim in ("a", "b", "three-own")
]

nominations = st.tuples(st.just("nominate"), st.sampled_from(PODS), st.sampled_from(["n1", "n2", ""]))
claims = st.tuples(
    st.just("set"),
    st.builds(
        lambda name, volume: make_claim(name, volume=volume), st.sampled_from("ab"), st.sampled_from(["", "v1", "v2"])
    ),
    st.booleans(),
)
own_claims = st.tuples(
    st.just("set"),
    st.sampled_from([make_claim("three-own"), make_claim("three-own", metadata=owned_by(PODS[2]))]),
    st.booleans(),
)
volumes = st.tuples(
    st.just("set"),
    st.builds(
        lambda name, driver: make_volume(name, driver=driver), st.sampled_from(["v1", "v2"]), st.sampled_from("de")
    ),
    st.booleans(),
)
classes = st.tuples(
    st.just("set"), st.builds(lambda by: make_class(provisioner=by), st.sampled_from("de")), st.booleans()
)
STEPS = st.lists(st.one_of(nominations, nominations, claims, own_claims, volumes, classes), max_size=25)


def statuses(cluster: Cluster, pod: Pod) -> dict[str, Status]:
    """Why nodes refuse the pod, by name."""
    plugin, cycle = make_plugin(NodeVolumeLimits, cluster), Cycle(pod, cluster)
    skips = plugin.pre_filter(cycle)
    assert skips in (None, SKIP)
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert skips is None or verdict is None, "what is skipped must have nothing to say"
    found: dict[str, Status] = {}
    for name, row in cluster.row_of.items():
        alone = plugin.filter(cycle, Nodes(cluster, np.array([row])))
        single = None if alone is None or not alone.codes[0] else alone.status_of(int(alone.codes[0]))
        status = None if verdict is None or not verdict.codes[row] else verdict.status_of(int(verdict.codes[row]))
        assert status == single
        assert status == plugin.filter_node(cycle, NodeInfo(cluster, row))
        if status is not None:
            found[name] = status
    return found


def bound(*names: str) -> list[Any]:
    """A claim per name with its volume."""
    claims = [make_claim(name, volume=f"v-{name}") for name in names]
    return [*claims, *(make_volume(f"v-{name}", driver=DRIVER) for name in names)]


def one_node(limit: int | None, pods: list[Pod], *objects: Any, driver: str = DRIVER) -> Cluster:
    return make_cluster([make_node("n1")], pods, [make_csi_node("n1", {driver: limit}), *objects])


def test_pods_without_claims_and_in_tree_disks_are_skipped() -> None:
    cluster = one_node(0, [])
    plugin = make_plugin(NodeVolumeLimits, cluster)
    for pod in (pod_with(), pod_with({"name": "v", "csi": {"driver": DRIVER}}), pod_with({"name": "v", "rbd": {}})):
        assert plugin.pre_filter(Cycle(pod, cluster)) == SKIP


def test_where_no_node_has_a_limit_only_volumes_that_make_no_sense_are_looked_at() -> None:
    cluster = one_node(None, [], *bound("a"))
    plugin = make_plugin(NodeVolumeLimits, cluster)
    assert plugin.pre_filter(Cycle(pod_using("a"), cluster)) == SKIP
    assert plugin.pre_filter(Cycle(pod_using("missing"), cluster)) is None
    unlimited = plugin.answer_key(pod_using("a"))
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", {DRIVER: 1}))
    assert plugin.pre_filter(Cycle(pod_using("a"), cluster)) is None
    assert plugin.answer_key(pod_using("a")) != unlimited


def test_attached_and_new_volumes_together_must_not_exceed_the_limit() -> None:
    objects = bound("a", "b", "c")
    holder = pod_using("a", name="holder", node="n1")
    assert statuses(one_node(2, [holder], *objects), pod_using("b")) == {}
    assert statuses(one_node(1, [holder], *objects), pod_using("b")) == {"n1": TOO_MANY}
    assert statuses(one_node(2, [holder], *objects), pod_using("b", "c")) == {"n1": TOO_MANY}
    assert statuses(one_node(None, [holder], *objects), pod_using("b", "c")) == {}


def test_a_volume_that_a_pod_on_the_node_uses_is_not_new() -> None:
    holder = pod_using("a", name="holder", node="n1")
    assert statuses(one_node(0, [holder], *bound("a")), pod_using("a")) == {}
    assert statuses(one_node(1, [holder], *bound("a", "b")), pod_using("a", "b")) == {"n1": TOO_MANY}


def test_limits_are_the_nodes_own() -> None:
    nodes = [make_node(name) for name in ("tight", "wide", "other driver", "no csi")]
    csi = [
        make_csi_node("tight", {DRIVER: 0}),
        make_csi_node("wide", {DRIVER: 9}),
        make_csi_node("other driver", {EBS: 0}),
    ]
    cluster = make_cluster(nodes, objects=[*csi, *bound("a")])
    assert statuses(cluster, pod_using("a")) == {"tight": TOO_MANY}


def test_an_attached_volume_that_no_pod_uses_counts_twice() -> None:
    attachment = make_attachment("x", "v-a", "n1", DRIVER)
    assert statuses(one_node(1, [], attachment, *bound("a")), pod_using("a")) == {"n1": TOO_MANY}
    assert statuses(one_node(2, [], attachment, *bound("a")), pod_using("a")) == {}
    holder = pod_using("a", name="holder", node="n1")
    assert statuses(one_node(1, [holder], attachment, *bound("a")), pod_using("a")) == {}


def test_an_unbound_claim_counts_for_its_provisioner() -> None:
    objects = [make_claim("a"), make_class(provisioner=DRIVER)]
    assert statuses(one_node(0, [], *objects), pod_using("a")) == {"n1": TOO_MANY}
    assert statuses(one_node(0, [], make_claim("a")), pod_using("a")) == {}
    assert statuses(one_node(0, [], make_claim("a", storage_class=None)), pod_using("a")) == {}
    lost = make_claim("a", volume="gone")
    assert statuses(one_node(0, [], lost, make_class(provisioner=DRIVER)), pod_using("a")) == {"n1": TOO_MANY}


@pytest.mark.parametrize(
    ("provisioner", "counted"), [("kubernetes.io/aws-ebs", True), ("kubernetes.io/azure-file", False)]
)
def test_an_in_tree_provisioner_counts_as_its_driver_where_it_is_migrated(provisioner: str, counted: bool) -> None:
    objects = [make_claim("a"), make_class(provisioner=provisioner)]
    cluster = one_node(0, [], *objects, driver=EBS if counted else "file.csi.azure.com")
    assert statuses(cluster, pod_using("a")) == ({"n1": TOO_MANY} if counted else {})


def test_in_tree_disks_count_as_their_drivers_inline_or_behind_a_claim() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    inline = {"name": "v", **disk}
    claimed = [make_claim("a", volume="v"), make_volume("v", spec=disk)]
    assert statuses(one_node(0, [], driver=EBS), pod_with(inline)) == {"n1": TOO_MANY}
    assert statuses(one_node(0, [], *claimed, driver=EBS), pod_using("a")) == {"n1": TOO_MANY}
    holder = pod_with(inline, name="holder", node="n1")
    assert statuses(one_node(1, [holder], *claimed, driver=EBS), pod_using("a")) == {}
    vsphere = pod_with({"name": "v", "vsphereVolume": {"volumePath": "p"}})
    assert statuses(one_node(0, [], driver="csi.vsphere.vmware.com"), vsphere) == {}


def test_a_missing_claim_closes_every_node() -> None:
    cluster = make_cluster([make_node("n1"), make_node("n2")], objects=[make_csi_node("n1")])
    reason = Status.unresolvable('looking up PVC default/a: persistentvolumeclaim "a" not found')
    assert statuses(cluster, pod_using("a")) == {"n1": reason, "n2": reason}


def test_volumes_that_make_no_sense_fail_the_cycle() -> None:
    cluster = one_node(1, [], make_claim("p1-x"))
    foreign = Status.error("PVC default/p1-x was not created for pod default/p1 (pod is not owner)")
    assert statuses(cluster, pod_with(ephemeral_volume("x"))) == {"n1": foreign}
    assert statuses(cluster, pod_using("")) == {"n1": Status.error("PersistentVolumeClaim had no name")}


def test_a_disk_that_cannot_be_translated_fails_only_nodes_with_a_csi_node() -> None:
    cluster = make_cluster([make_node("n1"), make_node("n2")], objects=[make_csi_node("n1")])
    broken = {"name": "disk", "awsElasticBlockStore": {"volumeID": "aws://zone/x"}}
    found = statuses(cluster, pod_with(broken))
    assert list(found) == ["n1"]
    assert found["n1"].code == Code.ERROR
    assert found["n1"].message.startswith("converting volume(disk) from inline to csi: failed to translate")
    missing = statuses(cluster, pod_with(broken, claim_volume("a")))
    assert missing["n1"] == found["n1"]
    assert missing["n2"].code == Code.UNRESOLVABLE


def test_a_pod_that_cannot_be_counted_fails_its_node_where_there_is_a_limit() -> None:
    bad = pod_with(ephemeral_volume("x"), name="bad", node="n1")
    objects = [make_claim("bad-x"), *bound("a")]
    problem = Status.error("PVC default/bad-x was not created for pod default/bad (pod is not owner)")
    assert statuses(one_node(9, [bad], *objects), pod_using("a")) == {"n1": problem}
    assert statuses(one_node(None, [bad], *objects), pod_using("a")) == {}
    own = make_claim("bad-x", metadata=owned_by(bad))
    assert statuses(one_node(9, [bad], own, *bound("a")), pod_using("a")) == {}


def test_the_claim_of_a_placed_pod_may_be_missing() -> None:
    assert statuses(one_node(1, [pod_using("gone", name="old", node="n1")], *bound("a")), pod_using("a")) == {}


def test_evicting_a_pod_in_a_dry_run_frees_its_volume() -> None:
    holder = pod_using("a", name="holder", node="n1")
    cluster = one_node(1, [holder], *bound("a", "b"))
    placed = cluster.pods[holder.uid]
    with cluster.dry_run():
        cluster.take_off(placed)
        assert statuses(cluster, pod_using("b")) == {}
        cluster.put_on(placed)
    assert statuses(cluster, pod_using("b")) == {"n1": TOO_MANY}


def test_the_answer_key_counts_volumes_and_names_those_that_others_use() -> None:
    cluster = one_node(2, [pod_using("used", name="holder", node="n1")], *bound("a", "b", "used"))
    plugin = make_plugin(NodeVolumeLimits, cluster)
    assert plugin.answer_key(pod_with()) == ()
    assert plugin.answer_key(pod_using("missing")) is None
    assert plugin.answer_key(pod_using("a")) == plugin.answer_key(pod_using("b"))
    assert len({plugin.answer_key(pod_using(*names)) for names in (["a"], ["a", "b"], ["used"], ["used", "a"])}) == 4


def test_a_volume_is_also_shared_with_pods_that_wait_for_a_node() -> None:
    """Where they are nominated, filters are tried with them in place."""
    cluster = one_node(2, [], *bound("a", "b"))
    plugin = make_plugin(NodeVolumeLimits, cluster)
    nominator, rival = plugin.handle.nominator, pod_using("a", name="rival")
    alone = plugin.answer_key(pod_using("a"))
    nominator.nominate(rival, "n1")
    nominator.nominate(pod_with(ephemeral_volume("not-there"), name="other"), "n1")
    assert plugin.answer_key(pod_using("a")) != alone
    assert plugin.answer_key(pod_using("b")) == alone
    cluster.objects.claims.set("default/a", make_claim("a", volume="v-b"))
    assert plugin.answer_key(pod_using("b")) != alone, "the rival's claim leads there now"
    nominator.remove(rival.uid)
    assert plugin.answer_key(pod_using("b")) == alone


def test_it_wakes_for_more_room_and_for_claims() -> None:
    found = make_plugin(NodeVolumeLimits, Cluster()).interests()
    assert [(each.resource, each.action, each.hint is None) for each in found] == [
        (Resource.CSI_NODE, Action.ADD, True),
        (Resource.CSI_NODE, Action.UPDATE, False),
        (Resource.POD, Action.DELETE, False),
        (Resource.PVC, Action.ADD, False),
        (Resource.VOLUME_ATTACHMENT, Action.DELETE, False),
    ]


def hint(resource: str, pod: Pod, before: Any, after: Any) -> bool:
    interests = make_plugin(NodeVolumeLimits, Cluster()).interests()
    found = next(each for each in interests if each.resource == resource and each.hint is not None)
    assert found.hint is not None
    return found.hint(pod, before, after)


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        ({"d": 1}, {"d": 2}, True),
        ({"d": 2}, {"d": 1}, False),
        ({"d": 1}, {"d": 1, "e": 1}, True),
        ({"d": 1}, {"d": 1, "e": 0}, False),
        ({"d": 1}, {"d": 1, "e": None}, False),
        ({"d": None}, {"d": 1}, True),
        ({"d": 1}, {}, False),
    ],
)
def test_a_csi_node_wakes_pods_when_a_limit_rises(before: Any, after: Any, wakes: bool) -> None:
    assert hint(Resource.CSI_NODE, pod_with(), make_csi_node("n", before), make_csi_node("n", after)) is wakes


def test_a_deleted_pod_wakes_others_if_it_stood_somewhere_with_a_volume() -> None:
    assert hint(Resource.POD, pod_with(), pod_using("a", node="n1"), None)
    assert not hint(Resource.POD, pod_with(), pod_using("a"), None)
    assert not hint(Resource.POD, pod_with(), pod_with(node="n1"), None)
    nominated = make_pod(spec={"volumes": [ephemeral_volume("x")]}, status={"nominatedNodeName": "n1"})
    assert hint(Resource.POD, pod_with(), nominated, None)


def test_a_new_claim_wakes_its_pods() -> None:
    pod = pod_with(claim_volume("a"), ephemeral_volume("x"))
    assert hint(Resource.PVC, pod, None, make_claim("a"))
    assert hint(Resource.PVC, pod, None, make_claim("p1-x"))
    assert not hint(Resource.PVC, pod, None, make_claim("b"))
    assert not hint(Resource.PVC, pod, None, make_claim("a", namespace="other"))


@pytest.mark.parametrize(
    ("volume", "attacher", "wakes"),
    [
        (claim_volume("a"), "any", True),
        (ephemeral_volume("x"), "any", False),
        ({"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}, EBS, True),
        ({"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}, "other", False),
        ({"name": "v", "awsElasticBlockStore": {"volumeID": "aws://z/broken"}}, "other", True),
        ({"name": "v", "vsphereVolume": {"volumePath": "p"}}, "csi.vsphere.vmware.com", True),
        ({"name": "v", "emptyDir": {}}, "any", False),
    ],
)
def test_a_deleted_attachment_wakes_pods_that_its_driver_may_serve(
    volume: dict[str, Any], attacher: str, wakes: bool
) -> None:
    attachment = make_attachment("a", "v", "n1", attacher)
    assert hint(Resource.VOLUME_ATTACHMENT, pod_with(volume), attachment, None) is wakes


def apply(handle: Handle, what: str, thing: Any, detail: Any) -> None:
    if what == "nominate":
        assert isinstance(thing, Pod)
        handle.nominator.nominate(thing, detail)
        return
    store = handle.cluster.objects.store_of(type(thing))
    assert store is not None
    if detail:
        store.set(thing.key, thing)
    else:
        store.discard(thing.key)


@settings(max_examples=examples(200))
@given(STEPS)
def test_following_changes_equals_looking_anew(steps: list[tuple[str, Any, Any]]) -> None:
    handle = make_handle(make_cluster([], objects=[make_class(provisioner="d")]))
    promised = PromisedVolumes(handle)
    for what, thing, detail in steps:
        apply(handle, what, thing, detail)
        known, anew = promised.refreshed(), PromisedVolumes(handle).refreshed()
        assert [volume in known for volume in VOLUMES] == [volume in anew for volume in VOLUMES]


def test_a_journal_that_was_cut_means_looking_at_every_node() -> None:
    handle = make_handle(make_cluster([], objects=[make_claim("a", volume="v1"), make_volume("v1", driver="d")]))
    promised = PromisedVolumes(handle)
    handle.nominator.nominate(PODS[0], "n1")
    assert "d/handle-v1" in promised.refreshed()
    handle.nominator.remove(PODS[0].uid)
    for _ in range(60_000):
        handle.nominator.changes.append("n9")
        handle.nominator.changes.append("n8")
    assert "d/handle-v1" not in promised.refreshed()
