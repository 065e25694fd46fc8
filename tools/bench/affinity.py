"""Defines workloads about pods that want to be near others, or far from them, and about node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.kube import Node, Pod
from tools.bench.operations import Barrier, CreateNamespaces, CreateNodes, CreatePods, CreatePodSets, Operation
from tools.bench.templates import (
    HOSTNAME,
    LABELLED_POD,
    NAMED_NODE,
    NODE,
    POD,
    ZONE,
    ObjectTemplate,
    in_zones,
    pod_template,
    small_pod,
)
from tools.bench.workload import Sizes, Workload, case

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

TWO_NAMESPACES = {"namespaces": ["sched-1", "sched-0"]}
DEVOPS = {"team": "devops"}
NAMESPACES_OF_DEVOPS = {"namespaceSelector": {"matchLabels": DEVOPS}}


def term(labels: Mapping[str, str], topology_key: str, where: Mapping[str, Any]) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": topology_key, **where}


def required(kind: str, each: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: {REQUIRED: [each]}}


def preferred(kind: str, each: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": each}]}}


GREEN, BLUE, RED, YELLOW = ({"color": color} for color in ("green", "blue", "red", "yellow"))


def _near(where: Mapping[str, Any]) -> ObjectTemplate[Pod]:
    affinity = required("podAffinity", term(BLUE, ZONE, where))
    return small_pod("affinity-pod-<index>", labels=BLUE, affinity=affinity)


def _apart(where: Mapping[str, Any]) -> ObjectTemplate[Pod]:
    affinity = required("podAntiAffinity", term(GREEN, HOSTNAME, where))
    return small_pod("anti-affinity-pod-<index>", labels=GREEN, affinity=affinity)


def _rather_near(where: Mapping[str, Any]) -> ObjectTemplate[Pod]:
    affinity = preferred("podAffinity", term(RED, HOSTNAME, where))
    return small_pod("preferred-affinity-pod-<index>", labels=RED, affinity=affinity)


def _rather_apart(where: Mapping[str, Any], color: Mapping[str, str]) -> ObjectTemplate[Pod]:
    affinity = preferred("podAntiAffinity", term(color, HOSTNAME, where))
    return small_pod("preferred-anti-affinity-pod-<index>", labels=color, affinity=affinity)


NEAR, APART = _near(TWO_NAMESPACES), _apart(TWO_NAMESPACES)
RATHER_NEAR, RATHER_APART = _rather_near(TWO_NAMESPACES), _rather_apart(TWO_NAMESPACES, YELLOW)

REPELLED = small_pod("anti-affinity-matching-pod-<index>", labels=GREEN)
"""No terms of its own, but the terms of others concern it."""

IN_TWO_ZONES = small_pod(
    "node-affinity-<index>",
    affinity={
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}
                ]
            }
        }
    },
)
GATED_NEAR = pod_template(
    labels={"app": "scheduler-perf"},
    affinity=required("podAffinity", term({"app": "scheduler-perf"}, HOSTNAME, {})),
    schedulingGates=[{"name": "scheduling-gate-1"}],
)

ONE_ZONE = in_zones("zone1")


def _two_namespaces(
    init: ObjectTemplate[Pod], measured: ObjectTemplate[Pod], node: ObjectTemplate[Node] = NODE
) -> list[Operation]:
    """Initial pods in one namespace, measured ones in the other."""
    return [
        CreateNodes("nodes", node),
        CreateNamespaces("sched", 2),
        CreatePods("init", init, namespace="sched-0"),
        CreatePods("measured", measured, namespace="sched-1", measured=True),
    ]


def _selected_namespaces(
    name: str, template: ObjectTemplate[Pod], variants: Mapping[str, Sizes], node: ObjectTemplate[Node] = NODE
) -> tuple[Workload, ...]:
    """Pods in a hundred namespaces that a selector must find."""
    return case(
        name,
        [
            CreateNodes("nodes", node),
            CreateNamespaces("init-ns", "namespaces", DEVOPS),
            CreateNamespaces("measure-ns", 1, DEVOPS),
            CreatePodSets("namespaces", "init-ns", "init", template),
            CreatePods("measured", template, namespace="measure-ns-0", measured=True),
        ],
        variants,
    )


def _sizes(nodes: int, init: int, measured: int) -> Sizes:
    return {"nodes": nodes, "init": init, "measured": measured}


def _in_namespaces(nodes: int, init: int, measured: int) -> Sizes:
    return {"nodes": nodes, "namespaces": 100, "init": init, "measured": measured}


SHORT_AND_LONG = {"5000Nodes": _sizes(5000, 5000, 1000), "5000Nodes_5000Pods": _sizes(5000, 5000, 5000)}

AFFINITY = (
    *case("SchedulingPodAntiAffinity", _two_namespaces(APART, APART), {"5000Nodes_2000Pods": _sizes(5000, 1000, 2000)}),
    *case(
        "SchedulingPodMatchingAntiAffinity",
        _two_namespaces(APART, REPELLED),
        {"5000Nodes_5000Pods": _sizes(5000, 1000, 5000)},
    ),
    *case("SchedulingPodAffinity", _two_namespaces(NEAR, NEAR, ONE_ZONE), SHORT_AND_LONG),
    *case(
        "SchedulingPreferredPodAffinity",
        _two_namespaces(RATHER_NEAR, RATHER_NEAR),
        {"5000Nodes_5000Pods": _sizes(5000, 5000, 5000)},
    ),
    *case("SchedulingPreferredPodAntiAffinity", _two_namespaces(RATHER_APART, RATHER_APART), SHORT_AND_LONG),
    *case(
        "SchedulingNodeAffinity",
        [
            CreateNodes("nodes", ONE_ZONE),
            CreatePods("init", IN_TWO_ZONES),
            CreatePods("measured", IN_TWO_ZONES, measured=True),
        ],
        {"5000Nodes_10000Pods": _sizes(5000, 5000, 10_000)},
    ),
    *case(
        "MixedSchedulingBasePod",
        [
            CreateNodes("nodes", ONE_ZONE),
            CreateNamespaces("sched", 1),
            *(CreatePods("init", each, namespace="sched-0") for each in (POD, NEAR, APART, RATHER_NEAR, RATHER_APART)),
            CreatePods("measured", POD, measured=True),
        ],
        {"5000Nodes_5000Pods": _sizes(5000, 2000, 5000)},
    ),
    *_selected_namespaces(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        _apart(NAMESPACES_OF_DEVOPS),
        {"5000Nodes": _in_namespaces(5000, 4000, 1000), "5000Nodes_2000Pods": _in_namespaces(6000, 4000, 2000)},
    ),
    *_selected_namespaces(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        _rather_apart(NAMESPACES_OF_DEVOPS, GREEN),
        {"5000Nodes": _in_namespaces(5000, 4000, 1000), "5000Nodes_2000Pods": _in_namespaces(5000, 4000, 2000)},
    ),
    *_selected_namespaces(
        "SchedulingRequiredPodAffinityWithNSSelector",
        _near(NAMESPACES_OF_DEVOPS),
        {"5000Nodes": _in_namespaces(5000, 5000, 1000), "5000Nodes_2000Pods": _in_namespaces(5000, 5000, 2000)},
        ONE_ZONE,
    ),
    *_selected_namespaces(
        "SchedulingPreferredAffinityWithNSSelector",
        _rather_near(NAMESPACES_OF_DEVOPS),
        {"5000Nodes_5000Pods": _in_namespaces(5000, 5000, 5000)},
    ),
    *case(
        "SchedulingGatedPodsWithPodAffinityImpactForThroughput",
        [
            CreateNodes(1, NAMED_NODE),
            CreatePods("gated", GATED_NEAR, namespace="gated", wait=False),
            Barrier(attempted=True),
            CreatePods("measured", LABELLED_POD, measured=True),
        ],
        {"1Node_10000GatedPods": {"gated": 10_000, "measured": 20_000}},
        written_for=5000,
    ),
)
