"""NodePorts: a host port can be taken once per node.

App containers and sidecars may ask for ports of the node itself. Two of them conflict when protocol and number agree
and the addresses are equal or one of them is the wildcard 0.0.0.0, which is also what a missing address means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from podium.cluster import HostPort, NodeInfo, Nodes
from podium.cluster.facts import host_ports
from podium.cluster.ports import conflict
from podium.framework import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Interest,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Status,
    Verdict,
)
from podium.kube import Pod

NAME = "NodePorts"
PRE_FILTER = f"PreFilter{NAME}"
TAKEN = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.PODS, claims=False)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.POD, Action.DELETE, _frees_a_port, by_signature=True),
            Interest(Resource.NODE, Action.ADD),
        ]

    def pre_filter(self, cycle: Cycle) -> Status | None:
        ports = cycle.facts.ports
        if not ports:
            return SKIP
        cycle.data[PRE_FILTER] = ports
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        conflicting = nodes.cluster.ports.conflicting_rows(_wanted(cycle))
        if not conflicting:
            return None
        taken = np.zeros(nodes.cluster.columns.rows, dtype=np.bool_)
        taken[list(conflicting)] = True
        return Verdict.reject(nodes.pick(taken), TAKEN)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        return TAKEN if cycle.cluster.ports.conflicts_on(node.row, _wanted(cycle)) else None


def _wanted(cycle: Cycle) -> tuple[HostPort, ...]:
    ports: tuple[HostPort, ...] | None = cycle.data.get(PRE_FILTER)
    if ports is None:
        raise PluginError(f'reading "{PRE_FILTER}" from cycleState: not found')
    return ports


def _frees_a_port(pod: Pod, before: Pod, _after: Any) -> bool:
    if not before.node_name and not before.status.nominated_node_name:
        return False
    freed = host_ports(before)
    return any(conflict(wanted, port) for wanted in host_ports(pod) for port in freed)
