"""Plugins that read measured load keep their answers, and what is kept is what a scheduler started now would say.

Loads are measured anew (of some nodes, up to some time), pods are placed, confirmed late, resized, told to have been
there for longer than it seemed, and deleted; nodes change and go. After every step the scheduler that keeps its
answers is compared with a profile built from the same objects. What pods say of when they came is heeded when something
is measured, so that is what happens after they are told.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.config import load_config
from podium.engine.decide import NodeSearch
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework import Cycle, Handle
from podium.framework.handle import Driver, EngineState
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod, parse_time
from podium.kube.meta import format_time
from podium.load.readings import GivenLoad
from podium.plugins import load_registry
from tests.podium.engine.answer_cache.test_fast_is_slow import World, account
from tests.podium.plugins.loads import ADDRESS, set_load
from tools.kit.builders import build
from tools.kit.effort import examples

MEASURED = ("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks")
MODELS = {f"n{i}": {"k1": -20.0 - i, "k2": -0.02} for i in range(5)}
REGISTRY = load_registry()
PROFILE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {"score": {"enabled": [{"name": name} for name in (*MEASURED, "NodeResourcesAllocatable")]}},
            "pluginConfig": [
                {
                    "name": name,
                    "args": {"watcherAddress": ADDRESS, **({"nodePowerModel": MODELS} if name == "Peaks" else {})},
                }
                for name in MEASURED
            ],
        }
    ],
}
CONFIG = load_config(msgspec.json.encode(PROFILE).decode(), "profile", REGISTRY).config
METRICS = ("cpu_avg", "cpu_std", "cpu_latest", "memory_avg", "memory_std")


class Drive:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.load = GivenLoad()
        self.scheduler = Scheduler(
            CONFIG,
            REGISTRY,
            Driver(
                clock=self.world.clock,
                writer=self.world,
                rng=random.Random(1),
                load=self.load,
            ),
            self.world,
        )
        self.kinds = [self.kind() for _ in range(3)]
        self.numbers = iter(range(1_000_000))
        for number in range(self.rng.randint(2, 5)):
            self.scheduler.intake.set(self.node(f"n{number}"))
        for _ in range(5):
            self.measure()

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    def kind(self) -> dict[str, Any]:
        amounts: tuple[dict[str, str], ...] = (
            {},
            {"cpu": "100m"},
            {"cpu": "700m", "memory": "1Gi"},
            {"memory": "300Mi"},
        )
        resources = {"requests": self.rng.choice(amounts), "limits": self.rng.choice((*amounts, {"cpu": "3"}))}
        return {"containers": [{"name": "c", "resources": resources}]}

    def pod(self, kind: dict[str, Any], number: int) -> Pod:
        metadata = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
        return build(Pod, {"metadata": metadata, "spec": kind})

    def node(self, name: str) -> Node:
        offers = {"cpu": self.rng.choice(("1", "4", "8")), "memory": self.rng.choice(("2Gi", "8Gi")), "pods": 20}
        status = {"capacity": {**offers, "cpu": "8"}, "allocatable": offers}
        return build(Node, {"metadata": {"name": name, "uid": name}, "status": status})

    def step(self) -> None:
        steps = (self.arrive, self.arrive, self.confirm, self.confirm, self.measure, self.end, self.retime, self.renew)
        self.rng.choice(steps)()
        self.world.clock.advance(self.rng.choice((0, 1, 20, 90)))

    def arrive(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.scheduler.intake.set(self.pod(self.rng.choice(self.kinds), next(self.numbers)))
        while self.scheduler.schedule_one() is not None:
            self.scheduler.tick()

    def confirm(self) -> None:
        """The API server tells of bindings, some of which it made some time ago."""
        bound, self.world.placements = self.world.placements, []
        for pod, node_name in bound:
            if self.rng.random() < 0.2:
                self.world.placements.append((pod, node_name))
            elif pod.uid in self.cluster.pods:
                self._tell(pod, node_name, self.world.clock.now() - self.rng.choice((0, 0, 1, 100)))
        self.measure("cpu_avg")

    def retime(self) -> None:
        """A pod turns out to have been bound earlier."""
        placed = [each for each in self.cluster.pods.values() if not each.assumed]
        if placed:
            each = self.rng.choice(placed)
            said = each.pod.status.conditions[0].last_transition_time
            assert said is not None
            self._tell(each.pod, self.cluster.names[each.row], parse_time(said) - self.rng.choice((0, 50, 1000)))
        self.measure("cpu_avg")

    def _tell(self, pod: Pod, node_name: str, at: float) -> None:
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(at)}
        status = msgspec.convert({"conditions": [condition]}, type(pod.status))
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        self.scheduler.intake.set(msgspec.structs.replace(pod, spec=spec, status=status))

    def end(self) -> None:
        placed = [each.pod for each in self.cluster.pods.values() if not each.assumed]
        if placed:
            self.scheduler.intake.delete(self.rng.choice(placed))

    def renew(self) -> None:
        name = f"n{self.rng.randint(0, 5)}"
        row = self.cluster.row_of.get(name)
        known = None if row is None else self.cluster.nodes[row]
        if known is not None and self.rng.random() < 0.4:
            self.scheduler.intake.delete(known)
        else:
            self.scheduler.intake.set(self.node(name))

    def measure(self, metric: str | None = None) -> None:
        values = {f"n{i}": self.rng.uniform(0, 70) for i in range(6) if self.rng.random() < 0.8}
        at = self.world.clock.now() - self.rng.choice((0, 30, 200))
        set_load(self.load, metric or self.rng.choice(METRICS), values, at)


def from_scratch(drive: Drive) -> ProfileRuntime:
    """A profile that was started now."""
    kept, cluster = drive.cluster, Cluster()
    for row in kept.order.rows.tolist():
        known = kept.nodes[row]
        assert known is not None
        cluster.set_node(known)
    for placed in kept.pods.values():
        if placed.assumed:
            cluster.assume(placed.pod, kept.names[placed.row])
        else:
            cluster.set_pod(placed.pod)
    handle = Handle(
        Driver(clock=drive.world.clock, writer=drive.world, rng=random.Random(1), load=drive.load),
        EngineState(cluster=cluster),
    )
    return ProfileRuntime(CONFIG.profiles[0], REGISTRY, handle)


def compare(drive: Drive) -> int:
    """Compare all kinds of pods; returns how many were answered from memory."""
    drive.world.looking = True
    scheduler, fresh, remembered = drive.scheduler, from_scratch(drive), 0
    runtime = scheduler.profiles["default-scheduler"]
    for number, kind in enumerate(drive.kinds):
        pod = drive.pod(kind, 999_000 + number)
        expected = account(fresh, pod, 0)
        # What is kept is asked first: the long way would bring up to date what both share.
        for _ in range(3):
            cycle = Cycle(pod, scheduler.cluster)
            known = scheduler.answer_cache.decide(runtime, cycle, Sampling())
        assert account(runtime, pod, 0) == expected, "the plugins' own accounts differ from fresh ones"
        if known is None or isinstance(known, NodeSearch):
            continue
        remembered += 1
        assert scheduler.cluster.names[known] == expected["chosen"]
        kept = scheduler.answer_cache.get(runtime, cycle)
        assert kept is not None
        rows, table = kept.table()
        assert [scheduler.cluster.names[each] for each in rows.tolist()] == expected["feasible"]
        if "scores" in expected:
            assert {name: scores.tolist() for name, scores in table.by_plugin.items()} == expected["scores"]
    drive.world.looking = False
    return remembered


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32))
def test_kept_answers_equal_those_of_a_scheduler_started_now(seed: int) -> None:
    drive = Drive(seed)
    for _ in range(25):
        drive.step()
        compare(drive)


def test_most_decisions_are_answered_from_memory_and_all_plugins_have_something_to_say() -> None:
    answered = 0
    told: dict[str, set[int]] = {name: set() for name in (*MEASURED, "NodeResourcesAllocatable")}
    for seed in range(3):
        drive = Drive(seed)
        for _ in range(30):
            drive.step()
            answered += compare(drive)
            for kind in drive.kinds:
                said = account(drive.scheduler.profiles["default-scheduler"], drive.pod(kind, 999_999), 0)
                for name, scores in told.items():
                    scores.update(said.get("scores", {}).get(name, ()))
    assert answered > 90
    assert min(len(scores) for scores in told.values()) > 2, told
