"""Finds the pods that must go where PodGroups (scheduling.k8s.io) have a part in it, as preemptor or as victims.

A victim is a pod, or all pods of a PodGroup that is evicted whole. All victims of lower priority than the preemptor are
taken off in a trial. If it then fits, as many as possible are put back, the most important first (those whose budget
would be violated before the others). What cannot be put back is evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podium.cluster import Cluster, PlacedPod
from podium.cluster.pod_groups import PodGroupStates
from podium.framework.cycle import Cycle
from podium.framework.gang import GroupFit
from podium.framework.notes import SharedNoteError
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError, Status
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key
from podium.preemption.dry_runs import Candidate
from podium.preemption.evictions import NEVER
from podium.preemption.rules import start_time
from podium.preemption.search import NOTHING_TO_EVICT, Budgets, harm_of, no_victim
from podium.preemption.trial import Trial

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming preemptor")


@dataclass(slots=True)
class VictimUnit:
    """Pods that are evicted together."""

    pods: list[PlacedPod]
    priority: int
    number: int
    """How many units were met before it: pods that have not started count as starting when they are met."""
    start: float

    @property
    def importance(self) -> tuple[int, bool, int, float, int]:
        """The most important is the least: priority, members of groups, larger groups, earlier start."""
        grouped = self.pods[0].pod.spec.scheduling_group is not None
        return -self.priority, not grouped, -len(self.pods), self.start, self.number


def group_victims(
    cluster: Cluster, group: PodGroup, pods: Sequence[Pod], fit: GroupFit, *, once: bool
) -> list[Pod] | Status:
    """The pods to evict for a group, most important first; or why that would not help or may not be.

    `once`: the group is tried once, without any victim, and victims are put back beside its members where they went
    then. Before Kubernetes 1.37 it is tried again for each victim.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return Status.unschedulable(NEVER)
    everywhere = (placed for row in cluster.order.rows.tolist() for placed in cluster.pods_on[row].values())
    units = [unit for unit in victim_units(cluster, everywhere, in_full=once) if unit.priority < group.priority]
    if not units:
        return NO_VICTIMS
    uids = {placed.pod.uid for unit in units for placed in unit.pods}
    with PodGroupStates.of(cluster).fixed(() if once else uids):
        trial = _Trial(cluster, units, fit if once else None)
        try:
            refusal = fit.fits()
            if refusal is not None:
                return refusal
            still_fits = fit.still_fits if once else lambda: fit.fits() is None
            units.sort(key=lambda unit: unit.importance)
            ranked = _violating_first(units, Budgets(cluster.objects.budgets))
            evicted = [unit for unit, _violations in ranked if not trial.reprieve(unit, still_fits)]
        finally:
            trial.undo()
    evicted.sort(key=lambda unit: unit.importance)
    return [placed.pod for unit in evicted for placed in unit.pods]


def victim_units(cluster: Cluster, pods: Iterable[PlacedPod], *, in_full: bool = True) -> list[VictimUnit]:
    """The units that these pods belong to, in their order.

    `in_full`: a group that is evicted whole has all its pods, wherever they are, and members have the priority of their
    group; before Kubernetes 1.37, those met, and their own.
    """
    groups, states, units = cluster.objects.pod_groups, PodGroupStates.of(cluster), dict[str, VictimUnit]()
    for placed in pods:
        key = pod_group_key(placed.pod)
        group, state = (None, None) if key is None else (groups.get(key), states.get(key))
        if group is None or not group.evicted_whole:
            priority = placed.pod.priority if group is None or not in_full else group.priority
            units[placed.pod.uid] = VictimUnit([placed], priority, len(units), start_time(placed.pod))
        elif group.uid not in units:
            mates = [placed] if state is None or not in_full else list(state.placed.values())
            start = min(start_time(each.pod) for each in mates)
            units[group.uid] = VictimUnit(mates, group.priority, len(units), start)
        elif not in_full:
            units[group.uid].pods.append(placed)
    return list(units.values())


def _violating_first(units: Sequence[VictimUnit], budgets: Budgets) -> list[tuple[VictimUnit, int]]:
    """The units in the order in which they may stay, with how many of their pods break a budget; budgets are used up in
    the order given."""
    breaks = budgets.counting()
    counted = [(unit, sum([breaks(placed.pod) for placed in unit.pods])) for unit in units]
    return sorted(counted, key=lambda each: not each[1])


class _Trial:
    """The cluster with the pods of all units taken off; `undo` puts back what is still off.

    The journal records every change, because answers are cached while the trial lasts.
    """

    def __init__(self, cluster: Cluster, units: Sequence[VictimUnit], notes: GroupFit | None) -> None:
        self._cluster = cluster
        self._notes = notes
        self._off: dict[str, PlacedPod] = {}
        rows = {placed.row for unit in units for placed in unit.pods}
        self._order = {row: dict(cluster.pods_on[row]) for row in rows}
        for unit in units:
            self._take_off(unit)

    def _take_off(self, unit: VictimUnit) -> None:
        for placed in unit.pods:
            self._cluster.take_off(placed)
            self._off[placed.pod.uid] = placed

    def reprieve(self, unit: VictimUnit, fits: Callable[[], bool]) -> bool:
        """Put a unit back if the group still fits then."""
        for placed in unit.pods:
            self._cluster.put_on(placed)
            del self._off[placed.pod.uid]
            if self._notes is not None:
                self._notes.put_back(placed)
        if fits():
            return True
        self._take_off(unit)
        if self._notes is not None:
            for placed in unit.pods:
                self._notes.take_off(placed)
        return False

    def undo(self) -> None:
        for placed in self._off.values():
            self._cluster.put_on(placed)
        for row, order in self._order.items():
            self._cluster.pods_on[row] = order  # the order in which pods came ranks those that have not started


class WholeGroups:
    """The usual rule for a single pod where there are pod groups: pods of lower priority, and whole groups; a
    `NodeRule`."""

    def victims_on(self, runtime: ProfileRuntime, cycle: Cycle, row: int, budgets: Budgets) -> Candidate | Status:
        cluster = cycle.cluster
        units = victim_units(cluster, cluster.pods_on[row].values())
        units = [unit for unit in units if unit.priority < cycle.pod.priority]
        if not units:
            return NOTHING_TO_EVICT
        with cluster.dry_run():
            trial = Trial(runtime, cycle)

            def stays(unit: VictimUnit) -> bool:
                for placed in unit.pods:
                    trial.put_back(placed)
                if trial.fits(row, only_moving=True):
                    return True
                for placed in unit.pods:
                    trial.take_off(placed)
                return False

            try:
                for unit in units:
                    for placed in unit.pods:
                        trial.take_off(placed)
                refusal = trial.refusal(row)
                if refusal is not None:
                    return refusal
                units.sort(key=lambda unit: unit.importance)
                evicted = [each for each in _violating_first(units, budgets) if not stays(each[0])]
            except SharedNoteError:
                raise  # what was found on other nodes may rest on the note, too
            except PluginError as error:
                return Status.error(str(error))
            finally:
                trial.undo()
        name = cluster.names[row]
        if not evicted:
            return no_victim(name)
        violations = sum(number for _unit, number in evicted)
        evicted.sort(key=lambda each: each[0].importance)
        pods = tuple(placed.pod for unit, _violations in evicted for placed in unit.pods)
        return Candidate(row, name, pods, harm_of(pods, violations))


def victim_priority(cluster: Cluster, pod: Pod) -> int:
    """The priority that a pod has as a victim: its group's, where it has one."""
    group = cluster.objects.pod_groups.get(pod_group_key(pod) or "")
    return pod.priority if group is None else group.priority
