"""The kept count of attached volumes equals counting anew, whatever comes, changes or goes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.cluster.attached import UnusableVolumeError, may_attach
from podium.kube import Pod, Volume
from tools.kit.builders import build, make_node
from tools.kit.effort import examples
from tools.kit.storage import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_claim,
    make_class,
    make_volume,
    owned_by,
    pod_using,
    pod_with,
)

DRIVERS = ("d", "e", "ebs.csi.aws.com")
NODES = ("n1", "n2")


def counts(cluster: Cluster, driver: str = "d") -> dict[str, int]:
    column = cluster.attached.count(driver)
    return {name: int(column[cluster.row_of[name]]) for name in NODES if name in cluster.row_of}


def counted_anew(cluster: Cluster, driver: str) -> dict[str, int]:
    """Attached volumes of a driver per node, straight from the objects."""
    answer: dict[str, int] = {}
    for name in NODES:
        row = cluster.row_of.get(name)
        if row is None:
            continue
        volumes: dict[str, str] = {}
        for placed in cluster.pods_on[row].values():
            try:
                volumes |= cluster.attached.volumes_of(placed.pod, placed=True)
            except UnusableVolumeError:
                continue
        if cluster.nodes[row] is not None:
            for attachment in cluster.objects.attachments:
                volume = cluster.objects.volumes.get(attachment.spec.source.persistent_volume_name or "")
                if attachment.spec.node_name == name and attachment.spec.attacher and volume and volume.spec.csi:
                    handle = f"{attachment.spec.attacher}/{volume.spec.csi.volume_handle}"
                    volumes[handle] = attachment.spec.attacher
        answer[name] = Counter(volumes.values())[driver]
    return answer


PODS = [
    pod_using("c1", name="a"),
    pod_using("c1", "c2", name="b"),
    pod_with(ephemeral_volume("x"), claim_volume("c3"), name="c"),
    pod_with({"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}}, claim_volume("c2"), name="d"),
    pod_with({"name": "disk", "awsElasticBlockStore": {"volumeID": "aws://zone/broken"}}, name="e"),
]


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(["pod", "claim", "volume", "class", "attachment", "node"]))
    gone = draw(st.booleans())
    if kind == "pod":
        return "no pod" if gone else kind, (draw(st.sampled_from(PODS)), draw(st.sampled_from(NODES)))
    if kind == "claim":
        name = draw(st.sampled_from(["c1", "c2", "c3", "c-x"]))
        owner = owned_by(PODS[2]) if draw(st.booleans()) else {}
        claim = make_claim(
            name,
            volume=draw(st.sampled_from(["", "v1", "v2", "v3"])),
            storage_class=draw(st.sampled_from([None, "late", "in-tree"])),
            metadata=owner,
        )
        return "no claim" if gone else kind, claim
    if kind == "volume":
        name = draw(st.sampled_from(["v1", "v2", "v3"]))
        source = draw(
            st.sampled_from(
                [
                    {"csi": {"driver": "d", "volumeHandle": "h1"}},
                    {"csi": {"driver": "e", "volumeHandle": "h1"}},
                    {"csi": {"driver": "d", "volumeHandle": ""}},
                    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
                    {"local": {"path": "/x"}},
                ]
            )
        )
        return "no volume" if gone else kind, make_volume(name, spec=source)
    if kind == "class":
        name = draw(st.sampled_from(["late", "in-tree"]))
        provisioner = draw(st.sampled_from(["d", "kubernetes.io/aws-ebs", "kubernetes.io/vsphere-volume"]))
        return "no class" if gone else kind, make_class(name, provisioner=provisioner)
    if kind == "attachment":
        attachment = make_attachment(
            draw(st.sampled_from(["a1", "a2"])),
            draw(st.sampled_from([None, "v1", "v2"])),
            draw(st.sampled_from(NODES)),
            draw(st.sampled_from(["d", "e", ""])),
        )
        return "no attachment" if gone else kind, attachment
    return "no node" if gone else "node", draw(st.sampled_from(NODES))


def apply(cluster: Cluster, kind: str, what: Any) -> None:
    if kind == "pod":
        pod, node = what
        cluster.set_pod(pod_on(pod, node))
    elif kind == "no pod":
        if what[0].uid in cluster.pods:
            cluster.remove_pod(what[0].uid)
    elif kind == "node":
        cluster.set_node(make_node(what))
    elif kind == "no node":
        row = cluster.row_of.get(what)
        if row is not None and cluster.nodes[row] is not None:
            cluster.remove_node(what)
    else:
        store = cluster.objects.store_of(type(what))
        assert store is not None
        if kind.startswith("no "):
            store.discard(what.key)
        else:
            store.set(what.key, what)


def pod_on(pod: Pod, node: str) -> Pod:
    volumes = [build_plain(volume) for volume in pod.spec.volumes]
    return pod_with(*volumes, name=pod.name, node=node)


def build_plain(volume: Volume) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(volume)
    if volume.ephemeral is not None:
        plain["ephemeral"] = {}
    return plain


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(changes(), max_size=25))
def test_the_kept_count_equals_counting_anew(script: list[tuple[str, Any]]) -> None:
    cluster = Cluster()
    for kind, what in script:
        apply(cluster, kind, what)
        for driver in DRIVERS:
            assert counts(cluster, driver) == counted_anew(cluster, driver)
    for uid in list(cluster.pods):
        cluster.remove_pod(uid)
    for attachment in list(cluster.objects.attachments):
        cluster.objects.attachments.discard(attachment.key)
    for driver in DRIVERS:
        assert not cluster.attached.count(driver).any()
    assert not cluster.attached.problems


def one_node() -> Cluster:
    cluster = Cluster()
    cluster.set_node(make_node("n1"))
    return cluster


def test_a_volume_used_by_two_pods_is_attached_once() -> None:
    cluster = one_node()
    cluster.objects.volumes.set("v1", make_volume("v1", driver="d"))
    cluster.objects.claims.set("default/c1", make_claim("c1", volume="v1"))
    cluster.set_pod(pod_using("c1", name="a", node="n1"))
    cluster.set_pod(pod_using("c1", name="b", node="n1"))
    assert counts(cluster) == {"n1": 1}
    assert list(cluster.attached.rows_with("d/handle-v1")) == [0]
    cluster.remove_pod("default-a")
    assert counts(cluster) == {"n1": 1}
    cluster.remove_pod("default-b")
    assert counts(cluster) == {"n1": 0}
    assert list(cluster.attached.rows_with("d/handle-v1")) == []


def test_a_claim_counts_through_its_class_until_it_is_bound() -> None:
    cluster = one_node()
    cluster.objects.storage_classes.set("late", make_class(provisioner="e"))
    cluster.objects.claims.set("default/c1", make_claim("c1"))
    cluster.set_pod(pod_using("c1", node="n1"))
    assert (counts(cluster, "d"), counts(cluster, "e")) == ({"n1": 0}, {"n1": 1})
    cluster.objects.claims.set("default/c1", make_claim("c1", volume="v1"))
    assert (counts(cluster, "d"), counts(cluster, "e")) == ({"n1": 0}, {"n1": 1})
    cluster.objects.volumes.set("v1", make_volume("v1", driver="d"))
    assert (counts(cluster, "d"), counts(cluster, "e")) == ({"n1": 1}, {"n1": 0})


def test_an_attachment_of_a_pods_own_volume_adds_nothing() -> None:
    cluster = one_node()
    cluster.objects.volumes.set("v1", make_volume("v1", driver="d"))
    cluster.objects.attachments.set("a", make_attachment("a", "v1", "n1", "d"))
    assert counts(cluster) == {"n1": 1}
    cluster.objects.claims.set("default/c1", make_claim("c1", volume="v1"))
    cluster.set_pod(pod_using("c1", node="n1"))
    assert counts(cluster) == {"n1": 1}


def test_attachments_leave_with_their_node() -> None:
    cluster = one_node()
    cluster.objects.volumes.set("v1", make_volume("v1", driver="d"))
    cluster.objects.attachments.set("a", make_attachment("a", "v1", "n1", "d"))
    cluster.remove_node("n1")
    cluster.set_node(make_node("n2"))
    assert counts(cluster) == {"n2": 0}
    cluster.set_node(make_node("n1"))
    assert counts(cluster) == {"n1": 1, "n2": 0}


def test_a_foreign_ephemeral_claim_is_a_problem_of_its_row_until_it_is_the_pods_own() -> None:
    cluster = one_node()
    pod = pod_with(ephemeral_volume("x"), name="a", node="n1")
    cluster.objects.claims.set("default/a-x", make_claim("a-x"))
    cluster.set_pod(pod)
    problem = "PVC default/a-x was not created for pod default/a (pod is not owner)"
    assert cluster.attached.problems == {0: {pod.uid: problem}}
    cluster.objects.claims.set("default/a-x", make_claim("a-x", metadata=owned_by(pod)))
    assert cluster.attached.problems == {}


def test_whatever_changes_the_count_of_a_row_is_in_the_journal() -> None:
    cluster = one_node()
    objects = cluster.objects
    cluster.set_pod(pod_using("c1", node="n1"))

    cursor = cluster.pod_changes.cursor()
    cursor.read()
    objects.claims.set("default/c1", make_claim("c1", volume="v1"))
    assert cursor.read() == [0]
    objects.volumes.set("v1", make_volume("v1", driver="d"))
    assert cursor.read() == [0]
    objects.claims.set("default/unused", make_claim("unused", volume="v2"))
    objects.volumes.set("v2", make_volume("v2", driver="d"))
    assert cursor.read() == []
    objects.attachments.set("a", make_attachment("a", "v2", "n1", "d"))
    assert cursor.read() == [0]
    objects.attachments.discard("a")
    assert cursor.read() == [0]
    objects.attachments.set("a", make_attachment("a", "v2", "elsewhere", "d"))
    assert cursor.read() == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, True),
        ({"ephemeral": {}}, True),
        ({"gcePersistentDisk": {"pdName": "d"}}, True),
        ({"vsphereVolume": {"volumePath": "p"}}, True),
        ({"iscsi": {"iqn": "i"}}, False),
        ({"csi": {"driver": "d"}}, False),
        ({"emptyDir": {}}, False),
    ],
)
def test_claims_and_in_tree_disks_may_end_up_attached(source: dict[str, Any], expected: bool) -> None:
    assert may_attach(build(Volume, {"name": "v", **source})) is expected
