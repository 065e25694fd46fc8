"""Answers cached for pods with one signature are those of an extender that was started now."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import NodeInfo, Nodes
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import Numbers, StatusOf, no_status
from podium.engine.answer_cache.store import UnexpectedErrors
from podium.extender.plugin_subset import RowAnswerCache
from podium.framework import Cycle, DependsOn, NodePart, Plugin
from podium.kube import Pod
from podium.load.readings import GivenLoad
from podium_plugins.congestion import ANNOTATION
from tests.podium.extender.questions import Obj, World, args, as_object, node
from tests.podium.framework.runtimes import cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod
from tools.kit.effort import examples

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: MeasuredLoad
        args: {prometheusAddress: "http://prometheus:9090", metrics: [{query: load}, {query: pressure, weight: 3}]}
      - name: TargetLoadPacking
        args: {watcherAddress: "http://watcher:2020"}
      - name: LowRiskOverCommitment
        args: {watcherAddress: "http://watcher:2020"}
"""
AGENTS = ("congestion", "load", "NodeResourcesFit", "TargetLoadPacking", "LowRiskOverCommitment")
PATHS = [f"/{agent}/prioritize" for agent in AGENTS]
NAMES = [f"n{i}" for i in range(4)]


class Drive:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.load = GivenLoad()
        self.nodes: dict[str, Obj] = {name: self.a_node(name) for name in NAMES}
        self.pods: dict[str, Pod] = {}
        self.numbers = iter(range(1000))
        self.world = World(*AGENTS, nodes=self.nodes.values(), config=CONFIG, load=self.load)
        self.measure()

    def a_node(self, name: str) -> Obj:
        annotations = {ANNOTATION: str(self.rng.randint(0, 100))}
        return node(name, annotations, cpu=self.rng.choice(("2", "4")), memory="8Gi", pods="20")

    def step(self) -> None:
        self.rng.choice((self.measure, self.renew, self.place, self.remove))()

    def measure(self) -> None:
        for readings in self.load.followed.values():
            if self.rng.random() < 0.6:
                readings.write({name: self.rng.uniform(0, 60) for name in NAMES}, self.rng.uniform(1e5, 2e5))

    def renew(self) -> None:
        name = self.rng.choice(NAMES)
        self.nodes[name] = self.a_node(name)
        self.world.engine.intake.set(as_object(self.nodes[name]))

    def place(self) -> None:
        pod = make_pod(f"p{next(self.numbers)}", node=self.rng.choice(NAMES), requests={"cpu": "300m"})
        self.pods[pod.uid] = pod
        self.world.engine.intake.set(pod)

    def remove(self) -> None:
        if self.pods:
            uid = self.rng.choice(list(self.pods))
            self.world.engine.intake.delete(self.pods.pop(uid))

    def answers(self, world: World, name: str) -> dict[str, Any]:
        pod = make_pod(name, requests={"cpu": "500m", "memory": "1Gi"})
        refused = world.ask("/NodeResourcesFit/filter", args(pod, names=NAMES))["FailedNodes"]
        return {"refused": refused, **{path: world.points(path, pod, names=NAMES) for path in PATHS}}


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32))
def test_cached_answers_are_those_of_an_extender_started_now(seed: int) -> None:
    drive = Drive(seed)
    for name in ("first", "second"):  # from the second pod alike on, answers are kept
        drive.answers(drive.world, name)
    for number in range(20):
        drive.step()
        fresh = World(*AGENTS, nodes=drive.nodes.values(), config=CONFIG, load=drive.load)
        for pod in drive.pods.values():
            fresh.engine.intake.set(pod)
        assert drive.answers(drive.world, f"asked-{number}") == drive.answers(fresh, "asked")


def test_a_answer_key_that_moves_while_another_cannot_be_told_is_not_lost() -> None:
    """What was cached before must not come back when the other plugin can tell again."""

    class Forgetful(Plugin):
        depends_on = DependsOn(node=NodePart.OBJECT)
        key_now: Hashable = 1

        def answer_key(self, _pod: Pod) -> Hashable:
            return self.key_now

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            return 0

    class Counting(Forgetful):
        key_now: Hashable = 1

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            return int(str(self.key_now))

    runtime = make_runtime(make_cluster([make_node("n1")]), Forgetful, Counting)
    plugins = runtime.at(Point.SCORE)

    def ask(cycle: Cycle, nodes: Nodes) -> tuple[Numbers, StatusOf]:
        return runtime.run_scores(cycle, nodes).total, no_status

    cache = RowAnswerCache(runtime, plugins, ask, UnexpectedErrors())

    def answer(name: str) -> list[int] | None:
        answers = cache.of(cycle_of(runtime, make_pod(name)))
        return None if answers is None else answers.pick(np.arange(1)).tolist()

    assert [answer(name) for name in "abc"] == [None, [1], [1]]
    Forgetful.key_now, Counting.key_now = None, 2
    assert answer("d") is None
    Forgetful.key_now = 1
    assert answer("e") == [2]
