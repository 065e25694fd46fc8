"""Conditions and nominations on their way to an API server that is slow or refuses."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from aiohttp import web
from msgspec import json
from msgspec.structs import replace

from podium.client import Client
from podium.framework import ManualClock, Nomination, Status
from podium.kube import ObjectMeta, Pod, ResourceClaim
from podium.kube.devices import ClaimConsumer, ResourceClaimStatus
from podium.run.activity import WriteFailures
from podium.run.claim_writer import ClaimWriter
from podium.run.pod_status import KnownPods, PodStatuses
from podium.run.writer import LiveWriter
from podium.serving.event_recorder import EventRecorder
from tests.podium.client.asking import new_client
from tests.podium.client.servers import serving
from tools.kit.builders import make_pod

FIRST = ("False", "Unschedulable", "first")
SECOND = ("False", "Unschedulable", "second")
CLOCK = ManualClock(1_790_000_000.0)


class Server:
    """Remembers what was written, in the order of its answers; `delays` and `failures` are used up in turn."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.hold: dict[str, asyncio.Event] = {}
        self.failures = 0
        self.arrived = asyncio.Event()
        self.bound_elsewhere: Pod | None = None
        self.version = ""

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.Response(body=json.encode(self.bound_elsewhere))
        body = json.decode(await request.read())
        if request.path.endswith("/binding") and self.bound_elsewhere is not None:
            return web.json_response({"message": "assigned already"}, status=409)
        if request.path.endswith("/binding"):
            self.written.append("bound")
            return web.json_response({}, status=201)
        if body["metadata"].get("resourceVersion", self.version) != self.version:
            return web.json_response({"message": "the object has been modified"}, status=409)
        status = body["status"]
        what = " ".join(each["message"] for each in status.get("conditions", ()))
        if "nominatedNodeName" in status:
            what += f" on {status['nominatedNodeName']}"
        self.arrived.set()
        if what in self.hold:
            await self.hold[what].wait()
        if self.failures:
            self.failures -= 1
            return web.json_response({"message": "not now"}, status=500)
        self.written.append(what.strip())
        if self.version:
            self.version += "1"
        return web.json_response({"metadata": {"resourceVersion": self.version}})


class World:
    """Status writes of one pod; `known` is what the watch has brought of it."""

    def __init__(self, client: Client) -> None:
        self.known: Pod | None = make_pod("p1")
        self.complaints: list[str] = []
        complaints = WriteFailures(CLOCK, self.complaints.append)
        pods = KnownPods(lambda _pod: self.known, self._learn)
        self.statuses = PodStatuses(client, CLOCK, pods, complaints)
        recorder = EventRecorder(client, host="here", clock=CLOCK, rng=random.Random(1), report=self.complaints.append)
        self.writer = LiveWriter(
            client,
            CLOCK,
            random.Random(1),
            pods,
            self.statuses,
            recorder,
            spawn=asyncio.ensure_future,
            claims=ClaimWriter(
                client, CLOCK, lambda _claim: None, self._learn, self.complaints.append, lambda **_how: None
            ),
        )

    def _learn(self, data: bytes) -> Pod:
        self.known = json.decode(data, type=Pod)
        return self.known

    @property
    def pod(self) -> Pod:
        assert self.known is not None
        return self.known


def play(story: Callable[[Server, World], Awaitable[None]]) -> tuple[Server, World]:
    async def main() -> tuple[Server, World]:
        server = Server()
        async with serving(server.answer) as url, new_client(url) as client:
            world = World(client)
            sending = asyncio.create_task(world.statuses.run())
            try:
                async with asyncio.timeout(20):
                    await story(server, world)
                    await world.statuses.drained()
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        return server, world

    return asyncio.run(main())


def test_of_two_writes_of_a_pod_the_newer_arrives_last() -> None:
    async def story(server: Server, world: World) -> None:
        server.hold["first"] = asyncio.Event()
        world.statuses.write(world.pod, FIRST)
        await server.arrived.wait()
        world.statuses.write(world.pod, SECOND)
        await asyncio.sleep(0.05)
        server.hold["first"].set()

    server, _world = play(story)
    assert server.written == ["first", "second"]


