"""Compares what two configurations decide: for pods that wait, each running pod alone, or all on an empty cluster.

The outcomes are those of `podium shadow report`: the same node; a tie; another node by so many points; a node that the
new configuration refuses; a node under one of them only. Where nodes differ, the plugin that tips the decision is the
one whose weighted score for the two nodes changes most from the old configuration to the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from podium.engine.decide import decide
from podium.engine.explain import as_unbound
from podium.framework.cycle import Cycle
from podium.framework.status import PluginError
from podium.kube import Pod
from podium.kube.requests import fit_requests
from podium.whatif.placements import PodPlacement, SandboxPlacer, created
from podium.whatif.records import Record
from podium.whatif.sandbox import Sandbox

SAME: Final = "same"
TIE: Final = "tie"
DIFFERS: Final = "differs"
REFUSED: Final = "refused"
ONLY_NEW: Final = "only-new"
ONLY_OLD: Final = "only-old"
OUTCOMES: Final = (SAME, TIE, DIFFERS, REFUSED, ONLY_NEW, ONLY_OLD)

PENDING: Final = "pending"
RUNNING: Final = "running"
REPLACE_ALL: Final = "replaceAll"


class ComparedRecord(Record, kw_only=True):
    """One pod under both configurations."""

    pod: str
    owner: str
    outcome: str
    old: str | None
    new: str | None
    points: int
    """By how much the new configuration rates its node higher."""
    plugin: str | None
    """The plugin that tips the decision."""
    reason: str | None


class OwnerRecord(Record, kw_only=True):
    """The outcomes of the pods of one owner, and how often which plugin tips them."""

    owner: str
    pods: int
    outcomes: dict[str, int]
    plugins: dict[str, int]


class CompareRecord(Record, kw_only=True):
    """The answer about two configurations."""

    pods: list[ComparedRecord]
    summary: dict[str, int]
    owners: list[OwnerRecord]
    figures: dict[str, dict[str, float]] | None


class CompareQuestion(Record, kw_only=True):
    """What was asked."""

    config: str
    against: str
    scope: str
    changes: list[dict[str, Any]]


@dataclass
class ComparedPod:
    pod: Pod
    outcome: str
    old: PodPlacement
    new: PodPlacement
    points: int = 0
    plugin: str | None = None
    reason: str | None = None


@dataclass
class CompareAnswer:
    """The pods that were compared."""

    pods: list[ComparedPod]
    figures: dict[str, dict[str, float]] | None = None
    changes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def yes(self) -> bool:
        """Whether every pod goes to the same node, or an equal one."""
        return all(each.outcome in (SAME, TIE) for each in self.pods)

    def record(self) -> CompareRecord:
        owners: dict[str, list[ComparedPod]] = {}
        for each in self.pods:
            owners.setdefault(owner_of(each.pod), []).append(each)
        counts = Counter(each.outcome for each in self.pods)
        return CompareRecord(
            pods=[_record(each) for each in self.pods],
            summary={outcome: counts[outcome] for outcome in OUTCOMES},
            owners=[_owner_record(owner, pods) for owner, pods in sorted(owners.items())],
            figures=self.figures,
        )


def compare(
    old: Sandbox, new: Sandbox, scope: str = PENDING, progress: Callable[[int], None] | None = None
) -> CompareAnswer:
    """What becomes of the pods under both; the two sandboxes hold the same cluster, and are left as they were."""
    if scope == RUNNING:
        return _each_alone(old, new, progress)
    return _in_sequence(old, new, replace_all=scope == REPLACE_ALL)


def _each_alone(old: Sandbox, new: Sandbox, progress: Callable[[int], None] | None) -> CompareAnswer:
    """Each running pod as if it was not placed, all else as it is."""
    found: dict[str, ComparedPod] = {}
    placers = SandboxPlacer(old, closely=False), SandboxPlacer(new, closely=False)
    placed = [each for each in old.cluster.pods.values() if each.pod.spec.scheduler_name in new.served]
    # Pods of one signature come in a row: the cached answers about them are then fresh but for a node or two.
    grouped = sorted(placed, key=lambda each: each.facts.signature)
    for number, pod in enumerate(each.pod for each in grouped):
        unbound = as_unbound(pod)
        with old.trying(), new.trying():
            old.remove_pod(pod)
            new.remove_pod(pod)
            before, after = (placer.choose(unbound) for placer in placers)
            compared = _compared(unbound, before, after)
            if compared.outcome == DIFFERS:
                _tell_apart(compared, _scores(old, unbound, compared), _scores(new, unbound, compared))
            found[pod.uid] = compared
        if progress is not None and not number % 500:
            progress(number)
    return CompareAnswer([found[each.pod.uid] for each in placed])


def _in_sequence(old: Sandbox, new: Sandbox, *, replace_all: bool) -> CompareAnswer:
    """Pods one after another, each with those before it in place: those that wait, or all, in the order of creation."""
    with old.trying(), new.trying():
        pods = _emptied(old, new) if replace_all else []
        passes: list[list[PodPlacement]] = []
        figures: dict[str, dict[str, float]] | None = {} if replace_all else None
        for name, sandbox in (("old", old), ("new", new)):
            with sandbox.trying():
                placer = SandboxPlacer(sandbox)
                passes.append(placer.place_all(pods if replace_all else placer.in_queue_order(sandbox.pending())))
                if figures is not None:
                    figures[name] = figures_of(sandbox)
        before = {each.pod.uid: each for each in passes[0]}
        found = {each.pod.uid: _compared(each.pod, before.get(each.pod.uid), each) for each in passes[1]}
        old_scores = _scores_in_turn(old, passes[0], found)
        new_scores = _scores_in_turn(new, passes[1], found)
        for uid, scores in new_scores.items():
            _tell_apart(found[uid], old_scores.get(uid), scores)
    return CompareAnswer(list(found.values()), figures)


def _scores_in_turn(
    sandbox: Sandbox, placements: Sequence[PodPlacement], found: dict[str, ComparedPod]
) -> dict[str, Any]:
    """The scores of pods whose nodes differ, each with those before it in place."""
    scores: dict[str, Any] = {}
    with sandbox.trying():
        for placement in placements:
            pod = placement.pod
            compared = found.get(pod.uid)
            if compared is not None and compared.outcome == DIFFERS:
                scores[pod.uid] = _scores(sandbox, pod, compared)
            if placement.node is not None:
                sandbox.place(
                    sandbox.engine.profiles[pod.spec.scheduler_name], Cycle(pod, sandbox.cluster), placement.node
                )
    return scores


def _emptied(old: Sandbox, new: Sandbox) -> list[Pod]:
    """All pods of our profiles, oldest first; they wait now. Pods that a kubelet runs by itself stay."""
    placed = [each.pod for each in old.cluster.pods.values() if each.pod.spec.scheduler_name in new.served]
    moving = [pod for pod in placed if not _static(pod) and not pod.terminating]
    waiting = old.pending()
    for pod in moving:
        for sandbox in (old, new):
            sandbox.remove_pod(pod)
            sandbox.set(as_unbound(pod))
    return sorted([*map(as_unbound, moving), *waiting], key=lambda pod: (created(pod), pod.key))


def _static(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "Node"


def _compared(pod: Pod, before: PodPlacement | None, after: PodPlacement) -> ComparedPod:
    before = before or PodPlacement(pod)
    if before.node == after.node:
        return ComparedPod(pod, SAME, before, after)
    if before.node is None:
        return ComparedPod(pod, ONLY_NEW, before, after, reason=before.message)
    if after.node is None:
        return ComparedPod(pod, ONLY_OLD, before, after, reason=after.message)
    return ComparedPod(pod, DIFFERS, before, after)


def _scores(sandbox: Sandbox, pod: Pod, compared: ComparedPod) -> Any:
    """The weighted scores of both nodes by plugin, and their totals; None for a node that is refused, with why."""
    runtime = sandbox.engine.profiles[pod.spec.scheduler_name]
    start = sandbox.engine.sampling.next_start
    try:
        decision = decide(runtime, Cycle(pod, sandbox.cluster), sandbox.engine.sampling)
    except PluginError:
        return None
    finally:
        sandbox.engine.sampling.next_start = start
    found: dict[str, Any] = {}
    for which, placement in (("old", compared.old), ("new", compared.new)):
        row = sandbox.cluster.row_of.get(placement.node or "", -1)
        places = np.flatnonzero(decision.search.feasible == row)
        if not len(places):
            found[which] = decision.search.statuses().get(row).message if row >= 0 else "not a node"
        elif decision.scores is None:
            found[which] = ({}, 0)
        else:
            at = int(places[0])
            by_plugin = {name: int(values[at]) for name, values in decision.scores.by_plugin.items()}
            found[which] = (by_plugin, int(decision.scores.total[at]))
    return found


def _tell_apart(compared: ComparedPod, before: Any, after: Any) -> None:
    """Whether the new configuration refuses the old node, rates it equal or lower, and which plugin tips that."""
    if after is None:
        return
    if isinstance(after["old"], str):
        compared.outcome, compared.reason = REFUSED, after["old"]
        return
    if isinstance(after["new"], str):
        return
    compared.points = after["new"][1] - after["old"][1]
    if not compared.points:
        compared.outcome = TIE
    names = list(after["new"][0])
    gains = {name: after["new"][0].get(name, 0) - after["old"][0].get(name, 0) for name in names}
    if before is not None and not isinstance(before["old"], str) and not isinstance(before["new"], str):
        for name in {*before["new"][0], *names}:
            gains[name] = gains.get(name, 0) - (before["new"][0].get(name, 0) - before["old"][0].get(name, 0))
    if any(gains.values()):
        compared.plugin = max(sorted(gains), key=lambda name: abs(gains[name]))


def owner_of(pod: Pod) -> str:
    """What owns a pod, as groups are named."""
    owner = pod.metadata.controller
    return f"Pod {pod.key}" if owner is None else f"{owner.kind} {pod.namespace}/{owner.name}"


def figures_of(sandbox: Sandbox) -> dict[str, float]:
    """How full the cluster is, by the names that `podium simulate` has."""
    cluster = sandbox.cluster
    rows = cluster.order.rows
    resources = cluster.resources
    offered = resources.allocatable[:2, rows].astype(np.float64)
    used = resources.requested[:2, rows].astype(np.float64)
    totals = np.maximum(offered.sum(axis=1), 1.0)
    shapes: Counter[tuple[int, int]] = Counter()
    for placed in cluster.pods.values():
        requests = fit_requests(placed.pod)
        shapes[requests.get("cpu", 0), requests.get("memory", 0)] += 1
    free = np.maximum(offered - used, 0.0)
    fragmented = 0.0
    if shapes and free[0].sum():
        for (cpu, memory), number in shapes.items():
            fits = (free[0] >= cpu) & (free[1] >= memory)
            fragmented += number * float(np.where(fits, 0.0, free[0]).sum())
        fragmented = 100 * fragmented / shapes.total() / float(free[0].sum())
    return {
        "placed": float(len(cluster.pods)),
        "nodes": float(len(rows)),
        "empty_nodes": float((resources.pod_count[rows] == 0).sum()),
        "nodes_used": float((resources.pod_count[rows] > 0).sum()),
        "cpu_allocation_pct": round(float(100 * used[0].sum() / totals[0]), 3),
        "memory_allocation_pct": round(float(100 * used[1].sum() / totals[1]), 3),
        "cpu_fragmentation_pct": round(fragmented, 3),
    }


def _record(each: ComparedPod) -> ComparedRecord:
    return ComparedRecord(
        pod=each.pod.key,
        owner=owner_of(each.pod),
        outcome=each.outcome,
        old=each.old.node,
        new=each.new.node,
        points=each.points,
        plugin=each.plugin,
        reason=each.reason,
    )


def _owner_record(owner: str, pods: Sequence[ComparedPod]) -> OwnerRecord:
    return OwnerRecord(
        owner=owner,
        pods=len(pods),
        outcomes=dict(Counter(each.outcome for each in pods)),
        plugins=dict(Counter(each.plugin for each in pods if each.plugin)),
    )
