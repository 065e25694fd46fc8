"""Searches for pods to evict anywhere in the cluster so that a pod fits on one node.

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

from podium.cluster import PlacedPod, PodFacts
from podium.framework import Cycle
from podium.framework.profile import ProfileRuntime
from podium.kube import LabelSelector, Pod
from podium.kube.selector import Selector, SelectorError, compile_label_selector
from podium.preemption import Budgets, Candidate, Harm, by_importance, harm_of, was_evicted
from podium_plugins.cross_node_preemption.args import CrossNodePreemptionArgs
from podium_plugins.cross_node_preemption.cluster_trial import ClusterTrial

FIRST_STEP, GROWTH = 16, 4
"""Pods that are taken off at first, and how many times as many are off after each further step."""
MOST_CANDIDATES = 5
"""Nodes for which victims are worked out."""
MOST_BUDGET_TRIES = 3
NO_HARM = Harm(0, -(2**31), 0, 0, 0.0)


def find_across_nodes(
    runtime: ProfileRuntime, cycle: Cycle, rows: Sequence[int], args: CrossNodePreemptionArgs
) -> Candidate | None:
    """The node and the victims, on whatever nodes, that hurt least; None where none are found."""
    cluster = cycle.cluster
    budgets = Budgets(cluster.objects.budgets)
    pods = evictable_pods(cycle.pod, cluster.pods.values(), budgets, args.max_pods)
    found: list[Candidate] = []
    with cluster.dry_run():
        trial = ClusterTrial(runtime, cycle)
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
    trial: ClusterTrial, rows: Sequence[int], pods: Sequence[PlacedPod]
) -> tuple[list[PlacedPod], list[int]]:
    """(the pods taken off, the rows on which the preemptor fits then)."""
    off: list[PlacedPod] = []
    while len(off) < len(pods):
        step = pods[len(off) : max(FIRST_STEP, GROWTH * len(off))]
        trial.take_off(step)
        off += step
        fitting = [row for row in rows if trial.fits(row)]
        if fitting:
            return off, fitting
    return off, []


def _victims(trial: ClusterTrial, row: int, off: list[PlacedPod], budgets: Budgets) -> list[PlacedPod]:
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


def _put_back(trial: ClusterTrial, row: int, pods: list[PlacedPod]) -> list[PlacedPod]:
    """Put back all that can be, as if one after the other; what is left off."""
    if not pods:
        return []
    trial.put_back(pods)
    if trial.fits(row):
        return []
    trial.take_off(pods)
    if len(pods) == 1:
        return pods
    half = len(pods) // 2
    return _put_back(trial, row, pods[:half]) + _put_back(trial, row, pods[half:])
