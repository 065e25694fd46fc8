"""Random small clusters for the plugins that look at other pods, as plain data in the API's own words.

Everything that has surprised somebody is likely here: absent and empty labels, nodes without any labels, empty and
absent selectors, terminating pods, namespaces without an object, several terms or constraints on one key. A seed
decides, so a failure names the cluster that it takes to see it again.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.kube import Namespace, Node, Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from tools.kit.builders import build

SEEDS = st.integers(0, 2**32 - 1)

T = TypeVar("T")
Data = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KEYS = (ZONE, HOSTNAME, "rack", "empty")
NAMESPACES = ("default", "blue", "green", "unknown")
LABELS = {"app": ("a", "b", "c"), "tier": ("x", "y", ""), "version": ("1", "2")}
CONTROLLERS: dict[str, type[Any]] = {
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "ReplicationController": ReplicationController,
}
POLICIES = (None, None, "Honor", "Ignore")


class World(NamedTuple):
    """A cluster and a pod to place, as plain data."""

    nodes: list[Data]
    pods: list[Data]
    namespaces: list[Data]
    services: list[Data]
    controllers: list[Data]
    pod: Data

    def cluster(self) -> Cluster:
        cluster = Cluster()
        for node in self.nodes:
            cluster.set_node(build(Node, node))
        for pod in self.pods:
            cluster.set_pod(build(Pod, pod))
        for namespace in self.namespaces:
            cluster.objects.namespaces.set(namespace["metadata"]["name"], build(Namespace, namespace))
        for service in self.services:
            found = build(Service, service)
            cluster.objects.services.set(found.key, found)
        for data in self.controllers:
            kind = CONTROLLERS[data["kind"]]
            controller: Any = build(kind, data)
            store = cluster.objects.store_of(kind)
            assert store is not None
            store.set(controller.key, controller)
        return cluster


class Trial(NamedTuple):
    """Pods taken off (-1) and put on (1) one node, one after the other."""

    node: str
    steps: list[tuple[int, Pod]]


def random_trial(rng: random.Random, world: World) -> Trial:
    node = rng.choice(world.nodes)["metadata"]["name"]
    here = [build(Pod, pod) for pod in world.pods if pod["spec"]["nodeName"] == node]
    steps: list[tuple[int, Pod]] = []
    for number in range(rng.randint(1, 4)):
        if here and rng.random() < 0.6:
            steps.append((-1, here.pop(rng.randrange(len(here)))))
        else:
            steps.append((1, build(Pod, random_pod(rng, f"extra{number}", node))))
            here.append(steps[-1][1])
    return Trial(node, steps)


def disturb(rng: random.Random, cluster: Cluster) -> None:
    """Something happens in the cluster: a pod or a node comes, goes or changes."""
    names = [node.name for node in cluster.nodes if node is not None]
    match rng.randrange(5):
        case 0:
            cluster.set_pod(build(Pod, random_pod(rng, f"late{rng.randrange(3)}", rng.choice([*names, "elsewhere"]))))
        case 1 if cluster.pods:
            cluster.remove_pod(rng.choice(sorted(cluster.pods)))
        case 2:
            cluster.set_node(build(Node, random_node(rng, rng.choice([*names, "n9", "elsewhere"]))))
        case 3 if len(names) > 1:
            cluster.remove_node(rng.choice(names))
        case _:
            name = rng.choice(NAMESPACES)
            cluster.objects.namespaces.set(
                name, build(Namespace, {"metadata": {"name": name, "labels": random_labels(rng)}})
            )
            service = build(Service, _service(rng, f"s{rng.randrange(3)}"))
            cluster.objects.services.set(service.key, service)


def maybe(rng: random.Random, chance: float, value: T) -> list[T]:
    """The value in a list with that chance, else an empty list: for `*maybe(…)` and `dict(maybe(…))`."""
    return [value] if rng.random() < chance else []


def random_world(rng: random.Random) -> World:
    nodes = [random_node(rng, f"n{number}") for number in range(rng.randint(1, 7))]
    names = [node["metadata"]["name"] for node in nodes]
    pods = [random_pod(rng, f"p{number}", rng.choice(names)) for number in range(rng.randint(0, 18))]
    return World(
        nodes,
        pods,
        namespaces=[
            {"metadata": {"name": name, "labels": random_labels(rng)}} for name in NAMESPACES if name != "unknown"
        ],
        services=[_service(rng, f"s{number}") for number in range(rng.randint(0, 3))],
        controllers=[_controller(rng, kind) for kind in CONTROLLERS],
        pod=random_pod(rng, "new", ""),
    )


def random_node(rng: random.Random, name: str) -> Data:
    labels: dict[str, str] = {}
    if rng.random() < 0.9:
        labels |= dict(maybe(rng, 0.85, (ZONE, rng.choice(("z1", "z2", "z3", "")))))
        labels |= dict(maybe(rng, 0.9, (HOSTNAME, rng.choice((name, name, name, "twin", "")))))
        labels |= dict(maybe(rng, 0.6, ("rack", rng.choice(("r1", "r2")))))
        labels |= dict(maybe(rng, 0.3, ("empty", "")))
        labels |= dict(maybe(rng, 0.5, ("disk", rng.choice(("ssd", "hdd")))))
    taints = maybe(rng, 0.3, {"key": "t", "value": "v", "effect": rng.choice(("NoSchedule", "PreferNoSchedule"))})
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {"taints": taints}, "status": {}}


def random_labels(rng: random.Random) -> dict[str, str]:
    return {key: rng.choice(values) for key, values in LABELS.items() if rng.random() < 0.6}


def random_pod(rng: random.Random, name: str, node: str) -> Data:
    """A pod on a node, or one to place where no node is named."""
    metadata: Data = {
        "name": name,
        "namespace": rng.choice(("default", "default", "default", *NAMESPACES)),
        "uid": name,
        "labels": random_labels(rng),
        "ownerReferences": _owner(rng),
        **dict(maybe(rng, 0.15, ("deletionTimestamp", "2026-01-01T00:00:00Z"))),
    }
    spec: Data = {
        "nodeName": node,
        "affinity": {
            **dict(maybe(rng, 0.4, ("podAffinity", _pod_affinity(rng)))),
            **dict(maybe(rng, 0.4, ("podAntiAffinity", _pod_affinity(rng)))),
            **dict(maybe(rng, 0.3, ("nodeAffinity", _node_affinity(rng)))),
        },
        "nodeSelector": dict(maybe(rng, 0.15, ("disk", "ssd"))),
        "tolerations": maybe(rng, 0.4, {"key": "t", "operator": "Exists"}),
        "topologySpreadConstraints": [random_constraint(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))],
    }
    return {"metadata": metadata, "spec": spec, "status": {}}


def random_constraint(rng: random.Random) -> Data:
    return {
        "topologyKey": rng.choice(KEYS),
        "maxSkew": rng.randint(1, 3),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        **_optional("labelSelector", random_selector(rng)),
        **_optional("minDomains", rng.choice((None, None, 1, 2, 3))),
        **_optional("nodeAffinityPolicy", rng.choice(POLICIES)),
        **_optional("nodeTaintsPolicy", rng.choice(POLICIES)),
        "matchLabelKeys": maybe(rng, 0.3, rng.choice(("version", "absent"))),
    }


def random_selector(rng: random.Random) -> Data | None:
    """None matches nothing, an empty one everything."""
    roll = rng.random()
    if roll < 0.1:
        return None
    if roll < 0.2:
        return {}
    if roll < 0.6:
        key = rng.choice(list(LABELS))
        return {"matchLabels": {key: rng.choice(LABELS[key])}}
    return {"matchExpressions": [_expression(rng) for _ in range(rng.randint(1, 2))]}


def _expression(rng: random.Random) -> Data:
    key, operator = rng.choice(list(LABELS)), rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": rng.sample(LABELS[key], rng.randint(1, 2))}


def _pod_affinity(rng: random.Random) -> Data:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [_term(rng) for _ in range(rng.choice((0, 1, 1, 2)))],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": rng.randint(1, 100), "podAffinityTerm": _term(rng)} for _ in range(rng.choice((0, 1, 2)))
        ],
    }


def _term(rng: random.Random) -> Data:
    return {
        "topologyKey": rng.choice(KEYS),
        **_optional("labelSelector", random_selector(rng)),
        "namespaces": rng.sample(NAMESPACES, rng.choice((0, 0, 0, 1, 2))),
        **_optional("namespaceSelector", random_selector(rng) if rng.random() < 0.4 else None),
    }


def _node_affinity(rng: random.Random) -> Data:
    expression = {"key": "disk", "operator": rng.choice(("In", "NotIn")), "values": ["ssd"]}
    term: Data = {"matchExpressions": [expression]}
    if rng.random() < 0.3:
        term = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _service(rng: random.Random, name: str) -> Data:
    metadata = {"name": name, "namespace": rng.choice(NAMESPACES[:2])}
    return {"metadata": metadata, "spec": {"selector": random_labels(rng)}}


def _controller(rng: random.Random, kind: str) -> Data:
    selector = random_labels(rng) if kind == "ReplicationController" else random_selector(rng)
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    metadata = {"name": f"the-{kind.lower()}", "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {**_optional("selector", selector)}}


def _owner(rng: random.Random) -> list[Data]:
    kind = rng.choice(("ReplicaSet", "StatefulSet", "ReplicationController", "Job"))
    version = {"ReplicationController": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    owner = {"apiVersion": version, "kind": kind, "name": f"the-{kind.lower()}", "uid": "o", "controller": True}
    return maybe(rng, 0.4, owner)


def _optional(key: str, value: Any) -> Data:
    return {} if value is None else {key: value}
