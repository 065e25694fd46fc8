"""Defines workloads about making room: every node is full of low-priority pods.

A node of 4 CPUs holds four pods of 900m, and a preemptor asks for 3 CPUs: three of them must go.
"""

from __future__ import annotations

from tools.bench.operations import Churn, CreateNodes, CreatePods
from tools.bench.templates import (
    AWS_VOLUME,
    CLAIM_VOLUMES,
    HIGH_PRIORITY,
    HIGH_PRIORITY_NAME,
    LOW_PRIORITY,
    POD,
    THREE_CPUS,
    claim,
    pod_template,
)
from tools.bench.workload import case

HIGH_PRIORITY_WITH_VOLUME = pod_template(
    HIGH_PRIORITY_NAME, requests=THREE_CPUS, limits=THREE_CPUS, priority=10, volumes=CLAIM_VOLUMES
)

PREEMPTION = (
    *case(
        "PreemptionBasic",
        [
            CreateNodes("nodes"),
            CreatePods("init", LOW_PRIORITY),
            CreatePods("measured", HIGH_PRIORITY, measured=True),
        ],
        {"1000Nodes": {"nodes": 1000, "init": 4000, "measured": 1000}},
    ),
    *case(
        "PreemptionAsync",
        [
            CreateNodes("nodes"),
            CreatePods("init", LOW_PRIORITY),
            Churn([HIGH_PRIORITY], per_second=5),
            CreatePods("measured", POD, measured=True),
        ],
        {"5000Nodes": {"nodes": 5000, "init": 20_000, "measured": 5000}},
    ),
    *case(
        "PreemptionPVs",
        [
            CreateNodes("nodes"),
            CreatePods("init", LOW_PRIORITY),
            CreatePods("measured", HIGH_PRIORITY_WITH_VOLUME, needs=(AWS_VOLUME, claim()), measured=True),
        ],
        {"1000Nodes": {"nodes": 1000, "init": 4000, "measured": 1000}},
    ),
)
