"""The sentence people read when no node takes their pod, with the default plugins, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from podium.kube import Node, Pod, ResourceClaim
from tests.podium.engine.schedulers import World
from tools.kit.builders import build, make_node, make_pod
from tools.kit.storage import make_claim, make_class

NO_ROOM = " preemption:"
NOBODY = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
TAINT = [{"key": "maintenance", "effect": "NoSchedule"}]
SHORT = {"cpu": 3}


def claim_of_devices(name: str, device_class: str) -> ResourceClaim:
    request = {"name": "r", "exactly": {"deviceClassName": device_class, "count": 1}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return build(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def nodes(*options: dict[str, Any]) -> list[Node]:
    return [make_node(f"n{number}", **each) for number, each in enumerate(options, start=1)]


def filled(*names: str, priority: int = 0, cpu: int = 3, memory: str = "6Gi") -> list[Pod]:
    """A pod on each of these nodes that takes most of it."""
    return [
        make_pod(f"on-{name}", node=name, priority=priority, requests={"cpu": cpu, "memory": memory}) for name in names
    ]


def pinned(*names: str) -> dict[str, Any]:
    """A pod that may only run on the nodes named, as DaemonSets write it."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def uses(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


@pytest.mark.parametrize(
    ("objects", "pod", "message"),
    [
        pytest.param(
            [*nodes({}, {}, {}), *filled("n1", "n2", "n3")],
            {"requests": SHORT},
            f"0/3 nodes are available: 3 Insufficient cpu.{NO_ROOM} 0/3 nodes are available: 3 {NOBODY}.",
            id="nodes lack cpu, nobody to evict",
        ),
        pytest.param(
            nodes({}, {}, {}),
            {"requests": {"cpu": 5}},
            f"0/3 nodes are available: 3 Insufficient cpu.{NO_ROOM} 0/3 nodes are available: 3 {NO_HELP}.",
            id="more than any node has",
        ),
        pytest.param(
            [*nodes({"taints": TAINT}, {}, {}), *filled("n2", "n3")],
            {"requests": {"cpu": 3, "memory": "4Gi"}},
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory."
            f"{NO_ROOM} 0/3 nodes are available: 1 {NO_HELP}, 2 {NOBODY}.",
            id="one tainted, two short of cpu and memory",
        ),
        pytest.param(
            [*nodes({}, {}, {}), *filled("n1", priority=-2), *filled("n2", "n3", priority=-1)],
            {"requests": SHORT},
            "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential placement for pod on node n1, "
            "preempting 1 victims",
            id="preemption started",
        ),
        pytest.param(
            [*nodes({}, {}, {}), make_class("now", mode="Immediate"), make_claim("unbound", storage_class="now")],
            {"spec": uses("unbound")},
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            id="ended before DynamicResources was asked",
        ),
        pytest.param(
            nodes({}, {}),
            {"spec": uses("missing")},
            '0/2 nodes are available: persistentvolumeclaim "missing" not found. not found',
            id="a claim that does not exist",
        ),
        pytest.param(
            [*nodes({}, {}, {}), claim_of_devices("gpu", "zz")],
            {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}},
            "0/3 nodes are available: request r: device class zz does not exist."
            f"{NO_ROOM} 0/3 nodes are available: 3 {NO_HELP}.",
            id="ended by DynamicResources",
        ),
        pytest.param(
            [*nodes({}, {}, {}), *filled("n2")],
            {"requests": SHORT, "spec": pinned("n2")},
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
            f"{NO_ROOM} 0/3 nodes are available: 1 {NOBODY}, 2 {NO_HELP}.",
            id="pinned to one node",
        ),
        pytest.param(
            nodes({}, {}, {}),
            {"spec": pinned("gone")},
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
            f"{NO_ROOM} 0/3 nodes are available: 3 {NO_HELP}.",
            id="pinned to a node that went away",
        ),
        pytest.param(
            [*nodes({}, {}), *filled("n1", "n2", priority=-1)],
            {"requests": SHORT, "spec": {"preemptionPolicy": "Never"}},
            f"0/2 nodes are available: 2 Insufficient cpu.{NO_ROOM} not eligible due to preemptionPolicy=Never.",
            id="may not evict",
        ),
        pytest.param(
            [*nodes({}, {"unschedulable": True}, {}), *filled("n1", priority=-1, cpu=1), *filled("n3")],
            {"requests": {"cpu": 3, "memory": "4Gi", "example.com/gpu": 1}},
            "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, "
            "2 Insufficient example.com/gpu, 2 Insufficient memory."
            f"{NO_ROOM} 0/3 nodes are available: 3 {NO_HELP}.",
            id="a mixture",
        ),
        pytest.param([], {}, "no nodes available to schedule pods", id="no nodes at all"),
    ],
)
def test_the_sentence(objects: Sequence[Any], pod: dict[str, Any], message: str) -> None:
    """Three pods of a kind: what was kept of the answers to the first says the same of the others."""
    world = World(default=True)
    world.add(*objects)
    for name in ("a", "b", "c"):
        world.add(make_pod(name, **pod))
        world.try_next()
        world.delete(make_pod(name, **pod))
    assert [failure.message for failure in world.failures] == [message] * 3


def test_the_sentence_of_a_nominated_pod_counts_its_node_once() -> None:
    world = World(default=True)
    world.add(*nodes({}, {}), *filled("n1", "n2"))
    world.attempt(make_pod("a", requests=SHORT, status={"nominatedNodeName": "n2"}))
    assert world.message == (
        f"0/2 nodes are available: 2 Insufficient cpu.{NO_ROOM} 0/2 nodes are available: 2 {NOBODY}."
    )


def test_a_nominated_node_outside_the_names_keeps_its_own_reason() -> None:
    world = World(default=True)
    world.add(*nodes({}, {}, {}), *filled("n1", "n2"))
    world.attempt(make_pod("a", requests=SHORT, spec=pinned("n1"), status={"nominatedNodeName": "n2"}))
    assert world.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        f"1 node(s) didn't satisfy plugin(s) [NodeAffinity].{NO_ROOM} "
        f"0/3 nodes are available: 1 {NOBODY}, 2 {NO_HELP}."
    )
