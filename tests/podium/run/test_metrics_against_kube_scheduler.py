"""The same small story told to kube-scheduler and to Podium: both show the same families, and the same numbers in them.

Five pods are bound, one fits nowhere, one is gated, and one evicts another and waits for its place.
"""

from __future__ import annotations

import random
import ssl
import time
import urllib.request
from collections.abc import Callable
from itertools import count

import pytest

from podium.framework import ManualClock
from podium.run.metrics import Metrics
from tests.podium.engine.schedulers import World
from tests.podium.run.exposition import Family, families_of
from tools.kit.builders import make_node, make_pod
from tools.testbed import ControlPlane
from tools.testbed.processes import Component

SMALL, BIG, LARGE = {"cpu": "100m"}, {"cpu": "10"}, {"cpu": "1900m"}

SAMPLED = "scheduler_plugin_execution_duration_seconds"

OTHERWISE = {
    "Sign": "pods are signed when they are tried, once for all with one signature, and not when they are queued",
    "PreFilter": "not run for pods decided by kept answers",
    "PreScore": "likewise",
    "PreEnqueue": "a gated pod's has the status of the plugin that gates it; kube-scheduler always says Success",
}
"""Extension points that are told otherwise, on purpose."""


def told(control_plane: ControlPlane, start: Callable[[], Component]) -> dict[str, Family]:
    """What a scheduler shows after the story."""
    control_plane.wipe()
    client = control_plane.client
    for name in ("n1", "n2"):
        resources = {"cpu": "2", "memory": "4Gi", "pods": "10"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": resources}}
        client.create(node)
    scheduler = start()

    def create(name: str, requests: dict[str, str], **spec: object) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        metadata = {"name": name, "namespace": "default"}
        spec = {"containers": [container], **spec}
        client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def wait(name: str, sign: str) -> None:
        client.poll("Pod", lambda pods: any(pod["metadata"]["name"] == name and sign in str(pod) for pod in pods))

    for number in range(5):
        create(f"p{number}", SMALL)
    client.poll("Pod", lambda pods: len(pods) == 5 and all("nodeName" in pod["spec"] for pod in pods))
    create("big", BIG)
    wait("big", "Insufficient cpu")
    create("gated", SMALL, schedulingGates=[{"name": "later"}])
    wait("gated", "SchedulingGated")
    create("high", LARGE, priority=1000)
    wait("high", "nominatedNodeName")
    families: dict[str, Family] = {}
    while not up_to_date(families):
        time.sleep(0.2)
        families = families_of(scrape(f"{scheduler.url}/metrics", control_plane.token))
    scheduler.stop()
    return families


def up_to_date(families: dict[str, Family]) -> bool:
    """kube-scheduler brings some numbers up to date only once a second."""
    size = families.get("scheduler_cache_size")
    if size is None or size.value(type="nodes") != 2 or size.value(type="assumed_pods"):
        return False
    return SAMPLED in families or "podium_build_info" in families


@pytest.fixture(scope="module")
def theirs(control_plane: ControlPlane) -> dict[str, Family]:
    return told(control_plane, control_plane.start_scheduler)


class Eager(random.Random):
    """Finds every attempt worth a sample."""

    def random(self) -> float:
        return 0.0


@pytest.fixture(scope="module", params=["the engine alone", "podium run"])
def ours(request: pytest.FixtureRequest, control_plane: ControlPlane) -> dict[str, Family]:
    if request.param == "podium run":
        return told(control_plane, control_plane.start_podium)
    ticks = count()
    clock = ManualClock(1_000_000.0)
    metrics = Metrics(clock, now=lambda: next(ticks) / 1000, rng=Eager())
    nodes = [make_node(name, cpu=2, memory="4Gi", pods=10) for name in ("n1", "n2")]
    world = World(default=True, nodes=nodes, timer=metrics.timer, clock=clock)
    metrics.attach(world.scheduler, lambda: 0)
    for number in range(5):
        world.attempt(make_pod(f"p{number}", requests=SMALL))
        world.add(make_pod(f"p{number}", requests=SMALL, node=world.node_of(f"p{number}") or ""))
    world.attempt(make_pod("big", requests=BIG))
    world.add(make_pod("gated", requests=SMALL, spec={"schedulingGates": [{"name": "later"}]}))
    world.attempt(make_pod("high", requests=LARGE, priority=1000))
    return families_of(metrics.render().decode())


def scrape(url: str, token: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        text: str = answer.read().decode()
    return text


def test_every_family_of_kube_scheduler_is_shown_in_its_form(
    theirs: dict[str, Family], ours: dict[str, Family]
) -> None:
    expected = {name: family for name, family in theirs.items() if name.startswith("scheduler_")}
    assert len(expected) >= 24
    by_chance = set() if SAMPLED in ours else {SAMPLED}
    for name in expected.keys() - by_chance:
        assert name in ours, f"{name} is missing"
        assert ours[name][:3] == expected[name][:3], name


def test_nothing_is_shown_under_a_name_of_kube_scheduler_that_it_does_not_have(
    theirs: dict[str, Family], ours: dict[str, Family]
) -> None:
    assert {name for name in ours if name.startswith("scheduler_")} <= theirs.keys()


@pytest.mark.parametrize(
    "name",
    [
        "scheduler_schedule_attempts_total",
        "scheduler_scheduling_attempt_duration_seconds",
        "scheduler_scheduling_algorithm_duration_seconds",
        "scheduler_pod_scheduling_attempts",
        "scheduler_pod_scheduling_sli_duration_seconds",
        "scheduler_pod_scheduled_after_flush_total",
        "scheduler_batch_attempts_total",
        "scheduler_batch_cache_flushed_total",
        "scheduler_get_node_hint_duration_seconds",
        "scheduler_store_schedule_results_duration_seconds",
        "scheduler_preemption_attempts_total",
        "scheduler_preemption_victims",
        "scheduler_preemption_goroutines_execution_total",
        "scheduler_queue_incoming_pods_total",
        "scheduler_pending_pods",
        "scheduler_unschedulable_pods",
        "scheduler_cache_size",
    ],
)
def test_the_numbers_agree(theirs: dict[str, Family], ours: dict[str, Family], name: str) -> None:
    assert ours[name].values == theirs[name].values


@pytest.mark.parametrize("name", ["scheduler_preemption_victims", "scheduler_pod_scheduling_attempts"])
def test_the_sums_agree_where_they_are_no_durations(
    theirs: dict[str, Family], ours: dict[str, Family], name: str
) -> None:
    assert ours[name].sums == theirs[name].sums


def test_extension_points_are_timed_as_often_and_with_the_same_status(
    theirs: dict[str, Family], ours: dict[str, Family]
) -> None:
    def counted(families: dict[str, Family]) -> dict[frozenset[tuple[str, str]], float]:
        values = families["scheduler_framework_extension_point_duration_seconds"].values
        return {labels: value for labels, value in values.items() if dict(labels)["extension_point"] not in OTHERWISE}

    assert counted(ours) == counted(theirs)
