"""Who leads and when, in virtual time: pauses, lost messages and slow networks of every kind."""

import asyncio
import random
from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from podium.client import Client
from podium.serving.election import Election, ElectionSettings, LeadershipLost, NotLeading
from tests.podium.serving.lease_server import LeaseServer, Network
from tools.kit.effort import examples
from tools.kit.virtual_time import VirtualProcess, outside, run_virtually

LEASE, RENEW, RETRY = 15.0, 10.0, 2.0


class WrongClock:
    """A time of day that has nothing to do with anybody else's, but goes on."""

    def __init__(self, start: float) -> None:
        self._start = start

    def now(self) -> float:
        return self._start + asyncio.get_running_loop().time()


class Candidate:
    """A process that stands for election, in a network of its own."""

    def __init__(self, server: LeaseServer, identity: str, seed: int = 0, **durations: Any) -> None:
        self.process = VirtualProcess()
        self.network = Network(server, random.Random(f"{identity} {seed} network"))
        self.said: list[str] = []
        self.events: list[str] = []
        self.leaders: list[str] = []
        self.lost: list[str] = []
        self.election = Election(
            cast(Client, self.network),
            ElectionSettings(
                namespace="kube-system",
                name="podium",
                identity=identity,
                lease_duration=durations.get("lease_duration", LEASE),
                renew_deadline=durations.get("renew_deadline", RENEW),
                retry_period=durations.get("retry_period", RETRY),
                server_in_process=durations.get("server_in_process", False),
            ),
            clock=WrongClock(1e9 if identity == "one" else random.Random(identity).uniform(0, 3e9)),
            rng=random.Random(f"{identity} {seed} jitter"),
            report=self.said.append,
            on_event=lambda _lease, note: self.events.append(note),
            on_leader=self.leaders.append,
        )

    async def stand(self) -> None:
        """Over and over, as a process does that is started again when it ends."""
        while True:
            await self.election.acquire()
            try:
                await self.election.keep()
            except LeadershipLost as lost:
                self.lost.append(str(lost))


def now() -> float:
    return asyncio.get_running_loop().time()


# One process


def test_the_first_to_come_leads_at_once() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        assert not one.election.leading()
        await one.election.acquire()
        assert one.election.leading()
        assert server.lease is not None
        assert server.lease["spec"] == {
            "holderIdentity": "one",
            "leaseDurationSeconds": 15,
            "acquireTime": "2001-09-09T01:46:40.000000Z",
            "renewTime": "2001-09-09T01:46:40.000000Z",
            "leaseTransitions": 0,
        }
        assert one.events == ["one became leader"]
        assert one.leaders == ["one"]

    run_virtually(main())


def test_a_leader_renews_every_retry_period_for_as_long_as_it_goes_well() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        standing = one.process.within(one.stand())
        await asyncio.sleep(3601)
        assert one.election.leading()
        assert [when for when, _ in server.history] == pytest.approx([RETRY * turn for turn in range(1801)])
        assert one.said == one.lost == []
        standing.cancel()

    run_virtually(main())


@pytest.mark.parametrize("slowness", [0.0, 3.0])
def test_leading_ends_renew_deadline_after_the_last_renewal_was_asked_for(slowness: float) -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        one.network.slowness = slowness
        await one.election.acquire()
        asked = one.network.sent[-2]  # it looked whether there is a lease, then created it
        one.network.down, one.network.slowness = True, 0.0
        keeping = one.process.within(one.election.keep())
        await asyncio.sleep(asked + RENEW - now() - 0.001)
        assert one.election.leading()
        one.election.guard()
        await asyncio.sleep(0.002)
        assert not one.election.leading()
        with pytest.raises(NotLeading, match="does not hold lease kube-system/podium"):
            one.election.guard()
        with pytest.raises(LeadershipLost, match="podium was not renewed in 10 s: the API server is away"):
            await keeping
        assert now() == pytest.approx(asked + RENEW, abs=0.01)
        assert one.events == ["one became leader", "one stopped leading"]
        assert one.said == ["lease kube-system/podium: the API server is away"]

    run_virtually(main())


