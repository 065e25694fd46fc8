"""The plugin on random clusters, compared with the long way, and with itself under every view it may be asked for."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Cycle
from podium.kube import Namespace, Node, Pod
from podium.plugins.inter_pod_affinity import InterPodAffinity
from tests.podium.plugins import ask
from tests.podium.plugins.inter_pod_affinity import oracle
from tests.podium.plugins.pod_worlds import SEEDS, World, disturb, random_trial, random_world
from tools.kit.builders import build, make_plugin

UNHURRIED = settings(deadline=None)


def scene_of(world: World) -> oracle.Scene:
    return oracle.Scene(
        [build(Node, node) for node in world.nodes],
        [build(Pod, pod) for pod in world.pods],
        [build(Namespace, namespace) for namespace in world.namespaces],
        build(Pod, world.pod),
    )


def reasons(plugin: InterPodAffinity, cycle: Cycle) -> dict[str, str]:
    verdict = plugin.filter(cycle, Nodes(cycle.cluster))
    if verdict is None:
        return {}
    rows = [row for row in cycle.cluster.order.rows.tolist() if verdict.codes[row]]
    return {cycle.cluster.names[row]: verdict.status_of(int(verdict.codes[row])).message for row in rows}


@UNHURRIED
@given(SEEDS)
def test_every_node_is_refused_for_the_reason_that_looking_at_every_pod_gives(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    scene, cluster = scene_of(world), world.cluster()
    expected = oracle.refusals(scene)
    plugin = make_plugin(InterPodAffinity, cluster)
    answer = plugin.pre_filter(Cycle(scene.pod, cluster))
    assert answer == (SKIP if expected is None else None)
    found = ask.refusals(plugin, scene.pod, cluster)
    assert {name: status.message for name, status in found.items() if status is not None} == (expected or {})


@UNHURRIED
@given(SEEDS, st.sampled_from([0, 1, 7]), st.booleans())
def test_scores_are_those_that_looking_at_every_pod_gives(seed: int, hard: int, ignore: bool) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    scene, cluster = scene_of(world), world.cluster()
    plugin = make_plugin(
        InterPodAffinity, cluster, hardPodAffinityWeight=hard, ignorePreferredTermsOfExistingPods=ignore
    )
    expected = oracle.raw_scores(scene, hard, ignore)
    feasible = rng.sample(scene.nodes, rng.randint(1, len(scene.nodes)))
    nodes = Nodes(cluster, np.array([cluster.row_of[node.name] for node in feasible]))
    cycle = Cycle(scene.pod, cluster)
    assert plugin.pre_score(cycle, nodes) == (SKIP if expected is None else None)
    if expected is not None:
        raw = plugin.score(cycle, nodes)
        assert raw.tolist() == [expected[node.name] for node in feasible]
        assert raw.tolist() == plugin.score(cycle, Nodes(cluster))[nodes.rows].tolist()
        wanted = oracle.normalized({node.name: expected[node.name] for node in feasible})
        assert plugin.normalize(cycle, nodes, raw).tolist() == [wanted[node.name] for node in feasible]


@UNHURRIED
@given(SEEDS)
def test_adding_and_removing_pods_is_as_counting_anew_and_leaves_the_original_notes_alone(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    scene, cluster = scene_of(world), world.cluster()
    plugin = make_plugin(InterPodAffinity, cluster)
    cycle = Cycle(scene.pod, cluster)
    if plugin.pre_filter(cycle) == SKIP:
        return
    for _ in range(2):
        trial = random_trial(rng, world)
        crowded, pods = cycle.clone(), list(scene.pods)
        for delta, pod in trial.steps:
            placed = cluster.stand_in(pod, cluster.row_of[trial.node])
            if delta > 0:
                pods.append(pod)
                plugin.add_pod(crowded, placed)
            else:
                pods.remove(pod)
                plugin.remove_pod(crowded, placed)
            assert reasons(plugin, crowded) == (oracle.refusals(scene._replace(pods=pods)) or {})
    assert reasons(plugin, cycle) == oracle.refusals(scene)


@UNHURRIED
@given(SEEDS)
def test_answers_change_only_when_the_answer_key_moves(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    cluster, pod = world.cluster(), build(Pod, world.pod)
    plugin = make_plugin(InterPodAffinity, cluster)
    mark, answers = plugin.answer_key(pod), answers_of(plugin, pod, cluster)
    for _ in range(4):
        disturb(rng, cluster)
        new_mark, new_answers = plugin.answer_key(pod), answers_of(plugin, pod, cluster)
        if new_mark == mark:
            assert all(answers[name] == new_answers[name] for name in answers.keys() & new_answers.keys())
        mark, answers = new_mark, new_answers


def answers_of(plugin: InterPodAffinity, pod: Pod, cluster: Cluster) -> dict[str, tuple[str, int]]:
    cycle, nodes = Cycle(pod, cluster), Nodes(cluster, cluster.order.rows)
    refused = {} if plugin.pre_filter(cycle) == SKIP else reasons(plugin, cycle)
    scores = [0] * len(nodes) if plugin.pre_score(cycle, nodes) == SKIP else plugin.score(cycle, nodes).tolist()
    return {name: (refused.get(name, ""), score) for name, score in zip(nodes.names, scores, strict=True)}
