"""Makes room for a pod: searches, lets extenders have their say, and evicts; all preemption plugins share this.

The pod is nominated to the node that is freed and tried again when its victims are gone; until the evictions are under
way it stays out of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from podium.cluster import Mask, Rows
from podium.config.field import FieldError, FieldPath
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, Nomination, PostFilterResult
from podium.framework.events import Action, Interest, Resource
from podium.framework.handle import GroupPreemptor, Handle, Preemptor
from podium.framework.status import Code, PluginError, Status
from podium.framework.timer import Done
from podium.kube import Pod, PodGroup
from podium.preemption.dry_runs import Candidate, DryRuns
from podium.preemption.extenders import least_harmful, left_by_extenders, preemption_extenders
from podium.preemption.rules import EvictionRule, NodeRule
from podium.preemption.search import find_candidates, no_candidates_message

NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIM_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
PLACEMENT = "found a potential placement for pod on node"
STILL_EVICTING: Final = "waiting for the preemption for this pod to be finished"
STILL_EVICTING_FOR_GROUP: Final = "waiting for the preemption for this pod group to be finished"
WHOLE_CLUSTER: Final = "cluster"
"""Where a PodGroup preempts."""
NO_CANDIDATE: Final = "no candidate node for preemption"
VICTIM_GONE: Final = Interest(Resource.POD, Action.DELETE, lambda _pod, _before, _after: False, by_signature=True)
"""Evictions only lift the gate; whether the pod fits then is for the plugins that refused it to say."""
CANDIDATES: Final = "preemption candidates"
"""Under this name the cycle's notes hold the candidates among which chance decided."""


Choose = Callable[[Sequence[Candidate]], Candidate | None]
"""Picks one of the candidates; None: none of them may be evicted for."""


class CandidateNodesArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How many nodes are tried by plugins that evict by priority: a share of those that eviction could help
    (minCandidateNodesPercentage), but at least minCandidateNodesAbsolute, from a random start."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = path.child("minCandidateNodesPercentage")
        absolute_path = path.child("minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield FieldError.invalid(percentage_path, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield FieldError.invalid(absolute_path, absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            for here, other in ((percentage_path, absolute_path), (absolute_path, percentage_path)):
                yield FieldError.invalid(here, 0, f"cannot be zero at the same time as {other.steps[-1]}")

    def wanted(self, nodes: int) -> int:
        """How many candidates are enough, of so many nodes."""
        share = nodes * self.min_candidate_nodes_percentage // 100
        return min(nodes, max(share, self.min_candidate_nodes_absolute))


class Evictions:
    """The evictions of one preemption plugin."""

    def __init__(self, plugin: str, handle: Handle) -> None:
        self._plugin = plugin
        self._handle = handle
        self._evicting: dict[str, list[Pod]] = {}

    def hold_back(self, pod: Pod) -> Status | None:
        """Hold the pod back while its victims are being evicted; news that the last is going may come before the end
        of that, and nothing would wake the pod afterwards."""
        return Status.unresolvable(STILL_EVICTING) if self._evicts_for(pod.uid) else None

    def hold_back_member(self, group: PodGroup) -> Status | None:
        """The same for a member of a group for which pods are being evicted."""
        return Status.unresolvable(STILL_EVICTING_FOR_GROUP) if self._evicts_for(group.uid) else None

    def _evicts_for(self, uid: str) -> bool:
        victims = self._evicting.get(uid)
        return victims is not None and not all(self._going(victim) for victim in victims)

    def _going(self, victim: Pod) -> bool:
        placed = self._handle.cluster.pods.get(victim.uid)
        return placed is None or placed.pod.terminating

    def make_room(
        self,
        cycle: Cycle,
        rows: Rows,
        rule: EvictionRule | NodeRule,
        hopeless: Mask,
        *,
        offset: int,
        wanted: int,
        known: DryRuns | None,
        choose: Choose | None = None,
    ) -> PostFilterResult:
        """Evict on the node where it hurts least, or on the one that `choose` picks; the other arguments are those of
        `find_candidates`."""
        handle = self._handle
        extenders = preemption_extenders(handle, cycle.pod) if handle.extenders else []
        every = bool(extenders) or choose is not None
        search = find_candidates(
            handle.runtime, cycle, rows, rule, hopeless, offset, wanted, known, all_candidates=every
        )
        if not search.best:
            if search.errors:
                return PostFilterResult(Status.error(f"preemption: {_aggregate(search.errors)}"))
            return fruitless(no_candidates_message(cycle.cluster, search))
        best = search.best
        if extenders:
            try:
                best = left_by_extenders(handle, extenders, cycle.pod, best)
                best = least_harmful(best) if choose is None else best
            except PluginError as error:
                return PostFilterResult(Status.error(f"preemption: {error}"))
            if not best:
                return refused(NO_CANDIDATE)
        chosen = best[0] if choose is None else choose(best)
        if chosen is None:
            return refused(NO_CANDIDATE)
        cycle.data[CANDIDATES] = best if choose is None else [chosen]
        return self.evict(cycle, chosen)

    def evict(self, cycle: Cycle, chosen: Candidate) -> PostFilterResult:
        """Evict the victims, wherever they are, and nominate the pod to the node that they make room on."""
        self._evict(cycle.pod, chosen)
        placement = ""
        if self._handle.rules.preemption_names_the_node:
            node, number = chosen.node_name, len(chosen.victims)
            placement = f"preemption: {PLACEMENT} {node}, preempting {number} victims"
        return PostFilterResult(None, Nomination(chosen.node_name), placement)

    def _evict(self, pod: Pod, chosen: Candidate) -> None:
        """Evict the victims; those not bound yet are let go in memory, those terminating are left alone."""
        staying = [victim for victim in chosen.victims if not victim.terminating]
        if not staying:
            return
        outranks = self._handle.nominator.outranks
        for other in self._handle.nominator.on(chosen.node_name):
            before = other.priority < pod.priority if outranks is None else outranks(pod, other)
            if before and other.status.nominated_node_name:
                self._handle.writer.clear_nomination(other)
        self._evict_all(staying, pod, chosen.node_name, [pod], len(chosen.victims))

    def evict_for_group(self, group: PodGroup, members: Sequence[Pod], victims: Sequence[Pod]) -> None:
        """Evict for a whole PodGroup, whose members stay out of the queue until the evictions are under way."""
        staying = [victim for victim in victims if not victim.terminating]
        if staying:
            preemptor = GroupPreemptor(group, members[0].spec.scheduler_name)
            self._evict_all(staying, preemptor, WHOLE_CLUSTER, members, len(victims))

    def _evict_all(
        self, staying: Sequence[Pod], preemptor: Preemptor, where: str, waiting: Sequence[Pod], number: int
    ) -> None:
        over = self._handle.timer.preempting(number)
        victims = [victim for victim in staying if not self._taken_back(victim, preemptor, where)]
        if victims:
            self._evicting[preemptor.uid] = victims
            self._handle.writer.evict(
                victims, preemptor, where, lambda error: self._finish(preemptor, waiting, error, over)
            )
        else:
            over(None)

    def _taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> bool:
        """Whether the victim was held at Permit or prepared for binding, so that nothing but our memory must change."""
        handle = self._handle
        waiting, call_off = handle.waiting.get(victim.uid), handle.pre_binding.get(victim.uid)
        if waiting is not None:
            if not waiting.preempt(self._plugin, "preempted"):
                return False
        elif call_off is not None:
            call_off(f"preempted by {self._plugin}")
        else:
            return False
        handle.writer.taken_back(victim, preemptor, node_name)
        return True

    def _finish(self, preemptor: Preemptor, waiting: Sequence[Pod], error: str | None, over: Done) -> None:
        over(error)
        self._evicting.pop(preemptor.uid, None)
        if error is not None:
            self._handle.report(f"evicting pods for {preemptor.key}: {error}")
            self._handle.activate(waiting)


def objection_to_preempting(cycle: Cycle, diagnosis: Diagnosis, makes_room: Callable[[Pod], bool] | None = None) -> str:
    """Why the pod may not evict others now; "" when it may.

    `makes_room` says whether a pod on the nominated node is about to make room: else one of lower priority that was
    evicted.
    """
    pod = cycle.pod
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = nominated_row(cycle, diagnosis)
    if row is None:
        return ""
    there = cycle.cluster.pods_on[row].values()
    if makes_room is not None:
        leaving = any(makes_room(placed.pod) for placed in there)
    else:
        leaving = any(placed.pod.priority < pod.priority and was_evicted(placed.pod) for placed in there)
    return VICTIM_LEAVING if leaving else ""


def unschedulable_rows(cycle: Cycle, diagnosis: Diagnosis) -> Rows:
    """The nodes that reported Unschedulable: where evictions may help."""
    return diagnosis.statuses.with_code(Code.UNSCHEDULABLE, cycle.cluster)


def random_start(handle: Handle, rows: Rows) -> int:
    """The position in `rows` from which nodes are tried."""
    return handle.rng.randrange(len(rows)) if len(rows) else 0


def nominated_row(cycle: Cycle, diagnosis: Diagnosis) -> int | None:
    """The row that the pod was nominated to, where evicting there may still help."""
    row = cycle.cluster.row_of.get(cycle.pod.status.nominated_node_name)
    if row is None or cycle.cluster.nodes[row] is None or diagnosis.statuses.get(row).code == Code.UNRESOLVABLE:
        return None
    return row


def was_evicted(pod: Pod) -> bool:
    """Whether a pod is terminating because the scheduler evicted it."""
    if not pod.terminating:
        return False
    target = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def refused(reason: str) -> PostFilterResult:
    """The result where the pod may not, or cannot, make room."""
    return PostFilterResult(Status.unschedulable(f"preemption: {reason}"))


def fruitless(reason: str) -> PostFilterResult:
    """The result where nothing is to be gained: a nomination that the pod had goes."""
    return PostFilterResult(Status.unschedulable(f"preemption: {reason}"), Nomination(""))


def _aggregate(errors: list[str]) -> str:
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
