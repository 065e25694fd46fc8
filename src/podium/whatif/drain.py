"""Says what becomes of the pods of nodes that are drained: which move and where, which stay, and what blocks.

The classes are those of `kubectl drain`. Evictions go in rounds, as budgets allow: what is evicted in a round leaves
together, its replacements are placed in the order of the queue (priority, then age), and each that has a node counts
as ready in the next round. A budget whose pods find no node blocks those of its pods that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from podium.engine.explain import as_unbound
from podium.kube import ObjectMeta, Pod, PodStatus
from podium.whatif.placements import PodPlacement, SandboxPlacer
from podium.whatif.records import (
    BudgetRecord,
    DeadlockRecord,
    PlacedRecord,
    PodRecord,
    placed_record,
    refusal_records,
    remedy_records,
)
from podium.whatif.sandbox import Sandbox
from podium.workloads.budgets import Budget, budgets_of
from podium.workloads.daemon_sets import is_daemon_pod
from podium.workloads.deletion_order import is_ready

# What becomes of a pod
MOVES: Final = "moves"
NO_PLACE: Final = "noPlace"
STAYS: Final = "stays"
NEEDS_FLAG: Final = "needsFlag"
BUDGET: Final = "budget"
GONE: Final = "gone"
FINISHED: Final = "finished"
STOPS: Final = frozenset({NO_PLACE, NEEDS_FLAG, BUDGET})
"""With one of these, the drain is not done."""

DRAINED: Final = "drained"
MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class DrainRules:
    """The options of `kubectl drain`."""

    ignore_daemonsets: bool = True
    delete_emptydir_data: bool = False
    force: bool = False
    pod_selector: str = ""
    disable_eviction: bool = False


DRAIN_DEFAULTS: Final = DrainRules()


@dataclass
class Leaving:
    """A pod on its way, and what became of it."""

    pod: Pod
    node: str
    verdict: str = ""
    placement: PodPlacement | None = None
    flag: str = ""
    message: str = ""
    budgets: list[Budget] = field(default_factory=list)
    allowed: list[int] = field(default_factory=list)
    round: int = 0


@dataclass
class DrainAnswer:
    """What becomes of each pod, and how often budgets make the drain wait."""

    nodes: list[str]
    pods: list[Leaving]
    rounds: int
    deadlock: list[DeadlockRecord]

    @property
    def yes(self) -> bool:
        """Whether the nodes can be drained, and all that leaves finds a place."""
        return not any(each.verdict in STOPS for each in self.pods)

    def records(self) -> list[PodRecord]:
        return [_pod_record(each) for each in self.pods]


def drain(
    sandbox: Sandbox, nodes: Sequence[str], rules: DrainRules = DRAIN_DEFAULTS, *, with_remedies: bool = True
) -> DrainAnswer:
    """Drain cordoned nodes in the sandbox; its pods are where they would be afterwards."""
    selector = None
    if rules.pod_selector:
        from podium.whatif.patterns import selector_of

        selector = selector_of(rules.pod_selector, "--pod-selector")
    found: list[Leaving] = []
    for name in nodes:
        pods = [pod for pod in sandbox.pods_on(name) if selector is None or selector.matches(pod.labels)]
        found += [_classified(pod, name, rules) for pod in pods]
    budgets = _budgets(sandbox)
    placer = SandboxPlacer(sandbox, closely=True, with_remedies=with_remedies)
    leaving = {each.pod.uid: each for each in found if not each.verdict or each.verdict in (GONE, FINISHED)}
    ordered = [leaving[pod.uid] for pod in placer.in_queue_order(each.pod for each in leaving.values())]
    for each in ordered:
        each.budgets = [] if rules.disable_eviction else budgets_of(each.pod, budgets)
        each.allowed = [budget.allowed for budget in each.budgets]
    number, left = 0, ordered
    while left:
        evicted, left = _evict(sandbox, left, rules)
        if not evicted:
            break
        for each in evicted:
            each.round = number
        _place_replacements(sandbox, placer, evicted)
        number += 1
    rounds = max((each.round for each in ordered if each not in left), default=0)
    deadlock = _deadlocks(left)
    for each in left:
        each.verdict, each.message = BUDGET, _why_guarded(each)
    return DrainAnswer(list(nodes), found, rounds, deadlock)


def _classified(pod: Pod, node: str, rules: DrainRules) -> Leaving:
    """What kubectl makes of a pod before it evicts anything; no verdict: it is evicted and comes back elsewhere."""
    leaving = Leaving(pod, node)
    if MIRROR in pod.annotations:
        leaving.verdict, leaving.message = STAYS, "a static pod: its kubelet runs it, and nothing can evict it"
        return leaving
    if is_daemon_pod(pod) and not pod.finished:
        if rules.ignore_daemonsets:
            leaving.verdict, leaving.message = STAYS, "its DaemonSet would put it back"
        else:
            leaving.verdict, leaving.flag = NEEDS_FLAG, "--ignore-daemonsets"
            leaving.message = "cannot delete DaemonSet-managed Pods"
        return leaving
    if pod.finished:
        leaving.verdict = FINISHED
        return leaving
    if any(volume.empty_dir is not None for volume in pod.spec.volumes) and not rules.delete_emptydir_data:
        leaving.verdict, leaving.flag = NEEDS_FLAG, "--delete-emptydir-data"
        leaving.message = "cannot delete Pods with local storage"
        return leaving
    if pod.metadata.controller is None:
        if rules.force:
            leaving.verdict, leaving.message = GONE, "no controller makes another one"
        else:
            leaving.verdict, leaving.flag = NEEDS_FLAG, "--force"
            leaving.message = "cannot delete Pods that declare no controller"
    return leaving


def _evict(sandbox: Sandbox, pods: Sequence[Leaving], rules: DrainRules) -> tuple[list[Leaving], list[Leaving]]:
    """Those that budgets let go now, and those that wait."""
    evicted, left = [], []
    for each in pods:
        if rules.disable_eviction or _lets_go(each.pod, each.budgets):
            sandbox.remove_pod(each.pod)
            evicted.append(each)
        else:
            left.append(each)
    return evicted, left


def _place_replacements(sandbox: Sandbox, placer: SandboxPlacer, evicted: Iterable[Leaving]) -> None:
    replaced = {}
    for each in evicted:
        if each.verdict in (GONE, FINISHED):
            continue
        again = replacement_of(each.pod)
        sandbox.set(again)
        replaced[again.uid] = each
    waiting = [pod for pod in sandbox.cluster.objects.pending_pods if pod.uid in replaced]
    by_uid = {pod.uid: pod for pod in waiting}
    for placement in placer.place_all([by_uid[uid] for uid in replaced]):
        each = replaced[placement.pod.uid]
        each.placement = placement
        each.verdict = MOVES if placement.fits else NO_PLACE
        if placement.fits:
            for budget in each.budgets:
                budget.healthy += 1


def replacement_of(pod: Pod) -> Pod:
    """The pod that the controller makes for one that goes."""
    metadata = ObjectMeta(
        name=pod.name,
        namespace=pod.namespace,
        uid=f"{pod.uid}-again",
        labels=pod.labels,
        annotations=pod.annotations,
        owner_references=pod.metadata.owner_references,
        creation_timestamp=pod.metadata.creation_timestamp,
    )
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    return replace(as_unbound(pod), metadata=metadata, status=status)


def _budgets(sandbox: Sandbox) -> list[Budget]:
    """The budgets of the cluster, to be counted while pods go and come back."""
    objects = sandbox.cluster.objects
    everyone = [*(placed.pod for placed in sandbox.cluster.pods.values()), *objects.pending_pods]
    owners = [*objects.replica_sets, *objects.stateful_sets, *objects.replication_controllers]
    return [Budget.of(each, everyone, owners) for each in objects.budgets]


def _lets_go(pod: Pod, budgets: Sequence[Budget]) -> bool:
    """Whether the API would evict the pod now; if so it is counted."""
    if len(budgets) > 1:
        return False
    for budget in budgets:
        if pod.status.phase == "Pending" or pod.terminating or pod.finished:
            continue
        if not ready(pod) and budget.lets_unready_go:
            continue
        if budget.allowed < 1:
            return False
        budget.healthy -= 1
    return True


def ready(pod: Pod) -> bool:
    """Whether a pod counts as healthy. A dump written by hand has no conditions: there a running pod is."""
    if pod.status.conditions:
        return is_ready(pod)
    return pod.status.phase in ("Running", "")


def _why_guarded(each: Leaving) -> str:
    if len(each.budgets) > 1:
        names = ", ".join(budget.key for budget in each.budgets)
        return f"the API refuses for ever: {len(each.budgets)} budgets guard it ({names})"
    budget = each.budgets[0]
    return budget.never or f"budget {budget.key} allows {budget.allowed} evictions, and none of its pods becomes ready"


def _deadlocks(left: Sequence[Leaving]) -> list[DeadlockRecord]:
    found: dict[str, DeadlockRecord] = {}
    for each in left:
        for budget in each.budgets:
            if budget.never:
                record = found.setdefault(budget.key, DeadlockRecord(budget=budget.key, message=budget.never, pods=[]))
                record.pods.append(each.pod.key)
    return list(found.values())


def _pod_record(each: Leaving) -> PodRecord:
    here = PlacedRecord(node=each.node)
    record = PodRecord(pod=each.pod.key, origin=DRAINED, before=here, after=here, verdict=each.verdict)
    if each.verdict in (GONE, FINISHED):
        record.after = PlacedRecord(node=None)
    if each.flag:
        record.flag = each.flag
    if each.message:
        record.message = each.message
    if each.budgets:
        record.round = each.round
        record.budgets = [
            BudgetRecord(name=budget.key, allowed=allowed)
            for budget, allowed in zip(each.budgets, each.allowed, strict=True)
        ]
    if each.placement is not None:
        record.after = placed_record(each.placement)
        if not each.placement.fits:
            record.reasons = refusal_records(each.placement)
            record.remedies = remedy_records(each.placement.remedies)
    return record
