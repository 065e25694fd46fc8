"""The election on a real API server, against kube-scheduler itself and against processes that are really stopped."""

import asyncio
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.client import Access, Client, load_access
from podium.framework import SystemClock
from podium.kube.meta import ObjectReference
from podium.serving.election import Election, ElectionSettings
from podium.serving.event_recorder import EventRecorder
from podium.serving.process_loop import BlockedLoopRenewal
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiError
from tools.testbed.processes import Component

SCHEDULER_LEASE = "kube-scheduler"
ELECTING = (
    "--leader-elect=true",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2500ms",
    "--leader-elect-retry-period=300ms",
)


@pytest.fixture
def plane(empty_control_plane: ControlPlane) -> ControlPlane:
    """Without leases of the tests before."""
    for lease in empty_control_plane.client.list("coordination.k8s.io/v1/Lease", "kube-system"):
        empty_control_plane.client.delete("coordination.k8s.io/v1/Lease", lease["metadata"]["name"], "kube-system")
    return empty_control_plane


@asynccontextmanager
async def standing(
    access: Access, *, name: str = SCHEDULER_LEASE, identity: str = "podium", **options: Any
) -> AsyncIterator[Election]:
    durations = {"lease_duration": 30.0, "renew_deadline": 20.0, "retry_period": 0.2}
    said: list[str] = options.pop("said", [])
    hears = {"on_event": options.pop("on_event")} if "on_event" in options else {}
    async with Client(access) as client:
        yield Election(
            client,
            ElectionSettings(namespace="kube-system", name=name, identity=identity, **(durations | options)),
            clock=SystemClock(),
            rng=random.Random(identity),
            report=said.append,
            **hears,
        )


def access(plane: ControlPlane) -> Access:
    return load_access(str(plane.kubeconfig_path))


def lease_of(plane: ControlPlane, name: str = SCHEDULER_LEASE) -> dict[str, Any]:
    spec: dict[str, Any] = plane.client.get("coordination.k8s.io/v1/Lease", name, "kube-system")["spec"]
    return spec


def holder_of(plane: ControlPlane, name: str = SCHEDULER_LEASE) -> str:
    leases = plane.client.list("coordination.k8s.io/v1/Lease", "kube-system")
    holders = [lease["spec"].get("holderIdentity") or "" for lease in leases if lease["metadata"]["name"] == name]
    return holders[0] if holders else ""


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(true):
            await asyncio.sleep(0.05)


# With kube-scheduler


def test_podium_waits_while_kube_scheduler_leads_and_takes_over_when_it_is_gone(plane: ControlPlane) -> None:
    scheduler = plane.start_scheduler(flags=ELECTING)

    async def main() -> None:
        await until(lambda: holder_of(plane) != "")
        async with standing(access(plane)) as election:
            waiting = asyncio.create_task(election.acquire())
            await asyncio.sleep(3.5)  # longer than its lease, which it renews
            assert not waiting.done()
            theirs = lease_of(plane)
            assert election.leader == theirs["holderIdentity"] != "podium"
            scheduler.kill()  # no chance to give it up
            await asyncio.wait_for(waiting, 30)
            assert election.leading()
            ours = lease_of(plane)
            assert ours.keys() == theirs.keys()
            assert (theirs["leaseDurationSeconds"], ours["leaseDurationSeconds"]) == (3, 30)
            assert ours["leaseTransitions"] == theirs["leaseTransitions"] + 1
            assert ours["acquireTime"] > theirs["acquireTime"]

    asyncio.run(main())


def test_kube_scheduler_that_ends_hands_over_at_once(plane: ControlPlane) -> None:
    flags = [flag.replace("=3s", "=600s") for flag in ELECTING]
    scheduler = plane.start_scheduler(flags=flags)

    async def main() -> None:
        await until(lambda: holder_of(plane) != "")
        async with standing(access(plane)) as election:
            waiting = asyncio.create_task(election.acquire())
            await until(lambda: election.leader != "")
            await asyncio.to_thread(scheduler.stop)
            await asyncio.wait_for(waiting, 30)
            assert election.leading()

    asyncio.run(main())


def test_kube_scheduler_waits_while_podium_leads_and_takes_over_when_it_gives_up(plane: ControlPlane) -> None:
    async def main() -> None:
        async with standing(access(plane), lease_duration=600.0, renew_deadline=300.0) as election:
            await election.acquire()
            keeping = asyncio.create_task(election.keep())
            scheduler = await asyncio.to_thread(plane.start_scheduler, flags=ELECTING)
            await until(lambda: "Attempting to acquire leader lease" in scheduler.log_text())
            await asyncio.sleep(3.5)
            assert (election.leading(), holder_of(plane)) == (True, "podium")
            keeping.cancel()
            await election.release()
            await until(lambda: holder_of(plane) != "")
            spec = lease_of(plane)
            assert spec["holderIdentity"] not in {"", "podium"}
            assert spec["leaseTransitions"] == 1

    asyncio.run(main())


def test_a_kube_scheduler_that_goes_on_after_a_pause_does_not_get_it_back(plane: ControlPlane) -> None:
    scheduler = plane.start_scheduler(flags=ELECTING)

    async def main() -> None:
        await until(lambda: "Successfully acquired lease" in scheduler.log_text())  # it must know that it leads
        scheduler.pause()
        async with standing(access(plane)) as election:
            await asyncio.wait_for(election.acquire(), 30)
            keeping = asyncio.create_task(election.keep())
            scheduler.resume()
            assert await asyncio.to_thread(scheduler.wait) == 1
            assert election.leading()
            assert not keeping.done()
            keeping.cancel()

    asyncio.run(main())


# Podium with itself


