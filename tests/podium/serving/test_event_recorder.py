"""Events as people find them in a real API server, and what becomes of them when it is slow, away or says no."""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from podium.client import Access, Client, load_access
from podium.framework import ManualClock
from podium.kube import Pod
from podium.serving import event_recorder as events
from podium.serving import event_sender
from podium.serving.event_recorder import EventRecorder, failed_scheduling, preempted, scheduled
from podium.serving.event_sender import cut_note
from tools.kit.builders import make_node, make_pod
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiClient

Event = dict[str, Any]


def _in_version(version: str) -> Pod:
    pod = make_pod("web")
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=version))


class Reporter:
    """A recorder on a client, with the sentences it reported and a clock to move."""

    def __init__(self, client: Client, *, host: str = "host", **options: Any) -> None:
        self.said: list[str] = []
        self.clock = ManualClock(time.time())
        self.recorder = EventRecorder(
            client, host=host, clock=self.clock, rng=random.Random(1), report=self.said.append, **options
        )

    async def settle(self) -> None:
        assert await self.recorder.drain(30) == 0


@asynccontextmanager
async def reporting(access: Access, **options: Any) -> AsyncIterator[Reporter]:
    async with Client(access) as client:
        reporter = Reporter(client, **options)
        running = asyncio.create_task(reporter.recorder.run())
        yield reporter
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def access(plane: ControlPlane) -> Access:
    return load_access(str(plane.kubeconfig_path))


def listed(client: ApiClient, namespace: str = "default") -> list[Event]:
    """In the order in which they happened."""
    return sorted(client.list("events.k8s.io/v1/Event", namespace), key=lambda event: event["metadata"]["name"])


# What the API server gets


def test_events_are_those_of_kube_scheduler(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    client.create(_plain(make_node("n1", cpu=4), "Node"))
    empty_control_plane.start_scheduler()
    client.create(_pod("low", cpu="3", priority=0))
    client.poll("v1/Pod", lambda pods: all(pod["spec"].get("nodeName") for pod in pods))
    client.create(_pod("high", cpu="3", priority=100))
    client.poll("events.k8s.io/v1/Event", lambda found: {"Preempted", "FailedScheduling"} <= _reasons(found))
    client.poll("v1/Event", lambda found: len(found) >= 3)
    empty_control_plane.stop_components()
    theirs = {event["reason"]: event for event in listed(client)}
    low = _as_regarded(theirs["Scheduled"]["regarding"])
    victim = _as_regarded(theirs["Preempted"]["regarding"])
    high = _as_regarded(theirs["FailedScheduling"]["regarding"])
    client.delete_all("v1/Event")

    async def main() -> None:
        async with reporting(access(empty_control_plane), host=socket.gethostname()) as reporter:
            reporter.recorder.record(*scheduled(low, "n1"))
            reporter.recorder.record(*failed_scheduling(high, theirs["FailedScheduling"]["note"]))
            reporter.recorder.record(*preempted(victim, high, "n1"))
            await reporter.settle()

    asyncio.run(main())
    ours = {event["reason"]: event for event in listed(client)}
    assert ours.keys() == {"Scheduled", "FailedScheduling", "Preempted"}
    assert ours["Preempted"].pop("related") == theirs["FailedScheduling"]["regarding"]  # theirs has none: a fault
    for reason, event in ours.items():
        assert _lasting(event) == _lasting(theirs[reason])


def test_kubectl_shows_them(empty_control_plane: ControlPlane) -> None:
    pod = msgspec.convert(empty_control_plane.client.create(_pod("web", cpu="1")), Pod)

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*failed_scheduling(pod, "0/1 nodes are available: 1 Insufficient cpu."))
            reporter.clock.advance(1)
            reporter.recorder.record(*scheduled(pod, "n1"))
            await reporter.settle()

    asyncio.run(main())
    described = empty_control_plane.kubectl("describe", "pod", "web")
    assert "0/1 nodes are available: 1 Insufficient cpu." in described
    line = next(line for line in described.splitlines() if "Successfully assigned" in line)
    assert line.split()[:2] == ["Normal", "Scheduled"]
    assert line.split()[3:] == ["default-scheduler", "Successfully", "assigned", "default/web", "to", "n1"]
    assert "FailedScheduling" in empty_control_plane.kubectl("events", "--for", "pod/web")


