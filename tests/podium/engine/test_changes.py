"""Which events a change of a node or a pod stands for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.engine.changes import added_or_deleted, node_events, pod_events
from podium.framework import Resource
from podium.kube import Node, Pod
from tools.kit.builders import make_node, make_pod


def labels(events: list[Any]) -> list[str]:
    return [event.label for event in events]


def conditions(*pairs: tuple[str, str], message: str = "") -> Any:
    return [{"type": kind, "status": status, "message": message} for kind, status in pairs]


def with_conditions(listed: Any) -> Node:
    node = msgspec.to_builtins(make_node())
    node["status"]["conditions"] = listed
    return msgspec.convert(node, Node)


TAINT = {"key": "k", "effect": "NoSchedule"}

NODES: dict[str, tuple[Node, Node, list[str]]] = {
    "nothing changed": (make_node(), make_node(), []),
    "images say nothing": (make_node(), make_node(images={"app": 1}), []),
    "cordoned": (make_node(), make_node(unschedulable=True), []),
    "no longer cordoned": (make_node(unschedulable=True), make_node(), ["NodeUpdateNodeTaint"]),
    "allocatable": (make_node(cpu=4), make_node(cpu=5), ["NodeUpdateNodeAllocatable"]),
    "allocatable, less": (make_node(cpu=5), make_node(cpu=4), ["NodeUpdateNodeAllocatable"]),
    "allocatable, written differently": (make_node(cpu="4000m", memory="1Gi"), make_node(cpu=4, memory="1024Mi"), []),
    "allocatable, another resource": (
        make_node(),
        make_node(allocatable={"example.com/gpu": 1}),
        ["NodeUpdateNodeAllocatable"],
    ),
    "labels": (make_node(), make_node(labels={"a": "b"}), ["NodeUpdateNodeLabel"]),
    "taint added": (make_node(), make_node(taints=[TAINT]), ["NodeUpdateNodeTaint"]),
    "taint removed": (make_node(taints=[TAINT]), make_node(), ["NodeUpdateNodeTaint"]),
    "annotations": (make_node(), make_node(annotations={"a": "b"}), ["NodeUpdateNodeAnnotation"]),
    "features": (make_node(), make_node(features=["F"]), ["NodeUpdateNodeDeclaredFeature"]),
    "a condition's status": (
        with_conditions(conditions(("Ready", "False"))),
        with_conditions(conditions(("Ready", "True"))),
        ["NodeUpdateNodeCondition"],
    ),
    "a condition's message": (
        with_conditions(conditions(("Ready", "True"))),
        with_conditions(conditions(("Ready", "True"), message="fine")),
        [],
    ),
    "conditions in another order": (
        with_conditions(conditions(("Ready", "True"), ("DiskPressure", "False"))),
        with_conditions(conditions(("DiskPressure", "False"), ("Ready", "True"))),
        [],
    ),
    "everything, in order": (
        make_node(unschedulable=True),
        msgspec.structs.replace(
            make_node(cpu=9, labels={"a": "b"}, taints=[TAINT], annotations={"a": "b"}, features=["F"]),
            status=msgspec.structs.replace(
                with_conditions(conditions(("Ready", "True"))).status, allocatable={"cpu": 9}, declared_features=("F",)
            ),
        ),
        [
            "NodeUpdateNodeTaint",
            "NodeUpdateNodeAllocatable",
            "NodeUpdateNodeLabel",
            "NodeUpdateNodeTaint",
            "NodeUpdateNodeCondition",
            "NodeUpdateNodeAnnotation",
            "NodeUpdateNodeDeclaredFeature",
        ],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), NODES.values(), ids=NODES.keys())
def test_a_changed_node(before: Node, after: Node, expected: list[str]) -> None:
    assert labels(node_events(before, after)) == expected


def test_a_node_that_came_or_went() -> None:
    assert labels(node_events(None, make_node())) == ["NodeAdd"]
    assert labels(node_events(make_node(), None)) == ["NodeDelete"]


def running(requests: dict[str, str], **more: Any) -> dict[str, Any]:
    """The status of a container with these requests in force."""
    return {"containerStatuses": [{"name": "c", "resources": {"requests": requests}, **more}]}


GATE = {"schedulingGates": [{"name": "g"}]}
TOLERATION = {"key": "k", "operator": "Exists"}
CLAIM = {"name": "gpu", "resourceClaimName": "claim-1"}
EXTENDED = {"resourceClaimName": "claim-1", "requestMappings": [{"containerName": "c", "resourceName": "r"}]}

PODS: dict[str, tuple[Pod, Pod, list[str]]] = {
    "nothing known": (make_pod(), make_pod(metadata={"annotations": {"a": "b"}}), ["Update"]),
    "status says nothing": (make_pod(), make_pod(status={"phase": "Running"}), ["Update"]),
    "labels": (make_pod(), make_pod(labels={"a": "b"}), ["UpdatePodLabel"]),
    "request lowered": (make_pod(requests={"cpu": 2}), make_pod(requests={"cpu": 1}), ["UpdatePodScaleDown"]),
    "request lowered a little": (
        make_pod(requests={"cpu": "1001m"}),
        make_pod(requests={"cpu": 1}),
        ["UpdatePodScaleDown"],
    ),
    "request raised": (make_pod(requests={"cpu": 1}), make_pod(requests={"cpu": 2}), ["Update"]),
    "request written differently": (make_pod(requests={"cpu": 1}), make_pod(requests={"cpu": "1000m"}), ["Update"]),
    "request removed": (
        make_pod(requests={"cpu": 1, "memory": "1Gi"}),
        make_pod(requests={"cpu": 1}),
        ["UpdatePodScaleDown"],
    ),
    "one raised, one lowered": (
        make_pod(requests={"cpu": 1, "memory": "2Gi"}),
        make_pod(requests={"cpu": 2, "memory": "1Gi"}),
        ["UpdatePodScaleDown"],
    ),
    "overhead lowered": (
        make_pod(spec={"overhead": {"cpu": "2"}}),
        make_pod(spec={"overhead": {"cpu": "1"}}),
        ["UpdatePodScaleDown"],
    ),
    "lowered, but more is still in force": (
        make_pod(requests={"cpu": 2}, status=running({"cpu": "2"})),
        make_pod(requests={"cpu": 1}, status=running({"cpu": "2"})),
        ["Update"],
    ),
    "less is in force": (
        make_pod(requests={"cpu": 1}, status=running({"cpu": "2"})),
        make_pod(requests={"cpu": 1}, status=running({"cpu": "1"})),
        ["UpdatePodScaleDown"],
    ),
    "a resize was found to be impossible": (
        make_pod(requests={"cpu": 4}, status=running({"cpu": "1"})),
        make_pod(
            requests={"cpu": 4},
            status=running({"cpu": "1"})
            | {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
        ),
        ["UpdatePodScaleDown"],
    ),
    "a container restarted": (
        make_pod(requests={"cpu": 1}, status=running({"cpu": "1"})),
        make_pod(requests={"cpu": 1}, status=running({"cpu": "1"}, restartCount=1)),
        ["Update"],
    ),
    "the last gate gone": (make_pod(spec=GATE), make_pod(), ["UpdatePodSchedulingGatesEliminated"]),
    "one gate of two gone": (
        make_pod(spec={"schedulingGates": [{"name": "g"}, {"name": "h"}]}),
        make_pod(spec=GATE),
        ["Update"],
    ),
    "never had a gate": (make_pod(), make_pod(), ["Update"]),
    "toleration added": (make_pod(), make_pod(spec={"tolerations": [TOLERATION]}), ["UpdatePodToleration"]),
    "toleration changed": (
        make_pod(spec={"tolerations": [TOLERATION]}),
        make_pod(spec={"tolerations": [TOLERATION | {"key": "l"}]}),
        ["Update"],
    ),
    "claim generated": (
        make_pod(),
        make_pod(status={"resourceClaimStatuses": [CLAIM]}),
        ["UpdatePodGeneratedResourceClaim"],
    ),
    "claim for an extended resource": (
        make_pod(),
        make_pod(status={"extendedResourceClaimStatus": EXTENDED}),
        ["UpdatePodGeneratedResourceClaim"],
    ),
    "same claims": (
        make_pod(status={"resourceClaimStatuses": [CLAIM], "extendedResourceClaimStatus": EXTENDED}),
        make_pod(status={"resourceClaimStatuses": [CLAIM], "extendedResourceClaimStatus": EXTENDED}),
        ["Update"],
    ),
    "everything, in order": (
        make_pod(requests={"cpu": 2}, spec=GATE),
        make_pod(
            requests={"cpu": 1},
            labels={"a": "b"},
            spec={"tolerations": [TOLERATION]},
            status={"resourceClaimStatuses": [CLAIM]},
        ),
        [
            "UpdatePodLabel",
            "UpdatePodScaleDown",
            "UpdatePodSchedulingGatesEliminated",
            "UpdatePodToleration",
            "UpdatePodGeneratedResourceClaim",
        ],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), PODS.values(), ids=PODS.keys())
def test_a_changed_pod(before: Pod, after: Pod, expected: list[str]) -> None:
    assert labels(pod_events(before, after)) == [f"UnscheduledPod{label}" for label in expected]
    placed = msgspec.structs.replace(after, spec=msgspec.structs.replace(after.spec, node_name="n1"))
    assert labels(pod_events(before, placed)) == [f"AssignedPod{label}" for label in expected]


def test_a_pod_that_came_or_went() -> None:
    assert labels(pod_events(None, make_pod())) == ["UnscheduledPodAdd"]
    assert labels(pod_events(None, make_pod(node="n1"))) == ["AssignedPodAdd"]
    assert labels(pod_events(make_pod(node="n1"), None)) == ["AssignedPodDelete"]


@pytest.mark.parametrize(
    ("before", "after", "label"),
    [(None, 1, "Add"), (1, 2, "Update"), (1, None, "Delete")],
    ids=["add", "update", "delete"],
)
def test_any_other_object(before: Any, after: Any, label: str) -> None:
    assert added_or_deleted(Resource.CSI_NODE, before, after).label == f"storage.k8s.io/CSINode{label}"
