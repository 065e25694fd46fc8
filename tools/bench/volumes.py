"""Defines workloads about volumes: secrets, and one bound volume per pod, in-tree, migrated to CSI, or CSI."""

from __future__ import annotations

from podium.kube import CSINode, PersistentVolume
from tools.bench.operations import CreateNodes, CreatePods, Operation
from tools.bench.templates import (
    AWS_VOLUME,
    CLAIM_VOLUMES,
    CSI_VOLUME,
    NODE,
    Maker,
    claim,
    csi_node,
    small_pod,
)
from tools.bench.workload import Sizes, case

POD_WITH_SECRET = small_pod("secret-volume-<index>", volumes=[{"name": "secret", "secret": {"secretName": "secret"}}])
POD_WITH_CLAIM = small_pod(volumes=CLAIM_VOLUMES)

VOLUMES_PER_NODE = 39


def _with_volumes(volume: Maker[PersistentVolume], of_node: Maker[CSINode] | None = None) -> list[Operation]:
    pair = (volume, claim())
    return [
        CreateNodes("nodes", NODE, of_node),
        CreatePods("init", POD_WITH_CLAIM, needs=pair),
        CreatePods("measured", POD_WITH_CLAIM, needs=pair, measured=True),
    ]


def _sizes(init: int, measured: int) -> Sizes:
    return {"nodes": 5000, "init": init, "measured": measured}


VOLUMES = (
    *case(
        "SchedulingSecrets",
        [
            CreateNodes("nodes"),
            CreatePods("init", POD_WITH_SECRET),
            CreatePods("measured", POD_WITH_SECRET, measured=True),
        ],
        {"5000Nodes_10000Pods": _sizes(1000, 10_000)},
    ),
    *case(
        "SchedulingInTreePVs",
        _with_volumes(AWS_VOLUME),
        {"5000Nodes": _sizes(5000, 1000), "5000Nodes_2000Pods": _sizes(1000, 2000)},
    ),
    *case(
        "SchedulingMigratedInTreePVs",
        _with_volumes(AWS_VOLUME, csi_node(VOLUMES_PER_NODE, migrated=True)),
        {"5000Nodes": _sizes(5000, 1000), "5000Nodes_5000Pods": _sizes(5000, 5000)},
    ),
    *case(
        "SchedulingCSIPVs",
        _with_volumes(CSI_VOLUME, csi_node(VOLUMES_PER_NODE)),
        {"5000Nodes": _sizes(5000, 1000), "5000Nodes_5000Pods": _sizes(5000, 5000)},
    ),
)
