"""Every page's numbers are those of the command that its button copies: the button's text is run as it is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.request import urlopen

import pytest

from tests.together.dashboard.browser import FULL_CLUSTER, ROOT, chromium, required, serving

pytestmark = pytest.mark.long

QOS_PORT: Final = 10_735
TRIES: Final = 8
"""How often a page and its command are asked: both look at a cluster that goes on."""


def _ran(command: str, *more: str) -> Any:
    """What a copied command prints: data where it can, else its text."""
    words = shlex.split(command)
    program = [sys.executable, "-m", "podium"] if words[0] == "podium" else [words[0]]
    required(shutil.which(program[0]), program[0])
    environment = {**os.environ, "COLUMNS": "300"}
    done = subprocess.run(
        [*program, *words[1:], *more], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout


class Opened:
    """A dashboard in a browser."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address

    def copied(self, view: str) -> str:
        """The command that the button of a view copies."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#/{view}")
        self.page.wait_for_selector("[data-copy]")
        return str(self.page.get_attribute("[data-copy]", "data-copy"))

    def api(self, name: str) -> Any:
        with urlopen(f"{self.address}api/v1/{name}") as response:
            return json.load(response)

    def asked(self, name: str, question: Any) -> Any:
        return self.page.evaluate(
            "async ([name, body]) => (await (await fetch('api/v1/' + name, {method: 'POST', body: JSON.stringify(body),"
            " headers: {'Content-Type': 'application/json'}})).json())",
            [name, question],
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Opened]:
    """podium up with something to show on every page."""
    with serving(*FULL_CLUSTER, "--qos-port", str(QOS_PORT)) as (address, _process):
        opened = Opened(browser.new_page(), address)
        while sum(gang["assigned"] for gang in opened.api("groups")["gangs"]) < 3:
            time.sleep(0.5)
        yield opened


@pytest.fixture(scope="module")
def dump(browser: Any) -> Iterator[Opened]:
    with serving("dashboard", "--from", "sample:cluster", "--port", "0") as (address, _process):
        yield Opened(browser.new_page(), address)


def _agree(shown: Callable[[], Any], said: Callable[[], Any]) -> None:
    for _ in range(TRIES):
        page = shown()
        command = said()
        if page == command and page:
            return
    assert page == command
    assert page, "nothing was compared"


def _queue(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    fields = ("pod", "scheduler", "priority", "queue", "attempts", "since")

    def rows(answer: Any) -> list[Any]:
        return [{name: each[name] for name in fields} for each in answer["pods"]]

    return (
        lambda: (rows(found := opened.api("queue")), found["counts"]),
        lambda: (rows(found := _ran(command, "-o", "json")), found["counts"]),
    )


def _explanation(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    pod = view.removeprefix("pods/").removeprefix("map?pod=")
    outside = {"schema", "state", "question"}
    return (
        lambda: opened.api(f"pods/{pod}/explain")["explanation"],
        lambda: {name: each for name, each in _ran(command, "-o", "json").items() if name not in outside},
    )


def _all_explained(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    return (
        lambda: {each["pod"] for each in opened.api("queue")["pods"]},
        lambda: {each["pod"] for each in _ran(command, "-o", "json")},
    )


def _drain(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    node = view.partition("drain=")[2]
    changes = [{"change": "drain", "nodes": node}]
    return (
        lambda: opened.asked("whatif", {"changes": changes})["answer"],
        lambda: _ran(command, "-o", "json")["answer"],
    )


def _described(opened: Opened, view: str) -> tuple[Any, Any]:
    """Requests of each node, in percent, as kubectl sums them up."""
    command = opened.copied(view)
    name = view.removeprefix("nodes/") if view.startswith("nodes/") else None

    def shown() -> Any:
        known = opened.api("snapshot")
        resources = {each["name"]: each for each in known["resources"]}
        return {
            node: tuple(
                100 * resources[kind]["requested"][place] // resources[kind]["allocatable"][place]
                for kind in ("cpu", "memory")
            )
            for place, node in enumerate(known["names"])
            if name in (None, node)
        }

    def said() -> Any:
        found: dict[str, Any] = {}
        node = ""
        for line in _ran(command).splitlines():
            words = line.split()
            if line.startswith("Name:"):
                node = words[1]
            elif len(words) == 5 and words[0] in ("cpu", "memory") and words[2].endswith("%)"):
                found[node] = (*found.get(node, ()), int(words[2].strip("(%)")))
        return found

    return shown, said


def _qos(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    fields = ("controller", "approach", "slo", "replicas", "running", "pending")

    def rows(answer: Any) -> Any:
        return [{name: each[name] for name in fields} for each in answer]

    return (
        lambda: rows(opened.api("qos")["rows"]),
        lambda: rows(_ran(command, "--url", f"http://127.0.0.1:{QOS_PORT}", "-o", "json")),
    )


def _configuration(opened: Opened, view: str) -> tuple[Any, Any]:
    command = opened.copied(view)
    return (
        lambda: opened.api("configuration")["configuration"],
        lambda: _ran(command)["componentconfig"],
    )


LIVE: Final = {
    "": _queue,
    "queue": _queue,
    "groups": _queue,
    "map": _described,
    "map?pod=shop/gated": _explanation,
    "nodes/worker-1": _described,
    "pods/shop/gated": _explanation,
    "qos": _qos,
    "configuration": _configuration,
}
DUMPED: Final = {
    "": _all_explained,
    "queue": _all_explained,
    "map?pod=shop/checkout": _explanation,
    "pods/shop/checkout": _explanation,
    "pods/shop/web-1": _explanation,
    "nodes/worker-a1": lambda opened, _view: _drain(opened, "whatif?drain=worker-a1"),
    "whatif?drain=worker-a1": _drain,
}


@pytest.mark.parametrize("view", LIVE)
def test_a_live_page_says_what_its_command_says(live: Opened, view: str) -> None:
    _agree(*LIVE[view](live, view))


@pytest.mark.parametrize("view", DUMPED)
def test_a_page_of_a_dump_says_what_its_command_says(dump: Opened, view: str) -> None:
    _agree(*DUMPED[view](dump, view))


def test_why_a_pod_waits_is_what_its_event_says(live: Opened) -> None:
    waiting = [each for each in live.api("queue")["pods"] if each["pod"].startswith("shop/promised")]
    kubeconfig = live.api("queue")["state"]["command"]
    events = _ran(shlex.join(["kubectl", "get", "events", "-n", "shop", "-o", "json", *kubeconfig]))["items"]
    assert waiting
    for each in waiting:
        said = [event["message"] for event in events if f"shop/{event['involvedObject']['name']}" == each["pod"]]
        assert each["reason"] in said
