"""Follows all pods and keeps one account per controller.

Times are those that the API knows wherever it knows them: creation, the PodScheduled condition, the start that the
node reports. So a process that starts later counts the same. What the API forgets, the spans of pods that are gone, is
written to an annotation of a living pod of the controller (`podium_plugins.qos.history`).

A pod runs from the moment it is bound. Once its node says when it started, what lies between counts as binding.

A pod that stands for itself, without annotations or an owner, gets its account when that is first needed: until then
its latest version is kept, which says all that the account will.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from podium.kube import Pod, parse_time
from podium_plugins.qos.account import ControllerAccount, Incarnation, TimeUse
from podium_plugins.qos.formulas import (
    AGGREGATE,
    INDEPENDENT,
    START_OVERHEAD,
    QosSums,
    acceptable_overhead,
    availability,
    preemption_overhead,
    qos_metric,
    start_overhead,
)
from podium_plugins.qos.history import HISTORY, SLOT, read_history, read_slot, restore
from podium_plugins.qos.promise import DEFAULT_SLO, QosPromise, read_promise

EXEMPT: Final = "kube-system"
"""The namespace whose pods are neither measured nor evicted, and go first."""
IDLE: Final = 3600.0
"""Seconds after which a controller without pods is forgotten."""
MOST_REPORTS: Final = 1000
BEHIND: Final = 0.05
"""The largest share of its time by which a Job may lag so that others of its class keep their SLO."""


class QosLedger:
    """The accounts of all controllers. `limit` is the acceptable preemption overhead of pods that name none."""

    def __init__(
        self,
        *,
        limit: float = 1.0,
        compat: bool = False,
        forget_after: float = IDLE,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self._accounts: dict[str, ControllerAccount] = {}
        self.pods: dict[str, tuple[ControllerAccount, Incarnation]] = {}
        """By uid: every pod that has not ended and has an account; `find` gives one to those that have none yet."""
        self._alone: dict[str, tuple[Pod, float]] = {}
        """By uid: pods without an account, and when they were created."""
        self.unwritten: dict[str, ControllerAccount] = {}
        """Accounts with ended pods that no annotation speaks of yet, and with living ones that could have it."""
        self.first, self._last = math.inf, 0.0
        """When the first pod was created, and when the last one ended."""
        self._limit = limit
        self._compat = compat
        self._forget_after = forget_after
        self._report = report
        self._reported: set[str] = set()
        self._replicas: dict[str, int] = {}
        """By uid of the owner: how many pods it wants."""
        self._owned: dict[str, str] = {}
        """By uid of the owner: the key of the account of its pods."""
        self._idle: dict[str, ControllerAccount] = {}

    # What happens to pods

    def observe(self, before: Pod | None, after: Pod | None, now: float) -> None:
        """A pod came, changed, or (None) went; one that has ended counts as gone."""
        if after is None or after.finished:
            last = after if after is not None else before
            if last is not None:
                self._close(last, now)
            return
        metadata = after.metadata
        if metadata.namespace == EXEMPT:
            return
        uid = metadata.uid or after.key
        known = self.pods.get(uid)
        if known is None:
            alone = self._alone.get(uid)
            if alone is not None:
                created = alone[1]
            else:
                created = now if metadata.creation_timestamp is None else _time(metadata.creation_timestamp, now)
            if not metadata.annotations and not metadata.owner_references and _times_are_known(after):
                self._alone[uid] = after, created
                return
            if alone is not None:
                del self._alone[uid]
            known = self._open(after, created)
        elif before is not None and before.metadata.annotations != metadata.annotations:
            known[1].promise = self._read(after)
            known[0].slo = known[1].promise.slo
        self._update(known, after, now)

    def find(self, uid: str) -> tuple[ControllerAccount, Incarnation] | None:
        """The account of a pod, and the pod in it; None for a pod that is not measured."""
        known = self.pods.get(uid)
        if known is None and uid in self._alone:
            pod, created = self._alone.pop(uid)
            known = self._open(pod, created)
            self._update(known, pod, created)
        return known

    @property
    def accounts(self) -> dict[str, ControllerAccount]:
        """By key of the controller."""
        for uid in list(self._alone):
            self.find(uid)
        return self._accounts

    def _update(self, known: tuple[ControllerAccount, Incarnation], after: Pod, now: float) -> None:
        account, pod = known
        if after.metadata.deletion_timestamp is not None and not pod.leaving:
            pod.leaving = True
            account.leave_slot(pod)
        pod.phase = after.status.phase or "Pending"
        if after.spec.node_name:
            self._on_node(account, pod, after, now)
        if HISTORY in after.metadata.annotations:
            self._recall(account, after)

    def _open(self, after: Pod, created: float) -> tuple[ControllerAccount, Incarnation]:
        promise = self._read(after)
        account = self._accounts.get(promise.key)
        if account is None:
            account = self._accounts[promise.key] = ControllerAccount(promise)
            self._forget_idle(created)
        self._idle.pop(account.key, None)
        account.slo = promise.slo
        uid = after.metadata.uid or after.key
        pod = Incarnation(uid, after.key, promise, created)
        self.first = min(self.first, created)
        written = read_slot(after.metadata.annotations) if SLOT in after.metadata.annotations else None
        account.add(pod, written)
        owner = after.metadata.controller if after.metadata.owner_references else None
        if owner is not None and owner.uid:
            self._owned[owner.uid] = account.key
            account.set_owner(owner.uid, self._replicas.get(owner.uid))
        self.pods[uid] = account, pod
        if account.unwritten:
            self.unwritten[account.key] = account
        return account, pod

    def _on_node(self, account: ControllerAccount, pod: Incarnation, after: Pod, now: float) -> None:
        runs = pod.state is TimeUse.RUNNING
        if runs and pod.started:
            return
        bound = pod.binding_since if runs else now
        for condition in after.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "True":
                bound = _time(condition.last_transition_time, bound)
        start = after.status.start_time
        if start is not None:
            pod.started = True
            started = max(bound, _time(start, bound))
        else:
            started = pod.running_since if runs and bound == pod.binding_since else bound
        if not runs or pod.binding_since != bound or pod.running_since != started:
            account.bind(pod, bound, started)
        pod.allocating = False

    def _close(self, last: Pod, now: float) -> None:
        uid = last.metadata.uid or last.key
        if uid in self._alone:
            if self._forget_after < math.inf:
                self.first, self._last = min(self.first, self._alone.pop(uid)[1]), now
                return
            self.find(uid)
        known = self.pods.pop(uid, None)
        if known is None:
            return
        account, pod = known
        succeeded = last.status.phase == "Succeeded" and not pod.leaving
        account.close(pod, now, succeeded=succeeded)
        self._last = now
        if not pod.promise.lasting and self._forget_after < math.inf:
            del self._accounts[account.key]
            return
        account.unwritten = True
        if account.open:
            self.unwritten[account.key] = account
        else:
            self._idle[account.key] = account

    def _read(self, pod: Pod) -> QosPromise:
        promise = read_promise(pod)
        for problem in promise.problems:
            self._complain(f"controller {promise.name}: {problem}")
        return promise

    def _complain(self, message: str) -> None:
        if message not in self._reported and len(self._reported) < MOST_REPORTS:
            self._reported.add(message)
            self._report(message)

    def _recall(self, account: ControllerAccount, after: Pod) -> None:
        """Take over what an annotation says of pods that were gone before this process began."""
        history = read_history(after.metadata.annotations[HISTORY])
        if history is None:
            self._complain(f"pod {after.key}: annotation {HISTORY} cannot be read; it is ignored")
        elif sum(each.incarnations for each in history.slots) > account.all_closed.incarnations:
            restore(account, history)
            account.unwritten = False
            self.unwritten.pop(account.key, None)

    def _forget_idle(self, now: float) -> None:
        for key, account in list(self._idle.items()):
            if now - account.idle_since < self._forget_after:
                break
            del self._idle[key], self._accounts[key]
            self.unwritten.pop(key, None)
            for uid in account.owners:
                self._owned.pop(uid, None)

    # What happens to owners

    def set_owner(self, uid: str, replicas: int | None) -> None:
        """An owner of pods wants so many of them; None: it is gone."""
        if replicas is None:
            self._replicas.pop(uid, None)
        else:
            self._replicas[uid] = replicas
        account = self._accounts.get(self._owned.get(uid, ""))
        if account is not None:
            account.set_owner(uid, replicas)

    # What the scheduler does

    def allocating(self, uid: str, value: bool) -> None:
        """A node is chosen for a pod, or no longer is; it counts as waiting until the API shows it bound."""
        known = self.pods.get(uid)
        if known is not None:
            known[1].allocating = value

    # What can be asked

    def metric(self, uid: str, now: float) -> float:
        """Slack or debt of a pod's controller, on behalf of the pod; −∞ for a pod that is not measured."""
        created = self.alone_since(uid)
        if created is not None:
            return -max(0.0, now - created) - START_OVERHEAD
        known = self.find(uid)
        return -math.inf if known is None else self.metric_of(*known, now)

    def metric_of(self, account: ControllerAccount, pod: Incarnation, now: float) -> float:
        """The same for a pod whose account is at hand."""
        first = pod.state is TimeUse.WAITING and len(account.open) == 1 and not account.all_closed.incarnations
        if first and pod.promise.slo > 0 and not self._compat:  # of a controller that has had nothing so far
            return -max(0.0, now - pod.created) - START_OVERHEAD
        shared = pod.state is TimeUse.WAITING and account.approach != INDEPENDENT
        if shared:
            version, moment, slo, metric = account.waiting_metric
            if version == account.version and moment == now and slo == pod.promise.slo:
                return metric
        found = qos_metric(account.sums(pod, now), account.question(pod, compat=self._compat), compat=self._compat)
        if math.isnan(found) and not self._compat:
            found = 0.0
        if shared:
            account.waiting_metric = (account.version, now, pod.promise.slo, found)
        return found

    def alone_since(self, uid: str) -> float | None:
        """When a pod was created that stands for itself and waits for the first time; None for all others."""
        alone = self._alone.get(uid)
        return None if alone is None or alone[0].spec.node_name or self._compat else alone[1]

    def served(self, uid: str, now: float) -> float:
        """What a pod's controller got, as a share of what it was promised; ∞ where that is nothing."""
        known = self.find(uid)
        if known is None or known[1].promise.slo <= 0:
            return math.inf
        return availability(known[0].sums(None, now)) / known[1].promise.slo

    def importance(self, uid: str) -> float:
        """The SLO of a pod; +∞ for one that is not measured."""
        if uid in self._alone:
            return DEFAULT_SLO
        known = self.pods.get(uid)
        return math.inf if known is None else known[1].promise.slo

    def overhead(self, uid: str, now: float) -> tuple[float, float]:
        """A pod's preemption overhead so far, and the most that is acceptable."""
        account, pod = self._known(uid)
        limit = self._limit if pod.promise.overhead is None else pod.promise.overhead
        found = preemption_overhead(account.sums(pod, now), account.approach)
        return found, acceptable_overhead(pod.promise.slo, limit)

    def _known(self, uid: str) -> tuple[ControllerAccount, Incarnation]:
        known = self.find(uid)
        assert known is not None, "asked about measured pods only"
        return known

    def loses_work(self, uid: str) -> bool:
        """Whether what a pod has done is lost if it is evicted."""
        return self._known(uid)[0].approach == AGGREGATE

    def lost_too_much(self, uid: str, now: float) -> bool:
        """Whether evicting a pod would leave its controller, which has lost work before, with more lost work than is
        acceptable."""
        account, pod = self._known(uid)
        if account.approach != AGGREGATE or not account.all_closed.discarded:
            return False
        sums = account.sums(pod, now)
        limit = self._limit if pod.promise.overhead is None else pod.promise.overhead
        lost, on_nodes = sums.discarded, sums.binding + sums.effective + sums.discarded
        return lost > acceptable_overhead(pod.promise.slo, limit) * on_nodes

    def exchange(self, uid: str, now: float) -> float:
        """Seconds that another should have a pod's place for. Short exchanges lose time to starts; before a long one
        the pod holds slack that others lack. With `spare`, the time that its SLO lets the pod be without a place,
        exchanges of length x lose `start · spare / x` to starts and hold back x: the sum is least at
        √(start · spare)."""
        account, pod = self._known(uid)
        slo, limit = pod.promise.slo, self._limit if pod.promise.overhead is None else pod.promise.overhead
        if acceptable_overhead(slo, limit) <= 0:
            return math.inf
        sums = account.sums(pod, now)
        start = start_overhead(sums, compat=self._compat)
        if account.approach == AGGREGATE:
            start += pod.spans(now)[2]  # what its task has done must be done again
        return math.sqrt(start * (1 - slo) * sums.total / account.measured_together)

    def lead(self, uid: str, now: float) -> float:
        """How far ahead of another of its importance a pod must be to be exchanged for it. Equals share what there is,
        so neither holds back what the other was promised, and an exchange may be twice as long. The lead shrinks by
        1 / SLO in a second, and is turned round before they change again."""
        slo = self._known(uid)[1].promise.slo
        return self.exchange(uid, now) / slo if slo > 0 else 0.0

    def reach(self, uid: str, metric: float, now: float) -> float:
        """The debt up to which a Job waits while tasks of others of its class are kept at their SLO, in seconds."""
        known = self.pods.get(uid)
        if self._compat or known is None or known[0].approach != AGGREGATE or not metric < 0:
            return 0.0
        account, pod = known
        return BEHIND * account.sums(pod, now).total / account.measured_together

    def makespan(self, now: float) -> float:
        """Seconds from the first pod's creation to the last one's end, or to now where pods are left."""
        return (
            0.0 if math.isinf(self.first) else max(0.0, (now if self.pods or self._alone else self._last) - self.first)
        )

    def quality(self, account: ControllerAccount, pod: Incarnation | None, now: float) -> tuple[float, QosSums]:
        """The QoS of a controller, and the sums it comes from."""
        sums = account.sums(pod, now)
        return availability(sums), sums


def _times_are_known(pod: Pod) -> bool:
    """Whether the API says all that there is to say of a pod's times."""
    if not pod.spec.node_name:
        return True
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "True" and each.last_transition_time is not None:
            return True
    return False


_parsed = lru_cache(maxsize=64)(parse_time)
"""Times come in whole seconds, so many are equal."""


def _time(text: str | None, otherwise: float) -> float:
    if text is None:
        return otherwise
    try:
        return _parsed(text)
    except ValueError:
        return otherwise
