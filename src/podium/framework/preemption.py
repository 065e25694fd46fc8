"""Making room by evicting less important pods: the search that DefaultPreemption and its relatives share.

For each node that filters refused in a way eviction could cure, all pods that may be evicted are taken off in a dry
run; if the pod then fits, as many as possible are put back, the most important first (those whose disruption budget
would be violated before the others). What cannot be put back are the victims. Among the nodes found, the one that
hurts least is chosen: fewest budget violations, then lowest highest priority, lowest sum of priorities, fewest
victims, and latest start.

What differs between preemption plugins is passed in: who may be evicted, and how the search is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, PlacedPod, Rows
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, NodeStatuses
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, PluginError, Status
from podium.kube import Pod, PodDisruptionBudget, parse_time
from podium.kube.selector import Selector, SelectorError, compile_label_selector

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
KEPT_KINDS = 64

MayEvict = Callable[[PlacedPod, Pod], bool]
"""(pod on a node, preemptor) → may it be evicted for the preemptor?"""


class Harm(NamedTuple):
    """What evicting would cost, the gravest first; less is better."""

    violations: int
    highest_priority: int
    sum_of_priorities: int
    victims: int
    recency: float
    """Minus the earliest start among the victims of the highest priority: better the youngest."""


class Candidate(NamedTuple):
    """A node that would take the pod once its victims (most important first) are gone."""

    row: int
    node_name: str
    victims: tuple[Pod, ...]
    harm: Harm


class Search(NamedTuple):
    """What the dry runs found: candidates, or why each node that was tried is none."""

    candidates: list[Candidate]
    refusals: dict[int, Status]
    errors: list[str]


def find_candidates(
    runtime: ProfileRuntime, cycle: Cycle, rows: Rows, may_evict: MayEvict, offset: int, wanted: int, known: DryRuns
) -> Search:
    """Dry-run nodes from `offset` on, until enough candidates are found and one of them violates no budget."""
    harmless: list[Candidate] = []
    violating: list[Candidate] = []
    refusals: dict[int, Status] = {}
    errors: list[str] = []
    found_on = known.refreshed(runtime, cycle)
    budgets = Budgets(cycle.cluster.objects.budgets)
    for row in np.roll(rows, -offset).tolist():
        found = found_on.get(row)
        if found is None:
            found = found_on[row] = _victims_on(runtime, cycle, row, may_evict, budgets)
        if isinstance(found, Status):
            if found.code == Code.ERROR:
                errors.append(found.message)
            refusals[row] = found
            continue
        (violating if found.harm.violations else harmless).append(found)
        if wanted and harmless and len(harmless) + len(violating) >= wanted:
            break
    return Search(harmless[:wanted] + violating[:wanted], refusals, errors)


class DryRuns:
    """What dry runs found, by kind of preemptor and row, for as long as it holds.

    The result on a row holds while the node, its pods, the pods nominated to it and the budgets stay as they are,
    provided no filter in force looks beyond the row; where one does, nothing is kept.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, _KeptRuns] = OrderedDict()

    def refreshed(self, runtime: ProfileRuntime, cycle: Cycle) -> dict[int, Candidate | Status]:
        """The results that still hold for this pod; add to it what is found out."""
        nominator = runtime.handle.nominator
        if runtime.looks_beyond_rows(cycle) or nominator.node_of(cycle.pod.uid) is not None:
            return {}
        kept = self._kept.get(cycle.facts.signature)
        if kept is None:
            kept = self._kept[cycle.facts.signature] = _KeptRuns(cycle.cluster, nominator)
            if len(self._kept) > KEPT_KINDS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(cycle.facts.signature)
        return kept.refreshed()


class _KeptRuns:
    """Results of one kind of preemptor."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self._found: dict[int, Candidate | Status] = {}
        self._nodes = self._pods = self._nominated = self._budgets = -1

    def refreshed(self) -> dict[int, Candidate | Status]:
        cluster, nominations = self._cluster, self._nominator.changes
        nodes, pods = cluster.node_changes.since(self._nodes), cluster.pod_changes.since(self._pods)
        nominated = nominations.since(self._nominated)
        budgets = cluster.objects.budgets.version
        if nodes is None or pods is None or nominated is None or budgets != self._budgets:
            self._found = {}
        else:
            for row in (*nodes, *pods, *(cluster.row_of.get(name, -1) for name in nominated)):
                self._found.pop(row, None)
        self._nodes, self._pods = cluster.node_changes.end, cluster.pod_changes.end
        self._nominated, self._budgets = nominations.end, budgets
        return self._found


def no_candidates_message(cluster: Cluster, search: Search) -> str:
    """The nested sentence of a preemption that found nothing: nodes never tried could not be helped."""
    statuses = NodeStatuses(cluster.columns.rows, Status.unresolvable(NOT_HELPFUL))
    for row, status in search.refusals.items():
        statuses.set(row, status)
    return Diagnosis(len(cluster.order.rows), statuses).message


def least_harm(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that rank best; more than one when nothing tells them apart."""
    least = min(candidate.harm for candidate in candidates)
    return [candidate for candidate in candidates if candidate.harm == least]


