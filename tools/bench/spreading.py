"""Defines workloads about spreading pods over zones and hosts: required, preferred, by default, and with taints."""

from __future__ import annotations

from podium.kube import Pod
from tools.bench.operations import CreateAny, CreateNodes, CreatePods, Operation
from tools.bench.templates import (
    HOSTNAME,
    LABELLED_POD,
    POD,
    ZONE,
    ObjectTemplate,
    in_zones,
    node_template,
    service,
    small_pod,
)
from tools.bench.workload import Sizes, case

THREE_ZONES = in_zones("moon-1", "moon-2", "moon-3")
BLUE = {"color": "blue"}


def _spread(otherwise: str) -> ObjectTemplate[Pod]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": BLUE},
    }
    return small_pod("spreading-pod-<index>", labels=BLUE, topologySpreadConstraints=[constraint])


SPREAD, RATHER_SPREAD = _spread("DoNotSchedule"), _spread("ScheduleAnyway")
ONE_PER_HOST = small_pod(
    "spreading-pod-with-node-inclusion-policy-<index>",
    labels={"foo": "bar"},
    topologySpreadConstraints=[
        {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"foo": "bar"}},
        }
    ],
)
TAINTED_NODE = node_template("taint-node-<index>", taints=[{"key": "foo", "effect": "NoSchedule"}])


def _over_zones(template: ObjectTemplate[Pod]) -> list[Operation]:
    return [CreateNodes("nodes", THREE_ZONES), CreatePods("init", POD), CreatePods("measured", template, measured=True)]


def _sizes(measured: int) -> Sizes:
    return {"nodes": 5000, "init": 5000, "measured": measured}


SPREADING = (
    *case("TopologySpreading", _over_zones(SPREAD), {"5000Nodes": _sizes(2000), "5000Nodes_5000Pods": _sizes(5000)}),
    *case(
        "PreferredTopologySpreading",
        _over_zones(RATHER_SPREAD),
        {"5000Nodes": _sizes(2000), "5000Nodes_5000Pods": _sizes(5000)},
    ),
    *case(
        "DefaultTopologySpreading",
        [
            CreateNodes("nodes", THREE_ZONES),
            CreateAny(service("service-0", "scheduler-perf"), namespace="service-ns"),
            CreatePods("init", POD),
            CreatePods("measured", LABELLED_POD, namespace="service-ns", measured=True),
        ],
        {"5000Nodes_10000Pods": _sizes(10_000), "5000Nodes_50000Pods": _sizes(50_000)},
    ),
    *case(
        "SchedulingWithNodeInclusionPolicy",
        [
            CreateNodes("normal"),
            CreateNodes("tainted", TAINTED_NODE),
            CreatePods("measured", ONE_PER_HOST, measured=True),
        ],
        {"5000Nodes": {"normal": 4000, "tainted": 1000, "measured": 4000}},
        written_for=5000,
    ),
)
