"""The plugin on random clusters, compared with the long way, and with itself under every view it may be asked for."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given, settings

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Cycle
from podium.kube import Node, Pod, Service, TopologySpreadConstraint
from podium.plugins.pod_topology_spread import PodTopologySpread
from tests.podium.plugins import ask
from tests.podium.plugins.pod_topology_spread import oracle
from tests.podium.plugins.pod_worlds import (
    CONTROLLERS,
    SEEDS,
    World,
    disturb,
    random_constraint,
    random_trial,
    random_world,
)
from tools.kit.builders import build, make_plugin

UNHURRIED = settings(deadline=None)


def random_args(rng: random.Random) -> dict[str, Any]:
    """The system's default constraints, or one of our own (which must not have a selector)."""
    if rng.random() < 0.6:
        return {}
    constraint = random_constraint(rng)
    constraint.pop("labelSelector", None)
    return {"defaultingType": "List", "defaultConstraints": [constraint]}


def scene_of(world: World, args: dict[str, Any]) -> oracle.Scene:
    defaults = [build(TopologySpreadConstraint, each) for each in args["defaultConstraints"]] if args else None
    return oracle.Scene(
        [build(Node, node) for node in world.nodes],
        [build(Pod, pod) for pod in world.pods],
        [build(Service, service) for service in world.services],
        [build(CONTROLLERS[controller["kind"]], controller) for controller in world.controllers],
        build(Pod, world.pod),
        defaults,
    )


def reasons(plugin: PodTopologySpread, cycle: Cycle) -> dict[str, str]:
    verdict = plugin.filter(cycle, Nodes(cycle.cluster))
    if verdict is None:
        return {}
    rows = [row for row in cycle.cluster.order.rows.tolist() if verdict.codes[row]]
    return {cycle.cluster.names[row]: verdict.status_of(int(verdict.codes[row])).message for row in rows}


@UNHURRIED
@given(SEEDS)
def test_every_node_is_refused_for_the_reason_that_looking_at_every_pod_gives(seed: int) -> None:
    rng = random.Random(seed)
    world, args = random_world(rng), random_args(rng)
    scene, cluster = scene_of(world, args), world.cluster()
    expected = oracle.refusals(scene)
    plugin = make_plugin(PodTopologySpread, cluster, **args)
    assert plugin.pre_filter(Cycle(scene.pod, cluster)) == (SKIP if expected is None else None)
    found = ask.refusals(plugin, scene.pod, cluster)
    assert {name: status.message for name, status in found.items() if status is not None} == (expected or {})


@UNHURRIED
@given(SEEDS)
def test_scores_are_those_that_looking_at_every_pod_gives(seed: int) -> None:
    rng = random.Random(seed)
    world, args = random_world(rng), random_args(rng)
    scene, cluster = scene_of(world, args), world.cluster()
    plugin = make_plugin(PodTopologySpread, cluster, **args)
    feasible = rng.sample(scene.nodes, rng.randint(1, len(scene.nodes)))
    expected = oracle.scores(scene, feasible)
    nodes = Nodes(cluster, np.array([cluster.row_of[node.name] for node in feasible]))
    cycle = Cycle(scene.pod, cluster)
    assert plugin.pre_score(cycle, nodes) == (SKIP if expected is None else None)
    if expected is not None:
        raw = plugin.score(cycle, nodes)
        assert raw.tolist() == expected.raw
        assert raw.tolist() == plugin.score(cycle, Nodes(cluster))[nodes.rows].tolist()
        assert plugin.normalize(cycle, nodes, raw).tolist() == expected.normalized


@UNHURRIED
@given(SEEDS)
def test_adding_and_removing_pods_moves_the_counts_and_leaves_the_original_notes_alone(seed: int) -> None:
    rng = random.Random(seed)
    world, args = random_world(rng), random_args(rng)
    scene, cluster = scene_of(world, args), world.cluster()
    plugin = make_plugin(PodTopologySpread, cluster, **args)
    cycle = Cycle(scene.pod, cluster)
    if plugin.pre_filter(cycle) == SKIP:
        return
    for _ in range(2):
        trial = random_trial(rng, world)
        crowded = cycle.clone()
        for number, (delta, pod) in enumerate(trial.steps, start=1):
            placed = cluster.stand_in(pod, cluster.row_of[trial.node])
            (plugin.add_pod if delta > 0 else plugin.remove_pod)(crowded, placed)
            changes = [(delta, pod, trial.node) for delta, pod in trial.steps[:number]]
            assert reasons(plugin, crowded) == oracle.refusals(scene._replace(changes=changes))
    assert reasons(plugin, cycle) == oracle.refusals(scene)


@UNHURRIED
@given(SEEDS)
def test_answers_change_only_when_the_answer_key_moves(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    cluster, pod = world.cluster(), build(Pod, world.pod)
    plugin = make_plugin(PodTopologySpread, cluster, **random_args(rng))
    mark, answers = plugin.answer_key(pod), answers_of(plugin, pod, cluster)
    for _ in range(4):
        disturb(rng, cluster)
        new_mark, new_answers = plugin.answer_key(pod), answers_of(plugin, pod, cluster)
        if new_mark == mark:
            assert all(answers[name] == new_answers[name] for name in answers.keys() & new_answers.keys())
        mark, answers = new_mark, new_answers


def answers_of(plugin: PodTopologySpread, pod: Pod, cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Every node's reason and raw score, all nodes being feasible."""
    cycle, nodes = Cycle(pod, cluster), Nodes(cluster, cluster.order.rows)
    refused = {} if plugin.pre_filter(cycle) == SKIP else reasons(plugin, cycle)
    scores = [0] * len(nodes) if plugin.pre_score(cycle, nodes) == SKIP else plugin.score(cycle, nodes).tolist()
    return {name: (refused.get(name, ""), score) for name, score in zip(nodes.names, scores, strict=True)}
