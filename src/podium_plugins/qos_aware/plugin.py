"""Orders the queue and evicts by how far controllers are from what was promised to them (QosAware).

    queueSort    the most urgent first (`precedence`)
    postFilter   evicts pods with slack, or of less important controllers (`victims`)
    reserve      a pod counts as being allocated
    preBind      which replica it is, is written to it where that could not be found out otherwise
    postBind     nothing; the API shows when it was bound

What controllers got is counted from the pods' own times (`podium_plugins.qos.ledger`), so a restart forgets nothing
that the API remembers. What the API forgets, the time of pods that are gone, is written to an annotation of a living
pod of the controller; that happens beside the decisions, and only in the process that decides.

Enable it at queueSort, and at postFilter in place of DefaultPreemption.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from podium import (
    SKIP,
    Cycle,
    DependsOn,
    Diagnosis,
    Duration,
    Effect,
    FieldError,
    FieldPath,
    Handle,
    Interest,
    Plugin,
    PluginMetric,
    PluginPage,
    PostFilterResult,
    QueuedPod,
    Resource,
    Status,
    Write,
)
from podium.cluster import Mask, PlacedPod
from podium.kube import Pod
from podium.preemption import (
    VICTIM_GONE,
    Candidate,
    Evictions,
    Ruling,
    objection_to_preempting,
    random_start,
    refused,
    unschedulable_rows,
)
from podium_plugins.qos.account import ControllerAccount
from podium_plugins.qos.formulas import AGGREGATE, CONCURRENT, INDEPENDENT, START_OVERHEAD
from podium_plugins.qos.history import HISTORY, SLOT, write_history
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos.page import QosRow, QosSource, controller_gauges, controller_rows, qos_page, slot_rows
from podium_plugins.qos.promise import DEFAULT_SLO
from podium_plugins.qos.report import report_on
from podium_plugins.qos_aware.precedence import KEPT, LEFT_BEHIND, NEEDIEST, NextInLine, Precedence
from podium_plugins.qos_aware.retry import NextChances
from podium_plugins.qos_aware.together import missing_replicas, places
from podium_plugins.qos_aware.victims import ByQos, EvictionLimits, UrgentPod, least_harm

NAME: Final = "QosAware"
NOT_YET: Final = "the pod has slack left, or all others have run too short a time or have no more slack than it."
NOT_TOGETHER: Final = "its controller's replicas must run together, and not all that are missing would have a place."
SOONEST: Final = 1.0
"""Seconds before which a pod is not tried again."""
OWNERS: Final = {"replicasets.apps": "replicas", "jobs.batch": "parallelism"}
"""What says how many pods a controller wants, and in which field of its spec."""
TRIED: Final = (10, 100)
"""Nodes that are tried for preemption: so many percent, but at least so many."""


class QosAwareArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The margins, and how much preemption may cost."""

    safety_margin: Duration = Duration(0)
    """A pod with less slack than this is urgent."""
    minimum_running_time: Duration = Duration(0)
    """No pod is evicted before it has run for so long."""
    acceptable_preemption_overhead: float = 1.0
    """The share of their time on nodes that pods may lose to preemption, where they do not say."""
    compat: bool = False
    """Decide as the original does, with its known faults."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value in (
            ("safetyMargin", self.safety_margin),
            ("minimumRunningTime", self.minimum_running_time),
        ):
            if value < 0:
                yield FieldError.invalid(path.child(name), str(value), "must not be negative")
        overhead = self.acceptable_preemption_overhead
        if not (math.isfinite(overhead) and 0 <= overhead <= 1):
            yield FieldError.invalid(path.child("acceptablePreemptionOverhead"), overhead, "must be between 0 and 1")


class QosAware(Plugin):
    name = NAME
    trusted = True
    Args = QosAwareArgs
    resources = tuple(f"{owner}/v1" for owner in OWNERS)
    depends_on = DependsOn(kinds=())
    watches_ended_pods = True  # whether a task succeeded or was killed
    writes = (Write.ANNOTATIONS, Write.EVICTIONS)

    def __init__(self, args: QosAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._limits = EvictionLimits(args.safety_margin.seconds, args.minimum_running_time.seconds, args.compat)
        self.ledger = QosLedger(limit=args.acceptable_preemption_overhead, compat=args.compat, report=handle.report)
        self._precedence = Precedence(self.ledger, self._limits.margin)
        self._chances = NextChances(self.ledger, self._limits)
        self._line = NextInLine(self.ledger, lambda pod, now: (*self._order(pod.uid, now), pod.created, pod.key))
        self._evictions = Evictions(NAME, handle)
        self.preemptions = 0
        """How many pods were evicted."""

    def interests(self) -> Iterable[Interest]:
        return [VICTIM_GONE]

    def observe(self, resource: str, before: Any, after: Any) -> None:
        if resource == Resource.POD:
            self.ledger.observe(before, after, self.handle.clock.now())
            if before is not None and before.spec.node_name and (after is None or after.finished):
                self._wake_first()
        elif resource in OWNERS:
            self._observe_owner(OWNERS[resource], before, after)

    def _observe_owner(self, field: str, before: Any, after: Any) -> None:
        owner = before if after is None else after
        uid = (owner.get("metadata") or {}).get("uid") if isinstance(owner, dict) else None
        if isinstance(uid, str) and uid:
            replicas = None if after is None else (after.get("spec") or {}).get(field, 1)
            self.ledger.set_owner(uid, replicas if isinstance(replicas, int) and replicas >= 0 else None)

    def _wake_first(self) -> None:
        """A pod has left its node: have those tried that should go first, though they back off."""
        if not self._limits.compat:
            pending = self.handle.cluster.objects.pending_pods
            first = (pending.get(each.key) for each in self._line.first(self.handle.clock.now()))
            self.handle.activate([pod for pod in first if pod is not None])

    # The order of the queue

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, int, float, float, str, str]:
        """Taken at whole seconds, so that keys taken one after the other compare. A metric that falls by a second in a
        second, as that of a pod which only waits does, is written as when it will be 0: that does not move. Of pods
        that cannot be violated, the one whose controller got least goes first."""
        metadata = queued.pod.metadata
        uid, timestamp = metadata.uid or queued.key, metadata.creation_timestamp or ""
        known = self.ledger.pods.get(uid)
        if known is None:
            created = self.ledger.alone_since(uid)
            if created is not None:  # always urgent, and the key does not move
                return 0, -DEFAULT_SLO, NEEDIEST, created - START_OVERHEAD, 0.0, timestamp, queued.key
        second = float(self.handle.clock.now() // 1)
        if known is not None and known[0].approach != AGGREGATE:
            metric = self.ledger.metric_of(*known, second)
            if metric < self._limits.margin:  # the usual case, without the detour
                group = NEEDIEST if metric < 0 else KEPT
                return 0, -known[1].promise.slo, group, metric + second, 0.0, timestamp, queued.key
        return *self._order(uid, second), timestamp, queued.key

    def _order(self, uid: str, second: float) -> tuple[int, float, int, float, float]:
        urgent, importance, group, metric = self._precedence.key(uid, second)
        served = self.ledger.served(uid, second) if metric == math.inf else 0.0
        return urgent, importance, group, metric + (-second if group == LEFT_BEHIND else second), served

    def key_moves(self, queued: QueuedPod) -> bool:
        """All keys do but those of pods that stand for themselves and wait for the first time."""
        known = self.ledger.pods.get(_uid(queued.pod))
        return known is not None and known[1].promise.lasting

    def order_version(self) -> int:
        """The queue is sorted again when this changes."""
        return math.floor(self.handle.clock.now())

    def outranks(self, pod: Pod, other: Pod) -> bool:
        """Whether a pod need not leave room for one that is nominated to a node."""
        return self._precedence.before(_uid(pod), _uid(other), self.handle.clock.now())

    # Making room

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        now = self.handle.clock.now()
        self._write_histories(now)
        pod = cycle.pod
        objection = objection_to_preempting(cycle, diagnosis, makes_room=lambda other: other.terminating)
        if objection:
            return refused(objection)
        compat, wait = self._limits.compat, 0.0
        missing = 1 if compat else self._missing(pod)
        if not compat:
            free = self._places(cycle, diagnosis, ()) if missing > 1 else 0
            wait = self._chances.wait(_uid(pod), now, max(1, missing - free))
        if wait:
            result = refused(NOT_YET)
        elif missing > 1 and self._places(cycle, diagnosis, self._chances.victims) < missing:
            result, wait = refused(NOT_TOGETHER), self._limits.minimum
        else:
            result = self._make_room(cycle, diagnosis, UrgentPod(self.ledger, self._limits, pod, now))
            wait = self._limits.minimum
        if not result.node_name and wait < math.inf:
            self.handle.wake_at(pod, now + max(SOONEST, wait))
        return result

    def _missing(self, pod: Pod) -> int:
        """How many pods must be placed for this one to be worth an eviction."""
        known = self.ledger.find(_uid(pod))
        if known is None or known[0].approach != CONCURRENT:
            return 1
        return max(1, missing_replicas(known[0], self.handle.nominator))

    def _places(self, cycle: Cycle, diagnosis: Diagnosis, victims: Iterable[str]) -> int:
        """How many pods like this one would have a place if the victims went."""
        cluster = cycle.cluster
        there = (cluster.pods.get(uid) for uid in victims)
        rows = unschedulable_rows(cycle, diagnosis)
        return places(cluster, rows, cycle.facts, [placed for placed in there if placed is not None])

    def _make_room(self, cycle: Cycle, diagnosis: Diagnosis, preemptor: UrgentPod) -> PostFilterResult:
        cluster = cycle.cluster
        rows = unschedulable_rows(cycle, diagnosis)
        offset = random_start(self.handle, rows)
        hopeless: Mask = np.zeros(cluster.columns.rows, dtype=np.bool_)
        if not self._limits.compat:
            hopeless[:] = True
            there = (cluster.pods.get(uid) for uid in self._chances.victims)
            hopeless[[placed.row for placed in there if placed is not None]] = False

        def rule(pods: Collection[PlacedPod], _pod: Pod) -> Ruling:
            return ByQos(preemptor, pods)

        def choose(found: Sequence[Candidate]) -> Candidate | None:
            chosen = least_harm(preemptor, found, self._limits.margin)
            self.preemptions += 0 if chosen is None else len(chosen.victims)
            return chosen

        wanted = min(len(rows), max(len(rows) * TRIED[0] // 100, TRIED[1]))
        return self._evictions.make_room(
            cycle,
            rows,
            rule,
            hopeless,
            offset=offset,
            wanted=wanted,
            known=None,
            choose=choose,
        )

    # What becomes of a placed pod

    def reserve(self, cycle: Cycle, _node: str) -> None:
        self.ledger.allocating(_uid(cycle.pod), True)

    def unreserve(self, cycle: Cycle, _node: str) -> None:
        self.ledger.allocating(_uid(cycle.pod), False)

    def pre_bind_preflight(self, cycle: Cycle, _node: str) -> Status | None:
        """There is something to write only for a slot that could not be found out otherwise."""
        if self.ledger.unwritten:
            self._write_histories(self.handle.clock.now())
        known = self.ledger.pods.get(_uid(cycle.pod))
        return None if known is not None and known[1].slot and known[0].approach == INDEPENDENT else SKIP

    def pre_bind(self, cycle: Cycle, _node: str) -> Effect:
        known = self.ledger.pods.get(_uid(cycle.pod))
        return None if known is None else self.handle.writer.annotate(cycle.pod, {SLOT: str(known[1].slot)})

    def post_bind(self, cycle: Cycle, _node: str) -> None:
        """Nothing: the API shows when the pod was bound, and says the same to a process that starts later."""

    # What outlives the process

    def _write_histories(self, now: float) -> None:
        """Write down what the API is about to forget, where a living pod can carry it."""
        while self.ledger.unwritten:
            _, account = self.ledger.unwritten.popitem()
            pod = self._carrier(account)
            if pod is not None:
                account.unwritten = False
                effect = self.handle.writer.annotate(pod, {HISTORY: write_history(account, now)})
                if effect is not None and not isinstance(effect, Status):
                    self.handle.launch(self._written(account, pod, effect))

    def _carrier(self, account: ControllerAccount) -> Pod | None:
        """The pod of a controller that came last: it is likely to live longest."""
        for each in reversed(account.open.values()):
            if not each.leaving:
                placed = self.handle.cluster.pods.get(each.uid)
                pod = placed.pod if placed is not None else self.handle.cluster.objects.pending_pods.get(each.key)
                if pod is not None and not pod.terminating:
                    return pod
        return None

    async def _written(self, account: ControllerAccount, pod: Pod, effect: Any) -> None:
        """Wait for a history to be written; one that could not be is written when the next pod comes or goes."""
        status = await effect
        if status is not None and account.key in self.ledger.accounts:
            account.unwritten = True

    # What is seen from outside

    def metrics(self) -> Iterable[PluginMetric]:
        return controller_gauges(self._controllers)

    def page(self, others: Sequence[Plugin]) -> PluginPage:
        """Every profile's ledger sees all pods; evictions are counted by each."""
        plugins = [self, *(each for each in others if isinstance(each, QosAware))]

        def report() -> dict[str, float]:
            now = self.handle.clock.now()
            preemptions = sum(plugin.preemptions for plugin in plugins)
            makespan = self.ledger.makespan(now)
            return report_on(self.ledger, now, preemptions=preemptions, makespan=makespan)._asdict()

        return qos_page(QosSource(self._controllers, lambda: slot_rows(self.ledger, self.handle.clock.now()), report))

    def _controllers(self) -> list[QosRow]:
        return controller_rows(self.ledger, self.handle.clock.now())


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or pod.key
