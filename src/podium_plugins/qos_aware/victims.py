"""Rules who may be evicted for a pod, who should rather stay, and on which node it hurts least.

A pending pod P may evict a running pod V if P goes before V (`precedence`), or V is worth nothing to its controller
(replicas that must run together, one missing), and the first of these rules that speaks says yes:

    R1  one controller, unless it is measured independently       no
    R2  V is not contributing                                     yes
    R3  V has run long enough and has slack                       yes
    R4  P is more important                                       yes
    R5  V has run long enough and preemption cost it little       yes

What differs from the original (`compat` decides as it does):

    V is never evicted before it has run for the minimum running time, whichever rule speaks
    P evicts only while it is urgent: a pod with slack can wait
    P evicts a Job's task, whose work is lost with it, only when no slack is left: a task that ends may make room
    R3 wants the margin and an exchange's length as slack, and R3 and R5 bound the preemption overhead
    R5 wants V to be ahead of P by so much that two pods do not take turns for nothing
    a pod whose disruption budget is used up is never a victim
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from podium.cluster import PlacedPod
from podium.framework import Status
from podium.kube import Pod
from podium.preemption import Candidate
from podium_plugins.qos.account import TimeUse
from podium_plugins.qos.formulas import INDEPENDENT
from podium_plugins.qos.ledger import EXEMPT, QosLedger
from podium_plugins.qos_aware.precedence import PrecedenceKey, precedence_key


class EvictionLimits(NamedTuple):
    """The plugin's arguments, in seconds."""

    margin: float
    minimum: float
    compat: bool


class VictimCost(NamedTuple):
    """What a victim counts in the choice of a node."""

    importance: float
    metric: float
    contributing: bool


class UrgentPod:
    """A pending pod that looks for victims, at one moment; what it finds out about pods is kept for the search."""

    def __init__(self, ledger: QosLedger, limits: EvictionLimits, pod: Pod, now: float) -> None:
        self._ledger = ledger
        self._limits = limits
        self._now = now
        uid = pod.metadata.uid or pod.key
        self.metric = ledger.metric(uid, now)
        self.importance = ledger.importance(uid)
        self._key = precedence_key(self.metric, self.importance, limits.margin, ledger.reach(uid, self.metric, now))
        known = ledger.find(uid)
        self._controller = "" if known is None else known[0].key
        self._independent = known is not None and known[0].approach == INDEPENDENT
        self._metrics: dict[str, float] = {}

    def metric_of(self, uid: str) -> float:
        found = self._metrics.get(uid)
        if found is None:
            found = self._metrics[uid] = self._ledger.metric(uid, self._now)
        return found

    def importance_of(self, pod: Pod) -> float:
        return self._ledger.importance(pod.metadata.uid)

    def key_of(self, pod: Pod) -> PrecedenceKey:
        uid = pod.metadata.uid
        metric = self.metric_of(uid)
        reach = self._ledger.reach(uid, metric, self._now)
        return precedence_key(metric, self.importance_of(pod), self._limits.margin, reach)

    def contributing(self, pod: Pod) -> bool:
        known = self._ledger.find(pod.metadata.uid)
        return known is None or known[0].contributing()

    def cost_of(self, pod: Pod) -> VictimCost:
        """What evicting a pod costs: nothing where its controller has no use for it, whatever slack others have."""
        contributing = self.contributing(pod)
        if not contributing and not self._limits.compat:
            return VictimCost(self.importance_of(pod), math.inf, True)
        return VictimCost(self.importance_of(pod), self.metric_of(pod.uid), contributing)

    def may_evict(self, victim: Pod) -> bool:
        """Whether a pod on a node may be evicted for this one."""
        uid = victim.metadata.uid
        known = self._ledger.find(uid)
        if victim.metadata.namespace == EXEMPT or known is None:
            return False
        account, placed = known
        limits = self._limits
        if not limits.compat and self.metric >= limits.margin:
            return False
        if account.key == self._controller and not self._independent:
            return False
        ran = placed.spans(self._now)[2] if placed.state is TimeUse.RUNNING else 0.0
        if not limits.compat and ran < limits.minimum:
            return False
        if not account.contributing():
            return True
        if not self._key < self.key_of(victim):
            return False
        return self._by_rules(uid, ran)

    def _by_rules(self, uid: str, ran: float) -> bool:
        """R3 to R5, for a pod that goes behind this one."""
        limits, ledger = self._limits, self._ledger
        importance, metric, long_enough = ledger.importance(uid), self.metric_of(uid), ran >= limits.minimum
        if limits.compat:
            if (long_enough and metric >= limits.margin) or self.importance > importance:
                return True
            overhead, acceptable = ledger.overhead(uid, self._now)
            return long_enough and overhead <= acceptable
        if importance <= 0:
            return True
        if self.metric >= 0 and ledger.loses_work(uid):
            return False
        if self.importance > importance:
            return not ledger.lost_too_much(uid, self._now)
        overhead, acceptable = ledger.overhead(uid, self._now)
        if not overhead <= acceptable:
            return False
        if metric >= limits.margin + max(limits.minimum, ledger.exchange(uid, self._now)):
            return True
        gap = ledger.lead(uid, self._now) + limits.minimum
        return self.importance == importance and metric >= self.metric + gap


