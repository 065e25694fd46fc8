"""Podium with one mistake in it: each variant takes something away that matters only when things go wrong.

Each is a function that breaks the real code through pytest's monkeypatch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from podium.client import ApiError, Client, Reflector, Unreachable
from podium.client.listing import list_all
from podium.client.replica import Replica
from podium.cluster import Cluster
from podium.config.durations import Duration
from podium.engine.gangs.gang_attempt import GangAttempt
from podium.engine.gangs.gang_cycle import GangCycles
from podium.engine.intake import Intake
from podium.engine.queue.scheduling_queue import SchedulingQueue
from podium.engine.scheduler import Scheduler
from podium.framework import Status
from podium.framework.nominator import Nominator
from podium.placement.devices.tally import DeviceTally
from podium.placement.devices.uses import DeviceUses
from podium.run import pod_status, writer
from podium.run.claim_writer import ClaimWriter
from podium.run.pod_status import PodStatuses
from podium.run.writer import LiveWriter
from podium.serving.election import Election
from podium_cluster.controllers import resource_claims
from podium_plugins.capacity_scheduling import plugin as capacity_scheduling
from podium_plugins.capacity_scheduling.admission import QuotaAnswer, over_max, over_total
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import request_of
from podium_plugins.qos_aware import QosAware
from tools.chaos.devices import DEVICES_COUNTED, NONE_UNUSED, ONE_OWNER
from tools.chaos.final_checks import NO_POD_LOST
from tools.chaos.gangs import GANGS_WHOLE, NO_RESERVATION_LEAKED
from tools.chaos.promises import EVICTIONS_BOUNDED
from tools.chaos.quotas import QUOTAS_HELD


class Variant(NamedTuple):
    mistake: str
    make: Callable[[pytest.MonkeyPatch], None]
    from_seed: int
    """Where to begin: at the first that shows it, so that the tests are quick."""
    workload: str | None = None
    """The workload that shows it, where a drawn one may not."""
    invariant: str | None = None
    """The invariant that must be violated; None: any."""


def _gives_up_unanswered_bindings(patch: pytest.MonkeyPatch) -> None:
    original = Client.post

    async def post(self: Any, path: str, *args: Any, **options: Any) -> bytes:
        try:
            return await original(self, path, *args, **options)
        except Unreachable as error:
            error.sent = error.sent and not path.endswith("/binding")
            raise

    patch.setattr(Client, "post", post)
    patch.setattr(writer, "RETRY_PAUSES", ())  # what was not sent is tried again, which would ask the API server


def _takes_a_conflict_for_success(patch: pytest.MonkeyPatch) -> None:
    async def where(self: Any, pod: Any, node_name: str, refusal: ApiError) -> Status | None:
        return None

    patch.setattr(LiveWriter, "_where", where)


def _takes_an_error_for_a_refusal(patch: pytest.MonkeyPatch) -> None:
    async def where(self: Any, pod: Any, node_name: str, refusal: ApiError) -> Status | None:
        return Status.error(refusal.message)

    patch.setattr(LiveWriter, "_where", where)


def _forgets_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cluster, "forget", lambda self, uid: None)


def _does_not_put_back(patch: pytest.MonkeyPatch) -> None:
    original = Scheduler.fail

    def fail(self: Any, queued: Any, status: Any, nomination: Any, diagnosis: Any = None) -> None:
        if diagnosis is None:
            self.queue.done(queued.pod.uid)
        else:
            original(self, queued, status, nomination, diagnosis)

    patch.setattr(Scheduler, "fail", fail)


def _does_not_list_again(patch: pytest.MonkeyPatch) -> None:
    original = Reflector._list

    async def list_or_not(self: Any) -> None:
        if not self.synced.is_set():
            await original(self)
        else:
            _, self._version = await list_all(self._client, self.resource, self._reader)

    patch.setattr(Reflector, "_list", list_or_not)


def _waits_for_silent_watches(patch: pytest.MonkeyPatch) -> None:
    original = Reflector.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **{**options, "idle": 3600.0})

    patch.setattr(Reflector, "__init__", init)


def _believes_every_event(patch: pytest.MonkeyPatch) -> None:
    def believe(self: Any, found: Any) -> None:
        self._put(found.identity.key, found)

    patch.setattr(Replica, "set", believe)


def _writes_without_leading(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Election, "guard", lambda self: None)


def _leads_for_too_long(patch: pytest.MonkeyPatch) -> None:
    original = Election.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        self._renew_deadline = 2 * self._lease_duration

    patch.setattr(Election, "__init__", init)


def _does_not_withdraw(patch: pytest.MonkeyPatch) -> None:
    async def withdraw(self: Any, uid: str) -> None:
        await asyncio.sleep(0)

    patch.setattr(PodStatuses, "withdraw", withdraw)
    _writes_whatever_has_changed(patch)


def _writes_whatever_has_changed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pod_status, "condition_of", lambda pod: {"uid": pod.uid})


def _keeps_nominations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Nominator, "remove", lambda self, uid: None)


def _brings_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulingQueue, "on_event", lambda self, *args, **options: False)


def _leaves_without_a_word(patch: pytest.MonkeyPatch) -> None:
    def delete(self: Any, pod: Any) -> None:
        pending = self._cluster.objects.pending_pods.get(pod.key)
        if pending is not None and pending.uid == pod.uid:
            self._cluster.objects.pending_pods.discard(pod.key)
            self._queue.delete(pending)
        elif pod.uid in self._cluster.pods:
            self._cluster.remove_pod(pod.uid)

    patch.setattr(Intake, "_delete_pod", delete)


def _binds_half_a_gang(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("podium.engine.gangs.gang_attempt.has_enough", lambda attempt, _gang: bool(attempt.placed))


def _keeps_what_a_gang_held(patch: pytest.MonkeyPatch) -> None:
    def take_back(self: Any) -> None:
        self.placed.clear()
        self.unplaced = []

    patch.setattr(GangAttempt, "take_back", take_back)


def _loses_the_mates(patch: pytest.MonkeyPatch) -> None:
    original = GangCycles._members

    def members(self: Any, gang: Any, queued: Any) -> list[Any]:
        original(self, gang, queued)
        return [queued]

    patch.setattr(GangCycles, "_members", members)


def _counts_bound_pods_only(patch: pytest.MonkeyPatch) -> None:
    def answer(ledger: Any, demand: Any) -> QuotaAnswer:
        used, total = demand.use.used.copy(), ledger.total_used.copy()
        for placed in demand.use.placed.values():
            if placed.assumed:
                for amounts in (used, total):
                    amounts.add(request_of(placed.facts), -1)
        over = over_max(demand.own, used, demand.quota) or over_total(demand.all, total, ledger)
        return QuotaAnswer.OVER_MAX if over else QuotaAnswer.WITHIN

    patch.setattr(capacity_scheduling, "answer", answer)


def _counts_no_pod_that_goes(patch: pytest.MonkeyPatch) -> None:
    original = QuotaLedger._count

    def count(self: Any, use: Any, placed: Any, sign: int) -> None:
        if sign > 0:
            original(self, use, placed, sign)

    patch.setattr(QuotaLedger, "_count", count)


def _evicts_at_once(patch: pytest.MonkeyPatch) -> None:
    original = QosAware.__init__

    def init(self: Any, args: Any, handle: Any) -> None:
        original(self, replace(args, minimum_running_time=Duration(0)), handle)

    patch.setattr(QosAware, "__init__", init)


def _gives_up_unanswered_claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimWriter, "_patch_until_answered", ClaimWriter._patch)


def _counts_no_device_in_flight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeviceUses, "begin", lambda self, claim, allocation: None)


def _counts_every_device_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeviceTally, "remove", lambda self, allocation: None)


def _keeps_claims_of_pods_that_are_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resource_claims, "_uses", lambda context, namespace, user: True)


def _reports_a_refused_claim_at_once(patch: pytest.MonkeyPatch) -> None:
    async def look_at(self: Any, pod: Any) -> None:
        await asyncio.sleep(0)

    async def may_run(self: Any, namespace: str, user: Any) -> bool:
        await asyncio.sleep(0)
        return False

    patch.setattr(ClaimWriter, "_look_at", look_at)
    patch.setattr(ClaimWriter, "_may_run", may_run)
    _writes_whatever_has_changed(patch)


VARIANTS = [
    Variant("a binding without an answer is taken for one that failed", _gives_up_unanswered_bindings, 2),
    Variant("a conflict is taken for success", _takes_a_conflict_for_success, 2),
    Variant("an error is taken for a refusal", _takes_an_error_for_a_refusal, 7),
    Variant("a placement that failed is not forgotten", _forgets_nothing, 1),
    Variant("a pod whose binding failed is not put back", _does_not_put_back, 2),
    Variant("nothing is compared after a 410", _does_not_list_again, 3),
    Variant("a silent watch is waited for", _waits_for_silent_watches, 8),
    Variant("old events are believed", _believes_every_event, 1),
    Variant("writes are not guarded", _writes_without_leading, 4),
    Variant("a leader leads for longer than its lease", _leads_for_too_long, 5),
    Variant("writes of a status are not withdrawn", _does_not_withdraw, 3),
    Variant("nominations stay", _keeps_nominations, 2),
    Variant("events do not bring pods back", _brings_nothing_back, 2),
    Variant("a deleted pod leaves without a word", _leaves_without_a_word, 2),
    Variant("half a gang is bound", _binds_half_a_gang, 2, "gangs", GANGS_WHOLE),
    Variant("what a gang held is not given back", _keeps_what_a_gang_held, 2, "gangs", NO_RESERVATION_LEAKED),
    Variant("running time does not protect", _evicts_at_once, 1, "promises", EVICTIONS_BOUNDED),
    Variant("the mates of a gang's first member are lost", _loses_the_mates, 1, "gangs"),
    Variant("a pod counts for its quota when it is bound", _counts_bound_pods_only, 1, "quotas", QUOTAS_HELD),
    Variant("a pod that goes still counts for its quota", _counts_no_pod_that_goes, 1, "quotas", QUOTAS_HELD),
    Variant("an unanswered write of a claim counts as failed", _gives_up_unanswered_claims, 102, "devices", ONE_OWNER),
    Variant("devices about to be given count as free", _counts_no_device_in_flight, 1, "devices", ONE_OWNER),
    Variant("devices given back count as taken", _counts_every_device_for_ever, 1, "devices", DEVICES_COUNTED),
    Variant("pods that are gone keep their devices", _keeps_claims_of_pods_that_are_gone, 1, "devices", NONE_UNUSED),
    Variant("a refused claim fails a bound pod", _reports_a_refused_claim_at_once, 20130, "devices", NO_POD_LOST),
]
