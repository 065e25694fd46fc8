"""Finds the pods that must go for a whole PodGroup to fit (WorkloadAwarePreemption).

A victim is a pod, or all pods of a PodGroup that is evicted whole. All victims of lower priority than the group are
taken off in a trial; if the group then fits, as many as possible are put back, the most important first (those whose
disruption budget would be violated before the others). What cannot be put back is evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from podium.cluster import Cluster, PlacedPod
from podium.cluster.pod_groups import PodGroupStates
from podium.framework.status import Status
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key
from podium.preemption.evictions import NEVER
from podium.preemption.rules import start_time
from podium.preemption.search import Budgets

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming preemptor")

Fits = Callable[[], Status | None]
"""Whether the group fits as things are in the trial; why not, where it does not."""


@dataclass(slots=True)
class VictimUnit:
    """Pods that are evicted together; the first pod met says when it started."""

    pods: list[PlacedPod]
    priority: int
    number: int
    """How many units were met before it: pods that have not started count as starting when they are met."""

    @property
    def importance(self) -> tuple[int, bool, int, float, int]:
        """The most important is the least: priority, members of groups, larger groups, earlier start."""
        first = self.pods[0].pod
        grouped = first.spec.scheduling_group is not None
        return -self.priority, not grouped, -len(self.pods) if grouped else 0, start_time(first), self.number


def group_victims(cluster: Cluster, group: PodGroup, pods: Sequence[Pod], fits: Fits) -> list[Pod] | Status:
    """The pods to evict, most important first; or why that would not help or may not be."""
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return Status.unschedulable(NEVER)
    units = [unit for unit in _units(cluster) if unit.priority < group.priority]
    if not units:
        return NO_VICTIMS
    uids = {placed.pod.uid for unit in units for placed in unit.pods}
    with PodGroupStates.of(cluster).fixed(uids):
        trial = _Trial(cluster, units)
        try:
            refusal = fits()
            if refusal is not None:
                return refusal
            units.sort(key=lambda unit: unit.importance)
            violating, harmless = _split(units, Budgets(cluster.objects.budgets))
            evicted = [unit for unit in (*violating, *harmless) if not trial.reprieve(unit, fits)]
        finally:
            trial.undo()
    evicted.sort(key=lambda unit: unit.importance)
    return [placed.pod for unit in evicted for placed in unit.pods]


def _units(cluster: Cluster) -> list[VictimUnit]:
    """All there are, in the order of nodes and, on each, of pods."""
    groups, units = cluster.objects.pod_groups, dict[str, VictimUnit]()
    for row in cluster.order.rows.tolist():
        for placed in cluster.pods_on[row].values():
            key = pod_group_key(placed.pod)
            group = None if key is None else groups.get(key)
            if group is None or not group.evicted_whole:
                units[placed.pod.uid] = VictimUnit([placed], placed.pod.priority, len(units))
            elif group.uid in units:
                units[group.uid].pods.append(placed)
            else:
                units[group.uid] = VictimUnit([placed], group.priority, len(units))
    return list(units.values())


def _split(units: Sequence[VictimUnit], budgets: Budgets) -> tuple[list[VictimUnit], list[VictimUnit]]:
    """(those whose eviction would break a budget, the others); budgets are used up in the order given."""
    breaks = budgets.counting()
    violating: list[VictimUnit] = []
    harmless: list[VictimUnit] = []
    for unit in units:
        (violating if any(breaks(placed.pod) for placed in unit.pods) else harmless).append(unit)
    return violating, harmless


class _Trial:
    """The cluster with the pods of all units taken off; `undo` puts back what is still off.

    The journal records every change, because answers are cached while the trial lasts.
    """

    def __init__(self, cluster: Cluster, units: Sequence[VictimUnit]) -> None:
        self._cluster = cluster
        self._off: dict[str, PlacedPod] = {}
        rows = {placed.row for unit in units for placed in unit.pods}
        self._order = {row: dict(cluster.pods_on[row]) for row in rows}
        for unit in units:
            self._take_off(unit)

    def _take_off(self, unit: VictimUnit) -> None:
        for placed in unit.pods:
            self._cluster.take_off(placed)
            self._off[placed.pod.uid] = placed

    def reprieve(self, unit: VictimUnit, fits: Fits) -> bool:
        """Put a unit back if the group still fits then."""
        for placed in unit.pods:
            self._cluster.put_on(placed)
            del self._off[placed.pod.uid]
        if fits() is None:
            return True
        self._take_off(unit)
        return False

    def undo(self) -> None:
        for placed in self._off.values():
            self._cluster.put_on(placed)
        for row, order in self._order.items():
            self._cluster.pods_on[row] = order  # the order in which pods came ranks those that have not started