def _victims_on(
    runtime: ProfileRuntime, cycle: Cycle, row: int, may_evict: MayEvict, budgets: Budgets
) -> Candidate | Status:
    cluster = cycle.cluster
    evictable = [placed for placed in cluster.pods_on[row].values() if may_evict(placed, cycle.pod)]
    if not evictable:
        return Status.unresolvable(NO_VICTIMS)
    with cluster.dry_run():
        trial = _Trial(runtime, cycle, row)
        try:
            for placed in evictable:
                trial.take_off(placed)
            refusal = trial.refusal()
            if refusal is not None:
                return refusal
            ranked = by_importance(evictable)
            violating, harmless = budgets.split(ranked)
            victims = [placed for placed in violating if not trial.reprieve(placed)]
            violations = len(victims)
            victims += [placed for placed in harmless if not trial.reprieve(placed)]
            if violating and harmless:
                victims = by_importance(victims)
        except PluginError as error:
            return Status.error(str(error))
        finally:
            trial.undo()
    name = cluster.names[row]
    if not victims:
        return Status.error(f'expected at least one victim pod on node "{name}"')
    pods = tuple(placed.pod for placed in victims)
    priorities = sum(pod.priority + 2**31 for pod in pods)
    return Candidate(row, name, pods, Harm(violations, pods[0].priority, priorities, len(pods), -_earliest_start(pods)))


class _Trial:
    """A node with pods taken off, in the cluster and in a copy of the cycle's notes; `undo` puts all back."""

    def __init__(self, runtime: ProfileRuntime, cycle: Cycle, row: int) -> None:
        self._runtime = runtime
        self._cycle = cycle.clone()
        self._row = row
        self._off: dict[str, PlacedPod] = {}
        self._order = dict(cycle.cluster.pods_on[row])

    def take_off(self, placed: PlacedPod) -> None:
        self._cycle.cluster.take_off(placed)
        self._off[placed.pod.uid] = placed
        self._runtime.remove_pod(self._cycle, placed)

    def refusal(self, *, only_moving: bool = False) -> Status | None:
        return self._runtime.run_filters_with_nominated(self._cycle, self._row, only_moving=only_moving)

    def reprieve(self, placed: PlacedPod) -> bool:
        """Put a pod back if the incoming one still fits then; where a filter fails, it is not said to fit."""
        self._cycle.cluster.put_on(placed)
        del self._off[placed.pod.uid]
        self._runtime.add_pod(self._cycle, placed)
        try:
            if self.refusal(only_moving=True) is None:
                return True
        except PluginError:
            pass
        self.take_off(placed)
        return False

    def undo(self) -> None:
        cluster = self._cycle.cluster
        for placed in self._off.values():
            cluster.put_on(placed)
        cluster.pods_on[self._row] = self._order  # the order in which pods came ranks those that have not started


class Budgets:
    """Disruption budgets with their selectors compiled."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = []
        for budget in budgets:
            try:
                selector = compile_label_selector(budget.spec.selector)
            except SelectorError:
                continue
            if not selector.nothing and not selector.empty:
                self._budgets.append((budget, selector))

    def split(self, pods: Sequence[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """(those whose eviction would break a budget, the others); budgets are used up in the order given."""
        left = [budget.status.disruptions_allowed for budget, _selector in self._budgets]
        violating: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        for placed in pods:
            pod = placed.pod
            breaks = False
            for number, (budget, selector) in enumerate(self._budgets):
                if (
                    pod.labels
                    and budget.namespace == pod.namespace
                    and selector.matches(pod.labels)
                    and pod.name not in budget.status.disrupted_pods
                ):
                    left[number] -= 1
                    breaks = breaks or left[number] < 0
            (violating if breaks else harmless).append(placed)
        return violating, harmless


def by_importance(pods: Sequence[PlacedPod]) -> list[PlacedPod]:
    """Higher priority first, then the one that started earlier; a pod that has not started counts as starting now.

    Pods of one priority that have not started come out in reverse order, because kube-scheduler compares each of them
    with a later "now".
    """
    started = [placed for placed in pods if placed.pod.status.start_time is not None]
    waiting = [placed for placed in reversed(pods) if placed.pod.status.start_time is None]
    return sorted(started + waiting, key=lambda placed: (-placed.pod.priority, start_time(placed.pod)))


def start_time(pod: Pod) -> float:
    return float("inf") if pod.status.start_time is None else parse_time(pod.status.start_time)


def _earliest_start(victims: Sequence[Pod]) -> float:
    highest = max(pod.priority for pod in victims)
    return min(start_time(pod) for pod in victims if pod.priority == highest)
