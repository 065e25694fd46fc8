"""The suggestions server, and ModelScore with an agent behind it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from podium.kube import Node
from podium_lab.model_score import ModelScore
from podium_lab.suggestions_server import SuggestionsServer
from tests.podium.cli.command import podium
from tests.podium.engine.schedulers import World
from tools.kit.builders import build, make_node, make_pod


@contextmanager
def serving() -> Iterator[SuggestionsServer]:
    """The server, in a loop of its own."""
    server, loop = SuggestionsServer(port=0), asyncio.new_event_loop()
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def ask(server: SuggestionsServer, *parts: str) -> Any:
    """The answer to one request, sent in parts; whether the connection is closed after it is seen, too."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part.encode())
        reply = b""
        while received := connection.recv(65536):
            reply += received
    assert not reply.endswith(b"\n")
    return json.loads(reply)


def test_every_command_answers_as_the_original_does() -> None:
    with serving() as server:
        values = {"cpuRequest": "0", "memoryRequest": "0", "latencySoftConstraint": -1, "latencyHardConstraint": -1}
        table = [
            ("getSuggestion", {}),
            ("getStep", False),
            ("getResourceValues", values),
            ('setSuggestion {"10.0.0.1": 10}', {"status": "success", "message": "Suggestion set successfully."}),
            ('setSuggestion {"10.0.0.2": 1}', {"status": "success", "message": "Suggestion set successfully."}),
            ("getSuggestion", {"10.0.0.1": 10, "10.0.0.2": 1}),
            ("setStep true", {"status": "success", "message": "Step flag set successfully."}),
            ("getStep", True),
            ("setStep false", {"status": "success", "message": "Step flag set successfully."}),
            (
                'setResourceValues {"cpuRequest": "250m", "other": 1}',
                {"status": "success", "message": "Resource values set successfully."},
            ),
            ("getResourceValues", {**values, "cpuRequest": "250m"}),
            ("getStep", True),
            ("getSuggestion", {}),
            ("setStep", {"status": "error", "message": "Missing value for setStep command."}),
            ("setSuggestion", {"status": "error", "message": "Missing value for setSuggestion command."}),
            ("setStep {", {"status": "error", "message": "Invalid JSON data."}),
            ("dance now", {"status": "error", "message": "Unknown command: dance"}),
        ]
        for request, answer in table:
            assert ask(server, request) == answer, request


def test_a_map_of_more_than_1024_bytes_arrives_whole() -> None:
    many = {f"10.0.{i // 250}.{i % 250}": 1 for i in range(2000)}
    text = f"setSuggestion {json.dumps(many)}"
    with serving() as server:
        assert ask(server, text[:1000], text[1000:])["status"] == "success"
        assert ask(server, "getSuggestion") == many


class Agent(threading.Thread):
    """What the thesis' environment does: polls the flag, suggests one node, lowers the flag."""

    def __init__(self, server: SuggestionsServer, addresses: list[str], choice: int) -> None:
        super().__init__(daemon=True)
        self.server, self.addresses, self.choice = server, addresses, choice
        self.seen: list[Any] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            if ask(self.server, "getStep"):
                self.seen.append(ask(self.server, "getResourceValues"))
                suggestion = {each: 10 if i == self.choice else 1 for i, each in enumerate(self.addresses)}
                ask(self.server, f"setSuggestion {json.dumps(suggestion)}")
                ask(self.server, "setStep false")
            self.stop.wait(0.02)


def addressed(name: str, address: str) -> Node:
    node = make_node(name)
    status = {
        "allocatable": {"cpu": 4, "memory": "8Gi", "pods": 110},
        "addresses": [{"type": "InternalIP", "address": address}],
    }
    return build(Node, {"metadata": {"name": node.name, "uid": f"node-{name}"}, "status": status})


def world(url: str, **args: Any) -> World:
    found = World("ModelScore", args={"ModelScore": {"url": url, "protocol": "suggestions", **args}})
    found.add(*(addressed(f"n{i}", f"10.0.0.{i}") for i in range(3)))
    return found


def plugin_of(found: World) -> ModelScore:
    (runtime,) = found.scheduler.profiles.values()
    plugin = runtime.plugins["ModelScore"]
    assert isinstance(plugin, ModelScore)
    return plugin


def test_the_agent_sees_the_values_of_this_pod_and_its_choice_is_followed() -> None:
    with serving() as server:
        agent = Agent(server, [f"10.0.0.{i}" for i in range(3)], 1)
        agent.start()
        found = world(f"tcp://127.0.0.1:{server.port}", deadline="20s")
        limits = {"latencySoftConstraint": "35", "latencyHardConstraint": "100"}
        found.attempt(make_pod("a", requests={"cpu": "250m", "memory": "64Mi"}, metadata={"annotations": limits}))
        agent.choice = 2
        found.attempt(make_pod("b"))
        agent.stop.set()
        agent.join()
    assert found.bound == [("a", "n1"), ("b", "n2")]
    assert agent.seen == [
        {"cpuRequest": "250m", "memoryRequest": "64Mi", "latencySoftConstraint": 35.0, "latencyHardConstraint": 100.0},
        {
            "cpuRequest": "Not requested",
            "memoryRequest": "Not requested",
            "latencySoftConstraint": -1,
            "latencyHardConstraint": -1,
        },
    ]


def test_without_an_agent_the_deadline_passes_and_the_heuristic_decides() -> None:
    with serving() as server:
        found = world(f"tcp://127.0.0.1:{server.port}", deadline="50ms")
        found.attempt(make_pod("a"))
        assert len(found.bound) == 1
        assert plugin_of(found).decisions.guard.fallbacks["timeout"] == 1
    found.attempt(make_pod("b"))
    assert plugin_of(found).decisions.guard.fallbacks["no_model"] == 1
    assert len(found.bound) == 2


def test_its_usual_deadline_is_a_second() -> None:
    assert plugin_of(world("tcp://127.0.0.1:1")).args.wait == pytest.approx(1.0)


@pytest.mark.parametrize("listen", ["8765", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":1"])
def test_an_address_that_cannot_be_listened_on_is_bad_input(listen: str) -> None:
    ran = podium("suggestions-server", "--listen", listen)
    assert ran.code == 2
    assert "must be an address and a port" in ran.err


def test_a_port_that_is_taken_is_bad_input() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = podium("suggestions-server", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.code == 2
    assert "cannot listen on" in ran.err
