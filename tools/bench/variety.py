"""Defines two workloads of our own, for what scheduler_perf leaves out.

AllDifferent: every pod has its own requests, labels, affinity and spread constraint, so nothing found out about one pod
helps with the next. Turnover: pods end and nodes come and go as fast as pods arrive, so whatever is kept from one
decision to the next must be kept up to date.
"""

from __future__ import annotations

from typing import Any

from podium.kube import Pod
from tools.bench.affinity import PREFERRED, REQUIRED
from tools.bench.operations import CreateNodes, CreatePods, Turnover
from tools.bench.templates import HOSTNAME, POD, ZONE, ObjectTemplate, Rotating, in_zones, node_template, small_pod
from tools.bench.workload import case

ZONES = 10
RACKS = 50
GROUPS = 100

SCATTERED_NODE = node_template(
    labels={ZONE: "zone-<zone>", "rack": "rack-<rack>", "disk": "<disk>"},
    zone=lambda index, _: index % ZONES,
    rack=lambda index, _: index % RACKS,
    disk=lambda index, _: ("ssd", "nvme", "hdd")[index % 3],
)


def _different(affinity: dict[str, Any], spread: dict[str, Any]) -> ObjectTemplate[Pod]:
    own = {"cpu": "<cpu>m", "memory": "<memory>Mi"}
    return small_pod(
        "different-<index>",
        labels={"app": "app-<index>", "group": "group-<group>"},
        container={"resources": {"requests": own, "limits": own}},
        affinity=affinity,
        topologySpreadConstraints=[spread],
        # Steps that share no factor with the ranges visit every value before one comes again.
        cpu=lambda index, _: 50 + index * 7 % 251,
        memory=lambda index, _: 100 + index * 11 % 499,
        group=lambda index, _: index % GROUPS,
        other=lambda index, _: (index * 13 + 1) % GROUPS,
        rack=lambda index, _: index * 17 % RACKS,
        weight=lambda index, _: 1 + index % 100,
        skew=lambda index, _: 2 + index % 4,
    )


def _needs(values: list[str]) -> dict[str, Any]:
    return {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": values}]}]}
    }


RATHER_IN_RACK = {
    PREFERRED: [
        {
            "weight": "<weight>",
            "preference": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["rack-<rack>"]}]},
        }
    ]
}


def _rather(labels: dict[str, str], key: str) -> dict[str, Any]:
    each = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {PREFERRED: [{"weight": "<weight>", "podAffinityTerm": each}]}


def _spread(key: str, otherwise: str) -> dict[str, Any]:
    selector = {"matchLabels": {"group": "group-<group>"}}
    return {"maxSkew": "<skew>", "topologyKey": key, "whenUnsatisfiable": otherwise, "labelSelector": selector}


DIFFERENT = Rotating(
    _different(
        {"nodeAffinity": _needs(["ssd", "nvme"]), "podAffinity": _rather({"group": "group-<other>"}, ZONE)},
        _spread(ZONE, "DoNotSchedule"),
    ),
    _different(
        {"nodeAffinity": RATHER_IN_RACK, "podAntiAffinity": _rather({"group": "group-<group>"}, HOSTNAME)},
        _spread(HOSTNAME, "ScheduleAnyway"),
    ),
    _different(
        {
            "nodeAffinity": {**_needs(["ssd", "hdd"]), **RATHER_IN_RACK},
            "podAntiAffinity": _rather({"group": "group-<other>"}, ZONE),
        },
        _spread(ZONE, "ScheduleAnyway"),
    ),
)

THREE_ZONES = in_zones("moon-1", "moon-2", "moon-3")

VARIETY = (
    *case(
        "AllDifferent",
        [
            CreateNodes("nodes", SCATTERED_NODE),
            CreatePods("init", DIFFERENT, namespace="different"),
            CreatePods("measured", DIFFERENT, namespace="different", first="init", measured=True),
        ],
        {"5000Nodes_5000Pods": {"nodes": 5000, "init": 5000, "measured": 5000}},
    ),
    *case(
        "Turnover",
        [
            CreateNodes("nodes", THREE_ZONES),
            CreatePods("init", POD, namespace="running"),
            Turnover(THREE_ZONES, ("running", POD), ("arriving", POD), "measured"),
            CreatePods("measured", POD, namespace="arriving", measured=True),
        ],
        {"5000Nodes_10000Pods": {"nodes": 5000, "init": 10_000, "measured": 10_000}},
    ),
)
