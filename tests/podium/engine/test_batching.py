"""Batches: a pod takes the next best node of the pod before it, where both are alike and one fills a node."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import NodeInfo
from podium.engine.batching import HINT_USED
from podium.framework import Cycle, Plugin
from podium.kube import Node, Pod
from podium.kube.versions import find_rules
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

FIT = ("NodeResourcesFit",)
BATCHED, SCORED_AGAIN = ["n0", "n4", "n3", "n2"], ["n0", "n1", "n2", "n3"]
"""Where pods that fill a node go among five equal ones: by one heap, or each by a heap of its own."""


def nodes(count: int = 5) -> list[Node]:
    return [make_node(f"n{number}", cpu=1) for number in range(count)]


def filling(name: str, **given: Any) -> Pod:
    return make_pod(name, requests={"cpu": 1}, **given)


def taken(world: World, *pods: Pod, apart: float = 0.0) -> list[str]:
    """The nodes that pods take which come one after the other."""
    for pod in pods:
        world.attempt(pod)
        world.clock.advance(apart)
    nodes = dict(world.bound)
    return [nodes[pod.name] for pod in pods if pod.name in nodes]


def four(**given: Any) -> list[Pod]:
    return [filling(f"p{number}", **given) for number in range(4)]


def test_pods_that_fill_a_node_go_down_one_heap() -> None:
    world = World(*FIT, nodes=nodes())
    assert taken(world, *four()) == BATCHED
    batch = world.scheduler.batches["default-scheduler"]
    assert dict(batch.attempts) == {"no_hint": 1, "hint_used": 3}
    assert not batch.flushes


def test_names_namespaces_and_annotations_do_not_keep_pods_apart() -> None:
    pods = [
        filling(f"p{number}", namespace=f"space-{number}", metadata={"annotations": {"n": str(number)}})
        for number in range(4)
    ]
    assert taken(World(*FIT, nodes=nodes()), *pods) == BATCHED


def test_after_half_a_second_nodes_are_scored_again() -> None:
    assert taken(World(*FIT, nodes=nodes()), *four(), apart=0.16) == BATCHED
    world = World(*FIT, nodes=nodes())
    assert taken(world, *four(), apart=0.51) == SCORED_AGAIN
    assert dict(world.scheduler.batches["default-scheduler"].flushes) == {"expired": 3}


@pytest.mark.parametrize(
    ("minor", "expected", "flushes", "rescores"),
    [("1.36", ["n0", "n1", "n2", "n0"], {"node_not_full": 3}, 0), ("1.37", ["n0", "n2", "n1", "n2"], {}, 3)],
)
def test_v40_where_a_node_has_room_for_another_pod_only_that_node_is_scored_again(
    minor: str, expected: list[str], flushes: dict[str, int], rescores: int
) -> None:
    world = World(*FIT, nodes=[make_node(f"n{number}", cpu=8) for number in range(3)], rules=find_rules(minor).rules)
    assert taken(world, *four()) == expected
    batch = world.scheduler.batches["default-scheduler"]
    assert (dict(batch.flushes), batch.rescores) == (flushes, rescores)


def test_a_nominated_pod_ends_the_batch() -> None:
    world = World(*FIT, nodes=nodes())
    first, *_ = four()
    taken(world, first, filling("nominated", status={"nominatedNodeName": "n4"}))
    assert world.node_of("nominated") == "n4"
    assert dict(world.scheduler.batches["default-scheduler"].flushes) == {"pod_nominated": 1, "empty_list": 1}


def test_another_pod_in_between_ends_the_batch() -> None:
    world = World(*FIT, nodes=nodes())
    first, second, third, fourth = four()
    assert taken(world, first) == ["n0"]
    taken(world, make_pod("too-big", requests={"cpu": 9}))
    assert taken(world, second) == ["n1"]
    taken(world, make_pod("other", requests={"cpu": "900m"}))
    assert world.node_of("other") == "n2"
    assert taken(world, third, fourth) == ["n3", "n4"]
    flushes = world.scheduler.batches["default-scheduler"].flushes
    assert dict(flushes) == {"pod_skipped": 1, "pod_incompatible": 3}


def test_a_node_that_no_longer_takes_the_pod_is_passed_over() -> None:
    world = World(*FIT, nodes=nodes())
    first, second, third, _fourth = four()
    assert taken(world, first) == ["n0"]
    world.add(filling("stranger", node="n4"))
    assert taken(world, second, third) == ["n1", "n3"]
    assert dict(world.scheduler.batches["default-scheduler"].attempts) == {
        "no_hint": 1,
        "hint_not_used": 1,
        "hint_used": 1,
    }


def test_a_node_that_is_gone_ends_the_batch() -> None:
    world = World(*FIT, nodes=nodes())
    first, second, *_ = four()
    assert taken(world, first) == ["n0"]
    world.intake.delete(make_node("n0", cpu=1))
    assert taken(world, second) == ["n1"]
    assert dict(world.scheduler.batches["default-scheduler"].flushes) == {"node_missing": 1}


def test_pods_that_are_decided_by_cached_answers_go_down_the_heap_as_well() -> None:
    rules = find_rules("1.36").rules
    world = World(*FIT, nodes=[make_node(f"n{number}", cpu=2) for number in range(4)], rules=rules)
    pods = [filling(f"p{number}") for number in range(8)]
    assert taken(world, *pods) == ["n0", "n1", "n3", "n2", "n0", "n3", "n2", "n1"]
    assert world.scheduler.answer_cache.decisions >= 3


class Unsigned(Plugin):
    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 1


NO_DEFAULTS = {"PodTopologySpread": {"defaultingType": "List"}}
NO_HOST = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host", "labelSelector": {}}]}
SPREAD = {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}


@pytest.mark.parametrize(
    ("options", "pod", "batched"),
    [
        ({"default": True, "args": NO_DEFAULTS}, {}, True),
        ({"default": True}, {}, False),
        ({"default": True, "args": NO_DEFAULTS}, {"spec": {"affinity": {"podAntiAffinity": NO_HOST}}}, False),
        ({"default": True, "args": NO_DEFAULTS}, {"spec": {"topologySpreadConstraints": [SPREAD]}}, False),
        ({"plugins": (*FIT, Unsigned)}, {}, False),
    ],
    ids=[
        "no default constraints",
        "default profile",
        "pod affinity",
        "spread constraints",
        "a plugin that does not sign",
    ],
)
def test_what_keeps_pods_from_being_compared(options: dict[str, Any], pod: dict[str, Any], batched: bool) -> None:
    world = World(*options.pop("plugins", ()), nodes=nodes(), **options)
    assert taken(world, *four(**pod)) == (BATCHED if batched else SCORED_AGAIN)
    batch = world.scheduler.batches.get("default-scheduler")
    assert bool(batch is not None and batch.attempts[HINT_USED]) is batched


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, False),
        ({"spec": {"nodeSelector": {"a": "1"}}}, {}, False),
        ({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, {}, False),
        ({"spec": {"containers": [{"name": "c", "image": "app:2"}]}}, {"spec": {"containers": [{"name": "c"}]}}, False),
        ({"spec": {"volumes": [{"name": "v", "configMap": {"name": "a"}}]}}, {}, True),
        ({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}]}}, {}, False),
        ({"priority": 5}, {}, True),
    ],
    ids=["labels", "node selector", "tolerations", "images", "config map", "claim", "priority"],
)
def test_what_is_compared(one: dict[str, Any], other: dict[str, Any], equal: bool) -> None:
    world = World(default=True, args=NO_DEFAULTS, nodes=nodes())
    batch = world.scheduler.batches["default-scheduler"]
    first, second = (batch._sign(Cycle(make_pod("p", **given), world.cluster)) for given in (one, other))
    assert first is not None
    assert (first == second) is equal