def test_a_write_that_failed_is_repeated_as_the_newer_one_with_its_nomination() -> None:
    async def story(server: Server, world: World) -> None:
        server.hold["first on n1"] = asyncio.Event()
        server.failures = 1
        world.statuses.write(world.pod, FIRST, Nomination("n1"))
        await server.arrived.wait()
        world.statuses.write(world.pod, SECOND)
        server.hold["first on n1"].set()

    server, _world = play(story)
    assert server.written == ["second on n1"]


def test_a_write_that_failed_is_not_repeated_once_the_pod_has_a_node() -> None:
    async def story(server: Server, world: World) -> None:
        server.hold["first"] = asyncio.Event()
        server.failures = 1
        world.statuses.write(world.pod, FIRST)
        await server.arrived.wait()
        world.known = replace(world.pod, spec=replace(world.pod.spec, node_name="n1"))
        server.hold["first"].set()

    server, world = play(story)
    assert server.written == world.complaints == []


def test_what_is_under_way_about_a_pod_ends_before_it_is_bound() -> None:
    async def story(server: Server, world: World) -> None:
        server.hold["first"] = asyncio.Event()
        world.statuses.write(world.pod, FIRST)
        await server.arrived.wait()
        binding = asyncio.create_task(world.writer.bind(world.pod, "n1"))
        await asyncio.sleep(0.05)
        server.hold["first"].set()
        assert await binding is None

    server, _world = play(story)
    assert server.written == ["first", "bound"]


def test_what_waits_to_be_said_about_a_pod_is_not_said_when_it_is_bound() -> None:
    async def story(server: Server, world: World) -> None:
        world.statuses.write(world.pod, FIRST)
        assert await world.writer.bind(world.pod, "n1") is None

    server, _world = play(story)
    assert server.written == ["bound"]


def test_a_nomination_is_taken_back_although_the_watch_has_not_told_of_it() -> None:
    async def story(server: Server, world: World) -> None:
        world.statuses.write(world.pod, nomination=Nomination("n1"))
        await world.statuses.drained()
        world.statuses.write(world.pod, nomination=Nomination(""))

    server, _world = play(story)
    assert server.written == ["on n1", "on None"]


def test_what_was_just_written_is_not_written_again_before_the_watch_tells() -> None:
    async def story(server: Server, world: World) -> None:
        for _ in range(3):
            world.statuses.write(world.pod, FIRST)
            await world.statuses.drained()

    server, _world = play(story)
    assert server.written == ["first"]


def test_a_pod_that_the_watch_shows_to_be_bound_is_not_bound_again() -> None:
    async def story(server: Server, world: World) -> None:
        before = world.pod
        world.known = replace(before, spec=replace(before.spec, node_name="n1"))
        assert await world.writer.bind(before, "n1") is None
        elsewhere = await world.writer.bind(before, "n2")
        assert elsewhere is not None
        assert elsewhere.message == 'pod p1 is already assigned to node "n1"'

    server, _world = play(story)
    assert server.written == []


def test_a_pod_found_to_be_bound_by_somebody_else_is_known_to_be_there_before_anything_is_said_of_it() -> None:
    async def story(server: Server, world: World) -> None:
        pod = world.pod
        server.bound_elsewhere = replace(pod, spec=replace(pod.spec, node_name="n2"))
        refused = await world.writer.bind(pod, "n1")
        assert refused is not None
        assert world.pod.node_name == "n2"
        world.statuses.write(pod, FIRST)

    server, _world = play(story)
    assert server.written == []


def test_a_pod_bound_by_another_leader_is_known_to_be_there_when_its_claim_is_refused_and_keeps_it() -> None:
    async def story(server: Server, world: World) -> None:
        pod = world.pod
        server.bound_elsewhere = replace(pod, spec=replace(pod.spec, node_name="n2"))
        metadata = ObjectMeta(name="cl", namespace="default", deletion_timestamp="2026-01-01T00:00:00Z")
        claim = ResourceClaim(metadata=metadata)
        effect = world.writer.reserve_claim(claim, None, pod)
        assert isinstance(effect, Awaitable)
        assert await effect == Status.error("claim default/cl got deleted in the meantime")
        assert world.pod.node_name == "n2"
        world.statuses.write(pod, FIRST)
        world.writer.release_claim(claim, pod)

    server, _world = play(story)
    assert server.written == []


