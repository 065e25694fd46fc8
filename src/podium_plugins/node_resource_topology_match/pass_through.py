"""Takes every report as it comes (pass-through cache): nothing is known of pods placed since the last one."""

from __future__ import annotations

from typing import Any

from podium.cluster import Cluster
from podium.framework import Scope
from podium.framework.object_problems import ObjectProblems
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.topology_cache import follow_reports, note_problems
from podium_plugins.node_resource_topology_match.zone_columns import ZoneColumns


class PassThroughCache:
    """The newest report of each node."""

    scope = Scope.NODE

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
