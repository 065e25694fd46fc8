"""Defines what a cache of NodeResourceTopologies does, and the pass-through and discard-reserved caches.

Agents report every few seconds, the scheduler places many pods in between. A cache decides which report counts for a
node, what pods have taken since, and when nothing that is known of a node may be used. `over_reserve` has the third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from podium import NodePart, ObjectProblems, custom_reference
from podium.cluster import Cluster
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.topology_object import RESOURCE, VERSION, NodeTopology, read_topology
from podium_plugins.node_resource_topology_match.zone_columns import ZoneColumns

MOST_PROBLEMS = 3
INVALID = "InvalidNodeResourceTopology"
"""The reason of events on reports that are wrong."""


class TopologyCache(Protocol):
    """What is known of the zones of all nodes (`zones`), and how pods change it."""

    zones: ZoneColumns
    node_part: NodePart
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


class PassThroughCache:
    """The newest report of each node, taken as it comes: nothing is known of pods placed since."""

    node_part = NodePart.OBJECT

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        self.zones = ZoneColumns(cluster)
        self._problems = problems
        follow_reports(self.zones, self._set)

    def _set(self, name: str, report: Any | None) -> None:
        note_problems(self._problems, name, report)
        self.zones.set_report(name, report)

    def reserve(self, pod: Pod, node_name: str) -> None:
        pass

    def release(self, pod: Pod, node_name: str) -> None:
        pass

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        pass

    def renewed(self, node_name: str) -> bool:
        return False


class DiscardReservedCache(PassThroughCache):
    """The newest report of each node without pods on their way to it.

    From Reserve until the pod is bound, or taken back, what is known of its node must not be used.
    """

    node_part = NodePart.PODS

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        super().__init__(cluster, problems)
        self._on_the_way: dict[str, set[str]] = {}
        self._renewed = ""

    def reserve(self, pod: Pod, node_name: str) -> None:
        self._on_the_way.setdefault(node_name, set()).add(pod.uid)
        self.zones.set_stale(node_name, True)

    def release(self, pod: Pod, node_name: str) -> None:
        waiting = self._on_the_way.get(node_name)
        if waiting is None:
            return
        waiting.discard(pod.uid)
        if not waiting:
            del self._on_the_way[node_name]
            self.zones.set_stale(node_name, False)

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        """A pod that the API server shows on its node is bound, even if the answer to the binding is still awaited."""
        self._renewed = ""
        if after is not None and after.node_name:
            self.release(after, after.node_name)
            if before is None or not before.node_name:
                self._renewed = after.node_name

    def renewed(self, node_name: str) -> bool:
        return self._renewed == node_name
