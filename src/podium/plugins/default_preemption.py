"""Evicts pods of lower priority for a pod that fits nowhere (DefaultPreemption).

The search looks at a share of the nodes that eviction could help (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start, and evicts on the one node where it hurts least. The pod is then
nominated to that node and tried again when its victims are gone; until the evictions are under way it stays out of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.cluster import PlacedPod
from podium.config.field import FieldError, FieldPath
from podium.framework import (
    Action,
    Code,
    Cycle,
    Diagnosis,
    Handle,
    Interest,
    Nomination,
    Plugin,
    PluginError,
    PostFilterResult,
    Resource,
    Status,
)
from podium.framework.preemption.dry_runs import Candidate, DryRuns, LowestPriorities
from podium.framework.preemption.extenders import least_harmful, left_by_extenders, preemption_extenders
from podium.framework.preemption.search import find_candidates, no_candidates_message
from podium.framework.timer import Done
from podium.kube import Pod

NAME = "DefaultPreemption"
NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_LEAVING = "not eligible due to a terminating pod on the nominated node."
STILL_EVICTING = "waiting for the preemption for this pod to be finished"
NO_CANDIDATE = "no candidate node for preemption"


class DefaultPreemptionArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
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


class DefaultPreemption(Plugin):
    name = NAME
    Args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evicting: dict[str, list[Pod]] = {}
        self._dry_runs = DryRuns()
        self._lowest = LowestPriorities(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        """Evictions only lift the gate; whether the pod fits then is for the plugins that refused it to say."""
        return [Interest(Resource.POD, Action.DELETE, lambda _pod, _before, _after: False, by_signature=True)]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Hold the pod back while its victims are being evicted; news that the last is going may come before the end
        of that, and nothing would wake the pod afterwards."""
        victims = self._evicting.get(pod.uid)
        if victims is None or all(self._going(victim) for victim in victims):
            return None
        return Status.unresolvable(STILL_EVICTING)

    def _going(self, victim: Pod) -> bool:
        placed = self.handle.cluster.pods.get(victim.uid)
        return placed is None or placed.pod.terminating

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        objection = self._objection(cycle, diagnosis)
        if objection:
            return _refused(objection)
        rows = diagnosis.statuses.with_code(Code.UNSCHEDULABLE, cycle.cluster)
        offset = self.handle.rng.randrange(len(rows)) if len(rows) else 0
        fruitless: PostFilterResult | None = diagnosis.notes.get(NAME)
        if fruitless is not None:
            return fruitless
        wanted = self._wanted(len(rows))
        hopeless = self._lowest.refreshed() >= cycle.pod.priority
        runtime = self.handle.runtime
        extenders = preemption_extenders(self.handle, cycle.pod) if self.handle.extenders else []
        search = find_candidates(
            runtime, cycle, rows, may_evict, hopeless, offset, wanted, self._dry_runs, all_candidates=bool(extenders)
        )
        if not search.best:
            if search.errors:
                return PostFilterResult(Status.error(f"preemption: {_aggregate(search.errors)}"))
            message = no_candidates_message(cycle.cluster, search)
            fruitless = PostFilterResult(Status.unschedulable(f"preemption: {message}"), Nomination(""))
            diagnosis.notes[NAME] = fruitless  # wherever the search begins
            return fruitless
        best = search.best
        if extenders:
            try:
                best = least_harmful(left_by_extenders(self.handle, extenders, cycle.pod, best))
            except PluginError as error:
                return PostFilterResult(Status.error(f"preemption: {error}"))
            if not best:
                return _refused(NO_CANDIDATE)
        cycle.data[NAME] = best
        chosen = best[0]
        self._evict(cycle.pod, chosen)
        return PostFilterResult(None, Nomination(chosen.node_name))

    def _objection(self, cycle: Cycle, diagnosis: Diagnosis) -> str:
        """Why the pod may not evict others now; "" when it may."""
        pod, cluster = cycle.pod, cycle.cluster
        if pod.spec.preemption_policy == "Never":
            return NEVER
        row = cluster.row_of.get(pod.status.nominated_node_name)
        if row is None or cluster.nodes[row] is None or diagnosis.statuses.get(row).code == Code.UNRESOLVABLE:
            return ""
        leaving = any(may_evict(placed, pod) and _evicted(placed.pod) for placed in cluster.pods_on[row].values())
        return VICTIM_LEAVING if leaving else ""

    def _wanted(self, nodes: int) -> int:
        args: DefaultPreemptionArgs = self.args
        share = nodes * args.min_candidate_nodes_percentage // 100
        return min(nodes, max(share, args.min_candidate_nodes_absolute))

    def _evict(self, pod: Pod, chosen: Candidate) -> None:
        """Evict the victims; those not bound yet are let go in memory, those terminating are left alone."""
        staying = [victim for victim in chosen.victims if not victim.terminating]
        if not staying:
            return
        over = self.handle.timer.preempting(len(chosen.victims))
        for other in self.handle.nominator.on(chosen.node_name):
            if other.priority < pod.priority and other.status.nominated_node_name:
                self.handle.writer.clear_nomination(other)
        victims = [victim for victim in staying if not self._taken_back(victim, pod, chosen.node_name)]
        if victims:
            self._evicting[pod.uid] = victims
            self.handle.writer.evict(victims, pod, chosen.node_name, lambda error: self._finish(pod, error, over))
        else:
            over(None)

    def _taken_back(self, victim: Pod, preemptor: Pod, node_name: str) -> bool:
        """Whether the victim was held at Permit or prepared for binding, so that nothing but our memory must change."""
        waiting, call_off = self.handle.waiting.get(victim.uid), self.handle.pre_binding.get(victim.uid)
        if waiting is not None:
            if not waiting.preempt(NAME, "preempted"):
                return False
        elif call_off is not None:
            call_off(f"preempted by {NAME}")
        else:
            return False
        self.handle.writer.taken_back(victim, preemptor, node_name)
        return True

    def _finish(self, pod: Pod, error: str | None, over: Done | None = None) -> None:
        if over is not None:
            over(error)
        self._evicting.pop(pod.uid, None)
        if error is not None:
            self.handle.report(f"evicting pods for {pod.key}: {error}")
            self.handle.activate([pod])


def may_evict(placed: PlacedPod, preemptor: Pod) -> bool:
    return placed.pod.priority < preemptor.priority


def _evicted(pod: Pod) -> bool:
    """Whether a pod is terminating because the scheduler evicted it."""
    if not pod.terminating:
        return False
    target = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _refused(reason: str) -> PostFilterResult:
    return PostFilterResult(Status.unschedulable(f"preemption: {reason}"))


def _aggregate(errors: list[str]) -> str:
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
