"""What is learnt from pods of a real API server, kept in a ConfigMap there, and put together where two write it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.client import Client, WatchedOutcomes, load_access
from podium.client.watched_outcomes import UNTIL
from podium.framework.clock import SystemClock
from podium.framework.pod_outcomes import ConfigMapName
from podium_lab.reward import RewardBiasArgs, Rewards
from tools.testbed import ControlPlane
from tools.testbed.objects import make_pod

KEPT = ConfigMapName("default", "lessons")


@pytest.fixture
def plane(empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield empty_control_plane
    for each in empty_control_plane.client.list("ConfigMap", KEPT.namespace):
        if each["metadata"]["name"] == KEPT.name:
            empty_control_plane.client.delete("ConfigMap", KEPT.name, KEPT.namespace)


class Replica:
    """One process that learns."""

    def __init__(self, client: Client, *, may_write: bool = True) -> None:
        self.said: list[str] = []
        self.pod_outcomes = WatchedOutcomes(
            client,
            clock=SystemClock(),
            rng=random.Random(1),
            report=self.said.append,
            may_write=lambda: may_write,
            settle=0.05,
        )
        self.rewards = self.pod_outcomes.follow(KEPT, lambda: Rewards(RewardBiasArgs()), lambda _pod, _error: None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.pod_outcomes.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def value(self, node: str) -> str:
        found = self.rewards.known("D").get(node)
        return "1.000000" if found is None else f"{found.value:.6f}"


async def until(holds: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)
    assert holds(), what


def fail(plane: ControlPlane, name: str, node: str = "a") -> None:
    """A pod of type D comes to a node and fails there."""
    plane.client.create(make_pod(name, labels={"podtype": "D"}, nodeName=node))
    plane.client.patch("Pod", name, {"status": {"phase": "Failed"}}, subresource="status")


def kept(plane: ControlPlane) -> dict[str, Any]:
    found = [each for each in plane.client.list("ConfigMap", KEPT.namespace) if each["metadata"]["name"] == KEPT.name]
    return found[0] if found else {}


def lines(plane: ControlPlane) -> list[list[str]]:
    """Node, reward and number of lessons, as they are kept for the type D."""
    return [line.split()[:3] for line in kept(plane).get("data", {}).get("D", "").splitlines()]


def with_client(plane: ControlPlane, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with Client(load_access(str(plane.kubeconfig_path))) as client:
            await work(client)

    asyncio.run(main())


def test_failures_are_learnt_from_once_and_kept_beyond_the_process(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        fail(plane, "before")
        first = Replica(client)
        async with first.running():
            await until(lambda: lines(plane) == [["a", "0.900000", "1"]], "what was there is kept")
            fail(plane, "meanwhile")
            await until(lambda: lines(plane) == [["a", "0.810000", "2"]], "what came is kept")
        assert int(kept(plane)["metadata"]["annotations"][UNTIL]) > 0

        second = Replica(client)
        async with second.running():
            await until(lambda: second.value("a") == "0.810000", "it is read at the start")
            fail(plane, "later", "b")
            await until(lambda: ["b", "0.900000", "1"] in lines(plane), "it goes on from there")
        assert lines(plane) == [["a", "0.810000", "2"], ["b", "0.900000", "1"]]
        assert first.said == second.said == []

    with_client(plane, work)


def test_two_replicas_write_one_config_map(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        one, other = Replica(client), Replica(client)
        async with one.running(), other.running():
            for number in range(4):
                fail(plane, f"p{number}", "ab"[number % 2])
            expected = [["a", "0.810000", "2"], ["b", "0.810000", "2"]]
            await until(lambda: lines(plane) == expected, "both have seen the same")
            await until(lambda: one.value("b") == other.value("b") == "0.810000", "nothing counts twice")
        assert one.said == other.said == []

    with_client(plane, work)


def test_what_another_has_written_meanwhile_is_put_together(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        replica = Replica(client)
        async with replica.running():
            fail(plane, "p")
            await until(lambda: bool(lines(plane)), "it is kept")
            data = {"D": "a 0.500000 7 2199-01-01T00:00:00Z\nz 0.300000 3 2199-01-01T00:00:00Z\n"}
            plane.client.patch("ConfigMap", KEPT.name, {"data": data, "metadata": {"labels": {"mine": "yes"}}})
            fail(plane, "q", "b")
            await until(lambda: len(lines(plane)) == 3, "both are there")
        assert lines(plane) == [["a", "0.500000", "7"], ["b", "0.900000", "1"], ["z", "0.300000", "3"]]
        assert kept(plane)["metadata"]["labels"] == {"mine": "yes"}

    with_client(plane, work)


def test_who_does_not_lead_learns_and_writes_nothing(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        replica = Replica(client, may_write=False)
        async with replica.running():
            fail(plane, "p")
            await until(lambda: replica.value("a") == "0.900000", "it learns")
            await asyncio.sleep(0.2)
        await replica.pod_outcomes.flush()
        assert kept(plane) == {}

    with_client(plane, work)


def test_what_is_unwritten_at_the_end_can_be_written(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        replica = Replica(client)
        replica.pod_outcomes._settle = 600
        async with replica.running():
            fail(plane, "p")
            await until(lambda: replica.value("a") == "0.900000", "it learns")
        assert kept(plane) == {}
        await replica.pod_outcomes.flush()
        assert lines(plane) == [["a", "0.900000", "1"]]

    with_client(plane, work)


def test_a_missing_right_is_named_and_learning_goes_on(plane: ControlPlane, tmp_path: Path) -> None:
    pair = plane.authority.issue("learner")
    plane.kubectl("create", "clusterrole", "learner", "--verb=list,watch", "--resource=pods")
    plane.kubectl("create", "clusterrolebinding", "learner", "--clusterrole=learner", "--user=learner")
    kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair)

    async def main() -> None:
        async with Client(load_access(str(kubeconfig))) as client:
            replica = Replica(client)
            async with replica.running():
                fail(plane, "p")
                await until(lambda: replica.value("a") == "0.900000", "it learns")
                await until(lambda: len(replica.said) == 2, "both are told")
            rule = 'the role needs the rule apiGroups: [""], resources: ["configmaps"], verbs: ["{}"]'
            place = "the ConfigMap default/lessons, where lessons are kept, cannot be"
            assert replica.said == [f"{place} read: {rule.format('get')}", f"{place} written: {rule.format('create')}"]

    try:
        asyncio.run(main())
    finally:
        plane.kubectl("delete", "clusterrole", "learner")
        plane.kubectl("delete", "clusterrolebinding", "learner")