def test_a_server_that_never_answers_is_not_waited_for_longer_than_the_deadline() -> None:
    async def main() -> None:
        one = Candidate(LeaseServer(), "one")
        await one.election.acquire()
        one.network.slowness = 1e6
        with pytest.raises(LeadershipLost):
            await one.election.keep()
        assert now() == pytest.approx(RENEW, abs=0.01)

    run_virtually(main())


def test_a_failure_shorter_than_the_deadline_costs_nothing() -> None:
    async def main() -> None:
        one = Candidate(LeaseServer(), "one")
        standing = one.process.within(one.stand())
        for _ in range(20):
            await asyncio.sleep(20)
            one.network.down = True
            await asyncio.sleep(RENEW - 2 * RETRY - 0.1)
            one.network.down = False
        await asyncio.sleep(RETRY)
        assert one.lost == []
        assert one.election.leading()
        assert one.said == ["lease kube-system/podium: the API server is away"] * 20
        standing.cancel()

    run_virtually(main())


def test_after_a_long_pause_it_does_not_lead_before_anything_else_runs() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        await one.election.acquire()
        seen: list[bool] = []

        async def act() -> None:
            while True:
                await asyncio.sleep(0.1)
                seen.append(one.election.leading())

        acting, keeping = one.process.within(act()), one.process.within(one.election.keep())
        await asyncio.sleep(1.05)
        one.process.pause(60)
        await asyncio.sleep(61)
        assert seen[:11] == [True] * 10 + [False]
        assert not any(seen[10:])
        with pytest.raises(LeadershipLost, match=r"not renewed in 10 s: this process was paused for 5\d s \(stopped"):
            await keeping
        acting.cancel()

    run_virtually(main())


def test_a_leader_that_is_stopped_together_with_its_server_goes_on_leading() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one", server_in_process=True)
        await one.process.within(one.election.acquire())
        keeping = one.process.within(one.election.keep())
        one.process.pause(10 * LEASE)
        await asyncio.sleep(10 * LEASE - 0.001)
        assert one.election.leading()
        one.election.guard()
        await asyncio.sleep(2 * RETRY)
        assert server.holder == "one"
        assert (one.election.leading(), keeping.done(), one.events) == (True, False, ["one became leader"])

    run_virtually(main())


def test_a_leader_stopped_together_with_its_server_still_yields_to_another_holder() -> None:
    async def main() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one", server_in_process=True), Candidate(server, "two")
        await one.process.within(one.election.acquire())
        keeping = one.process.within(one.election.keep())
        one.process.pause(10 * LEASE)
        await two.process.within(two.election.acquire())
        await asyncio.sleep(10 * LEASE)
        with pytest.raises(LeadershipLost, match="held by two now"):
            await keeping
        assert not one.election.leading()

    run_virtually(main())


def test_a_change_by_others_that_leaves_the_holder_is_no_loss() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        standing = one.process.within(one.stand())
        await asyncio.sleep(5)
        assert server.lease is not None
        server.lease["metadata"] = {**server.lease["metadata"], "resourceVersion": "99", "labels": {"a": "b"}}
        await asyncio.sleep(20)
        assert one.election.leading()
        assert one.lost == one.said == []
        assert server.lease["metadata"]["labels"] == {"a": "b"}
        standing.cancel()

    run_virtually(main())


def test_a_deleted_lease_is_created_anew() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        standing = one.process.within(one.stand())
        await asyncio.sleep(5)
        server.lease = None
        await asyncio.sleep(5)
        assert (server.holder, one.election.leading(), one.lost) == ("one", True, [])
        standing.cancel()

    run_virtually(main())


