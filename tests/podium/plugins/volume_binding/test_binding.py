"""Reserve to PreBind: what is chosen, held, written, watched and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Cycle, Handle, Status
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod
from podium.kube.versions import KNOWN
from podium.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from podium.testing.memory_writer import MemoryWriter
from tools.kit.builders import make_cluster, make_handle, make_node, make_plugin
from tools.kit.storage import (
    HOSTNAME,
    SELECTED_NODE,
    ZONE,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    pod_using,
    pod_with,
)

STATIC = make_class("static", provisioner="kubernetes.io/no-provisioner")
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def static(name: str = "data", **more: Any) -> PersistentVolumeClaim:
    return make_claim(name, **{"storage_class": "static", **more})


def disk(name: str, node: str, **more: Any) -> PersistentVolume:
    return make_volume(name, **{"storage_class": "static", "affinity": {HOSTNAME: [node]}, **more})


def cluster_with(*objects: Any) -> Cluster:
    nodes = [make_node(name, labels={HOSTNAME: name, ZONE: "z1"}) for name in ("n1", "n2")]
    return make_cluster(nodes, objects=[make_class(), STATIC, *objects])


def reserved(cluster: Cluster, pod: Pod, node: str = "n1", plugin: VolumeBinding | None = None) -> Cycle:
    """The pod's cycle after PreFilter, Filter and Reserve on a node that must be open."""
    plugin, cycle = plugin or make_plugin(VolumeBinding, cluster), Cycle(pod, cluster)
    assert plugin.pre_filter(cycle) in (None, SKIP)
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert verdict is None or not verdict.codes[cluster.row_of[node]]
    plugin.reserve(cycle, node)
    return cycle


def volume(cluster: Cluster, name: str) -> PersistentVolume:
    found = cluster.objects.volumes.get(name)
    assert found is not None
    return found


def claim(cluster: Cluster, name: str = "data") -> PersistentVolumeClaim:
    found = cluster.objects.claims.get(f"default/{name}")
    assert found is not None
    return found


def test_a_free_volume_is_made_to_name_the_claim() -> None:
    cluster = cluster_with(static(metadata={"resourceVersion": "7"}), disk("v", "n1"), disk("w", "n2"))
    reserved(cluster, pod_using("data"))
    reference = volume(cluster, "v").spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.api_version) == ("PersistentVolumeClaim", "v1")
    assert (reference.namespace, reference.name, reference.uid, reference.resource_version) == (
        "default",
        "data",
        "claim-default-data",
        "7",
    )
    assert volume(cluster, "v").annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert volume(cluster, "w").spec.claim_ref is None
    assert SELECTED_NODE not in claim(cluster).annotations


def test_the_smallest_volume_that_fits_is_taken() -> None:
    volumes = [disk("large", "n1", size="9Gi"), disk("fitting", "n1", size="2Gi"), disk("tiny", "n1", size="1Mi")]
    cluster = cluster_with(static(size="1Gi"), *volumes)
    reserved(cluster, pod_using("data"))
    assert [each.name for each in cluster.objects.volumes if each.spec.claim_ref is not None] == ["fitting"]


def test_a_volume_reserved_by_name_gets_the_rest_of_the_reference_but_no_mark() -> None:
    owner = static(metadata={"uid": ""})
    cluster = cluster_with(static(), disk("v", "n1", claim=owner))
    reserved(cluster, pod_using("data"))
    reference = volume(cluster, "v").spec.claim_ref
    assert reference is not None
    assert reference.uid == "claim-default-data"
    assert volume(cluster, "v").annotations == {}


def test_a_volume_that_names_the_claim_fully_is_left_as_it_is() -> None:
    before = disk("v", "n1", claim=static())
    cluster = cluster_with(static(), before)
    reserved(cluster, pod_using("data"))
    assert volume(cluster, "v") is before


def test_a_claim_whose_volume_must_be_made_is_told_the_node() -> None:
    cluster = cluster_with(make_claim(annotations={"kept": "yes"}))
    reserved(cluster, pod_using("data"), "n2")
    assert claim(cluster).annotations == {"kept": "yes", SELECTED_NODE: "n2"}


def test_the_next_pod_finds_the_volume_taken() -> None:
    cluster = cluster_with(static("a"), static("b"), disk("v", "n1"))
    reserved(cluster, pod_using("a"))
    plugin, cycle = make_plugin(VolumeBinding, cluster), Cycle(pod_using("b", name="p2"), cluster)
    assert plugin.pre_filter(cycle) is None
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert verdict is not None
    assert verdict.codes.all()