class ByQos:
    """The ruling about one node."""

    __slots__ = ("_preemptor", "evictable")

    def __init__(self, preemptor: UrgentPod, pods: Collection[PlacedPod]) -> None:
        self._preemptor = preemptor
        self.evictable: Sequence[PlacedPod] = [each for each in pods if preemptor.may_evict(each.pod)]

    def ranked(self, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
        ask = self._preemptor
        return sorted(pods, key=lambda each: (not ask.contributing(each.pod), ask.key_of(each.pod), each.pod.key))

    def objection(self) -> Status | None:
        return None

    def may_stay(self, _placed: PlacedPod) -> bool:
        return True

    def put_back(self, _placed: PlacedPod) -> None:
        return None


def choose_node(candidates: Sequence[tuple[str, Sequence[VictimCost]]], margin: float) -> str | None:
    """The node where evicting hurts least: urgent pods of the most important class are protected first, then those of
    the next; then pods with much slack are preferred, then few victims, then the name.

    >>> choose_node([("n1", [VictimCost(0.9, 10, True)]),
    ...              ("n2", [VictimCost(0.5, -400, True), VictimCost(0.5, 100, True)]),
    ...              ("n3", [VictimCost(0.9, 500, True)])], 30.0)
    'n3'
    """
    left = sorted(candidates, key=lambda each: each[0])
    classes = sorted({victim.importance for _, victims in left for victim in victims}, reverse=True)

    def score(victims: Sequence[VictimCost], importance: float | None) -> float:
        return sum(
            _slack(victim, margin)
            for victim in victims
            if importance is None or (victim.importance == importance and victim.metric < margin)
        )

    for importance in (*classes, None):
        if len(left) <= 1:
            break
        best = max(score(victims, importance) for _, victims in left)
        left = [each for each in left if score(each[1], importance) == best]
    if not left:
        return None
    return min(left, key=lambda each: (len(each[1]), each[0]))[0]


def _slack(victim: VictimCost, margin: float) -> float:
    if not victim.contributing or victim.metric != victim.metric:
        return 0.0
    return victim.metric - margin


def least_harm(preemptor: UrgentPod, candidates: Sequence[Candidate], margin: float) -> Candidate | None:
    """The candidate to evict on; None where each would break a disruption budget."""
    by_name = {each.node_name: each for each in candidates if not each.harm.violations}
    costs = [(name, [preemptor.cost_of(pod) for pod in each.victims]) for name, each in by_name.items()]
    chosen = choose_node(costs, margin)
    return None if chosen is None else by_name[chosen]
