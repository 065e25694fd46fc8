"""Answers whether pods would fit, and where: pods from a file, or those that wait, before and after changes.

Pods are placed in the order of the queue, each with those before it in place. What is given is younger than what waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from podium.engine.explain import Eviction, Outcome
from podium.engine.unblock import Remedy
from podium.kube import Pod
from podium.whatif.applying import AppliedChanges, NodeMaker, apply
from podium.whatif.changes import Change, Drain
from podium.whatif.drain import DRAIN_DEFAULTS, DRAINED, DrainAnswer, DrainRules, drain
from podium.whatif.manifests import Given, WantedPods, wanted
from podium.whatif.placements import PodPlacement, SandboxPlacer
from podium.whatif.quotas import LIMIT_RANGES, QUOTAS, NamespaceRules
from podium.whatif.records import (
    CostRecord,
    DeadlockRecord,
    EvictionRecord,
    PlacedRecord,
    PodRecord,
    Record,
    placed_record,
    refusal_records,
    remedy_records,
)
from podium.whatif.sandbox import Sandbox

# Verdicts
FITS: Final = "fits"
UNBLOCKED: Final = "unblocked"
BLOCKED: Final = "blocked"
NEWLY_BLOCKED: Final = "newlyBlocked"
UNCHANGED: Final = "unchanged"
GATED: Final = "gated"
QUOTA: Final = "quota"
MOVED: Final = "moved"

GIVEN: Final = "given"
PENDING: Final = "pending"
RUNNING: Final = "running"
VICTIM: Final = "victim"

CostOf = Callable[[Sequence[str]], CostRecord | None]


class FitRecord(Record, kw_only=True, omit_defaults=True):
    """The answer of `podium whatif`."""

    pods: list[PodRecord]
    summary: dict[str, int]
    """How many pods have which verdict; `moved` ones fit before and after, on different nodes."""
    cost: CostRecord | UnsetType | None = UNSET
    nodes: list[str] | UnsetType = UNSET
    """The nodes that are drained, with the three below."""
    drained: bool | UnsetType = UNSET
    rounds: int | UnsetType = UNSET
    """How often budgets make the drain wait."""
    deadlock: list[DeadlockRecord] | UnsetType = UNSET


class FitQuestion(Record, kw_only=True):
    """What was asked."""

    changes: list[dict[str, Any]]
    given: list[str]
    pending: bool


@dataclass
class Judged:
    """One pod before and after."""

    pod: Pod
    origin: str
    after: PodPlacement
    before: PodPlacement | None = None
    verdict: str = ""


@dataclass
class FitAnswer:
    """The pods in the order in which they were tried, and what the changes came to."""

    pods: list[Judged]
    applied: AppliedChanges
    changes: Sequence[Change]
    given: list[str] = field(default_factory=list)
    pending: bool = True
    drained: DrainAnswer | None = None

    @property
    def yes(self) -> bool:
        """Whether all given pods fit, or, where none is given, at least one that waits; and all drained ones move."""
        if self.drained is not None and not self.drained.yes:
            return False
        if self.given:
            return all(each.after.fits for each in self.pods if each.origin == GIVEN)
        waiting = [each for each in self.pods if each.origin == PENDING]
        return any(each.after.fits for each in waiting) or not waiting

    def question(self) -> FitQuestion:
        return FitQuestion(changes=shown_changes(self.changes, self.applied), given=self.given, pending=self.pending)

    def record(self, cost: CostRecord | None = None) -> FitRecord:
        drained = self.drained
        pods = [] if drained is None else drained.records()
        pods += [pod_record(each) for each in self.pods]
        record = FitRecord(pods=pods, summary=summary_of(pods), cost=cost)
        if drained is not None:
            record.nodes, record.drained = drained.nodes, drained.yes
            record.rounds, record.deadlock = drained.rounds, drained.deadlock
        return record


def fit(
    sandbox: Sandbox,
    changes: Sequence[Change] = (),
    given: Given | None = None,
    *,
    replicas: int | None = None,
    with_pending: bool = False,
    preempt: bool = False,
    drain_rules: DrainRules = DRAIN_DEFAULTS,
    make: NodeMaker | None = None,
    origin: str = "the files",
) -> FitAnswer:
    """Judge what is given, or what waits, after the changes; the sandbox is left as it was."""
    question = given if given else None
    drains = any(isinstance(each, Drain) for each in changes)
    judge_pending = (question is None and not drains) or with_pending
    before = _pending_as_it_is(sandbox) if judge_pending else {}
    with sandbox.trying():
        applied = apply(sandbox, changes, make)
        drained = drain(sandbox, applied.drained, drain_rules) if applied.drained else None
        found = WantedPods() if question is None else wanted(sandbox, question, replicas, origin, applied.unplaced)
        found.pods += applied.unplaced
        for each in found.others:
            sandbox.set(each)
        rules = rules_of(sandbox)
        judged: list[Judged] = [_standing(pod) for pod in found.standing]
        ready: list[Pod] = []
        shortages: dict[str, list[str]] = {}
        for made in found.pods:
            pod = rules.with_defaults(made) if rules else made
            refusal = rules.refusal(pod) if rules else None
            if refusal is not None:
                judged.append(Judged(pod, GIVEN, PodPlacement(pod, message=refusal), verdict=QUOTA))
                shortages[pod.uid] = rules.shortages(pod)
            else:
                ready.append(pod)
                sandbox.set(pod)
        ours = {pod.uid for pod in ready}
        pending = [pod for pod in sandbox.pending() if pod.uid not in ours] if judge_pending else []
        placer = SandboxPlacer(sandbox, closely=True, with_remedies=True)
        placements = placer.place_all(placer.in_queue_order(pending, ready), preempt=preempt)
        waited = {pod.uid for pod in pending}
        for placement in placements:
            uid = placement.pod.uid
            whence = GIVEN if uid in ours else PENDING if uid in waited else VICTIM
            judged.append(Judged(placement.pod, whence, placement, before.get(uid)))
        for each in judged:
            if shortages.get(each.pod.uid):
                each.after.remedies = _beside_quota(placer, each.pod, shortages[each.pod.uid])
    for each in judged:
        if each.origin == VICTIM:
            each.before = PodPlacement(each.pod, _node_of_victim(each.pod, placements), Outcome.FITS)
        each.verdict = each.verdict or _verdict(each)
    names = [pod.key for pod in [*found.standing, *found.pods]]
    return FitAnswer(judged, applied, changes, names, judge_pending, drained)


def _beside_quota(placer: SandboxPlacer, pod: Pod, amounts: list[str]) -> list[Remedy]:
    """What lets in a pod that a quota refuses: the amounts, and, where no node takes it, what a node needs, too."""
    chosen = placer.choose(pod)
    if chosen.node is not None:
        return [Remedy(chosen.node, amounts)]
    return [Remedy(each.node, [*amounts, *each.changes]) for each in chosen.remedies]


def rules_of(sandbox: Sandbox) -> NamespaceRules:
    """The quotas and limit ranges of the cluster."""
    objects = sandbox.cluster.objects
    everyone = [*(placed.pod for placed in sandbox.cluster.pods.values()), *objects.pending_pods]
    return NamespaceRules(objects.custom_store(QUOTAS), objects.custom_store(LIMIT_RANGES), everyone)


def _pending_as_it_is(sandbox: Sandbox) -> dict[str, PodPlacement]:
    with sandbox.trying():
        placer = SandboxPlacer(sandbox)
        placements = placer.place_all(placer.in_queue_order(sandbox.pending()))
    return {each.pod.uid: each for each in placements}


def _standing(pod: Pod) -> Judged:
    here = PodPlacement(pod, pod.node_name, Outcome.FITS)
    return Judged(pod, RUNNING, here, here, UNCHANGED)


def _node_of_victim(victim: Pod, placements: Sequence[PodPlacement]) -> str | None:
    for each in placements:
        if each.eviction is not None and any(other.uid == victim.uid for other in each.victims):
            return each.eviction.node
    return None


def _verdict(each: Judged) -> str:
    if each.after.outcome is Outcome.HELD:
        return GATED
    if each.origin == GIVEN:
        return FITS if each.after.fits else BLOCKED
    stood = each.before is not None and each.before.fits
    if each.after.fits:
        return FITS if stood else UNBLOCKED
    return NEWLY_BLOCKED if stood else BLOCKED


def summary_of(pods: Sequence[PodRecord]) -> dict[str, int]:
    """How many pods have which verdict."""
    summary = dict.fromkeys((UNBLOCKED, FITS, BLOCKED, MOVED, NEWLY_BLOCKED), 0)
    for each in pods:
        summary[each.verdict] = summary.get(each.verdict, 0) + 1
        before = each.before if isinstance(each.before, PlacedRecord) else None
        changed = before is not None and before.node and each.after.node and before.node != each.after.node
        summary[MOVED] += bool(changed) and each.origin != DRAINED
    return summary


def pod_record(each: Judged) -> PodRecord:
    after = each.after
    record = PodRecord(pod=each.pod.key, origin=each.origin, after=placed_record(after), verdict=each.verdict)
    if each.before is not None:
        record.before = placed_record(each.before)
    if not after.fits:
        record.reasons = refusal_records(after)
        record.remedies = remedy_records(after.remedies)
        if after.notes:
            record.notes = after.notes
    if after.eviction is not None:
        record.victims = _eviction(after.eviction)
    if after.fits and after.message:
        record.message = after.message
    return record


def _eviction(eviction: Eviction) -> EvictionRecord:
    return EvictionRecord(node=eviction.node, pods=eviction.victims)


def shown_changes(changes: Sequence[Change], applied: AppliedChanges) -> list[dict[str, Any]]:
    """The changes as the answer repeats them: `{"addNodes": {"count": 1, "type": …, "names": […]}}`."""
    shown = []
    for number, each in enumerate(changes):
        fields = msgspec.to_builtins(each)
        tag = fields.pop("change")
        if tag == "addNodes":
            fields["count"] = each.count  # type: ignore[attr-defined]
            fields["names"] = applied.added.get(number, [])
        shown.append({tag: fields})
    return shown
