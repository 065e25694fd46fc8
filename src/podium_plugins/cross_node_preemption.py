"""Evicts pods of lower priority on as many nodes as it takes for a pod to fit on one of them (CrossNodePreemption).

DefaultPreemption looks at one node at a time: a pod that another in its zone, on another node, keeps away by
anti-affinity or spreading finds no victims. Here pods on all nodes may be evicted; what is found competes
with what one node alone would need, by the usual rules. Where no filter looks beyond a node, evicting elsewhere cannot
help and is not tried. Disruption budgets are never broken.

Enable it in addition to DefaultPreemption, behind it: then it is asked where eviction on one node does not help. Or in
its place: then no eviction breaks a budget.

Trying every subset of n pods takes 2ⁿ dry runs. Here pods are taken off in growing numbers, those first that are most
likely in the way, until the preemptor fits on some nodes. For each of these nodes as many as possible are put back, the
most important first, by halves: what has to go are the victims. None of them can be spared, and evicting them breaks no
disruption budget.

    pods that may be evicted   of lower priority; none whose budget allows no disruption now
    most likely in the way     leaving already; then those that the preemptor's required affinity or spreading selects,
                               or that have terms of their own; then all others, the least important first

Where pods more than a budget allows would have to go, the more important of them are left alone and the node is tried
again without.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from podium import Cycle, Diagnosis, FieldError, FieldPath, Handle, Interest, Plugin, PostFilterResult, Status
from podium.cluster import PlacedPod, PodFacts
from podium.kube import LabelSelector, Pod, Selector, SelectorError, compile_label_selector
from podium.preemption import (
    VICTIM_GONE,
    Budgets,
    ByPriority,
    Candidate,
    Evictions,
    Harm,
    LowestPriorities,
    PreemptionSearch,
    Trial,
    by_importance,
    find_candidates,
    fruitless,
    harm_of,
    no_candidates_message,
    objection_to_preempting,
    refused,
    unschedulable_rows,
    was_evicted,
)

NAME: Final = "CrossNodePreemption"
WOULD_BREAK_A_BUDGET: Final = "every candidate would break a disruption budget"


class CrossNodePreemptionArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The bounds of one search; each is at least 1."""

    max_nodes: int = 100
    """Nodes on which the pod is tried."""
    max_pods: int = 1000
    """Pods that may be evicted of all that are of lower priority: those that concern the preemptor's affinity or
    spreading first, then the least important."""
    max_victims: int = 10
    """Pods that are evicted on all nodes together."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        bounds = {"maxNodes": self.max_nodes, "maxPods": self.max_pods, "maxVictims": self.max_victims}
        for name, number in bounds.items():
            if number < 1:
                yield FieldError.invalid(path.child(name), number, "must be greater than 0")


class CrossNodePreemption(Plugin):
    name = NAME
    trusted = True
    Args = CrossNodePreemptionArgs

    def __init__(self, args: CrossNodePreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evictions = Evictions(NAME, handle)
        self._lowest = LowestPriorities(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        return [VICTIM_GONE]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        why_not = objection_to_preempting(cycle, diagnosis)
        if why_not:
            return refused(why_not)
        on_one, search = self._on_one_node(cycle, diagnosis)
        rows = unschedulable_rows(cycle, diagnosis)
        across = None
        if self.handle.runtime.active_filters(cycle).beyond_rows:
            across = find_across_nodes(self.handle, cycle, rows.tolist(), self.args)
        found = [each for each in (on_one, across) if each is not None]
        if found:
            return self._evictions.evict(cycle, min(found, key=lambda each: each.harm))
        if search.best:
            return fruitless(WOULD_BREAK_A_BUDGET)
        return fruitless(no_candidates_message(cycle.cluster, search))

    def _on_one_node(self, cycle: Cycle, diagnosis: Diagnosis) -> tuple[Candidate | None, PreemptionSearch]:
        """The node that would take the pod if only pods there were evicted and no budget broken."""
        rows = unschedulable_rows(cycle, diagnosis)[: self.args.max_nodes]
        hopeless = self._lowest.hopeless(cycle.pod)
        wanted = len(rows)
        search = find_candidates(self.handle.runtime, cycle, rows, ByPriority, hopeless, 0, wanted, None)
        best = search.best[0] if search.best else None
        return (best if best is not None and not best.harm.violations else None), search


# The search on all nodes

FIRST_STEP, GROWTH = 16, 4
"""Pods that are taken off at first, and how many times as many are off after each further step."""
MOST_CANDIDATES = 5
"""Nodes for which victims are worked out."""
MOST_BUDGET_TRIES = 3
NO_HARM = Harm(0, -(2**31), 0, 0, 0.0)


def find_across_nodes(
    handle: Handle, cycle: Cycle, rows: Sequence[int], args: CrossNodePreemptionArgs
) -> Candidate | None:
    """The node and the victims, on whatever nodes, that hurt least; None where none are found."""
    cluster = cycle.cluster
    budgets = Budgets(cluster.objects.budgets)
    pods = evictable_pods(cycle.pod, cluster.pods.values(), budgets, args.max_pods)
    found: list[Candidate] = []
    with cluster.dry_run():
        trial = Trial(handle.runtime, cycle)
        try:
            rows = rows[: args.max_nodes]
            off, fitting = _take_off_until_it_fits(trial, rows, pods)
            for row in fitting[:MOST_CANDIDATES]:
                victims = _victims(trial, row, off, budgets)
                staying = [placed.pod for placed in victims if not placed.pod.terminating]
                if victims and len(staying) <= args.max_victims:
                    harm = harm_of(staying, 0) if staying else NO_HARM
                    victim_pods = tuple(placed.pod for placed in victims)
                    found.append(Candidate(row, cluster.names[row], victim_pods, harm))
        finally:
            trial.undo()
    return min(found, key=lambda candidate: candidate.harm, default=None)


def evictable_pods(preemptor: Pod, placed: Iterable[PlacedPod], budgets: Budgets, most: int) -> list[PlacedPod]:
    """So many of the pods that may be evicted, those most likely in the way first."""
    selectors = list(_selectors(preemptor))
    concerned: dict[PodFacts, bool] = {}  # the same for pods of one signature
    leaving, in_the_way, others = list[PlacedPod](), list[PlacedPod](), list[PlacedPod]()
    for each in placed:
        pod, facts = each.pod, each.facts
        if pod.priority >= preemptor.priority:
            continue
        if facts not in concerned:
            selected = any(selector.matches(pod.labels) for selector in selectors)
            concerned[facts] = selected or bool(facts.terms)
        if pod.terminating:
            (leaving if was_evicted(pod) else others).append(each)
        elif not budgets.split([each])[0]:
            (in_the_way if concerned[facts] else others).append(each)
    found = leaving + by_importance(in_the_way)[::-1]
    if len(found) < most:
        lowest = heapq.nsmallest(most, others, key=lambda each: each.pod.priority)
        found += by_importance(lowest)[::-1]
    return found[:most]


def _selectors(pod: Pod) -> Iterator[Selector]:
    affinity = pod.spec.affinity
    terms = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    written: list[LabelSelector | None] = [term.label_selector for each in terms if each for term in each.required]
    written += [each.label_selector for each in pod.spec.topology_spread_constraints]
    for selector in written:
        try:
            yield compile_label_selector(selector)
        except SelectorError:
            continue


def _take_off_until_it_fits(
    trial: Trial, rows: Sequence[int], pods: Sequence[PlacedPod]
) -> tuple[list[PlacedPod], list[int]]:
    """(the pods taken off, the rows on which the preemptor fits then)."""
    off: list[PlacedPod] = []
    while len(off) < len(pods):
        step = pods[len(off) : max(FIRST_STEP, GROWTH * len(off))]
        for placed in step:
            trial.take_off(placed)
        off += step
        fitting = [row for row in rows if trial.fits(row)]
        if fitting:
            return off, fitting
    return off, []


def _victims(trial: Trial, row: int, off: list[PlacedPod], budgets: Budgets) -> list[PlacedPod]:
    """Which of the pods taken off must go, the most important first; [] where budgets leave no way."""
    left = _most_important_first(off)
    for _ in range(MOST_BUDGET_TRIES):
        trial.leave_off(left)
        if not trial.fits(row):
            return []
        victims = _put_back(trial, row, left)
        broken = budgets.split([placed for placed in reversed(victims) if not placed.pod.terminating])[0]
        if not broken:
            return victims
        spared = {placed.pod.uid for placed in broken}
        left = [placed for placed in left if placed.pod.uid not in spared]
    return []


def _most_important_first(pods: list[PlacedPod]) -> list[PlacedPod]:
    """Those that are leaving come last: evicting them costs nothing."""
    staying = by_importance([placed for placed in pods if not placed.pod.terminating])
    return staying + [placed for placed in pods if placed.pod.terminating]


def _put_back(trial: Trial, row: int, pods: list[PlacedPod]) -> list[PlacedPod]:
    """Put back all that can be, as if one after the other; what is left off."""
    if not pods:
        return []
    for placed in pods:
        trial.put_back(placed)
    if trial.fits(row):
        return []
    for placed in pods:
        trial.take_off(placed)
    if len(pods) == 1:
        return pods
    half = len(pods) // 2
    return _put_back(trial, row, pods[:half]) + _put_back(trial, row, pods[half:])
