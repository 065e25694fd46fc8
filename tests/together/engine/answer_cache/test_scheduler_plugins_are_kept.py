"""Plugins that read custom resources keep their answers, and what is kept is what a scheduler started now would say.

Pods of an AppGroup and with seccomp profiles are placed, begin to leave and end; nodes change their zone and their
annotations, come and go; AppGroup, NetworkTopology and SeccompProfiles change. After every step the scheduler that
keeps its answers is compared with a profile built from the same objects.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import load_config
from podium.engine.decide import NodeSearch
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework import Cycle
from podium.framework.handle import Driver
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod
from podium.plugins import load_registry
from podium_plugins import app_group
from podium_plugins.network_overhead import network_topology
from podium_plugins.sy_sched import RESOURCE as SECCOMP_PROFILES
from tests.podium.engine.answer_cache.test_fast_is_slow import World, account
from tests.podium_plugins.test_sy_sched import localhost, profile
from tests.together.network_worlds import PLACES, REGIONS, ZONES, located, make_app_group, make_topology, of_workload
from tools.kit.builders import make_handle
from tools.kit.effort import examples

PLUGINS = ("NetworkOverhead", "SySched", "NodeMetadata", "PodState")
REGISTRY = load_registry()
NODE_METADATA = {
    "metadataKey": "rank",
    "metadataSource": "Annotation",
    "metadataType": "Number",
    "scoringStrategy": "Lowest",
}
CONFIG = load_config(
    msgspec.json.encode(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"multiPoint": {"enabled": [{"name": name} for name in PLUGINS]}},
                    "pluginConfig": [{"name": "NodeMetadata", "args": NODE_METADATA}],
                }
            ],
        }
    ).decode(),
    "profile",
    REGISTRY,
).config
CUSTOM = (app_group.RESOURCE, network_topology.RESOURCE, SECCOMP_PROFILES)
SETS = ("abc", "bcd", "xy")


class Drive:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.scheduler = Scheduler(
            CONFIG,
            REGISTRY,
            Driver(
                clock=self.world.clock,
                writer=self.world,
                rng=random.Random(1),
            ),
            self.world,
        )
        self.numbers = iter(range(10**6))
        for number in range(5):
            self.scheduler.intake.set(self.node(f"n{number}"))
        for change in (self.change_group, self.change_topology, *[self.change_profile] * 4):
            change()

    @property
    def runtime(self) -> ProfileRuntime:
        return self.scheduler.profiles["default-scheduler"]

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    # What there is

    def node(self, name: str, place: tuple[str, str] | None = None) -> Node:
        rank = self.rng.choice((None, "1", "2.5", "30", "high"))
        annotations = {} if rank is None else {"rank": rank}
        place = place or self.rng.choice((("", ""), *PLACES.values()))
        return located(name, *place, cpu=self.rng.choice((1, 2)), annotations=annotations)

    def pod(self, kind: tuple[str, str]) -> Pod:
        workload, calls = kind
        spec = {"priority": 10 if workload == "p3" else 0, **(localhost(calls) if calls else {})}
        return of_workload(f"p{next(self.numbers)}", workload, requests={"cpu": "400m"}, spec=spec)

    # What happens

    def arrive(self) -> None:
        self.scheduler.intake.set(self.pod(self.rng.choice(KINDS)))
        while self.scheduler.schedule_one() is not None:
            self.scheduler.tick()

    def leave(self) -> None:
        placed = [each.pod for each in self.cluster.pods.values()]
        if not placed:
            return
        pod = self.rng.choice(placed)
        pod = replace(pod, spec=replace(pod.spec, node_name=self.cluster.names[self.cluster.pods[pod.uid].row]))
        if pod.terminating or self.rng.random() < 0.4:
            self.scheduler.intake.delete(pod)
        else:
            going = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="going")
            self.scheduler.intake.set(replace(pod, metadata=going))

    def change_node(self) -> None:
        name = f"n{self.rng.randrange(7)}"
        row = self.cluster.row_of.get(name)
        known = None if row is None else self.cluster.nodes[row]
        if known is None:
            self.scheduler.intake.set(self.node(name))
        elif self.rng.random() < 0.4:
            self.scheduler.intake.delete(known)
        else:  # in its zone, as an order already built does not follow that
            place = known.labels.get(network_topology.REGION, ""), known.labels.get(network_topology.ZONE, "")
            self.scheduler.intake.set(self.node(name, place))

    def nominate(self) -> None:
        pod = self.pod(KINDS[0])
        nominator = self.scheduler.nominator
        if nominator.nodes() and self.rng.random() < 0.6:
            for each in nominator.on(self.rng.choice(nominator.nodes())):
                nominator.remove(each.uid)
        else:
            nominator.nominate(replace(pod, spec=replace(pod.spec, priority=-5)), f"n{self.rng.randrange(5)}")

    def change_group(self) -> None:
        needs = {"p1": [("p2", self.rng.choice((0, 5, 15, 30)))], "p3": [("p1", 15), ("p2", 3), ("p3", 8)]}
        item: Any = make_app_group(needs, ("p2", "p1"))
        if self.rng.random() < 0.2:
            item = {**item, "spec": {"workloads": "bad"}}
        self.scheduler.intake.set_custom(app_group.RESOURCE, "default/app", item)

    def change_topology(self) -> None:
        def some(pairs: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
            return {pair: self.rng.choice((cost, 2, -1)) for pair, cost in pairs.items() if self.rng.random() < 0.8}

        item = make_topology(some(REGIONS), some(ZONES))
        self.scheduler.intake.set_custom(network_topology.RESOURCE, "default/nt-default", item)

    def change_profile(self) -> None:
        name = self.rng.choice((*SETS, "all-syscalls"))
        item = profile(*self.rng.sample("abcdxyz", self.rng.randrange(6)))
        self.scheduler.intake.set_custom(SECCOMP_PROFILES, f"default/{name}", item)

    def started_now(self) -> ProfileRuntime:
        kept, cluster = self.cluster, Cluster()
        for rows in kept.order.by_zone():
            for row in rows:
                known = kept.nodes[row]
                assert known is not None
                cluster.set_node(known)
        for placed in kept.pods.values():
            cluster.assume(placed.pod, kept.names[placed.row])
        for resource in CUSTOM:
            store = kept.objects.custom_store(resource)
            for key in list(store._objects):
                cluster.objects.custom_store(resource).set(key, store.get(key))
        handle = make_handle(cluster)
        handle.nominator = self.scheduler.nominator
        return ProfileRuntime(CONFIG.profiles[0], REGISTRY, handle)


KINDS = (("p1", "abc"), ("p2", "bcd"), ("p3", ""), ("p9", "xy"))


def compare(drive: Drive) -> int:
    """What is kept against what a profile started now says; returns how often there was something kept."""
    drive.world.looking = True
    fresh, cached = drive.started_now(), 0
    for kind in drive.rng.sample(KINDS, len(KINDS)):
        pod = drive.pod(kind)
        expected = account(fresh, pod, 0)
        for _ in range(4):
            cycle = Cycle(pod, drive.cluster)
            found = drive.scheduler.answer_cache.decide(drive.runtime, cycle, Sampling())
        assert account(drive.runtime, pod, 0) == expected
        if found is None or isinstance(found, NodeSearch):
            continue
        cached += 1
        assert drive.cluster.names[found] == expected["chosen"]
        entry = drive.scheduler.answer_cache.get(drive.runtime, cycle)
        assert entry is not None
        if "scores" in expected:
            table = entry.table()[1].by_plugin
            assert {name: scores.tolist() for name, scores in table.items()} == expected["scores"]
    drive.world.looking = False
    return cached


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32))
def test_cached_answers_follow_objects_pods_and_nodes(seed: int) -> None:
    drive = Drive(seed)
    happenings = (
        *[drive.arrive] * 5,
        *(drive.leave, drive.leave, drive.change_node, drive.nominate),
        *(drive.change_group, drive.change_topology, drive.change_profile),
    )
    for _ in range(12):
        drive.rng.choice(happenings)()
        compare(drive)


def test_answers_are_cached() -> None:
    drive = Drive(3)
    for _ in range(6):
        drive.arrive()
    assert sum(compare(drive) for _ in range(5)) > 10
