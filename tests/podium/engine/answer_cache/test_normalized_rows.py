"""Scores of rows that are shares of the highest score: cached answers follow the highest as pods come and go."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import NodeInfo, Nodes
from podium.engine.decide import decide
from podium.engine.sampling import Sampling
from podium.framework import Cycle, DependsOn, NodePart, Normalizer, Plugin, Scores
from podium.kube import Pod
from tests.podium.engine.schedulers import World, on
from tools.kit.builders import make_node, make_pod
from tools.kit.effort import examples


class Loaded(Plugin):
    """The number of pods on a node, asked about all nodes or about one."""

    depends_on = DependsOn(node=NodePart.TOTALS, claims=False)
    normalizer = Normalizer.REVERSED

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        return nodes.pod_count

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return len(node.pods)


class Empty(Loaded):
    """The most loaded first, and in the form for all nodes only."""

    normalizer = Normalizer.DEFAULT
    score_node = None  # type: ignore[assignment]


def world_of(plugin: type[Plugin], nodes: int = 4) -> World:
    return World("NodeResourcesFit", plugin, nodes=[make_node(f"n{number}", pods=4) for number in range(nodes)])


def check(world: World) -> None:
    """The cached decision about a pod against one made without the cache: node, totals and scores."""
    runtime, pod = world.scheduler.profiles["default-scheduler"], make_pod("probe")
    expected = decide(runtime, Cycle(pod, world.cluster), Sampling())
    cycle = Cycle(pod, world.cluster)
    found = world.scheduler.answer_cache.decide(runtime, cycle, Sampling())
    if expected.scores is None:
        return
    assert found == expected.row
    entry = world.scheduler.answer_cache.get(runtime, cycle)
    assert entry is not None
    rows, table = entry.table()
    assert rows.tolist() == expected.search.feasible.tolist()
    assert {name: scores.tolist() for name, scores in table.by_plugin.items()} == {
        name: scores.tolist() for name, scores in expected.scores.by_plugin.items()
    }


def warm_up(world: World) -> None:
    """Have an entry for the signature of the pod that is asked about."""
    for _ in range(3):
        cycle = Cycle(make_pod("probe"), world.cluster)
        world.scheduler.answer_cache.decide(world.scheduler.profiles["default-scheduler"], cycle, Sampling())
    check(world)


@pytest.mark.parametrize("plugin", [Loaded, Empty])
def test_a_new_highest_score_leaves_the_answers_cached(plugin: type[Plugin]) -> None:
    world = world_of(plugin)
    warm_up(world)
    for number in range(3):
        world.add(on(make_pod(f"p{number}"), "n0"))
        check(world)
    assert len(world.scheduler.answer_cache) == 1


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([Loaded, Empty]))
def test_cached_scores_follow_the_highest(seed: int, plugin: type[Plugin]) -> None:
    rng = random.Random(seed)
    world = world_of(plugin)
    warm_up(world)
    placed: list[Pod] = []
    for number in range(25):
        for _ in range(rng.choice((1, 1, 2, 6))):
            if placed and rng.random() < 0.4:
                world.delete(placed.pop(rng.randrange(len(placed))))
            else:
                pod = on(make_pod(f"p{number}-{len(placed)}-{rng.random()}"), f"n{rng.randrange(4)}")
                world.add(pod)
                placed.append(pod)
        check(world)
