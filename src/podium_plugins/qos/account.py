"""Keeps account of one controller: its slots, the pods that occupy them, and how long they waited, were bound and ran.

A pod waits, is bound and runs. The account holds how many pods wait and run, and the sums of the moments they began, so
that what they have spent by any moment is one multiplication, however many replicas there are. Spans are never
negative: a clock that goes back adds nothing.

A pod that is marked for deletion leaves its slot to its successor at once, and runs until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from podium_plugins.qos.formulas import AGGREGATE, CONCURRENT, INDEPENDENT, QosQuestion, QosSums
from podium_plugins.qos.promise import QosPromise

MOST_RUNS = 64
"""Ended runs that are remembered one by one, where they must overlap to count."""


NOTHING_YET = QosSums()


class TimeUse(IntEnum):
    """What a pod spends its time with."""

    WAITING = 0
    RUNNING = 1


class Incarnation:
    """One pod that occupies a slot."""

    __slots__ = (
        "allocating",
        "binding_since",
        "created",
        "key",
        "leaving",
        "phase",
        "promise",
        "running_since",
        "slot",
        "started",
        "state",
        "uid",
    )

    def __init__(self, uid: str, key: str, promise: QosPromise, created: float) -> None:
        self.uid = uid
        self.key = key
        self.promise = promise
        self.created = created
        self.binding_since = self.running_since = created
        self.state = TimeUse.WAITING
        self.slot = 0
        self.allocating = False
        """Whether a node is chosen and the binding is under way."""
        self.phase = "Pending"
        self.leaving = False
        self.started = False
        """Whether its node has said when it started."""

    def spans(self, now: float) -> tuple[float, float, float]:
        """(waiting, binding, running) by now."""
        if self.state is TimeUse.WAITING:
            return max(0.0, now - self.created), 0.0, 0.0
        waiting, binding = max(0.0, self.binding_since - self.created), self.running_since - self.binding_since
        return waiting, max(0.0, binding), max(0.0, now - self.running_since)


class ControllerAccount:
    """What one controller was promised and got."""

    wanted: int | None = None
    """The replicas its owner asks for; None where that is not known."""
    all_closed = NOTHING_YET
    idle_since = 0.0
    unwritten = False
    """Whether pods have ended that no annotation speaks of yet."""
    running = pending = 0
    """Slots whose pod runs, and slots whose pod does not yet."""
    version = 0
    """Differs where the account does, but for the time that passes."""
    waiting_metric = (-1, 0.0, 0.0, 0.0)
    """(version, moment, SLO, metric) of pods that wait: the same for all, unless each is measured by itself."""
    _swept = (0.0, 0.0, 0.0)
    """Concurrent: effective and discarded run time up to a moment, and that moment."""
    _waiting = _bound = 0
    _waiting_since = _running_since = _waited = _binding = 0.0
    """Sums over open incarnations: of those that wait, and of those that are bound."""

    def __init__(self, promise: QosPromise) -> None:
        self.key = promise.key
        self.name = promise.name
        self.approach = promise.approach
        self.slo = promise.slo
        self.owners: dict[str, int | None] = {}
        """By uid of an owner of its pods: how many it asks for, where that is known."""
        self.slots: list[Incarnation | None] = []
        self.closed: list[QosSums] = []
        """By slot: what incarnations that have ended sum up to."""
        self.open: dict[str, Incarnation] = {}
        self._ended_runs: list[tuple[float, float]] = []
        self._cut_short: dict[int, float] = {}
        """Aggregate, by slot: run time of its last pod, which ended before its time and has no successor yet."""

    def _reset(self) -> None:
        """Begin the sums over open incarnations again."""
        self._waiting = self._bound = 0
        self._waiting_since = self._running_since = self._waited = self._binding = 0.0

    # Replicas and slots

    def set_owner(self, uid: str, replicas: int | None) -> None:
        self.version += 1
        self.owners[uid] = replicas
        self.wanted = sum(each or 0 for each in self.owners.values()) or None

    @property
    def replicas(self) -> int:
        return max(1, len(self.slots) if self.wanted is None else self.wanted)

    @property
    def measured_together(self) -> int:
        """How many replicas share their sums."""
        return 1 if self.approach == INDEPENDENT else self.replicas

    def contributing(self) -> bool:
        """Whether taking a pod away costs the controller anything: replicas that must run together are worth nothing
        while one is missing."""
        if self.approach != CONCURRENT:
            return True
        there = sum(1 for each in self.slots if each is not None and (each.state is TimeUse.RUNNING or each.allocating))
        return there >= self.replicas

    def add(self, pod: Incarnation, slot: int | None = None) -> None:
        """A new pod takes the slot given, if it is free, or the lowest that is."""
        if slot is None or slot > len(self.slots) + 1000 or (slot < len(self.slots) and self.slots[slot] is not None):
            slot = next((i for i, each in enumerate(self.slots) if each is None), len(self.slots))
        while len(self.slots) <= slot:
            self.slots.append(None)
            self.closed.append(NOTHING_YET)
        pod.slot = slot
        self.slots[slot] = pod
        self._cut_short.pop(slot, None)
        self.open[pod.uid] = pod
        self._enter(pod, 1)

    def leave_slot(self, pod: Incarnation) -> None:
        """Free the slot for a successor."""
        self.version += 1
        if self.slots[pod.slot] is pod:
            if pod.state is TimeUse.RUNNING:
                self.running -= 1
            else:
                self.pending -= 1
            self.slots[pod.slot] = None

    # What pods do

    def bind(self, pod: Incarnation, binding_since: float, running_since: float) -> None:
        """A pod is bound, or is known to have been bound or started at other moments."""
        if pod.state is not TimeUse.WAITING:
            self._enter(pod, -1)
        else:
            self._waiting -= 1
            self._waiting_since -= pod.created
            if self.slots[pod.slot] is pod:
                self.pending -= 1
        pod.binding_since = binding_since
        pod.running_since = running_since if running_since > binding_since else binding_since
        pod.state = TimeUse.RUNNING
        self._enter(pod, 1)

    def _enter(self, pod: Incarnation, sign: int) -> None:
        self.version += 1
        in_slot = sign if self.slots[pod.slot] is pod else 0
        if pod.state is TimeUse.WAITING:
            self.pending += in_slot
            self._waiting += sign
            self._waiting_since += sign * pod.created
        else:
            self.running += in_slot
            self._bound += sign
            self._running_since += sign * pod.running_since
            if pod.binding_since > pod.created:
                self._waited += sign * (pod.binding_since - pod.created)
            if pod.running_since > pod.binding_since:
                self._binding += sign * (pod.running_since - pod.binding_since)

    def close(self, pod: Incarnation, now: float, *, succeeded: bool) -> None:
        """A pod has ended."""
        self._enter(pod, -1)
        del self.open[pod.uid]
        if self.slots[pod.slot] is pod:
            self.slots[pod.slot] = None
        waiting, binding, running = pod.spans(now)
        effective, discarded = running, 0.0
        if self.approach == CONCURRENT:
            effective = 0.0
            if pod.state is TimeUse.RUNNING:
                self._ended_runs.append((pod.running_since, max(now, pod.running_since)))
            if len(self._ended_runs) >= MOST_RUNS:
                self.sweep_up(now)
        elif self.approach == AGGREGATE and not succeeded:
            effective, discarded = 0.0, running
            if self.slots[pod.slot] is None:
                self._cut_short[pod.slot] = running
        bound = int(pod.state is not TimeUse.WAITING)
        ended = QosSums(effective, discarded, waiting, binding, 1, bound)
        self.closed[pod.slot] = self.closed[pod.slot].plus(ended)
        self.all_closed = self.all_closed.plus(ended)
        if not self.open:
            self._reset()  # so that nothing is lost in the digits
            self.idle_since = now

    # Runs that must overlap

    def sweep_up(self, now: float) -> tuple[float, float, float]:
        """Fold all runs up to now into two sums; gives these, and now."""
        now = max(now, self._swept[2])
        self._swept = (*self._quorum(now), now)
        self._ended_runs.clear()
        return self._swept

    def resume(self, effective: float, discarded: float, at: float) -> None:
        """Go on from sums that were folded before, in this process or in another one."""
        self._swept = (effective, discarded, at)
        self._ended_runs.clear()

    def _quorum(self, now: float) -> tuple[float, float]:
        effective, discarded, begin = self._swept
        runs = [(max(begin, start), end) for start, end in self._ended_runs]
        runs += [(max(begin, each.running_since), now) for each in self.open.values() if each.state is TimeUse.RUNNING]
        more, lost = split_by_quorum(runs, self.replicas)
        return effective + more, discarded + lost

    # Sums

    def sums(self, reference: Incarnation | None, now: float) -> QosSums:
        """The sums on behalf of a pod: of its slot alone, or of all slots."""
        if self.approach == INDEPENDENT and reference is not None:
            return self._slot_sums(reference, now)
        waiting = max(0.0, self._waiting * now - self._waiting_since)
        running = max(0.0, self._bound * now - self._running_since)
        closed = self.all_closed
        effective, discarded = closed.effective + running, closed.discarded
        if self.approach == CONCURRENT:
            effective, discarded = self._quorum(now)
        elif self.approach == AGGREGATE and reference is not None and reference.uid in self.open:
            lost = reference.spans(now)[2]  # if it were preempted, its work would be lost
            effective, discarded = effective - lost, discarded + lost
        return QosSums(
            effective,
            discarded,
            closed.waiting + self._waited + waiting,
            closed.binding + self._binding,
            closed.incarnations + self._waiting + self._bound,
            closed.bound + self._bound,
        )

    def final_sums(self, now: float) -> QosSums:
        """The sums if nothing more comes: work that was in progress when the controller ended counts."""
        sums, cut_short = self.sums(None, now), sum(self._cut_short.values())
        return sums._replace(effective=sums.effective + cut_short, discarded=sums.discarded - cut_short)

    def _slot_sums(self, reference: Incarnation, now: float) -> QosSums:
        found = self.closed[reference.slot]
        if len(self.open) == 1:
            waiting, binding, running = reference.spans(now)
            effective, discarded, waited, bound, number, starts = found
            started = int(reference.state is not TimeUse.WAITING)
            return QosSums(
                effective + running, discarded, waited + waiting, bound + binding, number + 1, starts + started
            )
        for each in self.open.values():
            if each.slot == reference.slot:
                waiting, binding, running = each.spans(now)
                found = found.plus(QosSums(running, 0.0, waiting, binding, 1, int(each.state is not TimeUse.WAITING)))
        return found

    def question(self, pod: Incarnation, *, compat: bool = False) -> QosQuestion:
        """The question for a pod's metric; the original goes by its phase, which lags behind."""
        running = pod.phase == "Running" if compat else pod.state is TimeUse.RUNNING
        return QosQuestion(self.approach, pod.promise.slo, self.running, self.pending, self.replicas, running)


def split_by_quorum(runs: Iterable[tuple[float, float]], quorum: int) -> tuple[float, float]:
    """Split the run time of replicas that must run together: effective while enough of them do, discarded otherwise.

    (effective, discarded) of runs given by start and end: a second of each run counts as effective while at least
    `quorum` of them overlap.

    >>> split_by_quorum([(0, 10), (4, 10)], 2)
    (12.0, 4.0)
    """
    steps: list[tuple[float, int]] = []
    for start, end in runs:
        if end > start:
            steps += ((start, 1), (end, -1))
    steps.sort()
    effective = discarded = 0.0
    online, since = 0, 0.0
    for at, change in steps:
        span = (at - since) * online
        if online >= quorum:
            effective += span
        else:
            discarded += span
        online, since = online + change, at
    return effective, discarded
