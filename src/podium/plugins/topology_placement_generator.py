"""Makes one placement for each value of the node label that a PodGroup names (TopologyPlacementGenerator).

Members that have a node already decide the value for those that follow. A group without such a rule has one placement:
all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podium.cluster import Rows
from podium.cluster.pod_groups import PodGroupStates
from podium.framework import DependsOn, Handle, Plugin, Status
from podium.framework.protocols import Placement
from podium.kube import PodGroup

NAME: Final = "TopologyPlacementGenerator"
_UNDECIDED: Final = "cannot determine domain for already scheduled pods"


class TopologyPlacementGenerator(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(kinds=(PodGroup,))

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._states = PodGroupStates.of(handle.cluster)

    def generate_placements(self, key: str, group: PodGroup | None, rows: Rows) -> Sequence[Placement] | Status:
        if group is None:
            name = key.partition("/")[2]
            return Status.error(f'podgroup.scheduling.k8s.io "{name}" not found')
        label = group.topology_key
        if label is None:
            return [Placement("", rows)]
        pinned = self._domain_of_members(key, label)
        if isinstance(pinned, Status):
            return pinned
        column = self.handle.cluster.labels.column(label)
        numbers = column.ids[rows]
        found = [
            Placement(column.values[number], rows[numbers == number])
            for number in dict.fromkeys(numbers.tolist())
            if number  # 0 stands for nodes without the label
        ]
        return [each for each in found if pinned is None or each.name == pinned]

    def _domain_of_members(self, key: str, label: str) -> str | Status | None:
        """The value that the members with a node have; None where there are none."""
        cluster, state = self.handle.cluster, self._states.get(key)
        domain = None
        for placed in () if state is None else state.placed.values():
            node, pod = cluster.nodes[placed.row], placed.pod
            if node is None:
                why = f'getting node for pod {pod.key}: nodeinfo not found for node name "{cluster.names[placed.row]}"'
                return Status.error(f"{_UNDECIDED}: {why}")
            value = node.labels.get(label)
            if value is None:
                return Status.error(f"{_UNDECIDED}: no topology domain found for pod {pod.key}")
            if domain and domain != value:
                return Status.error(f"{_UNDECIDED}: more than 1 domain found for pod group: {domain}, {value}")
            domain = value
        return domain