def test_unreserve_takes_everything_back_and_may_come_twice() -> None:
    objects = [static("a"), make_claim("b"), disk("v", "n1")]
    cluster = cluster_with(*objects)
    plugin = make_plugin(VolumeBinding, cluster)
    cycle = reserved(cluster, pod_using("a", "b"), plugin=plugin)
    assert volume(cluster, "v") is not objects[2]
    assert claim(cluster, "b") is not objects[1]
    for _ in range(2):
        plugin.unreserve(cycle, "n1")
        assert volume(cluster, "v") is objects[2]
        assert claim(cluster, "b") is objects[1]


def test_unreserve_leaves_newer_objects_alone() -> None:
    cluster = cluster_with(static(), disk("v", "n1", metadata={"resourceVersion": "1"}))
    plugin = make_plugin(VolumeBinding, cluster)
    cycle = reserved(cluster, pod_using("data"), plugin=plugin)
    cluster.objects.volumes.set("v", disk("v", "n1", metadata={"resourceVersion": "2"}))
    others = disk("v", "n1", claim=static("other"), metadata={"resourceVersion": "2"})
    cluster.objects.volumes.assume("v", others)
    plugin.unreserve(cycle, "n1")
    assert volume(cluster, "v") is others


@pytest.mark.parametrize("pod", [pod_with(), pod_using("done")])
def test_with_nothing_to_bind_pre_bind_is_skipped(pod: Pod) -> None:
    cluster = cluster_with(make_claim("done", volume="v"), make_volume("v"))
    plugin = make_plugin(VolumeBinding, cluster)
    cycle = reserved(cluster, pod, plugin=plugin)
    assert plugin.pre_bind_preflight(cycle, "n1") == SKIP
    assert plugin.pre_bind(cycle, "n1") is None
    plugin.unreserve(cycle, "n1")


def test_pre_bind_without_reserve_fails() -> None:
    cluster = cluster_with(make_claim())
    plugin, cycle = make_plugin(VolumeBinding, cluster), Cycle(pod_using("data"), cluster)
    assert plugin.pre_filter(cycle) is None
    nothing = Status.error('no pod volume found for node "n1"')
    assert plugin.pre_bind_preflight(cycle, "n1") == nothing
    assert plugin.pre_bind(cycle, "n1") == nothing
    plugin.unreserve(cycle, "n1")


def test_scoring_is_off_without_its_gate() -> None:
    cluster = cluster_with(make_claim())
    cycle = Cycle(pod_using("data"), cluster)
    plugin = VolumeBinding(VolumeBindingArgs(), make_handle(cluster, KNOWN["1.36"]))
    assert plugin.pre_score(cycle, Nodes(cluster)) == SKIP
    assert plugin.score(cycle, Nodes(cluster)) == 0


def test_while_a_claim_waits_for_its_volume_the_answer_key_moves_with_every_store_it_reads() -> None:
    cluster = cluster_with(make_claim(), make_claim("other"))
    plugin = make_plugin(VolumeBinding, cluster)
    assert plugin.answer_key(pod_with({"name": "v", "emptyDir": {}})) == ()
    assert plugin.answer_key(pod_using("data")) != plugin.answer_key(pod_using("other"))
    marks = [plugin.answer_key(pod_using("data"))]
    objects = cluster.objects
    for store in (
        objects.claims,
        objects.volumes,
        objects.storage_classes,
        objects.csi_drivers,
        objects.csi_capacities,
    ):
        store.discard("gone")
        marks.append(plugin.answer_key(pod_using("data")))
    assert len(set(marks)) == 6


def test_the_answer_key_of_bound_claims_is_where_their_volumes_can_be_used() -> None:
    """Which claims they are does not matter, and other objects may come and go."""
    claims = [make_claim(name, volume=f"v-{name}") for name in ("a", "b", "pinned", "lost", "zoned")]
    labels = {ZONE: "z1"}
    volumes = [
        make_volume("v-a"),
        make_volume("v-b", labels=labels, driver="csi.example.test"),
        make_volume("v-pinned", affinity={HOSTNAME: ["n1"]}),
        make_volume("v-zoned", labels=labels, spec={"awsElasticBlockStore": {"volumeID": "vol-1"}}),
    ]
    cluster = cluster_with(*claims, *volumes)
    plugin = make_plugin(VolumeBinding, cluster)
    marks = {name: plugin.answer_key(pod_using(name)) for name in ("a", "b", "pinned", "lost", "zoned")}
    assert marks["a"] == marks["b"]
    assert len(set(marks.values())) == 4
    cluster.objects.claims.set("default/new", make_claim("new"))
    cluster.objects.volumes.set("new", make_volume("new"))
    assert {name: plugin.answer_key(pod_using(name)) for name in marks} == marks
    cluster.objects.volumes.set("v-a", make_volume("v-a", affinity={HOSTNAME: ["n1"]}))
    assert plugin.answer_key(pod_using("a")) == marks["pinned"]


