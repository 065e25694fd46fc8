"""Plugins that read annotations: kept answers follow them, and a plugin that learns learns from every pod, once."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.engine.decide import NodeSearch
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework import Cycle
from podium.framework.handle import Driver
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod
from podium_plugins.pigeon import PigeonHoling
from tests.podium.engine.answer_cache.test_fast_is_slow import World, account
from tests.podium.framework.runtimes import setup
from tools.kit.builders import make_handle, make_node, make_pod
from tools.kit.effort import examples

PLUGINS = ("SafeOverload", "SafeBalance", "Congestion")
TEXTS = ("nan", "-1", "N/A", "", "100", "900", "2500", "3900.5")
MEBIBYTES = ("nan", "x", "104857600", "1073741824", "4e9")


def annotated(rng: random.Random, name: str) -> Node:
    annotations = {
        "mean-free-cpu": rng.choice(TEXTS),
        "std-free-cpu": rng.choice(("100", "400", "nan", "-1")),
        "forcasted-free-cpu": rng.choice(TEXTS),
        "mean-free-memory": rng.choice(MEBIBYTES),
        "std-free-memory": rng.choice(("0", "1e8", "1e9")),
        "congestion-factor": rng.choice(("5", "40", "99", "much")),
    }
    chosen = {key: text for key, text in annotations.items() if rng.random() < 0.8}
    return make_node(name, cpu=rng.choice((2, 4)), memory=rng.choice(("4Gi", "8Gi")), annotations=chosen)


class Drive:
    def __init__(self, seed: int, *plugins: str) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.config, self.registry = setup(*plugins, default=True)
        self.scheduler = Scheduler(
            self.config,
            self.registry,
            Driver(
                clock=self.world.clock,
                writer=self.world,
                rng=random.Random(1),
            ),
            self.world,
        )
        self.numbers = iter(range(10**6))
        for number in range(4):
            self.scheduler.intake.set(annotated(self.rng, f"n{number}"))

    @property
    def runtime(self) -> ProfileRuntime:
        return self.scheduler.profiles["default-scheduler"]

    def pod(self, requests: dict[str, Any]) -> Pod:
        return make_pod(f"p{next(self.numbers)}", requests=requests)

    def arrive(self, requests: dict[str, Any]) -> None:
        self.scheduler.intake.set(self.pod(requests))
        while self.scheduler.schedule_one() is not None:
            self.scheduler.tick()

    def started_now(self) -> ProfileRuntime:
        kept, cluster = self.scheduler.cluster, Cluster()
        for row in kept.order.rows.tolist():
            known = kept.nodes[row]
            assert known is not None
            cluster.set_node(known)
        for placed in kept.pods.values():
            cluster.assume(placed.pod, kept.names[placed.row])
        return ProfileRuntime(self.config.profiles[0], self.registry, make_handle(cluster))


KINDS: tuple[dict[str, Any], ...] = ({}, {"cpu": "200m"}, {"cpu": "500m", "memory": "1Gi"})


def compare(drive: Drive) -> int:
    """What is kept against what a profile started now says; returns how often there was something kept."""
    drive.world.looking = True
    fresh, remembered = drive.started_now(), 0
    for requests in drive.rng.sample(KINDS, len(KINDS)):
        pod = drive.pod(requests)
        expected = account(fresh, pod, 0)
        for _ in range(4):
            cycle = Cycle(pod, drive.scheduler.cluster)
            known = drive.scheduler.answer_cache.decide(drive.runtime, cycle, Sampling())
        assert account(drive.runtime, pod, 0) == expected
        if known is None or isinstance(known, NodeSearch):
            continue
        remembered += 1
        assert drive.scheduler.cluster.names[known] == expected["chosen"]
        kept = drive.scheduler.answer_cache.get(drive.runtime, cycle)
        assert kept is not None
        if "scores" in expected:
            table = kept.table()[1].by_plugin
            assert {name: scores.tolist() for name, scores in table.items()} == expected["scores"]
    drive.world.looking = False
    return remembered


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32))
def test_kept_answers_follow_the_annotations(seed: int) -> None:
    drive = Drive(seed, *PLUGINS)
    for _ in range(12):
        if drive.rng.random() < 0.5:
            drive.arrive(drive.rng.choice(KINDS))
        else:
            drive.scheduler.intake.set(annotated(drive.rng, f"n{drive.rng.randrange(5)}"))
        compare(drive)


def test_answers_of_plugins_that_read_annotations_are_kept() -> None:
    drive = Drive(2, *PLUGINS)
    assert sum(compare(drive) for _ in range(10)) > 10


def test_a_pod_that_is_scored_is_learnt_from_once_and_sees_the_pods_before() -> None:
    drive = Drive(1, "PigeonHoling")
    for number in range(4):
        drive.scheduler.intake.set(make_node(f"n{number}"))
    plugin = drive.runtime.plugins["PigeonHoling"]
    assert isinstance(plugin, PigeonHoling)
    drive.world.rng = random.Random(5)  # with this seed every binding succeeds
    for placed in range(1, 7):
        drive.arrive({"cpu": "100m", "memory": "64Mi"})
        assert plugin.moments.pods == placed
    assert plugin.moments.mean.tolist() == [100.0, 64.0]
    on = [len(each) for each in drive.scheduler.cluster.pods_on]
    assert sorted(on) == [1, 1, 2, 2]
