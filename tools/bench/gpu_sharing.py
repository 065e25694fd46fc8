"""Defines a workload of pods that share GPUs, on nodes with one to eight of them.

Eight requests come in turn: shares, whole GPUs and pods without any. Two thirds of the GPUs are in use at the end.
"""

from __future__ import annotations

from podium_plugins.gpu.request import COUNT, MILLI, MODEL
from tools.bench.operations import CreateNodes, CreatePods
from tools.bench.templates import node_template, pod_template
from tools.bench.workload import case

NODE = node_template(
    cpu="96",
    memory="384Gi",
    labels={MODEL: "<model>"},
    resources={COUNT: "<gpus>"},
    model=lambda index, _: ("G2", "G2", "T4", "P100")[index % 4],
    gpus=lambda index, _: (8, 2, 4, 1)[index % 4],
)
SHAPES = ((500, 1, 4), (1000, 1, 8), (300, 1, 3), (0, 0, 4), (1000, 1, 12), (250, 1, 2), (1000, 2, 16), (810, 1, 8))
"""(thousandths, GPUs, cores)"""
POD = pod_template(
    "share-<index>",
    requests={"cpu": "<cores>", "memory": "4Gi"},
    metadata={"annotations": {MILLI: "<milli>", COUNT: "<gpus>"}},
    milli=lambda index, _: SHAPES[index % len(SHAPES)][0],
    gpus=lambda index, _: SHAPES[index % len(SHAPES)][1],
    cores=lambda index, _: SHAPES[index % len(SHAPES)][2],
)

GPU_SHARING = case(
    "GpuSharing",
    [CreateNodes("nodes", NODE), CreatePods("init", POD), CreatePods("measured", POD, measured=True)],
    {"5000Nodes_10000Pods": {"nodes": 5000, "init": 5000, "measured": 10_000}},
)