@pytest.mark.parametrize("pod", [pod_using("missing"), pod_with({"name": "x", "ephemeral": {}})])
def test_no_answer_is_kept_for_a_pod_whose_claims_are_not_ready(pod: Pod) -> None:
    assert make_plugin(VolumeBinding, cluster_with()).answer_key(pod) is None


def test_two_pods_on_their_way_do_not_get_into_each_others() -> None:
    """What PreFilter noted for one pod may serve another with an equal answer key; what Reserve notes may not."""
    cluster = cluster_with(static(), disk("v", "n1", claim=static(), metadata={"resourceVersion": "1"}))
    plugin = make_plugin(VolumeBinding, cluster)
    one = reserved(cluster, pod_using("data", name="p1"), plugin=plugin)
    other = Cycle(pod_using("data", name="p2"), cluster)
    other.data = {"VolumeBinding": one.data["VolumeBinding"]}
    plugin.reserve(other, "n1")
    assert plugin.pre_bind(one, "n1") is None
    plugin.unreserve(one, "n1")
    assert plugin.pre_bind_preflight(other, "n1") is None
    assert one.data["ReserveVolumeBinding"].written
    assert not other.data["ReserveVolumeBinding"].written


# Writing, and watching the volumes become bound


class SlowWrites(MemoryWriter):
    """A writer that answers later, and then lets the test play the volume controller."""

    def __init__(self, answer: Status | None, then: Callable[[], object]) -> None:
        super().__init__(at_once=True)
        self.written: list[str] = []
        self._answer = answer
        self._then = then

    def write_volumes(
        self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]
    ) -> Awaitable[Status | None]:
        self.written += [each.name for each in volumes] + [each.name for each in claims]

        async def write() -> Status | None:
            self._then()
            return self._answer

        return write()


def bind(
    cluster: Cluster,
    pod: Pod,
    *,
    then: Callable[[], object] = lambda: None,
    answer: Status | None = None,
    seconds: int = 600,
    monkeypatch: pytest.MonkeyPatch | None = None,
    each_second: Callable[[], None] = lambda: None,
) -> Status | None:
    """Reserve and bind the pod's volumes on n1; a second passes at once, and `each_second` runs in it."""
    handle: Handle = make_handle(cluster)
    handle.writer = SlowWrites(answer, then)
    plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=seconds), handle)
    cycle = reserved(cluster, pod, plugin=plugin)
    cluster.assume(pod, "n1")
    assert plugin.pre_bind_preflight(cycle, "n1") is None

    async def sleep(delay: float) -> None:
        assert delay == 1
        each_second()

    async def run() -> Status | None:
        effect = plugin.pre_bind(cycle, "n1")
        assert isinstance(effect, Awaitable)
        return await effect

    if monkeypatch is not None:
        monkeypatch.setattr(asyncio, "sleep", sleep)
    status = asyncio.run(run())
    plugin.unreserve(cycle, "n1")
    return status


def confirm(cluster: Cluster, volume_name: str, **changes: Any) -> None:
    """The API server's answer to the write of a volume: the assumed object, newly decoded."""
    current = volume(cluster, volume_name)
    cluster.objects.volumes.set(volume_name, replace(current, **changes))


def test_pre_bind_waits_until_volumes_and_claims_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_with(static("a"), make_claim("b"), disk("v", "n1"))
    seconds: list[int] = []

    def each_second() -> None:
        seconds.append(len(seconds))
        match len(seconds):
            case 2:
                confirm(cluster, "v")
            case 3:
                cluster.objects.claims.set("default/a", static("a", volume="v"))
            case 4:
                told = make_claim("b", annotations={SELECTED_NODE: "n1"})
                cluster.objects.claims.set("default/b", told)
            case 5:
                told = make_claim("b", volume="made", annotations={SELECTED_NODE: "n1"})
                cluster.objects.claims.set("default/b", told)
            case 6:
                cluster.objects.volumes.set("made", make_volume("made", affinity={ZONE: ["z1"]}))

    assert bind(cluster, pod_using("a", "b"), monkeypatch=monkeypatch, each_second=each_second) is None
    assert len(seconds) == 6


def test_what_is_bound_when_the_write_returns_needs_no_wait() -> None:
    cluster = cluster_with(static(), disk("v", "n1", claim=static()))
    then = partial(cluster.objects.claims.set, "default/data", static(volume="v"))
    assert bind(cluster, pod_using("data"), then=then, seconds=0) is None


