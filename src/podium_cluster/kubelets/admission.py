"""Checks a pod that was bound to a node before it runs there: the scheduler may have been wrong, or another one faster.
A pod that does not fit fails at once and is not moved elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from podium.kube.node import Node
from podium.kube.pod import Pod
from podium.kube.requests import fit_requests
from podium.kube.toleration import NO_EXECUTE, untolerated
from podium.placement.required_nodes import RequiredNodes

HostPort = tuple[str, str, int]
"""Address, protocol and port."""

EVERYWHERE = "0.0.0.0"
_AFFINITY = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
_PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
_TAINTS = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


class Rejection(msgspec.Struct, frozen=True):
    reason: str
    message: str


def rejection(
    pod: Pod, node: Node, used: Mapping[str, int], capacity: Mapping[str, int], taken: Collection[HostPort]
) -> Rejection | None:
    """Why the pod cannot run here, None if it can. `used` and `capacity` count pods too; `taken` are host ports."""
    for resource, amount in {"pods": 1, **fit_requests(pod)}.items():
        has, there = used.get(resource, 0), capacity.get(resource, 0)
        if amount > 0 and has + amount > there:
            numbers = f"requested: {amount}, used: {has}, capacity: {there}"
            return Rejection(f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {numbers}")
    if not RequiredNodes(pod).matches(node):
        return Rejection("NodeAffinity", _AFFINITY)
    if any(_collide(port, other) for port in host_ports(pod) for other in taken):
        return Rejection("NodePorts", _PORTS)
    if untolerated(node.taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
        return Rejection("TaintToleration", _TAINTS)
    return None


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    return tuple(
        (port.host_ip or EVERYWHERE, port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    )


def _collide(port: HostPort, other: HostPort) -> bool:
    return port[1:] == other[1:] and (port[0] == other[0] or EVERYWHERE in (port[0], other[0]))
