"""Corners of kube-scheduler that only random comparison with the real one brought to light."""

from __future__ import annotations

from podium.engine.explain import explain
from tools.kit.builders import make_node, make_pod

PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


def test_in_a_dry_run_the_first_of_two_holders_to_go_frees_a_host_port() -> None:
    """Placed past the scheduler, two pods may share a port; only one of them is of lower priority."""
    lesser = make_pod("lesser", node="n1", priority=0, spec=PORT)
    greater = make_pod("greater", node="n1", priority=100, spec=PORT)
    explanation = explain([make_node("n1"), lesser, greater], make_pod("new", priority=10, spec=PORT))
    assert explanation.preemption is not None
    assert explanation.preemption.victims == ["default/lesser"]


def test_whoever_refuses_the_nominated_node_is_named_with_those_that_restricted_the_nodes() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [by_name]}}
    pod = make_pod(
        requests={"cpu": 100}, spec={"affinity": {"nodeAffinity": required}}, status={"nominatedNodeName": "n1"}
    )
    nodes = [make_node("n1", unschedulable=True), make_node("n2"), make_node("n3")]
    explanation = explain(nodes, pod)
    assert explanation.message is not None
    assert explanation.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeUnschedulable], 1 node(s) were unschedulable."
    )
