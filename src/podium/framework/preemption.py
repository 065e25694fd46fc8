"""Making room by evicting less important pods: the search that DefaultPreemption and its relatives share.

For each node that filters refused in a way eviction could cure, all pods that may be evicted are taken off in a dry
run; if the pod then fits, as many as possible are put back, the most important first (those whose disruption budget
would be violated before the others). What cannot be put back are the victims. Among the nodes found, the one that
hurts least is chosen: fewest budget violations, then lowest highest priority, lowest sum of priorities, fewest
victims, and latest start.

What differs between preemption plugins is passed in: who may be evicted, and how the search is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podium.cluster import Cluster, PlacedPod, Rows
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, NodeStatuses
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, PluginError, Status
from podium.kube import Pod, PodDisruptionBudget, parse_time
from podium.kube.selector import Selector, SelectorError, compile_label_selector

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"

MayEvict = Callable[[PlacedPod, Pod], bool]
"""(pod on a node, preemptor) → may it be evicted for the preemptor?"""


class Candidate(NamedTuple):
    """A node that would take the pod once its victims (most important first) are gone."""

    row: int
    node_name: str
    victims: tuple[Pod, ...]
    violations: int


class Search(NamedTuple):
    """What the dry runs found: candidates, or why each node that was tried is none."""

    candidates: list[Candidate]
    statuses: NodeStatuses
    errors: list[str]


def find_candidates(
    runtime: ProfileRuntime, cycle: Cycle, rows: Rows, may_evict: MayEvict, offset: int, wanted: int
) -> Search:
    """Dry-run nodes from `offset` on, until enough candidates are found and one of them violates no budget."""
    budgets = Budgets(cycle.cluster.objects.budgets)
    harmless: list[Candidate] = []
    violating: list[Candidate] = []
    statuses = NodeStatuses()
    errors: list[str] = []
    for step in range(len(rows)):
        row = int(rows[(offset + step) % len(rows)])
        found = _victims_on(runtime, cycle, row, may_evict, budgets)
        if isinstance(found, Status):
            if found.code == Code.ERROR:
                errors.append(found.message)
            statuses.set(row, found)
            continue
        (violating if found.violations else harmless).append(found)
        if harmless and len(harmless) + len(violating) >= wanted:
            break
    return Search(harmless[:wanted] + violating[:wanted], statuses, errors)


def no_candidates_message(cluster: Cluster, search: Search) -> str:
    """The nested sentence of a preemption that found nothing: nodes never tried could not be helped."""
    nested = Diagnosis(len(cluster.order.rows), search.statuses)
    search.statuses.absent = Status.unresolvable(NOT_HELPFUL)
    return nested.message


def least_harm(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that rank best; more than one when nothing tells them apart."""
    best = list(candidates)
    criteria: tuple[Callable[[Candidate], float], ...] = (
        lambda c: c.violations,
        lambda c: c.victims[0].priority,
        lambda c: sum(pod.priority + 2**31 for pod in c.victims),
        lambda c: len(c.victims),
        lambda c: -_earliest_start(c.victims),
    )
    for cost in criteria:
        if len(best) == 1:
            break
        costs = [cost(candidate) for candidate in best]
        lowest = min(costs)
        best = [candidate for candidate, each in zip(best, costs, strict=True) if each == lowest]
    return best


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
    return Candidate(row, name, tuple(placed.pod for placed in victims), violations)


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

    def refusal(self) -> Status | None:
        return self._runtime.run_filters_with_nominated(self._cycle, self._row)

    def reprieve(self, placed: PlacedPod) -> bool:
        """Put a pod back if the incoming one still fits then."""
        self._cycle.cluster.put_on(placed)
        del self._off[placed.pod.uid]
        self._runtime.add_pod(self._cycle, placed)
        if self.refusal() is None:
            return True
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
