"""Schedules a gang: takes the popped pod's mates out of the queue, places all, and binds them or takes them back.

    enough members have a node    those that have one are bound, together; the others fail, each for its own reason
    too few                       nothing is held; every member goes back with its own message
    too few, but room is made     the same, and members keep their nodes as nominations until the victims are gone

A gang is tried this way only when enough of its members are in the queue. Otherwise the popped pod goes by itself, and
its plugin holds it at Permit.

Also remembers why gangs did not fit, so that trying one again costs nothing while nothing has changed.

A failure holds while no node, no placed pod and no nomination has changed (by cursors on the journals), and no plugin
that filters says that its answer may be another (by answer keys, as in the answer cache).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from podium.cluster import Cluster
from podium.config.points import Point
from podium.engine.gangs.gang_attempt import GangAttempt, Member, place_gang
from podium.framework.answer_keys import AnswerKeys
from podium.framework.answers import describe
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, Nomination, refused_by_one
from podium.framework.gang import Gang, GangPlugin
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status
from podium.framework.timer import Timer
from podium.kube import Pod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler


MOST_GANGS = 1000

Reason = tuple[Status, Diagnosis | None]
"""Why a member failed."""


class FailedGangs:
    """The gangs that failed last, by profile and name."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], _GangFailure] = OrderedDict()

    def remember(
        self, runtime: ProfileRuntime, key: str, cycles: Sequence[Cycle], reasons: Mapping[str, Reason]
    ) -> None:
        """Note why each member failed, by uid; unless a plugin cannot tell when its answer changes."""
        failure = _GangFailure(runtime, cycles, reasons)
        if failure.tellable:
            self._failures[runtime.name, key] = failure
            if len(self._failures) > MOST_GANGS:
                self._failures.popitem(last=False)

    def reason(self, runtime: ProfileRuntime, key: str, pod: Pod) -> Reason | None:
        """Why the pod would fail again with its gang; None where that is not known, or no longer."""
        failure = self._failures.get((runtime.name, key))
        if failure is None:
            return None
        if failure.is_fresh(Cycle(pod, runtime.handle.cluster)):
            return failure.reasons.get(pod.uid)
        del self._failures[runtime.name, key]
        return None

    def forget(self, runtime: ProfileRuntime, key: str) -> None:
        self._failures.pop((runtime.name, key), None)


class _GangFailure:
    """Why the members failed, and the state of things then."""

    __slots__ = ("_keys", "_nominations", "_rows", "reasons", "tellable")

    def __init__(self, runtime: ProfileRuntime, cycles: Sequence[Cycle], reasons: Mapping[str, Reason]) -> None:
        cluster: Cluster = runtime.handle.cluster
        self.reasons = reasons
        self._rows = cluster.row_cursor()
        self._nominations = runtime.handle.nominator.changes.cursor()
        self._rows.read()
        self._nominations.read()
        filtering = runtime.dependences_at(Point.PRE_FILTER, Point.FILTER)
        self._keys: dict[bytes, AnswerKeys] = {}
        self.tellable = True
        for cycle in cycles:
            if cycle.facts.claims:  # members of one signature may have claims of their own
                self.tellable = False
            elif cycle.facts.signature not in self._keys:
                keys = self._keys[cycle.facts.signature] = AnswerKeys(filtering)
                try:
                    keys.moved(cycle)
                except PluginError:
                    self.tellable = False
                self.tellable = self.tellable and keys.tellable

    def is_fresh(self, cycle: Cycle) -> bool:
        keys = self._keys.get(cycle.facts.signature)
        if keys is None or not self._rows.at_end or not self._nominations.at_end:
            return False
        try:
            return not keys.moved(cycle)
        except PluginError:
            return False


class FoundGang(NamedTuple):
    """A gang, and the plugin that says that it is one; or why the popped pod would fail with it again."""

    runtime: ProfileRuntime
    plugin: GangPlugin
    gang: Gang | None
    known: Reason | None = None