def test_the_name_is_the_pods_with_the_nanoseconds_in_hex(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.clock.advance(1_900_000_000.5 - reporter.clock.now())
            reporter.recorder.record(*scheduled(make_pod("web"), "n1"))
            await reporter.settle()

    asyncio.run(main())
    (event,) = listed(empty_control_plane.client)
    assert event["metadata"]["name"] == f"web.{1_900_000_000_500_000_000:x}"
    assert event["eventTime"] == "2030-03-17T17:46:40.500000Z"


def test_what_is_longer_than_the_api_allows_is_cut(empty_control_plane: ControlPlane) -> None:
    longest = "a" * 253

    async def main() -> None:
        async with reporting(access(empty_control_plane), host="h" * 200) as reporter:
            reporter.recorder.record(*failed_scheduling(make_pod(longest), "é" * 1000))
            await reporter.settle()
            assert reporter.said == []

    asyncio.run(main())
    (event,) = listed(empty_control_plane.client)
    assert event["note"] == "é" * 510 + " ..."
    assert event["reportingInstance"] == "default-scheduler-" + "h" * 110
    assert len(event["metadata"]["name"]) == 36  # a random one


@pytest.mark.parametrize(
    ("note", "bytes_kept"),
    [("", 0), ("x" * 256, 256), ("x" * 1024, 1024), ("x" * 1025, 1024), ("€" * 341, 1023), ("€" * 342, 1024)],
)
def test_a_note_has_at_most_1024_bytes(note: str, bytes_kept: int) -> None:
    cut = cut_note(note)
    assert len(cut.encode()) == bytes_kept
    assert cut == note or (cut.endswith(" ...") and note.startswith(cut[:-4]))


def test_two_events_of_one_pod_in_one_instant_are_two(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*scheduled(make_pod("web"), "n1"))
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()

    asyncio.run(main())
    assert _reasons(listed(empty_control_plane.client)) == {"Scheduled", "FailedScheduling"}


# Series


def test_a_repetition_is_counted_in_a_series(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:

            async def happen() -> list[Event]:
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await reporter.settle()
                reporter.clock.advance(300)
                return await asyncio.to_thread(listed, client)

            assert ["series" in event for event in await happen()] == [False]
            assert [event["series"]["count"] for event in await happen()] == [2]
            for _ in range(5):  # until half an hour has passed since it was written
                assert [event["series"]["count"] for event in await happen()] == [2]
            (refreshed,) = await happen()
            assert refreshed["series"]["count"] == 8
            assert reporter.recorder.sent == 3

    asyncio.run(main())


def test_after_six_minutes_without_one_the_series_is_closed_with_its_count(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            for _ in range(3):
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await reporter.settle()
            reporter.clock.advance(359)
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            reporter.clock.advance(360)
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()
            first, second = await asyncio.to_thread(listed, client)
            assert first["series"]["count"] == 4
            assert "series" not in second

    asyncio.run(main())


def test_a_series_that_ended_is_closed_without_another_event(
    empty_control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SWEEP_EVERY", 0.01)
    client = empty_control_plane.client

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            for _ in range(3):
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await reporter.settle()
            reporter.clock.advance(361)
            await _until(lambda: reporter.recorder.sent == 3)
            assert [event["series"]["count"] for event in await asyncio.to_thread(listed, client)] == [3]
            assert reporter.recorder._open == {}

    asyncio.run(main())


@pytest.mark.parametrize(
    "other",
    [
        failed_scheduling(make_pod("other"), "no"),
        failed_scheduling(_in_version("8"), "no"),
        failed_scheduling(make_pod("web"), "no")._replace(type="Normal"),
        failed_scheduling(make_pod("web"), "no")._replace(reason="Other"),
        failed_scheduling(make_pod("web"), "no")._replace(action="Other"),
        failed_scheduling(make_pod("web"), "no")._replace(controller="other"),
        failed_scheduling(make_pod("web"), "no")._replace(related=make_pod("related")),
    ],
)
def test_another_object_or_deed_is_another_series(other: events.EventContent) -> None:
    async def main() -> None:
        async with serving(lambda _request: web.json_response({})) as (server, requests):
            async with reporting(server) as reporter:
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                reporter.recorder.record(*other)
                await reporter.settle()
            assert [request.method for request in requests] == ["POST", "POST"]

    asyncio.run(main())


def test_the_note_does_not_make_another_series(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "one reason"))
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "another"))
            await reporter.settle()

    asyncio.run(main())
    (event,) = listed(empty_control_plane.client)
    assert (event["note"], event["series"]["count"]) == ("one reason", 2)


def test_an_event_that_is_gone_is_created_anew_with_its_count(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()
            await asyncio.to_thread(client.delete_all, "v1/Event")
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()

    asyncio.run(main())
    (event,) = listed(client)
    assert (event["note"], event["series"]["count"]) == ("no", 2)


def test_repetitions_before_the_first_was_sent_are_one_request() -> None:
    async def main() -> None:
        async with serving(lambda _request: web.json_response({})) as (server, requests):
            async with reporting(server) as reporter:
                for _ in range(4):
                    reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await reporter.settle()
            assert [msgspec.json.decode(await request.read())["series"]["count"] for request in requests] == [4]

    asyncio.run(main())


def test_a_repetition_while_the_first_is_on_its_way_follows_it() -> None:
    async def main() -> None:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def answer(_request: web.Request) -> web.Response:
            arrived.set()
            await go_on.wait()
            return web.json_response({})

        async with serving(answer) as (server, requests):
            async with reporting(server) as reporter:
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await arrived.wait()
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await asyncio.sleep(0.05)
                assert len(requests) == 1
                go_on.set()
                await reporter.settle()
            assert [request.method for request in requests] == ["POST", "PATCH"]

    asyncio.run(main())


# When it does not go well


def test_an_api_server_that_is_away_gets_them_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sender.EventSender, "_rest", lambda _self, failures: 0.01 * failures)
    stored: dict[str, Event] = {}
    tries: dict[str, int] = {}

    async def answer(request: web.Request) -> web.StreamResponse:
        event = msgspec.json.decode(await request.read())
        name = event["metadata"]["name"]
        tries[name] = tries.get(name, 0) + 1
        if tries[name] == 1:
            return web.json_response({"message": "etcd is away"}, status=500)
        if tries[name] == 2:
            return web.json_response({"message": "slow down"}, status=429)
        if tries[name] == 3 and request.transport is not None:
            stored[name] = event
            request.transport.abort()  # taken, but the answer is lost
        return web.json_response({"reason": "AlreadyExists"}, status=409)

    async def main() -> None:
        async with serving(answer) as (server, _), reporting(server) as reporter:
            for number in range(20):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}"), "n1"))
            await reporter.settle()
            assert {event["regarding"]["name"] for event in stored.values()} == {f"p{number}" for number in range(20)}
            assert set(tries.values()) == {4}
            assert (reporter.recorder.sent, reporter.recorder.dropped) == (20, 0)
            assert reporter.said == ["events cannot be sent: etcd is away"]

    asyncio.run(main())