def test_a_process_that_was_stopped_sends_nothing_when_it_goes_on(plane: ControlPlane, tmp_path: Path) -> None:
    paths = [str(Path(podium.__file__).parents[1]), str(Path(__file__).parents[3])]
    holder = Component(
        "holder",
        [sys.executable, "-m", "tests.podium.serving.holder", plane.kubeconfig_path, "podium"],
        tmp_path / "holder.log",
        environment={"PYTHONPATH": os.pathsep.join(paths)},
    )

    async def main() -> None:
        await until(lambda: "stops" in holder.log_text() or not holder.running)
        async with standing(access(plane), name="podium", identity="next") as election:
            await asyncio.wait_for(election.acquire(), 30)
            holder.resume()
            assert await asyncio.to_thread(holder.wait) == 0
            assert election.leading()

    try:
        asyncio.run(main())
    finally:
        holder.stop()
    *before, lost = holder.log_text().splitlines()
    assert before == [
        "sent before",
        "stops",
        "refused after: not sent: this process does not hold lease kube-system/podium",
    ]
    assert re.fullmatch(
        r"lost: lease kube-system/podium was not renewed in 2\.5 s: this process was paused for \d+ s "
        r"\(stopped, suspended, or without CPU time\)",
        lost,
    )
    plane.client.get("v1/ConfigMap", "written-before")
    with pytest.raises(ApiError, match="not found"):
        plane.client.get("v1/ConfigMap", "written-after")
    plane.client.delete("v1/ConfigMap", "written-before")


def test_who_gives_up_hands_over_at_once(plane: ControlPlane) -> None:
    async def main() -> None:
        async with (
            standing(access(plane), name="podium", identity="one", lease_duration=600.0, renew_deadline=300.0) as one,
            standing(access(plane), name="podium", identity="two") as two,
        ):
            await one.acquire()
            waiting = asyncio.create_task(two.acquire())
            await until(lambda: two.leader == "one")
            await one.release()
            released = lease_of(plane, "podium")
            assert not one.leading()
            await asyncio.wait_for(waiting, 30)
            assert two.leading()
            assert (released.get("holderIdentity", ""), released["leaseDurationSeconds"]) in {("", 1), ("two", 30)}

    asyncio.run(main())


def test_becoming_leader_is_an_event_of_the_lease(plane: ControlPlane) -> None:
    async def main() -> None:
        async with Client(access(plane)) as client:
            recorder = EventRecorder(client, host="host", clock=SystemClock(), rng=random.Random(1), report=pytest.fail)
            sending = asyncio.create_task(recorder.run())

            def on_event(lease: ObjectReference, note: str) -> None:
                recorder.record_election(lease, note, "default-scheduler")

            async with standing(access(plane), on_event=on_event) as election:
                await election.acquire()
                keeping = asyncio.create_task(election.keep())
                await asyncio.sleep(0.1)
                keeping.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await keeping
            assert await recorder.drain(30) == 0
            sending.cancel()

    asyncio.run(main())
    described = plane.kubectl("describe", "lease", SCHEDULER_LEASE, "-n", "kube-system")
    assert "LeaderElection" in described
    assert "podium became leader" in described
    assert "podium stopped leading" in described


def test_a_missing_permission_is_told_once_with_what_to_grant(plane: ControlPlane) -> None:
    pair = plane.authority.issue("nobody")
    kubeconfig = plane.write_kubeconfig(plane.folder / "nobody", certificate=pair)
    said: list[str] = []

    async def main() -> None:
        async with standing(load_access(str(kubeconfig)), said=said) as election:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(election.acquire(), 1.5)

    asyncio.run(main())
    assert len(said) == 1
    assert said[0].startswith(
        "lease kube-system/kube-scheduler: Podium may not take part in the election: let its role"
    )
    assert 'User "nobody" cannot get resource "leases"' in said[0]


def test_labels_of_the_lease_stay(plane: ControlPlane) -> None:
    async def main() -> None:
        async with standing(access(plane)) as election:
            await election.acquire()
            keeping = asyncio.create_task(election.keep())
            kind = "coordination.k8s.io/v1/Lease"
            label = {"metadata": {"labels": {"team": "platform"}}}
            await asyncio.to_thread(plane.client.patch, kind, SCHEDULER_LEASE, label, "kube-system")
            before = lease_of(plane)["renewTime"]
            await until(lambda: lease_of(plane)["renewTime"] != before)
            assert election.leading()
            keeping.cancel()
            lease = plane.client.get(kind, SCHEDULER_LEASE, "kube-system")
            assert lease["metadata"]["labels"] == {"team": "platform"}

    asyncio.run(main())


@pytest.mark.parametrize("watched", [True, False])
def test_a_blocked_loop_keeps_its_lease_because_a_thread_renews_it(plane: ControlPlane, watched: bool) -> None:
    async def main() -> tuple[bool, str]:
        said: list[str] = []
        durations: dict[str, Any] = {"lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.3}
        async with standing(access(plane), identity="busy", **durations) as election:
            renewal = BlockedLoopRenewal(election, lambda: Client(access(plane)), said.append)
            await election.acquire()
            keeping = asyncio.create_task(election.keep())
            if watched:
                renewal.start()
            try:
                await asyncio.sleep(0.5)
                time.sleep(5)  # noqa: ASYNC251  as a plugin does that blocks
                leads_at_once = election.leading()
                await asyncio.sleep(1)
                lost = "" if not keeping.done() else str(keeping.exception())
                return leads_at_once and election.leading(), lost or " ".join(said)
            finally:
                renewal.stop()
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)

    leads, words = asyncio.run(main())
    assert leads == watched
    assert ("a thread renews the lease" in words) == watched
    assert ("was not renewed" in words) != watched