class GangCycles:
    """The scheduling cycles of gangs in one scheduler."""

    def __init__(self, scheduler: Scheduler, timer: Timer) -> None:
        self._scheduler = scheduler
        self._timer = timer
        self._failed = FailedGangs()

    def find(self, runtime: ProfileRuntime, queued: QueuedPod) -> FoundGang | None:
        """The gang to place the popped pod with; None where it goes by itself."""
        for plugin in runtime.gang_plugins:
            try:
                key = plugin.gang_key(queued.pod)
                if key is None:
                    continue
                known = None if queued.flushed else self._failed.reason(runtime, key, queued.pod)
                if known is not None:
                    return FoundGang(runtime, plugin, None, known)
                gang = plugin.gang_of(queued.pod)
            except Exception as error:  # whatever the plugin raises: the pod is placed alone
                runtime.handle.report(f'plugin "{plugin.name}" grouping pod {queued.pod.key}: {describe(error)}')
                return None
            if gang is not None:
                return FoundGang(runtime, plugin, gang) if self._enough_queued(gang, queued) else None
        return None

    def _enough_queued(self, gang: Gang, queued: QueuedPod) -> bool:
        """Whether the gang could be complete with the members that are in the queue, the popped one among them."""
        if not len(self._scheduler.cluster.order.rows):
            return False
        found, queue = 1, self._scheduler.queue
        for pod in gang.members:
            if found >= gang.missing:
                break
            mate = queue.get(pod.key)
            found += mate is not None and not mate.gated and pod.uid != queued.pod.uid
        return found >= gang.missing

    def run(self, queued: QueuedPod, found: FoundGang) -> None:
        """Try the gang of a popped pod."""
        runtime, gang = found.runtime, found.gang
        if gang is None:
            assert found.known is not None
            self._scheduler.fail(queued, found.known[0], Nomination(""), found.known[1])
            return
        members = self._members(gang, queued)
        attempt = GangAttempt(self._scheduler, runtime)
        if place_gang(attempt, found.plugin, gang, members):
            self._failed.forget(runtime, gang.key)
            self._bind(runtime, found.plugin, attempt)
        else:
            self._drop(runtime, gang, attempt)

    def _members(self, gang: Gang, queued: QueuedPod) -> list[QueuedPod]:
        """The popped pod and its mates, now all in flight, in the order in which the gang has them."""
        uid = queued.pod.uid
        mates = self._scheduler.queue.take(pod.key for pod in gang.members if pod.uid != uid)
        by_uid = {mate.pod.uid: mate for mate in mates}
        by_uid[uid] = queued
        for mate in mates:
            mate.began = queued.began
        return [by_uid[pod.uid] for pod in gang.members if pod.uid in by_uid]

    def _bind(self, runtime: ProfileRuntime, plugin: GangPlugin, attempt: GangAttempt) -> None:
        """Start binding all that have a node: the barrier of their plugin is open."""
        uids = {each.queued.pod.uid for each in attempt.members}
        for member in attempt.placed:
            cycle = member.cycle
            member.waits.pop(plugin.name, None)
            if cycle.pods_to_activate:
                awake = cycle.pods_to_activate.items()
                cycle.pods_to_activate = {key: pod for key, pod in awake if pod.uid not in uids}
            self._timer.decided(member.queued)
            self._scheduler.start_binding(runtime, cycle, member.queued, member.node_name, member.waits)
        for unplaced in attempt.unplaced:
            self._scheduler.fail(unplaced.queued, *_reason(runtime, unplaced))

    def _drop(self, runtime: ProfileRuntime, gang: Gang, attempt: GangAttempt) -> None:
        """Take everything back and have every member fail. Room is made with the placed members in place."""
        nominator = self._scheduler.nominator
        failures: list[tuple[QueuedPod, Status, Nomination | None, Diagnosis | None]] = []
        being_freed = 0
        for unplaced in attempt.unplaced:
            pod = unplaced.queued.pod
            status, nomination, diagnosis = _reason(runtime, unplaced)
            node = nominator.node_of(pod.uid) if nomination is None else nomination.node_name
            if node:
                being_freed += 1
                nominator.nominate(pod, node)  # the next member must look for room elsewhere
            failures.append((unplaced.queued, status, nomination, diagnosis))
        keep_room = being_freed > 0 and len(attempt.placed) + being_freed >= gang.missing
        diagnosis = refused_by_one(gang.refusal)
        refusal = Status(gang.refusal.code, (diagnosis.message,), gang.refusal.plugin)
        for member in attempt.placed:
            nomination = Nomination(member.node_name if keep_room else "")
            failures.append((member.queued, refusal, nomination, diagnosis))
        cycles = [each.cycle for each in attempt.members]
        attempt.take_back()
        for queued, status, nomination, diagnosis in failures:
            self._scheduler.fail(queued, status, nomination, diagnosis)
        if not being_freed:
            reasons: dict[str, Reason] = {
                queued.pod.uid: (status, diagnosis) for queued, status, _nomination, diagnosis in failures
            }
            self._failed.remember(runtime, gang.key, cycles, reasons)


def _reason(runtime: ProfileRuntime, unplaced: Member) -> tuple[Status, Nomination | None, Diagnosis | None]:
    """How a member fails that no node takes, after PostFilter, or that was refused on its node."""
    unplaced.diagnose(runtime)
    assert unplaced.status is not None
    return unplaced.status, unplaced.nomination, unplaced.diagnosis