def test_after_twelve_tries_an_event_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sender.EventSender, "_rest", lambda _self, _failures: 0.0)

    async def main() -> None:
        async with serving(lambda _request: web.json_response({}, status=503)) as (server, requests):
            async with reporting(server) as reporter:
                reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
                await reporter.settle()
                assert (reporter.recorder.sent, reporter.recorder.dropped) == (0, 1)
                assert reporter.said == ["events cannot be sent: the API server answered 503"]
            assert len(requests) == 12

    asyncio.run(main())


def test_where_nobody_listens_an_event_is_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sender, "MAX_TRIES", 1)

    async def main() -> None:
        async with reporting(Access("http://127.0.0.1:1")) as reporter:
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()
            assert (reporter.recorder.sent, reporter.recorder.dropped) == (0, 1)
            assert len(reporter.said) == 1
            assert reporter.said[0].startswith("events cannot be sent: 127.0.0.1:1 refuses connections")

    asyncio.run(main())


def test_rests_double_up_to_15_seconds() -> None:
    async def main() -> None:
        async with Client(Access("http://127.0.0.1:1")) as client:
            sender = Reporter(client).recorder._sender
            rests = [sender._rest(failures) for failures in range(1, 12)]
            wanted = [0.5, 1, 2, 4, 8, 15, 15, 15, 15, 15, 15]
            assert all(least <= rest <= 1.25 * least for rest, least in zip(rests, wanted, strict=True))

    asyncio.run(main())