def test_who_sees_another_holder_stops_at_once() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        standing = one.process.within(one.stand())
        await asyncio.sleep(5)
        assert server.lease is not None
        spec = {**server.lease["spec"], "holderIdentity": "usurper", "leaseTransitions": 7}
        server.lease = {**server.lease, "metadata": {"resourceVersion": "99"}, "spec": spec}
        await asyncio.sleep(RETRY)
        assert not one.election.leading()
        assert one.lost == ["lease kube-system/podium is held by usurper now"]
        await asyncio.sleep(LEASE + RETRY * 2.2)
        assert one.election.leading()
        assert server.lease["spec"]["leaseTransitions"] == 8
        assert one.leaders == ["one", "usurper", "one"]
        standing.cancel()

    run_virtually(main())


def test_holding_a_lease_20_seconds_past_its_end_is_unhealthy() -> None:
    async def main() -> None:
        one = Candidate(LeaseServer(), "one")
        assert one.election.unhealthy() is None
        await one.election.acquire()
        await asyncio.sleep(LEASE + 20)
        assert one.election.unhealthy() is None
        await asyncio.sleep(0.001)
        assert one.election.unhealthy() == "failed election to renew leadership on lease podium"
        await one.election.release()
        assert one.election.unhealthy() is None

    run_virtually(main())


@pytest.mark.parametrize(
    "durations",
    [{"lease_duration": 10.0}, {"renew_deadline": 2.4}, {"retry_period": 0.0}, {"retry_period": -1.0}],
)
def test_durations_that_cannot_work_are_refused(durations: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"leaseDuration > renewDeadline > 1\.2 × retryPeriod > 0"):
        Candidate(LeaseServer(), "one", **durations)


def test_a_part_of_a_second_is_written_as_a_whole_one() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one", lease_duration=1.2, renew_deadline=1.0, retry_period=0.1)
        await one.election.acquire()
        assert server.lease is not None
        assert server.lease["spec"]["leaseDurationSeconds"] == 2

    run_virtually(main())


# Several


def test_a_candidate_waits_the_whole_duration_since_it_saw_a_change() -> None:
    async def main() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        await one.election.acquire()
        await asyncio.sleep(100)  # long expired by the times in it, but two knows only its own clock
        came = now()
        await two.election.acquire()
        assert came + LEASE <= now() <= came + LEASE + RETRY * 2.2
        assert server.lease is not None
        assert server.lease["spec"]["leaseTransitions"] == 1

    run_virtually(main())


def test_a_candidate_waits_the_duration_the_holder_wrote() -> None:
    async def main() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one", lease_duration=100.0), Candidate(server, "two")
        await one.election.acquire()
        await two.election.acquire()
        assert now() >= 100

    run_virtually(main())


