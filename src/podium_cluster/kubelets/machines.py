"""Holds the embedded nodes and what runs on them.

A pod that was bound to a node is checked before it runs there: the scheduler may have been wrong, or another one
faster. A pod that does not fit fails at once and is not moved elsewhere.

It computes what pods and nodes use, too. Each pod has a level, drawn when it starts, around which its use swings:

    use(t) = level × (1 + swing × sin(2π (t / period + phase)))

so any moment can be computed without keeping anything up to date. Cpu in cores swings by up to 30 %, memory in bytes by
up to 5 %, over 2 to 15 minutes. A node also uses a little for itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping

import msgspec

from podium.kube.node import Node
from podium.kube.pod import Pod
from podium.kube.requests import fit_requests, offered
from podium.kube.toleration import NO_EXECUTE, untolerated
from podium.placement.required_nodes import RequiredNodes
from podium_cluster.kubelets.declared import Declared, Drawn
from podium_cluster.kubelets.timeline import Action

Key = tuple[str, str]
"""Namespace and name of a pod."""
HostPort = tuple[str, str, int]
"""Address, protocol and port."""
EVERYWHERE = "0.0.0.0"
_AFFINITY = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
_PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
_TAINTS = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


class PodRun(msgspec.Struct, gc=False):
    """One pod on its node. `serial` changes whenever what was planned for it no longer holds."""

    key: Key
    uid: str
    declared: Declared
    requests: dict[str, int]
    restart_policy: str
    containers: tuple[str, ...]
    ports: tuple[HostPort, ...]
    host_network: bool
    pod_ip: str
    has_claims: bool = False
    serial: int = 0
    restarts: int = 0
    started_at: float = 0.0
    usage: PodUsage | None = None
    leaving: bool = False
    grace: int = 0
    """Seconds that it was given when its deletion was last asked for."""


class Machine:
    """One node. Its number among all gives it its addresses."""

    def __init__(self, node: Node, index: int) -> None:
        self.name = node.name
        self.index = index
        self.runs: dict[Key, PodRun] = {}
        self.used: dict[str, int] = {}
        self.stopped_at: float | None = None
        self.deferred: list[Action] = []
        """What fell due while it was stopped."""
        self._last_address = 0
        self.renew(node)

    def renew(self, node: Node) -> None:
        self.node = node
        self.capacity = offered(node.status.allocatable)

    def add(self, run: PodRun) -> None:
        self.runs[run.key] = run
        self._count(run, 1)

    def remove(self, run: PodRun) -> None:
        run.serial += 1
        if self.runs.get(run.key) is run:
            del self.runs[run.key]
            self._count(run, -1)

    def next_address(self) -> int:
        self._last_address = self._last_address % 253 + 1
        return self._last_address + 1

    def _count(self, run: PodRun, sign: int) -> None:
        for name, amount in run.requests.items():
            self.used[name] = self.used.get(name, 0) + sign * amount


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


CPU_WITHOUT_REQUEST = 0.1
MEMORY_WITHOUT_REQUEST = 200 * 2**20
NODE_CPU, NODE_MEMORY = 0.05, 300 * 2**20


class Swing(msgspec.Struct, frozen=True, gc=False):
    level: float
    swing: float
    period: float
    phase: float

    def at(self, moment: float) -> float:
        return self.level * (1 + self.swing * math.sin(2 * math.pi * (moment / self.period + self.phase)))


class PodUsage(msgspec.Struct, frozen=True, gc=False):
    cpu: Swing
    memory: Swing


def drawn_usage(cpu: Drawn, memory: Drawn, cpu_request: float, memory_request: float, rng: random.Random) -> PodUsage:
    """The use of a pod that requests so many cores and bytes."""
    cpu_level = cpu.draw(rng) * ((cpu_request or CPU_WITHOUT_REQUEST) if cpu.share else 1.0)
    memory_level = memory.draw(rng) * ((memory_request or MEMORY_WITHOUT_REQUEST) if memory.share else 1.0)
    return PodUsage(_swing(cpu_level, 0.3, rng), _swing(memory_level, 0.05, rng))


def _swing(level: float, most: float, rng: random.Random) -> Swing:
    return Swing(level, most * rng.random(), 120 + 780 * rng.random(), rng.random())
