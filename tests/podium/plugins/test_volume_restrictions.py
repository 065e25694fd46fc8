"""VolumeRestrictions: disks and claims that pods may not share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Action, Code, Cycle, Interest, PluginError, Resource, Status
from podium.kube import PersistentVolumeClaim, Pod
from podium.plugins.volume_restrictions import VolumeRestrictions
from tools.kit.builders import make_cluster, make_node, make_plugin
from tools.kit.storage import claim_volume, ephemeral_volume, make_claim, pod_using, pod_with

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def disk(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": f"v-{name}", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def only_one(name: str, **more: Any) -> PersistentVolumeClaim:
    return make_claim(name, modes=["ReadWriteOncePod"], **more)


def cluster_with(pods: list[Pod], *claims: PersistentVolumeClaim) -> Cluster:
    return make_cluster([make_node("n1"), make_node("n2")], pods, claims)


def refusals(cluster: Cluster, pod: Pod) -> dict[str, tuple[str, ...]]:
    """Reasons by node name; every refusal must be one that preemption may cure."""
    plugin, cycle = make_plugin(VolumeRestrictions, cluster), Cycle(pod, cluster)
    status = plugin.pre_filter(cycle)
    if status == SKIP:
        return {}
    assert status is None
    return filtered(plugin, cycle)


def filtered(plugin: VolumeRestrictions, cycle: Cycle) -> dict[str, tuple[str, ...]]:
    verdict = plugin.filter(cycle, Nodes(cycle.cluster))
    found: dict[str, tuple[str, ...]] = {}
    for name, row in cycle.cluster.row_of.items():
        alone = plugin.filter(cycle, Nodes(cycle.cluster, np.array([row])))
        code = 0 if verdict is None else int(verdict.codes[row])
        assert (0 if alone is None else int(alone.codes[0])) == code
        if verdict is not None and code:
            status = verdict.status_of(code)
            assert status.code == Code.UNSCHEDULABLE
            found[name] = status.reasons
    return found


def test_a_pod_without_disks_and_exclusive_claims_is_skipped() -> None:
    cluster = cluster_with([], make_claim("data"), only_one("free"))
    plugin = make_plugin(VolumeRestrictions, cluster)
    for pod in (pod_with(), pod_using("data"), pod_using("free"), pod_with(ephemeral_volume("x"))):
        assert plugin.pre_filter(Cycle(pod, cluster)) == SKIP


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_missing_claim_is_told_in_the_apis_words(name: str) -> None:
    cluster = cluster_with([])
    status = make_plugin(VolumeRestrictions, cluster).pre_filter(Cycle(pod_using(name), cluster))
    assert status == Status.unresolvable(f'persistentvolumeclaim "{name}" not found')


def test_a_disk_that_is_taken_closes_its_node_only() -> None:
    cluster = cluster_with([pod_with(disk("a"), name="holder", node="n1")])
    assert refusals(cluster, pod_with(disk("a"))) == {"n1": (DISK,)}
    assert refusals(cluster, pod_with(disk("b"))) == {}


def test_readers_of_a_disk_get_along() -> None:
    cluster = cluster_with([pod_with(disk("a", True), name="holder", node="n1")])
    assert refusals(cluster, pod_with(disk("a", True))) == {}
    assert refusals(cluster, pod_with(disk("a"))) == {"n1": (DISK,)}


def test_an_exclusive_claim_in_use_closes_every_node() -> None:
    cluster = cluster_with([pod_using("one", name="holder", node="n1")], only_one("one"))
    assert refusals(cluster, pod_using("one")) == {"n1": (IN_USE,), "n2": (IN_USE,)}


def test_the_disk_is_the_reason_where_both_apply() -> None:
    holder = pod_with(disk("a"), claim_volume("one"), name="holder", node="n1")
    cluster = cluster_with([holder], only_one("one"))
    assert refusals(cluster, pod_with(disk("a"), claim_volume("one"))) == {"n1": (DISK,), "n2": (IN_USE,)}


def test_use_in_another_namespace_or_on_a_vanished_node_does_not_count() -> None:
    elsewhere = pod_using("one", name="holder", node="n1", namespace="other")
    lost = pod_using("one", name="lost", node="gone")
    cluster = cluster_with([elsewhere, lost], only_one("one"), only_one("one", namespace="other"))
    assert refusals(cluster, pod_using("one")) == {}
    cluster.set_node(make_node("gone"))
    assert set(refusals(cluster, pod_using("one"))) == {"n1", "n2", "gone"}


def test_dry_runs_count_claims_by_name_in_a_copy() -> None:
    holder = pod_using("one", name="holder", node="n1")
    cluster = cluster_with([holder], only_one("one"), only_one("two"))
    plugin, cycle = make_plugin(VolumeRestrictions, cluster), Cycle(pod_using("one", "two"), cluster)
    assert plugin.pre_filter(cycle) is None
    trial = cycle.clone()
    plugin.remove_pod(trial, cluster.pods[holder.uid])
    assert filtered(plugin, trial) == {}
    foreign = cluster.stand_in(pod_using("one", "two", "one", name="x", namespace="other"), 0)
    plugin.add_pod(trial, foreign)
    assert set(filtered(plugin, trial)) == {"n1", "n2"}
    plugin.remove_pod(trial, foreign)
    assert filtered(plugin, trial) == {}
    assert set(filtered(plugin, cycle)) == {"n1", "n2"}


def test_without_its_notes_the_filter_fails() -> None:
    cluster = cluster_with([])
    plugin = make_plugin(VolumeRestrictions, cluster)
    with pytest.raises(PluginError, match=r'^cannot read "PreFilterVolumeRestrictions" from cycleState$'):
        plugin.filter(Cycle(pod_with(), cluster), Nodes(cluster))


def test_the_answer_key_moves_with_claims_and_their_use() -> None:
    cluster = cluster_with([], only_one("one"), only_one("two"), make_claim("shared"))
    plugin = make_plugin(VolumeRestrictions, cluster)
    assert plugin.answer_key(pod_with()) == ()
    assert plugin.answer_key(pod_using("missing")) is None
    pod = pod_using("one")
    marks = [plugin.answer_key(pod), plugin.answer_key(pod_using("two"))]
    cluster.set_pod(pod_using("one", name="holder", node="n1"))
    marks.append(plugin.answer_key(pod))
    cluster.objects.claims.set("default/one", make_claim("one"))
    marks.append(plugin.answer_key(pod))
    assert len(set(marks)) == 4
    assert plugin.answer_key(pod) == plugin.answer_key(pod_using("shared")), "claims that many may use are all alike"


def interest(resource: str) -> Interest:
    found = make_plugin(VolumeRestrictions, Cluster()).interests()
    return next(each for each in found if each.resource == resource)


def test_it_wakes_for_deleted_pods_new_nodes_and_new_claims() -> None:
    found = make_plugin(VolumeRestrictions, Cluster()).interests()
    assert [(each.resource, each.action, each.hint is None) for each in found] == [
        (Resource.POD, Action.DELETE, False),
        (Resource.NODE, Action.ADD, True),
        (Resource.PVC, Action.ADD, False),
    ]


@pytest.mark.parametrize(
    ("deleted", "wakes"),
    [
        (pod_with(disk("a")), True),
        (pod_with(disk("a", True)), True),
        (pod_with(disk("b")), False),
        (pod_using("data"), True),
        (pod_using("other"), False),
        (pod_using("data", namespace="other"), False),
        (pod_with(disk("a"), namespace="other"), False),
        (pod_with(), False),
    ],
)
def test_a_deleted_pod_wakes_those_it_shared_a_volume_with(deleted: Pod, wakes: bool) -> None:
    asked, pod = interest(Resource.POD), pod_with(disk("a"), claim_volume("data"))
    assert asked.hint is not None
    assert asked.hint(pod, deleted, None) is wakes
    assert concerned(asked, pod, deleted, None) is wakes, "others are not even asked about"


def concerned(asked: Interest, pod: Pod, before: Any, after: Any) -> bool:
    assert asked.concerns is not None
    awaited, about = asked.concerns.of_pod(pod), asked.concerns.of_event(before, after)
    assert awaited is not None
    assert about is not None
    return not set(awaited).isdisjoint(about)


def test_a_new_claim_wakes_the_pods_that_name_it() -> None:
    asked = interest(Resource.PVC)
    assert asked.hint is not None
    pod = pod_with(claim_volume("data"), ephemeral_volume("x"))
    for claim, wakes in (
        (make_claim("data"), True),
        (make_claim("data", namespace="other"), False),
        (make_claim("p1-x"), False),
    ):
        assert asked.hint(pod, None, claim) is wakes
        assert concerned(asked, pod, None, claim) is wakes
