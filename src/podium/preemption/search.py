"""Searches for room that evicting less important pods would make; all preemption plugins share this search.

For each node that filters refused in a way eviction could cure, all pods that may be evicted are taken off in a dry
run; if the pod then fits, as many as possible are put back, the most important first (those whose disruption budget
would be violated before the others). What cannot be put back are the victims. Among the nodes found, the one that
hurts least is chosen: fewest budget violations, then lowest highest priority, lowest sum of priorities, fewest
victims, and latest start.

What differs between preemption plugins is passed in: the rule by which pods may be evicted and may stay
(`podium.preemption.rules`), and how the search is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, PlacedPod, PodFacts, Rows
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, NodeStatuses
from podium.framework.notes import SharedNoteError
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, PluginError, Status
from podium.kube import Pod, PodDisruptionBudget
from podium.kube.selector import Selector, SelectorError, compile_label_selector
from podium.preemption.dry_runs import HARMLESS, UNKNOWN, VIOLATING, Candidate, DryRuns, Harm, Results
from podium.preemption.rules import ByPriority, EvictionRule, NodeRule, start_time
from podium.preemption.trial import Trial

NO_VICTIMS = "No preemption victims found for incoming pod"
NOTHING_TO_EVICT = Status.unresolvable(NO_VICTIMS)
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class PreemptionSearch(NamedTuple):
    """What the dry runs found: the candidates that hurt least, or why each node that was tried is none."""

    best: Sequence[Candidate]
    """More than one when nothing tells them apart, or when all candidates are asked for."""
    refusals: list[tuple[Status, Rows]]
    errors: list[str]


def find_candidates(
    runtime: ProfileRuntime,
    cycle: Cycle,
    rows: Rows,
    rule: EvictionRule | NodeRule,
    hopeless: Mask,
    offset: int,
    wanted: int,
    known: DryRuns | None,
    *,
    all_candidates: bool = False,
) -> PreemptionSearch:
    """Dry-run nodes from `offset` on, until enough candidates are found and one of them violates no budget.

    `hopeless`: bool[rows of the cluster], where it is known that no pod may be evicted. `known` is where results are
    cached; None, where the rule depends on more than the preemptor and the node. With `all_candidates` the `best` of
    the result are all that were found, the harmless first.
    """
    if not len(rows) or (hopeless[rows[offset]] and hopeless[rows].all()):
        return PreemptionSearch((), [(NOTHING_TO_EVICT, rows)], [])
    results = Results(cycle.cluster.columns.rows) if known is None else known.refreshed(runtime, cycle)
    results.refuse_unknown(hopeless, NOTHING_TO_EVICT)
    stops = runtime.handle.rules.budgets_stop_at_the_first_broken
    budgets = Budgets(cycle.cluster.objects.budgets, stops)
    codes = results.codes[rows]  # in visiting order from here on
    codes = np.concatenate((codes[offset:], codes[:offset]))
    while True:
        candidates = _needed(codes, wanted)
        found = codes[candidates]
        unknown = candidates[found == UNKNOWN]
        if not len(unknown):
            break
        for position in unknown.tolist():
            row = int(rows[(position + offset) % len(rows)])
            if isinstance(rule, NodeRule):
                found_there = rule.victims_on(runtime, cycle, row, budgets)
            else:
                found_there = _victims_on(runtime, cycle, row, rule, budgets)
            codes[position] = results.note(row, found_there)
    harmless, violating = (candidates[found == code][:wanted] for code in (HARMLESS, VIOLATING))
    if len(harmless) or len(violating):
        if all_candidates:
            chosen = np.concatenate((harmless, violating))
            return PreemptionSearch(results.candidates(rows[(chosen + offset) % len(rows)]), [], [])
        chosen = harmless if len(harmless) else violating
        return PreemptionSearch(results.least_harm(rows[(chosen + offset) % len(rows)]), [], [])
    refusals = results.refusals(np.concatenate((rows[offset:], rows[:offset])))
    return PreemptionSearch((), refusals, [status.message for status, _rows in refusals if status.code == Code.ERROR])


def _needed(codes: NDArray[np.int32], wanted: int) -> Rows:
    """The positions of the candidates that must be looked at, should every unknown row turn out to be one without
    violations."""
    candidates = np.flatnonzero(codes <= 0)
    if not wanted or len(candidates) < wanted:
        return candidates
    first = 0
    if codes[candidates[0]] == VIOLATING:
        harmless = codes[candidates] != VIOLATING
        first = int(harmless.argmax())
        if not harmless[first]:
            return candidates
    return candidates[: max(wanted, first + 1)]


def no_candidates_message(cluster: Cluster, search: PreemptionSearch) -> str:
    """The nested sentence of a preemption that found nothing: nodes never tried could not be helped."""
    statuses = NodeStatuses(cluster.columns.rows, Status.unresolvable(NOT_HELPFUL))
    for status, rows in search.refusals:
        statuses.add_group(status, rows)
    return Diagnosis(len(cluster.order.rows), statuses).message


def _victims_on(
    runtime: ProfileRuntime, cycle: Cycle, row: int, rule: EvictionRule, budgets: Budgets
) -> Candidate | Status:
    cluster = cycle.cluster
    try:
        ruling = rule(cluster.pods_on[row].values(), cycle.pod)
    except PluginError as error:
        return Status.error(str(error))
    evictable = ruling.evictable
    if not evictable:
        return NOTHING_TO_EVICT

    def stays_by_rule(placed: PlacedPod) -> bool:
        if not ruling.may_stay(placed) or not trial.reprieve(placed):
            return False
        ruling.put_back(placed)
        return True

    sums_only = runtime.active_filters(cycle).sums_only
    with nullcontext() if sums_only else cluster.dry_run():
        trial = _TrialOfSums(runtime, cycle, row) if sums_only else _NodeTrial(runtime, cycle, row)
        stays = trial.reprieve if isinstance(ruling, ByPriority) else stays_by_rule  # by priority, any may stay
        try:
            for placed in evictable:
                trial.take_off(placed)
            refusal = trial.refusal(row) or ruling.objection()
            if refusal is not None:
                return refusal
            ranked = ruling.ranked(evictable)
            violating, harmless = budgets.split(ranked)
            victims = [placed for placed in violating if not stays(placed)]
            violations = len(victims)
            victims += [placed for placed in harmless if not stays(placed)]
            if violating and harmless:
                victims = ruling.ranked(victims)
        except SharedNoteError:
            raise  # what was found on other nodes may rest on the note, too
        except PluginError as error:
            return Status.error(str(error))
        finally:
            trial.undo()
    name = cluster.names[row]
    if not victims:
        return no_victim(name)
    pods = tuple(placed.pod for placed in victims)
    return Candidate(row, name, pods, harm_of(pods, violations))


def no_victim(node_name: str) -> Status:
    return Status.error(f'expected at least one victim pod on node "{node_name}"')


def harm_of(victims: Sequence[Pod], violations: int) -> Harm:
    """What evicting these pods costs; the first counts as the most important."""
    priorities = sum(pod.priority + 2**31 for pod in victims)
    return Harm(violations, victims[0].priority, priorities, len(victims), -_earliest_start(victims))


class _NodeTrial(Trial):
    """A trial on one node."""

    def __init__(self, runtime: ProfileRuntime, cycle: Cycle, row: int) -> None:
        super().__init__(runtime, cycle)
        self._row = row

    def reprieve(self, placed: PlacedPod) -> bool:
        """Put a pod back if the incoming one still fits then."""
        self.put_back(placed)
        if self.fits(self._row, only_moving=True):
            return True
        self.take_off(placed)
        return False


class _TrialOfSums(_NodeTrial):
    """The same where filters look at no more than sums: pods that ask for the same are then all one."""

    def __init__(self, runtime: ProfileRuntime, cycle: Cycle, row: int) -> None:
        super().__init__(runtime, cycle, row)
        self._too_much: set[PodFacts] = set()
        self._order[row] = dict(cycle.cluster.pods_on[row])

    def take_off(self, placed: PlacedPod) -> None:
        self._cycle.cluster.count_out(placed)
        self._off[placed.pod.uid] = placed

    def put_back(self, placed: PlacedPod) -> None:
        self._cycle.cluster.count_in(placed)
        del self._off[placed.pod.uid]

    def reprieve(self, placed: PlacedPod) -> bool:
        if placed.facts in self._too_much:
            return False
        if super().reprieve(placed):
            self._too_much.clear()
            return True
        self._too_much.add(placed.facts)
        return False

    def undo(self) -> None:
        cluster = self._cycle.cluster
        for placed in self._off.values():
            cluster.count_in(placed)
        cluster.pods_on[self._row] = self._order[self._row]


class Budgets:
    """Disruption budgets with their selectors compiled."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], stops: bool = True) -> None:
        """`stops`: a pod that breaks one budget does not use up those after it, by namespace and name."""
        self._stops = stops
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = []
        for budget in sorted(budgets, key=lambda budget: budget.key):
            try:
                selector = compile_label_selector(budget.spec.selector)
            except SelectorError:
                continue
            if not selector.nothing and not selector.empty:
                self._budgets.append((budget, selector))

    def split(self, pods: Sequence[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """(those whose eviction would break a budget, the others); budgets are used up in the order given."""
        breaks = self.counting(self._stops)
        violating: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        for placed in pods:
            (violating if breaks(placed.pod) else harmless).append(placed)
        return violating, harmless

    def counting(self, stops: bool = True) -> Callable[[Pod], bool]:
        """A function that says of one pod after another whether its eviction would break a budget; what it is asked
        about counts as evicted. With `stops`, the first budget that breaks ends the look."""
        left = [budget.status.disruptions_allowed for budget, _selector in self._budgets]

        def breaks(pod: Pod) -> bool:
            broken = False
            for number, (budget, selector) in enumerate(self._budgets):
                if _covers(budget, selector, pod):
                    left[number] -= 1
                    if left[number] < 0:
                        if stops:
                            return True
                        broken = True
            return broken

        return breaks


def _covers(budget: PodDisruptionBudget, selector: Selector, pod: Pod) -> bool:
    return (
        bool(pod.labels)
        and budget.namespace == pod.namespace
        and selector.matches(pod.labels)
        and pod.name not in budget.status.disrupted_pods
    )


def _earliest_start(victims: Sequence[Pod]) -> float:
    highest = max(pod.priority for pod in victims)
    return min(start_time(pod) for pod in victims if pod.priority == highest)
