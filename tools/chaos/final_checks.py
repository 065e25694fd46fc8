"""Checks what must hold after the faults: no pod is lost, and every scheduler knows the cluster as it is.

    a pod that fits somewhere is bound; one that does not is in a queue, and its status says why
    nodes, pods and sums of the scheduler's cluster are those of the API server
    nothing is assumed, in flight, nominated or waiting that should not be
    no task, connection or memory is left behind

Whether a pod fits is decided by a scheduler made for that check: the same plugins on a cluster built from what the API
server has, without any of the state that was carried through the faults.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.cluster import Cluster
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.decide import decide
from podium.engine.explain import Unwritten
from podium.engine.gangs.explain_gang import explain_gang
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock
from podium.framework.cycle import Cycle
from podium.framework.handle import Driver, EngineState, Handle
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.kube import (
    DeviceClass,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
)
from podium.kube.json_object import JsonObject
from podium.run.process import SchedulerProcess
from podium_cluster.apiserver.api import EmbeddedApi
from podium_plugins.capacity_scheduling.quota import RESOURCE as ELASTIC_QUOTAS
from podium_plugins.coscheduling.pod_group import RESOURCE as POD_GROUPS
from podium_plugins.coscheduling.pod_group import group_key
from tools.chaos.amounts import Amounts, allocatable_of, requests_of
from tools.chaos.machines import kind_of
from tools.chaos.replicas import dismantle
from tools.kit.virtual_time import VirtualProcess

NO_POD_LOST = "no pod is lost"
SAME_CLUSTER = "the scheduler's cluster is the API server's"
NOTHING_LEFT = "nothing is left behind"

OTHERS: dict[type, tuple[str, str]] = {
    PersistentVolume: ("v1", "PersistentVolume"),
    PersistentVolumeClaim: ("v1", "PersistentVolumeClaim"),
    StorageClass: ("storage.k8s.io/v1", "StorageClass"),
    DeviceClass: ("resource.k8s.io/v1", "DeviceClass"),
    ResourceClaim: ("resource.k8s.io/v1", "ResourceClaim"),
    ResourceSlice: ("resource.k8s.io/v1", "ResourceSlice"),
}
MOST_TASKS = 24
"""Tasks of one kind that an idle scheduler may have."""


class Truth:
    """The API server's nodes and pods, decoded."""

    def __init__(self, api: EmbeddedApi) -> None:
        self.nodes = {
            stored.name: msgspec.json.decode(stored.raw, type=Node)
            for stored in api.store.items(kind_of(api, "v1", "Node"))
        }
        self.pods = {
            stored.uid: msgspec.json.decode(stored.raw, type=Pod)
            for stored in api.store.items(kind_of(api, "v1", "Pod"))
        }
        self.others: list[Any] = [
            msgspec.json.decode(stored.raw, type=kind)
            for kind, (version, name) in OTHERS.items()
            for stored in api.store.items(kind_of(api, version, name))
        ]
        self.groups, self.quotas = _custom(api, "PodGroup"), _custom(api, "ElasticQuota")
        self.waiting = {uid: pod for uid, pod in self.pods.items() if not pod.node_name and not pod.finished}
        self.placed = {uid: pod for uid, pod in self.pods.items() if pod.node_name and not pod.finished}
        self.sums: dict[str, Amounts] = {}
        for stored in api.store.items(kind_of(api, "v1", "Pod")):
            if stored.uid in self.placed:
                node = self.placed[stored.uid].node_name
                self.sums[node] = self.sums.get(node, Amounts(0, 0, 0)).plus(requests_of(stored.decode()))


def _custom(api: EmbeddedApi, name: str) -> dict[str, JsonObject]:
    """The objects of a custom kind by "namespace/name"; none where it is not defined."""
    kind = api.kinds.by_kind("scheduling.x-k8s.io/v1alpha1", name)
    return {f"{each.namespace}/{each.name}": each.decode() for each in api.store.items(kind)} if kind else {}


def differences(truth: Truth, engine: Scheduler) -> Iterator[str]:
    """Where the scheduler's cluster is not the API server's."""
    cluster = engine.cluster
    nodes = {name: node for row, name in enumerate(cluster.names) if (node := cluster.nodes[row]) is not None}
    yield from _two_sets("node", {name: name for name in truth.nodes}, {name: name for name in nodes})
    for name in sorted(truth.nodes.keys() & nodes.keys()):
        there, here = truth.nodes[name], nodes[name]
        if (there.labels, there.taints, there.unschedulable) != (here.labels, here.taints, here.unschedulable):
            yield f"node {name} is an old version of itself"
        row, columns = cluster.row_of[name], cluster.resources
        offered = Amounts(
            int(columns.allocatable[0][row]), int(columns.allocatable[1][row]), int(columns.allowed_pods[row])
        )
        if offered != allocatable_of(there.status.allocatable):
            yield f"node {name} offers {offered}, not {allocatable_of(there.status.allocatable)}"
    placed = {uid: each for uid, each in cluster.pods.items() if not each.assumed}
    yield from _two_sets(
        "placed pod", {u: p.key for u, p in truth.placed.items()}, {u: e.pod.key for u, e in placed.items()}
    )
    for uid in sorted(truth.placed.keys() & placed.keys()):
        where = cluster.names[placed[uid].row]
        if where != truth.placed[uid].node_name:
            yield f"pod {truth.placed[uid].key} is on {truth.placed[uid].node_name}, not on {where}"
    for name, row in sorted(cluster.row_of.items()):
        counted = cluster.resources
        here_sum = Amounts(int(counted.requested[0][row]), int(counted.requested[1][row]), int(counted.pod_count[row]))
        there_sum = truth.sums.get(name, Amounts(0, 0, 0))
        if here_sum != there_sum:
            yield f"on {name} {here_sum} is counted, not {there_sum}"
    for kind, (_, name) in OTHERS.items():
        objects: list[Any] = [each for each in truth.others if type(each).__name__ == kind.__name__]
        their = {each.key: each.metadata.resource_version for each in objects}
        store: Any = cluster.objects.store_of(kind)
        ours = {each.key: each.metadata.resource_version for each in store}
        if their != ours:
            yield f"{name}s are other ones: {sorted(their.items() ^ ours.items())[:4]}"
    pending = {pod.uid: pod.key for pod in cluster.objects.pending_pods}
    yield from _two_sets("waiting pod", {uid: pod.key for uid, pod in truth.waiting.items()}, pending)