def test_a_pod_that_is_not_bound_lets_go_of_its_claim() -> None:
    async def story(server: Server, world: World) -> None:
        claim = ResourceClaim(metadata=ObjectMeta(name="cl", namespace="default"))
        world.writer.release_claim(claim, world.pod)
        while not server.written:
            await asyncio.sleep(0.01)

    server, _world = play(story)
    assert server.written == [""]


def test_annotations_are_merged_into_the_very_pod_and_a_refusal_is_told() -> None:
    seen: list[tuple[str, str, object]] = []
    answers = [web.json_response({}), web.json_response({"message": "not allowed"}, status=403)]
    pod = make_pod("p1")

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, json.decode(await request.read())))
        return answers.pop(0)

    async def main() -> list[Status | None]:
        async with serving(answer) as url, new_client(url) as client:
            writer = World(client).writer
            return [await writer.annotate(pod, {"gpu": "0-3"}) for _ in range(2)]

    written, refused = asyncio.run(main())
    patch = {"metadata": {"uid": pod.uid, "annotations": {"gpu": "0-3"}}}
    assert seen == [("PATCH", "/api/v1/namespaces/default/pods/p1", patch)] * 2
    assert written is None
    assert refused is not None
    assert refused.message == "not allowed"


def versioned(pod: Pod, version: str, node: str = "") -> Pod:
    metadata = replace(pod.metadata, resource_version=version)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node))


def test_a_pod_that_another_has_bound_is_not_said_to_be_unscheduled() -> None:
    async def story(server: Server, world: World) -> None:
        world.known = versioned(world.pod, "5")
        server.version, server.bound_elsewhere = "9", versioned(world.pod, "9", "n1")
        world.statuses.write(world.pod, FIRST)

    server, world = play(story)
    assert server.written == []
    assert world.pod.node_name == "n1"
    assert world.complaints == []


def test_a_pod_that_another_has_changed_is_read_before_its_status_is_written() -> None:
    async def story(server: Server, world: World) -> None:
        world.known = versioned(world.pod, "5")
        server.version, server.bound_elsewhere = "9", versioned(world.pod, "9")
        world.statuses.write(world.pod, FIRST)

    server, world = play(story)
    assert server.written == ["first"]
    assert world.complaints == []


def test_a_second_write_is_based_on_the_first_although_the_watch_is_late() -> None:
    async def story(server: Server, world: World) -> None:
        world.known = versioned(world.pod, "5")
        server.version = "5"
        world.statuses.write(world.pod, FIRST)
        await world.statuses.drained()
        world.statuses.write(world.pod, SECOND)

    server, world = play(story)
    assert server.written == ["first", "second"]
    assert world.complaints == []


def reserved_claim(pod: Pod) -> ResourceClaim:
    status = ResourceClaimStatus(reserved_for=(ClaimConsumer(resource="pods", name=pod.name, uid=pod.uid),))
    return ResourceClaim(metadata=ObjectMeta(name="cl", namespace="default"), status=status)


def test_a_claim_keeps_its_devices_if_another_has_bound_the_pod_that_uses_it() -> None:
    async def story(server: Server, world: World) -> None:
        server.bound_elsewhere = versioned(world.pod, "9", "n1")
        world.writer.deallocate_claim(reserved_claim(world.pod))
        while not world.pod.node_name:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)

    server, _world = play(story)
    assert server.written == []


def test_a_claim_whose_pod_is_not_bound_gives_its_devices_back() -> None:
    async def story(server: Server, world: World) -> None:
        server.bound_elsewhere = versioned(world.pod, "9")
        world.writer.deallocate_claim(reserved_claim(world.pod))
        while not server.written:
            await asyncio.sleep(0.01)

    server, _world = play(story)
    assert server.written == [""]
