"""Elects one leader among several processes, by a Lease, as client-go's leaderelection does.

No clocks are compared. A candidate that sees the Lease change waits, on its own monotonic clock, the whole duration
written in it, and takes over only if it saw no change meanwhile. The leader in turn counts from before it *asked* for
its last renewal, which is earlier than any peer can have seen that renewal, and stops after the shorter
`renew_deadline`. So when a peer takes over at

    seen + lease duration  ≥  asked + lease duration  >  asked + renew_deadline,

`leading()` has been false for at least the difference, which is the time a write may take to arrive. It depends on
nothing but the clock, so it is right also at the first instant after a long pause of the process.

Where the API server runs in this very process (`podium up`), it is stopped together with the scheduler, and no peer can
have taken the lease meanwhile. Then a pause does not end leading: the lease is renewed late, and only another holder
ends it. While only the scheduler's loop is blocked, a thread renews (`BlockedLoopRenewal`).

    await election.acquire()          # until we lead
    client.guard = election.guard     # no write leaves this process unless it leads
    await election.keep()             # renews; LeadershipLost when that is over
    await election.release()          # at the end: hands over at once
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from podium.client import ApiError, Client, ClientError
from podium.config.types import LeaderElection
from podium.framework.clock import Clock
from podium.kube.bounds import UNDECODABLE
from podium.kube.meta import ObjectReference
from podium.kube.printable import shortened
from podium.serving.environment import ProcessEnvironment
from podium.serving.event_recorder import EventRecorder
from podium.serving.event_sender import micro_time
from podium.serving.lease import LeaseLock, LeaseSpec, whole_seconds
from podium.serving.log import LOG

JITTER: Final = 1.2
TOLERATED_EXPIRY: Final = 20.0
"""Seconds past its end for which holding a lease still counts as healthy."""

NOTICEABLE: Final = 1.0
"""Seconds by which a timer must be late for the process to count as paused."""

INSTANT: Final = 0.001
"""Slept past a deadline, because rounding may wake one up a hair before it."""
LONGEST_NAME = 300


class LeadershipLost(Exception):  # noqa: N818  (it reads as what happened)
    """The lease could not be renewed in time, or another process holds it: one sentence says which."""


class NotLeading(ClientError):  # noqa: N818  (it reads as what happened)
    """A write was not sent because this process does not lead, or may not any more."""


@dataclass(frozen=True, kw_only=True)
class ElectionSettings:
    """Which lease is sought, by whom, and for how long at a time; durations are in seconds."""

    namespace: str
    name: str
    identity: str
    lease_duration: float
    renew_deadline: float
    retry_period: float
    server_in_process: bool = False
    """Whether the API server runs in this process, so that a pause of one is a pause of the other."""

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("an election needs an identity, by which others tell this process from themselves")
        if not self.lease_duration > self.renew_deadline > JITTER * self.retry_period > 0:
            raise ValueError(
                f"an election needs leaseDuration > renewDeadline > {JITTER} × retryPeriod > 0, not "
                f"{self.lease_duration:g} s, {self.renew_deadline:g} s and {self.retry_period:g} s"
            )


class Election:
    """One candidate. Its client must have no guard: renewing is what leading depends on, not the other way round.

    on_event: called with the Lease and "<identity> became leader" or "<identity> stopped leading".
    on_leader: called with the leader's identity whenever that is seen to change ("" for none).
    """

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        *,
        clock: Clock,
        rng: random.Random,
        report: Callable[[str], None],
        on_event: Callable[[ObjectReference, str], None] = lambda _lease, _note: None,
        on_leader: Callable[[str], None] = lambda _identity: None,
    ) -> None:
        namespace, name = settings.namespace, settings.name
        self.name = name
        self.identity = settings.identity
        self.where = f"lease {namespace}/{name}"
        self._lock = LeaseLock(client, namespace, name, timeout=max(1.0, settings.renew_deadline / 2))
        self._lease_duration = settings.lease_duration
        self._renew_deadline = settings.renew_deadline
        self.retry_period = settings.retry_period
        self._namespace = namespace
        self._clock = clock
        self._rng = rng
        self._report = report
        self._server_in_process = settings.server_in_process
        self._on_event = on_event
        self._on_leader = on_leader
        self._record: LeaseSpec | None = None  # as last seen or written
        self._seen_at = 0.0  # when it was first seen so
        self._renewal_began = 0.0  # when the last renewal that succeeded was begun
        self._paused = 0.0  # seconds that the process did not run since the last renewal
        self._released = False
        self._reported_leader = ""
        self._problem: str | None = None

    @property
    def leader(self) -> str:
        """The identity that led when last seen; empty for none."""
        return "" if self._record is None else self._record.holder

    def leading(self) -> bool:
        """Whether this process leads, for certain and now."""
        return self._holding and (self._server_in_process or _now() < self._renewal_began + self._renew_deadline)

    def guard(self) -> None:
        """For `Client.guard`: raises NotLeading unless leading.

        A process stopped between this and the send will send when it goes on; for that instant there is only the API
        server, which binds no pod twice.
        """
        if not self.leading():
            raise NotLeading(f"not sent: this process does not hold {self.where}")

    def unhealthy(self) -> str | None:
        """What the health check `leaderElection` says: a holder should have ended long before it fails."""
        if self._holding and _now() - self._seen_at > self._lease_duration + TOLERATED_EXPIRY:
            return f"failed election to renew leadership on lease {self.name}"
        return None

    async def acquire(self) -> None:
        """Returns when this process leads. Waits as long as it takes, also for an API server that is away."""
        self._released = False
        while not (await self._try() and self.leading()):  # noqa: ASYNC110  a retry
            await asyncio.sleep(self.retry_period * (1 + self._rng.random() * JITTER))
        self._on_event(self._lock.reference, f"{self.identity} became leader")

    async def keep(self) -> None:
        """Renews for as long as it goes well; raises LeadershipLost."""
        try:
            while True:
                due = _now() + min(self.retry_period, self._left() + INSTANT)
                await asyncio.sleep(due - _now())
                self._notice_pause(due)
                if not self.leading():
                    raise LeadershipLost(self._why_lost())
                due = _now() + self._left()
                try:
                    async with asyncio.timeout_at(due):
                        await self._try()
                except TimeoutError:
                    self._set_problem("no answer in time")
                self._notice_pause(due)
                if not self._holding:
                    raise LeadershipLost(f"{self.where} is held by {self.leader or 'no process'} now")
        finally:
            self._on_event(self._lock.reference, f"{self.identity} stopped leading")

    async def renew_by(self, client: Client) -> bool:
        """Renews over another client, from another thread: for as long as `keep` cannot, and by the same rule."""
        if not self.leading():
            return False
        began = _now()
        lock = LeaseLock(client, self._namespace, self.name, timeout=max(1.0, self._renew_deadline / 2))
        spec = await lock.read()
        if spec is None or spec.holder != self.identity or not self.leading():
            return False
        await lock.update(self._ours(spec))  # `keep` will be refused once, and read what it is now
        self._renewal_began = max(self._renewal_began, began)
        return True

    async def release(self) -> None:
        """Gives the lease up, so that a peer need not wait; nothing guarded may be under way any more.

        `keep` may still run: it ends, and whatever renewal it has under way cannot take the lease back.
        """
        if not self._holding:
            return
        self._released = True
        assert self._record is not None
        moment = micro_time(self._clock.now())
        empty = LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=moment,
            renew_time=moment,
            lease_transitions=self._record.lease_transitions,
        )
        try:
            try:
                await self._lock.update(empty)
            except ApiError as error:
                if not error.conflict:
                    raise
                found = await self._lock.read()  # a renewal that was cancelled may have arrived
                if found is None or found.holder != self.identity:
                    return
                await self._lock.update(empty)
        except (ClientError, *UNDECODABLE) as error:
            self._report(f"{self.where} was not released and must run out: {error}")
        else:
            self._see(empty)

    @property
    def _holding(self) -> bool:
        return not self._released and self._record is not None and self._record.holder == self.identity

    def _left(self) -> float:
        """Seconds that a renewal may take."""
        if self._server_in_process:
            return self._renew_deadline
        return max(0.0, self._renewal_began + self._renew_deadline - _now())

    def _notice_pause(self, due: float) -> None:
        """A timer that fires late by more than a moment means that the process did not run."""
        if (late := _now() - due) > NOTICEABLE:
            self._paused += late

    def _why_lost(self) -> str:
        if self._paused:
            return (
                f"{self.where} was not renewed in {self._renew_deadline:g} s: this process was paused for "
                f"{self._paused:.0f} s (stopped, suspended, or without CPU time)"
            )
        cause = f": {self._problem}" if self._problem else ""
        return f"{self.where} was not renewed in {self._renew_deadline:g} s{cause}"

    async def _try(self) -> bool:
        """One attempt to acquire or renew; whether it succeeded."""
        try:
            won = await self._acquire_or_renew()
        except ApiError as error:
            if not error.conflict:  # else a peer was quicker, which the next attempt will see
                self._set_problem(self._forbidden(error) if error.forbidden else str(error))
            return False
        except (ClientError, *UNDECODABLE) as error:
            self._set_problem(str(error))
            return False
        finally:
            self._report_leader()
        self._set_problem(None)
        return won

    async def _acquire_or_renew(self) -> bool:
        began = _now()
        if self.leading():
            try:
                return await self._write(self._ours(self._record), began)
            except ApiError:  # read what it is now, as a candidate does
                pass
        spec = await self._lock.read()
        if self._released:
            return False
        if spec is None:
            ours = self._ours(None)
            await self._lock.create(ours)
            return self._won(ours, began)
        if spec != self._record:
            self._see(spec)
        wait = self._seen_at + (spec.lease_duration_seconds or 0)
        if spec.holder not in {"", self.identity} and began < wait:
            return False
        return await self._write(self._ours(spec), began)

    async def _write(self, ours: LeaseSpec, began: float) -> bool:
        await self._lock.update(ours)
        return self._won(ours, began)

    def _won(self, ours: LeaseSpec, began: float) -> bool:
        self._see(ours)
        self._renewal_began = began
        self._paused = 0.0
        return True

    def _ours(self, old: LeaseSpec | None) -> LeaseSpec:
        moment = micro_time(self._clock.now())
        renewal = old is not None and old.holder == self.identity
        transitions = 0 if old is None else (old.lease_transitions or 0) + (0 if renewal else 1)
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=whole_seconds(self._lease_duration),
            acquire_time=old.acquire_time if old is not None and renewal else moment,
            renew_time=moment,
            lease_transitions=transitions,
        )

    def _see(self, record: LeaseSpec) -> None:
        self._record = record
        self._seen_at = _now()

    def _report_leader(self) -> None:
        if self.leader != self._reported_leader:
            self._reported_leader = self.leader
            self._on_leader(self.leader)

    def _set_problem(self, problem: str | None) -> None:
        """Report it once, until it is another."""
        if problem is not None and problem != self._problem:
            self._report(f"{self.where}: {problem}")
        self._problem = problem

    def _forbidden(self, error: ApiError) -> str:
        return (
            f"Podium may not take part in the election: let its role get and update leases named {self.name} and "
            f"create leases, of the API group coordination.k8s.io, in that namespace; the API server says: {error}"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


def candidate(
    settings: LeaderElection,
    client: Client,
    recorder: EventRecorder,
    environment: ProcessEnvironment,
    controller: str,
    *,
    server_in_process: bool = False,
) -> Election:
    """Its identity is the host name and a number of its own; `controller` is who its events are from."""
    lease = f"lease {settings.resource_namespace}/{settings.resource_name}"
    identity = f"{environment.hostname}_{uuid.UUID(int=environment.rng.getrandbits(128), version=4)}"

    def say_who_leads(leader: str) -> None:
        if leader == identity:
            LOG.info("this process leads: it holds %s", lease)
        elif leader:
            LOG.info("%s is held by %s; waiting for it", lease, shortened(leader, LONGEST_NAME))
        else:
            LOG.info("%s is free", lease)

    return Election(
        client,
        ElectionSettings(
            namespace=settings.resource_namespace,
            name=settings.resource_name,
            identity=identity,
            lease_duration=settings.lease_duration.seconds,
            renew_deadline=settings.renew_deadline.seconds,
            retry_period=settings.retry_period.seconds,
            server_in_process=server_in_process,
        ),
        clock=environment.clock,
        rng=environment.rng,
        report=LOG.info,
        on_leader=say_who_leads,
        on_event=lambda lease, note: recorder.record_election(lease, note, controller),
    )
