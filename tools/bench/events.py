"""Defines workloads about waking pods: groups of pods wait for different plugins, and single events set them free.

Every case creates pods that cannot be placed, sees each of them tried, then lets through the events that help: pods
deleted, changed or added, nodes added or changed. All waiting pods are measured, with every attempt they take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.kube import Node, Pod
from tools.bench.affinity import REQUIRED, required, term
from tools.bench.operations import Barrier, CreateNodes, CreatePods, DeletePods, Operation, UpdateEach
from tools.bench.templates import (
    CLAIM_VOLUMES,
    CSI_VOLUME,
    HOSTNAME,
    NAMED_NODE,
    ZONE,
    ObjectTemplate,
    claim,
    csi_node,
    node_template,
    pod_template,
)
from tools.bench.templates import NODE as DEFAULT_NODE
from tools.bench.workload import Workload, case

PER_SECOND = 100
UNSCHEDULED = {"type": "unsched"}
BLUE = {"topology": "blue"}
PORTS = [{"hostPort": "<port>", "containerPort": "<port>"}]


def _port(index: int, _count: int) -> object:
    """Twelve ports in turn: 80 … 89, 810, 811."""
    return f"8{index % 12}"


def _waiting(name: str = "pod-unsched-<index>", **rest: Any) -> ObjectTemplate[Pod]:
    return pod_template(name, **{"labels": UNSCHEDULED, **rest})


def _spread(
    skew: int | str, domains: int, key: str = HOSTNAME, labels: Mapping[str, str] = BLUE
) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": skew,
            "minDomains": domains,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]


def _group(template: ObjectTemplate[Pod], namespace: str, count: str = "measured", **rest: Any) -> CreatePods:
    """Measured pods that are not waited for yet."""
    return CreatePods(count, template, namespace=namespace, measured=True, wait=False, **rest)


def _tolerates(key: str) -> list[dict[str, str]]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]


def _tainted(key: str) -> list[dict[str, str]]:
    return [{"key": key, "effect": "NoSchedule"}]


def _node(name: str, **rest: Any) -> ObjectTemplate[Node]:
    return node_template(name, pods=3000, **{"taints": _tainted("allow"), **rest})


ATTEMPTED, SCHEDULED = Barrier(attempted=True), Barrier()


# Pods deleted

BLOCKING_HOST = pod_template(
    "pod-blocker-topology-<index>",
    labels={**BLUE, "type": "blocker"},
    requests={"cpu": "0.35", "memory": "3Gi"},
    ports=PORTS,
    port=_port,
    volumes=CLAIM_VOLUMES,
    topologySpreadConstraints=_spread(10, 10_000),
)
BLOCKING_NEIGHBOUR = pod_template(
    "pod-blocker-affinity-<index>", labels={"color": "green", "type": "blocker"}, volumes=CLAIM_VOLUMES
)
AWAY_FROM_GREEN = required("podAntiAffinity", term({"color": "green"}, HOSTNAME, {"namespaces": ["blockeraffinity"]}))

POD_DELETE: list[Operation] = [
    CreateNodes("nodes", DEFAULT_NODE, csi_node(20)),
    CreatePods("blockers", BLOCKING_HOST, namespace="blockertopology", needs=(CSI_VOLUME, claim())),
    CreatePods(
        "blockers", BLOCKING_NEIGHBOUR, namespace="blockeraffinity", needs=(CSI_VOLUME, claim("ReadWriteOncePod"))
    ),
    _group(_waiting(labels={**BLUE, **UNSCHEDULED}, topologySpreadConstraints=_spread(11, 10_000)), "blockertopology"),
    _group(_waiting(volumes=CLAIM_VOLUMES), "blockeraffinity", "blockers"),
    _group(_waiting(ports=PORTS, port=_port), "nodeports"),
    _group(_waiting(requests={"cpu": "0.2", "memory": "1Gi"}), "noderesources"),
    _group(_waiting(volumes=CLAIM_VOLUMES), "nodevolumelimits", "blockers", needs=(CSI_VOLUME, claim())),
    _group(_waiting(labels={"color": "green", **UNSCHEDULED}, affinity=AWAY_FROM_GREEN), "interpodaffinity"),
    ATTEMPTED,
    DeletePods("blockertopology", BLOCKING_HOST, PER_SECOND),
    DeletePods("blockeraffinity", BLOCKING_NEIGHBOUR, PER_SECOND),
    SCHEDULED,
]


# Pods changed


def _share(_index: int, count: int) -> object:
    """So much memory that all blockers together fill the node."""
    return f"{30_000 // count}Mi"


SHARE = {"cpu": "0.0001", "memory": "<share>"}
HERE = "scheduler-perf-node"
BLOCKER = "pod-blocker-<index>"
OWN_GREEN = {"color": "green-<index>"}

POD_UPDATE: list[Operation] = [
    CreateNodes(1, node_template("unschedulable-node", pods=90_000, unschedulable=True)),
    _group(_waiting("pod-nodeunschedulable-<index>"), "nodeunschedulable"),
    CreateNodes(1, node_template("node-with-taint", pods=90_000, taints=_tainted("toleration"))),
    _group(_waiting("pod-tainttoleration-<index>"), "tainttoleration"),
    ATTEMPTED,
    UpdateEach(
        "measured",
        _waiting("pod-nodeunschedulable-<index>", tolerations=_tolerates("node.kubernetes.io/unschedulable")),
        PER_SECOND,
        "nodeunschedulable",
    ),
    UpdateEach(
        "measured",
        _waiting("pod-tainttoleration-<index>", tolerations=_tolerates("toleration")),
        PER_SECOND,
        "tainttoleration",
    ),
    SCHEDULED,
    CreateNodes(1, NAMED_NODE),
    CreatePods(
        "blockers",
        pod_template(BLOCKER, labels={**OWN_GREEN, **BLUE}, requests=SHARE, share=_share),
        namespace="blocker",
    ),
    _group(
        _waiting(
            "pod-interpodaffinity-<index>",
            labels={**OWN_GREEN, **UNSCHEDULED},
            affinity=required("podAntiAffinity", term(OWN_GREEN, HOSTNAME, {"namespaces": ["blocker"]})),
        ),
        "interpodaffinity",
    ),
    _group(_waiting("pod-noderesources-<index>", requests=SHARE, share=_share), "noderesources"),
    _group(
        _waiting(
            "pod-podtopologyspread-<index>",
            labels={**BLUE, **UNSCHEDULED},
            topologySpreadConstraints=_spread("<count>", 100),
        ),
        "blocker",
        "blockers",
    ),
    _group(_waiting("pod-schedulinggates-<index>", schedulingGates=[{"name": "test.k8s.io/hold"}]), "schedulinggates"),
    ATTEMPTED,
    UpdateEach("blockers", pod_template(BLOCKER, requests=SHARE, share=_share, nodeName=HERE), PER_SECOND, "blocker"),
    UpdateEach(
        "blockers",
        pod_template(BLOCKER, requests={"cpu": "0.0001", "memory": "1Mi"}, nodeName=HERE),
        PER_SECOND,
        "blocker",
    ),
    UpdateEach("measured", _waiting("pod-schedulinggates-<index>"), PER_SECOND, "schedulinggates"),
    SCHEDULED,
]


# Nodes added

INVITING = {ZONE: "zone1", "affinity": "allow", "topology": "allow"}
ALLOWED = _tolerates("allow")
NEEDS_ZONE = required("podAffinity", term({"color": "green"}, ZONE, {}))
NEEDS_LABEL = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "affinity", "operator": "In", "values": ["allow"]}]}]
        }
    }
}


def _wanting_labels(skew: int, domains: int) -> Sequence[Operation]:
    """Three groups of pods that need a label of the node: a zone, an affinity, a topology."""
    blue = {"color": "blue"}
    spread = _spread(skew, domains, "topology", blue)
    return [
        _group(_waiting(labels={"color": "green"}, tolerations=ALLOWED, affinity=NEEDS_ZONE), "interpodaffinity"),
        _group(_waiting(tolerations=ALLOWED, affinity=NEEDS_LABEL), "nodeaffinity"),
        _group(_waiting(labels=blue, tolerations=ALLOWED, topologySpreadConstraints=spread), "podtopologyspread"),
    ]


NODE_ADD: list[Operation] = [
    CreateNodes(1, _node("node-unschedulable-<index>", labels=INVITING, unschedulable=True)),
    _group(_waiting(tolerations=ALLOWED), "nodeunschedulable"),
    ATTEMPTED,
    CreateNodes(1, _node("node-low-capacity-<index>", cpu="0.1", memory="100Mi")),
    _group(_waiting(tolerations=ALLOWED, requests={"cpu": "0.2", "memory": "200Mi"}), "noderesources"),
    ATTEMPTED,
    CreateNodes("nodes", _node("node-high-capacity-<index>", cpu="200", memory="200Gi")),
    SCHEDULED,
    *_wanting_labels(1000, 10_000),
    ATTEMPTED,
    CreateNodes("nodes", _node("node-unblocker-<index>", labels=INVITING)),
    SCHEDULED,
    _group(_waiting(tolerations=_tolerates("toleration")), "tainttoleration"),
    ATTEMPTED,
    CreateNodes("nodes", _node("node-with-taint-<index>", taints=_tainted("toleration"))),
    SCHEDULED,
]


# Pods added

GREEN = {"color": "green"}
BESIDE = {"namespaces": ["podtopologyspread"]}

POD_ADD: list[Operation] = [
    CreateNodes(2, node_template(pods=3000)),
    CreatePods(1, pod_template("pod-with-label-<index>", labels=GREEN), namespace="podtopologyspread"),
    _group(
        _waiting(
            labels={**UNSCHEDULED, **BLUE},
            affinity=required("podAntiAffinity", term(GREEN, HOSTNAME, BESIDE)),
            topologySpreadConstraints=_spread(1, 1),
        ),
        "podtopologyspread",
    ),
    _group(
        _waiting(
            affinity=required(
                "podAffinity", term({"color": "yellow-<index>"}, HOSTNAME, {"namespaces": ["interpodaffinity"]})
            ),
        ),
        "interpodaffinity",
    ),
    ATTEMPTED,
    CreatePods(
        "measured",
        pod_template(
            "pod-unblocker-topology-<index>",
            labels={**BLUE, **GREEN},
            affinity=required("podAffinity", term(GREEN, HOSTNAME, BESIDE)),
        ),
        namespace="podtopologyspread",
    ),
    CreatePods(
        "measured",
        pod_template("pod-unblocker-affinity-<index>", labels={"color": "yellow-<index>"}),
        namespace="interpodaffinity",
    ),
    SCHEDULED,
]


# Nodes changed


def _tenth(index: int, _count: int) -> object:
    return index // 10


def _nodes_change(
    before: ObjectTemplate[Node], after: ObjectTemplate[Node], *waiting: Operation
) -> Sequence[Operation]:
    """Nodes come, pods wait, and one node after another becomes what they wait for."""
    return [CreateNodes("nodes", before), *waiting, ATTEMPTED, UpdateEach("nodes", after, PER_SECOND), SCHEDULED]


def _node_version(name: str, **rest: Any) -> ObjectTemplate[Node]:
    return _node(f"node-{name}-<index>", **rest)


ROOMY = {"cpu": "0.35", "memory": "3Gi"}

NODE_UPDATE: list[Operation] = [
    *_nodes_change(
        _node_version("unschedulable", unschedulable=True),
        _node_version("unschedulable"),
        _group(_waiting(tolerations=ALLOWED), "nodeunschedulable"),
    ),
    *_nodes_change(
        _node_version("low-capacity", taints=_tainted("allow-noderesources"), cpu="0.0001", memory="1Mi"),
        _node_version("low-capacity", taints=_tainted("allow-noderesources")),
        _group(_waiting(tolerations=_tolerates("allow-noderesources"), requests=ROOMY), "noderesources"),
    ),
    *_nodes_change(
        _node_version("without-labels"), _node_version("without-labels", labels=INVITING), *_wanting_labels(1, 1)
    ),
    *_nodes_change(
        _node_version("without-taints"),
        _node_version("without-taints", taints=_tainted("toleration-<index>")),
        _group(_waiting(tolerations=_tolerates("toleration-<tenth>"), tenth=_tenth), "tainttoleration"),
    ),
]


def _events(
    name: str, variant: str, operations: Sequence[Operation], sizes: Mapping[str, int], nodes: int
) -> tuple[Workload, ...]:
    return case(f"EventHandling{name}", operations, {variant: sizes}, written_for=nodes, grows=False)


EVENTS = (
    *_events("PodDelete", "50Nodes_500Pods", POD_DELETE, {"nodes": 50, "blockers": 480, "measured": 500}, 50),
    *_events("PodUpdate", "1Node_1000Pods", POD_UPDATE, {"blockers": 1000, "measured": 1000}, 100),
    *_events("NodeAdd", "100Nodes_1000Pods", NODE_ADD, {"nodes": 100, "measured": 1000}, 100),
    *_events("PodAdd", "1000Pods", POD_ADD, {"measured": 1000}, 100),
    *_events("NodeUpdate", "100Nodes_1000Pods", NODE_UPDATE, {"nodes": 100, "measured": 1000}, 100),
)
