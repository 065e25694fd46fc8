"""Holds the embedded nodes and what runs on them."""

from __future__ import annotations

import msgspec

from podium.kube.node import Node
from podium.kube.requests import offered
from podium_cluster.kubelets.admission import HostPort
from podium_cluster.kubelets.declared import Declared
from podium_cluster.kubelets.timeline import Action
from podium_cluster.kubelets.usage import PodUsage

Key = tuple[str, str]
"""Namespace and name of a pod."""


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