@pytest.mark.parametrize("seconds", [0, 3])
def test_waiting_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    waited: list[None] = []
    status = bind(
        cluster_with(make_claim()),
        pod_using("data"),
        seconds=seconds,
        monkeypatch=monkeypatch,
        each_second=lambda: waited.append(None),
    )
    assert status == Status.error("binding volumes: context deadline exceeded")
    assert len(waited) == seconds


def test_what_was_written_stays_assumed_after_a_failure() -> None:
    cluster = cluster_with(make_claim())
    assert bind(cluster, pod_using("data"), seconds=0) is not None
    assert claim(cluster).annotations[SELECTED_NODE] == "n1"


def test_a_failed_write_is_passed_on_and_taken_back() -> None:
    cluster = cluster_with(make_claim())
    conflict = Status.error("the object has been modified")
    assert bind(cluster, pod_using("data"), answer=conflict) == conflict
    assert SELECTED_NODE not in claim(cluster).annotations


Failure = Callable[[Cluster], object]


def elsewhere(cluster: Cluster) -> None:
    told = make_claim("b", volume="made", annotations={SELECTED_NODE: "n1"})
    cluster.objects.claims.set("default/b", told)
    cluster.objects.volumes.set("made", make_volume("made", affinity={ZONE: ["z9"]}))


def broken(cluster: Cluster) -> None:
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", migrated=["kubernetes.io/azure-disk"]))
    told = make_claim("b", volume="made", annotations={SELECTED_NODE: "n1"})
    cluster.objects.claims.set("default/b", told)
    source = {"azureDisk": {"diskURI": "u", "kind": "Shared"}}
    cluster.objects.volumes.set("made", make_volume("made", spec=source))


def bind_first(failure: Failure) -> Failure:
    """Let the static binding succeed, then fail the other claim."""

    def both(cluster: Cluster) -> None:
        confirm(cluster, "v")
        cluster.objects.claims.set("default/a", static("a", volume="v"))
        failure(cluster)

    return both


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (lambda cluster: cluster.remove_node("n1"), 'failed to get node "n1": node "n1" not found'),
        (lambda cluster: cluster.forget("default-p1"), 'pod does not exist any more: pod "p1" not found'),
        (
            lambda cluster: cluster.objects.volumes.discard("v"),
            'failed to check binding: persistentvolumes "v" not found',
        ),
        (
            lambda cluster: cluster.objects.claims.discard("default/a"),
            'failed to check binding: persistentvolumeclaims "default/a" not found',
        ),
        (
            lambda cluster: cluster.objects.volumes.set("v", disk("v", "n1")),
            'ClaimRef got reset for pv "v"',
        ),
        (
            lambda cluster: cluster.objects.volumes.set("v", disk("v", "n2", claim=static("a"))),
            'pv "v" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
        ),
        (
            bind_first(lambda cluster: cluster.objects.claims.discard("default/b")),
            'failed to check provisioning pvc: persistentvolumeclaims "default/b" not found',
        ),
        (
            bind_first(lambda cluster: cluster.objects.claims.set("default/b", make_claim("b"))),
            'selectedNode annotation reset for PVC "b"',
        ),
        (
            bind_first(
                lambda cluster: cluster.objects.claims.set("default/b", make_claim("b", annotations={"other": "x"}))
            ),
            'provisioning failed for PVC "b"',
        ),
        (
            bind_first(elsewhere),
            'pv "made" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
        ),
        (bind_first(broken), "could not translate pv: kind(Shared) is not supported in csi migration"),
    ],
)
def test_binding_that_goes_wrong_is_told_at_once(failure: Failure, message: str) -> None:
    cluster = cluster_with(static("a"), make_claim("b"), disk("v", "n1"))
    status = bind(cluster, pod_using("a", "b"), then=lambda: failure(cluster))
    assert status == Status.error(f"binding volumes: {message}")


def test_a_bound_volume_that_cannot_be_translated_is_told_as_such() -> None:
    source = {"azureDisk": {"diskURI": "u", "kind": "Shared"}}
    cluster = cluster_with(static(), disk("v", "n1", spec=source))
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", migrated=["kubernetes.io/azure-disk"]))
    status = bind(cluster, pod_using("data"), then=lambda: confirm(cluster, "v"))
    assert status == Status.error(
        "binding volumes: failed to translate pv to csi: could not translate pv: "
        "kind(Shared) is not supported in csi migration"
    )


def test_a_writer_that_answers_at_once_is_believed() -> None:
    cluster = cluster_with(make_claim())
    plugin = make_plugin(VolumeBinding, cluster)
    cycle = reserved(cluster, pod_using("data"), plugin=plugin)
    assert plugin.pre_bind(cycle, "n1") is None
    plugin.unreserve(cycle, "n1")
    assert claim(cluster).annotations[SELECTED_NODE] == "n1"