def test_a_bad_event_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sender.EventSender, "_rest", lambda _self, _failures: 0.0)

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({}, status=500 if "/bad/" in request.path else 200)

    async def main() -> None:
        async with serving(answer) as (server, requests), reporting(server) as reporter:
            for number in range(8):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}", namespace="bad"), "n1"))
            reporter.recorder.record(*scheduled(make_pod("good"), "n1"))
            await reporter.settle()
            paths = [request.path for request in requests]
            assert paths.index("/apis/events.k8s.io/v1/namespaces/default/events") < 8 + event_sender.SENDERS

    asyncio.run(main())


def test_what_the_server_refuses_is_dropped_and_told(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no")._replace(action="a" * 200))
            await reporter.settle()
            assert reporter.recorder.dropped == 1
            assert len(reporter.said) == 1
            assert reporter.said[0].startswith("event FailedScheduling of default/web was refused: ")
            assert "can have at most 128 characters" in reporter.said[0]
            reporter.recorder.record(*failed_scheduling(make_pod("web"), "no"))
            await reporter.settle()
            assert reporter.recorder.sent == 1

    asyncio.run(main())


def test_a_missing_permission_is_told_once_with_what_to_grant(empty_control_plane: ControlPlane) -> None:
    pair = empty_control_plane.authority.issue("nobody")
    kubeconfig = empty_control_plane.write_kubeconfig(empty_control_plane.folder / "nobody", certificate=pair)

    async def main() -> None:
        async with reporting(load_access(str(kubeconfig))) as reporter:
            for number in range(10):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}"), "n1"))
                reporter.clock.advance(100)
            await reporter.settle()
            assert reporter.recorder.dropped == 10
            assert len(reporter.said) == 1
            assert "let its role create and patch events of the API group events.k8s.io" in reporter.said[0]
            assert 'User "nobody" cannot create resource "events"' in reporter.said[0]

    asyncio.run(main())


def test_nobody_is_told_of_events_whose_namespace_is_gone(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}})
    client.delete("v1/Namespace", "ending")  # nobody finishes that here

    async def main() -> None:
        async with reporting(access(empty_control_plane)) as reporter:
            reporter.recorder.record(*scheduled(make_pod("a", namespace="ending"), "n1"))
            reporter.recorder.record(*scheduled(make_pod("b", namespace="gone"), "n1"))
            await reporter.settle()
            assert (reporter.recorder.dropped, reporter.said) == (2, [])

    asyncio.run(main())


