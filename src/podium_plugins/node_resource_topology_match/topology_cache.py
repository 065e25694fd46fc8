"""Defines what a cache of NodeResourceTopologies does, and reports objects that are wrong.

Agents report every few seconds, the scheduler places many pods in between. A cache decides which report counts for a
node, what pods have taken since, and when nothing that is known of a node may be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from podium.framework import Scope
from podium.framework.object_problems import ObjectProblems, custom_reference
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.topology_object import RESOURCE, VERSION, NodeTopology, read_topology
from podium_plugins.node_resource_topology_match.zone_columns import ZoneColumns

MOST_PROBLEMS = 3
INVALID = "InvalidNodeResourceTopology"
"""The reason of events on reports that are wrong."""


class TopologyCache(Protocol):
    """What is known of the zones of all nodes (`zones`), and how pods change it."""

    zones: ZoneColumns
    scope: Scope
    """How far answers look: whether they change when pods come and go."""

    def reserve(self, pod: Pod, node_name: str) -> None:
        """A pod was given to a node."""

    def release(self, pod: Pod, node_name: str) -> None:
        """The pod was taken back from the node, or is bound to it."""

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        """A pod came, changed or went; before the cluster knows, unless it went."""

    def renewed(self, node_name: str) -> bool:
        """Whether the latest event made known of a node what was not known before."""


def note_problems(problems: ObjectProblems, name: str, report: Any | None) -> NodeTopology | None:
    """Read a report, and say what is wrong with it."""
    topology = None if report is None else read_topology(report)
    regarding = custom_reference(f"topology.node.k8s.io/{VERSION}", "NodeResourceTopology", name, report)
    if topology is None or not topology.problems:
        problems.clear(regarding)
        return topology
    more = len(topology.problems) - MOST_PROBLEMS
    rest = f"; and {more} more" if more > 0 else ""
    problems.set(regarding, INVALID, "; ".join(topology.problems[:MOST_PROBLEMS]) + rest)
    return topology


def follow_reports(zones: ZoneColumns, changed: Callable[[str, Any | None], None]) -> None:
    """Call with the name and the data of every NodeResourceTopology that comes or changes; None when it goes."""
    zones.cluster.objects.custom_store(RESOURCE).follow(lambda name, _before, after: changed(name, after))
