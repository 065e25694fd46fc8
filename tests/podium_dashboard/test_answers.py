"""The API of the dashboard says what the commands say."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from podium.cli.files import read_objects
from podium.engine.explain import explain
from podium.kube import Pod
from podium.kube.requests import requested
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.telemetry import Followed
from podium.run.scheduler_pages import QueueQuestion, queue_of
from podium.testing import node, pod
from podium_dashboard.dump import view_of_objects
from tests.podium_dashboard.scheduler import CONFIG, REGISTRY, SmallScheduler, browsing, of_view

OBJECTS = read_objects(["sample:cluster"]).objects
PODS = [each for each in OBJECTS if isinstance(each, Pod)]


def _asked(names: list[str]) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        async with browsing(of_view(view_of_objects(OBJECTS, CONFIG, REGISTRY))) as browser:
            return {name: await browser.get(name) for name in names}

    return asyncio.run(ask())


def test_explanations_are_those_of_podium_explain() -> None:
    names = [f"pods/{pod.key}/explain" for pod in PODS if not pod.finished]
    answers = _asked(names)
    for each in PODS:
        if not each.finished:
            expected = msgspec.to_builtins(explain(OBJECTS, each, CONFIG, REGISTRY).to_data())
            assert answers[f"pods/{each.key}/explain"]["explanation"] == expected


def test_the_queue_is_that_of_podium_queue_and_says_why_pods_wait() -> None:
    scheduler = SmallScheduler()
    scheduler.add(node("small", cpu=1), pod("web", cpu="500m"), pod("big", cpu=8), pod("huge", cpu=9))
    scheduler.schedule()

    async def ask() -> Any:
        async with browsing(scheduler.source()) as browser:
            return await browser.get("queue")

    answer = asyncio.run(ask())
    expected = queue_of(scheduler.engine, scheduler.clock.now(), QueueQuestion(), leads=True)
    known = set(expected["pods"][0])
    assert [{key: row[key] for key in row if _snake(key) in known or key in known} for row in answer["pods"]] == (
        expected["pods"]
    )
    assert answer["counts"] == expected["counts"]
    assert [(group["plugins"], group["count"]) for group in answer["groups"]] == [(["NodeResourcesFit"], 2)]


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def test_a_node_says_what_its_pods_ask_for() -> None:
    name = next(each.node_name for each in PODS if each.node_name)
    answers = _asked([f"nodes/{name}", "snapshot"])
    here = [each for each in PODS if each.node_name == name and not each.finished]
    found = answers[f"nodes/{name}"]
    sums = {each["name"]: each["requested"] for each in found["resources"]}
    assert sums["cpu"] == sum(requested(each).get("cpu", 0) for each in here)
    assert sums["memory"] == sum(requested(each).get("memory", 0) for each in here)
    assert sorted(row["pod"] for row in found["pods"]) == sorted(each.key for each in here)
    place = answers["snapshot"]["names"].index(name)
    columns = {each["name"]: each["requested"][place] for each in answers["snapshot"]["resources"]}
    assert {key: columns[key] for key in ("cpu", "memory")} == {key: sums[key] for key in ("cpu", "memory")}


def test_measured_load_stands_beside_requests() -> None:
    scheduler = SmallScheduler()
    scheduler.add(node("known", cpu=4), node("unknown", cpu=4))
    followed = Followed(Series(source=SourceSettings(kind="metrics-server"), query="CPU/Latest"))
    followed.readings.write({"known": 12.5}, scheduler.clock.now())

    async def ask() -> Any:
        async with browsing(of_view(scheduler.view()._replace(followed=[followed]))) as browser:
            return await browser.get("snapshot"), await browser.get("nodes/known")

    snapshot, details = asyncio.run(ask())
    assert snapshot["names"] == ["known", "unknown"]
    assert [each["values"] for each in snapshot["measured"]] == [[12.5, None]]
    assert [each["value"] for each in details["measured"]] == [12.5]


def test_a_pod_shows_why_it_was_woken() -> None:
    scheduler = SmallScheduler()
    scheduler.add(node("small", cpu=1), pod("big", cpu=8))
    scheduler.schedule()
    scheduler.clock.advance(2)
    scheduler.add(node("large", cpu=16))
    scheduler.schedule()

    async def ask() -> Any:
        async with browsing(scheduler.source()) as browser:
            return await browser.get("pods/default/big")

    timeline = asyncio.run(ask())["timeline"]
    assert [(each["kind"], each["where"]) for each in timeline] == [
        ("queued", "active"),
        ("queued", "unschedulable"),
        ("failed", "Unschedulable"),
        ("queued", "active"),
        ("bound", "large"),
    ]
    assert (timeline[3]["cause"], timeline[3]["object"]) == ("NodeAdd", "large")


@pytest.mark.parametrize("name", ["groups", "qos", "policy", "differences", "configuration", "timeline", "search?q=w"])
def test_every_page_has_an_answer_of_its_own_version(name: str) -> None:
    answer = _asked([name])[name]
    assert answer["schema"].startswith("podium.dashboard.")
    assert answer["schema"].endswith("/1")


def test_what_is_not_there_is_said_in_a_sentence() -> None:
    names = ["nodes/none", "pods/shop/none", "nothing", "snapshot?at=yesterday", "snapshot?at=2020-01-01T00:00:00Z"]
    answers = _asked(names)
    assert answers["nodes/none"]["error"] == "there is no node none"
    assert answers["pods/shop/none"]["error"] == "there is no pod shop/none that waits or runs"
    assert "write a time like" in answers["snapshot?at=yesterday"]["error"]
    assert "nothing is remembered before" in answers["snapshot?at=2020-01-01T00:00:00Z"]["error"]