def under_way(process: SchedulerProcess) -> Iterator[str]:
    """What has begun and not ended."""
    live, queue = process.live, process.live.engine.queue
    for pod in queue.in_flight.pods():
        yield f"pod {pod.key} is still in flight"
    if events := len(queue.in_flight.events()):
        yield f"{events} events are kept for pods in flight"
    for waiting in live.engine.waiting:
        yield f"pod {waiting.pod.key} still waits for permission"
    if live.writer.binding:
        yield f"{live.writer.binding} bindings are under way"
    if live.under_way:
        yield f"{live.under_way} tasks are under way"
    if live.statuses.waiting:
        yield f"{live.statuses.waiting} statuses wait to be written"


def leftovers(truth: Truth, engine: Scheduler) -> Iterator[str]:
    """What should have been forgotten or put back."""
    for each in engine.cluster.pods.values():
        if each.assumed:
            yield f"pod {each.pod.key} is still assumed to be on {engine.cluster.names[each.row]}"
    objects = engine.cluster.objects
    for store in (objects.claims, objects.volumes, objects.resource_claims):
        for key in store.assumed:
            yield f"something is still assumed about {key}"
    for node in engine.nominator.nodes():
        for pod in engine.nominator.on(node):
            if pod.uid not in truth.waiting:
                yield f"pod {pod.key} is nominated to {node}, but waits no more"
    queued = {each.pod.uid: each.pod.key for each in engine.queue}
    yield from _two_sets("queued pod", {uid: pod.key for uid, pod in truth.waiting.items()}, queued)


def lost_pods(truth: Truth) -> Iterator[str]:
    """Pods that wait and do not say why, or are placed and say that they are not."""
    for pod in truth.waiting.values():
        if _scheduled(pod) != "False":
            yield f"pod {pod.key} waits without a condition that says why"
    for pod in truth.placed.values():
        if _scheduled(pod) != "True":
            yield f"pod {pod.key} is on {pod.node_name}, but its status does not say so"


def _scheduled(pod: Pod) -> str:
    return next((each.status for each in pod.status.conditions if each.type == "PodScheduled"), "")


def placeable_pods(truth: Truth, config: SchedulerConfig, registry: Registry, clock: Clock) -> Iterator[str]:
    """Pods that wait though a node would take them."""
    if not truth.waiting:
        return
    cluster, nominator = Cluster(), Nominator()
    for node in truth.nodes.values():
        cluster.set_node(node)
    for each in truth.others:
        store = cluster.objects.store_of(type(each))
        assert store is not None
        store.set(each.key, each)
    for name, group in truth.groups.items():
        cluster.objects.custom_store(POD_GROUPS).set(name, group)
    for name, quota in truth.quotas.items():
        cluster.objects.custom_store(ELASTIC_QUOTAS).set(name, quota)
    for pod in truth.pods.values():
        if pod.uid in truth.placed:
            cluster.set_pod(pod)
        elif pod.uid in truth.waiting:
            cluster.objects.pending_pods.set(pod.key, pod)
            nominator.nominate(pod)
    handle = Handle(
        Driver(clock=clock, writer=Unwritten(), rng=random.Random(0)), EngineState(cluster=cluster, nominator=nominator)
    )
    runtime = ProfileRuntime(config.profiles[0], registry, handle)
    sampling = Sampling(config.percentage_of_nodes_to_score, False)
    try:
        gangs: set[str] = set()
        for pod in truth.waiting.values():
            key = group_key(pod)
            if key is not None and key in truth.groups:
                if key not in gangs:
                    gangs.add(key)
                    found = explain_gang(runtime, pod, sampling)
                    if found is not None and found.starts and found.would_fit:
                        yield f"gang {key} waits, but it would fit"
                continue
            decision = decide(runtime, Cycle(pod, cluster), sampling)
            if decision.row is not None:
                yield f"pod {pod.key} waits, but {cluster.names[decision.row]} would take it"
    finally:
        dismantle(cluster)


def too_many_tasks(process: VirtualProcess) -> Iterator[str]:
    """Tasks that gather: an idle scheduler has some of each kind, of none more than there are kinds of objects."""
    kinds = Counter(getattr(task.get_coro(), "__qualname__", "?") for task in process.tasks)
    for name, number in sorted(kinds.items()):
        if number > MOST_TASKS:
            yield f"{number} tasks run {name}"


def _two_sets(what: str, there: dict[str, str], here: dict[str, str]) -> Iterator[str]:
    """Compare what the API server has with what the scheduler has: names by uid."""
    for uid in sorted(there.keys() - here.keys()):
        yield f"{what} {there[uid]} is not known"
    for uid in sorted(here.keys() - there.keys()):
        yield f"{what} {here[uid]} is gone, but not forgotten"
