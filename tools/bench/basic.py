"""Defines workloads about plain, pinned, gated and deleted pods, churn, extended resources and declared features."""

from __future__ import annotations

from tools.bench.operations import Barrier, Churn, CreateNodes, CreatePods, DeletePods
from tools.bench.templates import (
    LIGHT_POD,
    NAMED_NODE,
    NEVER_FITTING,
    POD,
    node_template,
    pod_template,
    service,
)
from tools.bench.workload import Workload, case

DAEMON_POD = pod_template(
    "daemonset-<index>",
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["scheduler-perf-node"]}]}
                ]
            }
        }
    },
)
GATED_POD = pod_template("gated-pod-<index>", schedulingGates=[{"name": "test.k8s.io/hold"}])
FINALIZED_POD = pod_template(metadata={"finalizers": ["test.k8s.io/finalizer"]})

CHURNING_NODE = node_template("node-churn-<index>", pods=0, cpu="0", memory="0")
CHURNING_SERVICE = service("service-churn-<index>", "foo")

DEVICE = {"foo.com/bar-<index>": "1"}
NODE_WITH_DEVICE = node_template("scheduler-perf-extended-resource-<index>", resources=DEVICE)
POD_WITH_DEVICE = pod_template("test-extended-resource-<index>", requests=DEVICE, limits=DEVICE)
"""Each pod asks for the one device of the one node that has it."""

NEEDED_FEATURE = "RestartAllContainersOnContainerExits"
FEATURE_POD = pod_template(
    resources={"requests": {"cpu": "100m", "memory": "200Mi"}},
    container={
        "restartPolicyRules": [
            {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
        ]
    },
)
"""scheduler_perf makes up features that every pod needs; here the pods need one that exists."""

FIVE_THOUSAND = {"nodes": 5000, "init": 5000, "measured": 5000}


def _declared_features(count: int) -> tuple[Workload, ...]:
    features = [NEEDED_FEATURE, *(f"Feature{number}" for number in range(1, count))]
    node = node_template("node-<index>", cpu="128", memory="16Gi", features=features)
    return case(
        "NodeDeclaredFeaturesEnabled",
        [
            CreateNodes("nodes", node),
            CreatePods("init", FEATURE_POD),
            CreatePods("measured", FEATURE_POD, measured=True),
        ],
        {f"5000Nodes{count}DeclaredFeatures": FIVE_THOUSAND},
    )


BASIC = (
    *case(
        "SchedulingBasic",
        [CreateNodes("nodes"), CreatePods("init", POD), CreatePods("measured", POD, measured=True)],
        {
            "5000Nodes_10000Pods": {"nodes": 5000, "init": 1000, "measured": 10_000},
            "5000Nodes_50000Pods": {"nodes": 5000, "init": 5000, "measured": 50_000},
        },
    ),
    *case(
        "SchedulingDaemonset",
        [CreateNodes(1, NAMED_NODE), CreateNodes("nodes"), CreatePods("measured", DAEMON_POD, measured=True)],
        {"15000Nodes": {"nodes": 15_000, "measured": 30_000}},
    ),
    *case(
        "Unschedulable",
        [
            CreateNodes("nodes"),
            CreatePods("init", POD),
            Churn([NEVER_FITTING], per_second=5),
            CreatePods("measured", POD, measured=True),
        ],
        {
            "5kNodes/100Init/10kPods": {"nodes": 5000, "init": 100, "measured": 10_000},
            "5kNodes/20kInit/10kPods": {"nodes": 5000, "init": 20_000, "measured": 10_000},
        },
    ),
    *case(
        "SchedulingWithMixedChurn",
        [
            CreateNodes("nodes"),
            Churn([CHURNING_NODE, NEVER_FITTING, CHURNING_SERVICE], per_second=1, recreate=True),
            CreatePods("measured", POD, measured=True),
        ],
        {"5000Nodes_10000Pods": {"nodes": 5000, "measured": 10_000}},
    ),
    *case(
        "SchedulingWhileGated",
        [
            CreateNodes(1, NAMED_NODE),
            CreatePods("gated", GATED_POD, wait=False),
            Barrier(attempted=True),
            CreatePods("deleting", LIGHT_POD, namespace="deleting"),
            DeletePods("deleting", LIGHT_POD, per_second=50),
            CreatePods("measured", LIGHT_POD, measured=True),
        ],
        {"1Node_10000GatedPods": {"gated": 10_000, "deleting": 20_000, "measured": 20_000}},
        written_for=5000,
    ),
    *case(
        "SchedulingDeletedPodsWithFinalizers",
        [
            CreateNodes("nodes"),
            CreatePods("deleting", FINALIZED_POD, namespace="deleting", wait=False),
            DeletePods("deleting", FINALIZED_POD, per_second=100),
            CreatePods("measured", LIGHT_POD, measured=True),
        ],
        {"5000Node_5000DeletingPods": {"nodes": 5000, "deleting": 5000, "measured": 5000}},
    ),
    *case(
        "SchedulingWithExtendedResource",
        [
            CreateNodes("nodes", NODE_WITH_DEVICE),
            CreatePods("measured", POD_WITH_DEVICE, namespace="test", measured=True),
        ],
        {"5000pods_5000nodes": {"nodes": 5000, "measured": 5000}},
    ),
    *_declared_features(20),
    *_declared_features(40),
    *_declared_features(100),
)