def test_who_gives_the_lease_up_hands_over_at_once() -> None:
    async def main() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one", lease_duration=1e6), Candidate(server, "two")
        await one.election.acquire()
        waiting = two.process.within(two.election.acquire())
        await asyncio.sleep(60)
        assert not waiting.done()
        await one.election.release()
        assert not one.election.leading()
        assert server.lease is not None
        spec = server.lease["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 0)
        released = now()
        await waiting
        assert now() <= released + RETRY * 2.2
        assert server.lease["spec"]["leaseTransitions"] == 1

    run_virtually(main())


def test_a_cancelled_renewal_that_arrived_does_not_keep_the_lease_from_being_given_up() -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        await one.election.acquire()
        one.network.slowness = 1.0
        keeping = one.process.within(one.election.keep())
        while len(server.history) == 1:
            await asyncio.sleep(0.01)
        keeping.cancel()
        await one.election.release()
        assert server.holder == ""
        assert one.said == []

    run_virtually(main())


@pytest.mark.parametrize("seed", range(20))
def test_a_renewal_under_way_does_not_take_back_what_was_given_up(seed: int) -> None:
    async def main() -> None:
        server = LeaseServer()
        one = Candidate(server, "one", seed)
        await one.election.acquire()
        one.network.slowness = 1.0
        keeping = one.process.within(one.election.keep())
        await asyncio.sleep(RETRY + random.Random(seed).uniform(0, 2))
        await one.election.release()
        assert server.holder == ""
        await asyncio.sleep(60)
        assert server.holder == ""
        assert not one.election.leading()
        with pytest.raises(LeadershipLost):
            await keeping

    run_virtually(main())


def test_only_the_holder_gives_up_a_lease() -> None:
    async def main() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        await one.election.acquire()
        await asyncio.sleep(1)
        standing = two.process.within(two.stand())
        await asyncio.sleep(LEASE + RETRY * 2.2)
        assert two.election.leading()
        await one.election.release()
        await asyncio.sleep(RETRY)
        assert (server.holder, two.lost, one.said) == ("two", [], [])
        standing.cancel()

    run_virtually(main())


def test_of_many_that_come_at_once_one_leads_and_a_lost_race_is_no_trouble() -> None:
    async def main() -> None:
        server = LeaseServer()
        candidates = [Candidate(server, f"c{number}") for number in range(20)]
        standing = [candidate.process.within(candidate.stand()) for candidate in candidates]
        for candidate in candidates:
            candidate.network.slowness = 0.1
        await asyncio.sleep(60)
        assert [candidate.election.leading() for candidate in candidates].count(True) == 1
        assert all(candidate.said == [] for candidate in candidates)
        for task in standing:
            task.cancel()

    run_virtually(main())


pauses = st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 8.0), st.floats(0.0, 40.0)), max_size=25)


@settings(max_examples=examples(40), deadline=None, phases=[Phase.reuse, Phase.generate])  # to shrink takes minutes
@given(
    seed=st.integers(0, 10_000),
    pauses=pauses,
    slowness=st.sampled_from([0.0, 0.2, 2.0, 8.0]),
    loss=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_never_do_two_lead_whatever_is_paused_slow_or_lost(
    seed: int, pauses: list[tuple[int, float, float]], slowness: float, loss: float
) -> None:
    run_virtually(_troubled_times(seed, pauses, slowness, loss))


async def _troubled_times(seed: int, pauses: list[tuple[int, float, float]], slowness: float, loss: float) -> None:
    server = LeaseServer()
    candidates = [Candidate(server, name, seed) for name in ("one", "two", "three")]
    rng = random.Random(seed)
    tasks: list[asyncio.Task[Any]] = []
    wrong: list[str] = []

    async def arrive(writer: str, transit: float) -> None:
        await asyncio.sleep(transit)
        if server.holder != writer:
            wrong.append(f"{now():.3f}: a write of {writer} arrives under {server.holder or 'nobody'}")

    async def work(candidate: Candidate) -> None:
        """Writes that take as long as they may."""
        while True:
            await asyncio.sleep(rng.uniform(0, 0.5))
            if candidate.election.leading():
                outside(arrive(candidate.election.identity, rng.uniform(0, LEASE - RENEW)))

    async def watch() -> None:
        while True:
            leading = [candidate.election.identity for candidate in candidates if candidate.election.leading()]
            if len(leading) > 1:
                wrong.append(f"{now():.3f}: {leading} lead")
            await asyncio.sleep(0.1)

    for candidate in candidates:
        candidate.network.slowness, candidate.network.loss = slowness, loss
        tasks += [candidate.process.within(candidate.stand()), candidate.process.within(work(candidate))]
    tasks.append(outside(watch()))
    for index, after, length in pauses:
        await asyncio.sleep(after)
        candidates[index].process.pause(length)
    await asyncio.sleep(60)
    for candidate in candidates:
        candidate.network.slowness, candidate.network.loss = 0.0, 0.0
    await asyncio.sleep(LEASE + RETRY * 2.2 * 3 + 16)
    assert wrong == [], wrong[:3]
    assert any(candidate.election.leading() for candidate in candidates), now()
    for task in tasks:
        task.cancel()