def test_past_its_limit_the_queue_drops_the_newest_and_says_so() -> None:
    async def main() -> None:
        async with serving(lambda _request: web.json_response({})) as (server, requests), Client(server) as client:
            reporter = Reporter(client, limit=3)
            for number in range(5):
                reporter.recorder.record(*failed_scheduling(make_pod(f"p{number}"), "no"))
            assert (reporter.recorder.waiting, reporter.recorder.dropped) == (3, 2)
            assert reporter.said == ["events are lost (1 so far): 3 wait to be sent already"]
            running = asyncio.create_task(reporter.recorder.run())
            await reporter.settle()
            sent = [msgspec.json.decode(await request.read())["regarding"]["name"] for request in requests]
            assert sorted(sent) == ["p0", "p1", "p2"]
            reporter.recorder.record(*failed_scheduling(make_pod("p4"), "no"))
            await reporter.settle()
            assert requests[-1].method == "POST"
            running.cancel()

    asyncio.run(main())


def test_no_more_than_four_are_under_way_at_once() -> None:
    async def main() -> None:
        under_way, most, go_on = 0, 0, asyncio.Event()

        async def answer(_request: web.Request) -> web.Response:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await go_on.wait()
            under_way -= 1
            return web.json_response({})

        async with serving(answer) as (server, _), reporting(server) as reporter:
            for number in range(50):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}"), "n1"))
            await _until(lambda: under_way == 4)
            await asyncio.sleep(0.05)
            go_on.set()
            await reporter.settle()
            assert (most, reporter.recorder.sent) == (4, 50)

    asyncio.run(main())


def test_they_wait_while_binds_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sender, "PATIENCE", 1000.0)

    async def main() -> None:
        busy = True
        async with (
            serving(lambda _request: web.json_response({})) as (server, requests),
            reporting(server, busy=lambda: busy) as reporter,
        ):
            reporter.recorder.record(*scheduled(make_pod("web"), "n1"))
            await asyncio.sleep(0.1)
            assert requests == []
            busy = False
            await _until(lambda: reporter.recorder.sent == 1)

    asyncio.run(main())


@pytest.mark.parametrize(("patience", "limit", "count"), [(0.01, 1000, 10), (1000.0, 8, 8)])
def test_they_flow_all_the_same_after_a_while_or_when_the_queue_is_half_full(
    patience: float, limit: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sender, "PATIENCE", patience)

    async def main() -> None:
        async with (
            serving(lambda _request: web.json_response({})) as (server, _),
            reporting(server, busy=lambda: True, limit=limit) as reporter,
        ):
            for number in range(count):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}"), "n1"))
            await _until(lambda: reporter.recorder.sent >= 1)

    asyncio.run(main())


def test_draining_ends_in_time_and_says_what_is_left() -> None:
    async def main() -> None:
        async with (
            serving(lambda _request: web.json_response({}, status=503)) as (server, _),
            reporting(server) as reporter,
        ):
            for number in range(7):
                reporter.recorder.record(*scheduled(make_pod(f"p{number}"), "n1"))
            assert await reporter.recorder.drain(0.1) == 7
            assert reporter.said[-1] == "7 events were not sent in the 0.1 s given for it at the end"

    asyncio.run(main())


Answer = Callable[[web.Request], Any]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[Access, list[web.Request]]]:
    """A server that answers every request so, and the requests it got."""
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        requests.append(request)
        response = answer(request)
        result: web.StreamResponse = await response if asyncio.iscoroutine(response) else response
        return result

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Access(f"http://127.0.0.1:{runner.addresses[0][1]}"), requests
    finally:
        await runner.cleanup()


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.005)


def _pod(name: str, *, cpu: str, priority: int = 0) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "priority": priority}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _plain(obj: Any, kind: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, **msgspec.to_builtins(obj)}


def _as_regarded(reference: dict[str, str]) -> Pod:
    """The pod in the version an event speaks of."""
    return msgspec.convert({"metadata": {field: reference[field] for field in _METADATA}}, Pod)


_METADATA = ("name", "namespace", "uid", "resourceVersion")


def _reasons(found: list[Event]) -> set[str]:
    return {event["reason"] for event in found}


def _lasting(event: Event) -> Event:
    """All of an event but what differs each time."""
    return {key: value for key, value in event.items() if key not in {"metadata", "eventTime"}}
