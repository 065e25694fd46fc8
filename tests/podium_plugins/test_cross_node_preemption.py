"""CrossNodePreemption: who is evicted on which nodes, what bounds the search, and that budgets hold."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.config.field import FieldPath
from podium.kube import Node, Pod
from podium.preemption.search import Budgets
from podium_plugins.cross_node_preemption import CrossNodePreemptionArgs
from tests.podium.engine.schedulers import World
from tests.podium.preemption.test_search import budget
from tools.kit.builders import make_node, make_pod
from tools.kit.effort import examples

ZONE = "zone"
PLUGINS = ("NodeUnschedulable", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")


def zoned(name: str, zone: str, cpu: int = 4) -> Node:
    return make_node(name, cpu=cpu, labels={ZONE: zone})


def world(*nodes: Node, preemption: tuple[str, ...] = ("CrossNodePreemption",), **args: int) -> World:
    return World(*PLUGINS, *preemption, nodes=nodes, args={"CrossNodePreemption": args})


def apart(*apps: str, key: str = ZONE) -> dict[str, Any]:
    """Not in one zone with these."""
    expression = {"key": "app", "operator": "In", "values": list(apps)}
    term = {"topologyKey": key, "labelSelector": {"matchExpressions": [expression]}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(app: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": app}}}]}


def running(name: str, node: str, priority: int = 0, cpu: int = 1, app: str = "", **spec: Any) -> Pod:
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, labels={"app": app or name}, spec=spec)


def preemptor(cpu: int = 1, priority: int = 10, app: str = "preemptor", **spec: Any) -> Pod:
    return make_pod("preemptor", priority=priority, requests={"cpu": cpu}, labels={"app": app}, spec=spec)


TWO_IN_A_ZONE = (zoned("n1", "a"), zoned("n2", "a"))


@pytest.mark.parametrize(
    ("pods", "pod", "victims"),
    [
        pytest.param(
            [running("x", "n1"), running("x2", "n2", app="x")], preemptor(**apart("x")), {"x", "x2"}, id="two"
        ),
        pytest.param([running("x", "n1")], preemptor(4, **apart("x")), {"x"}, id="one elsewhere or here"),
        pytest.param(
            [
                running("x", "n1", cpu=4, priority=10, app="other"),
                running("y", "n1", app="y"),
                running("z", "n2", cpu=4),
            ],
            preemptor(4, **apart("y")),
            {"y", "z"},
            id="one in the way of affinity, one in the way of room",
        ),
        pytest.param([running("x", "n1", priority=10)], preemptor(**apart("x")), set(), id="equal priority"),
        pytest.param(
            [running("x", "n1", **apart("preemptor"))], preemptor(), {"x"}, id="the other one wants to be apart"
        ),
        pytest.param(
            [running("x", "n1"), running("by", "n2", app="other")],
            preemptor(**apart("x")),
            {"x"},
            id="no more than must",
        ),
    ],
)
def test_who_is_evicted(pods: list[Pod], pod: Pod, victims: set[str]) -> None:
    found = world(*TWO_IN_A_ZONE)
    found.add(*pods)
    found.attempt(pod)
    assert set(found.evicted) == victims
    assert len(found.evicted) == len(victims)


def test_default_preemption_does_not_find_them() -> None:
    found = world(*TWO_IN_A_ZONE, preemption=("DefaultPreemption",))
    found.add(running("x", "n1"), running("x2", "n2", app="x"))
    found.attempt(preemptor(**apart("x")))
    assert found.evicted == []


def test_the_preemptor_starts_when_all_victims_are_gone() -> None:
    found = world(*TWO_IN_A_ZONE)
    victims = [running("x", "n1"), running("x2", "n2", app="x")]
    found.add(*victims)
    found.attempt(preemptor(**apart("x")))
    assert found.failures[-1].nomination is not None
    assert found.failures[-1].nomination.node_name in ("n1", "n2")
    found.delete(victims[0])
    assert found.bound == []
    found.delete(victims[1])
    found.pass_time(20)
    found.try_next()
    assert [name for name, _node in found.bound] == ["preemptor"]


def test_behind_default_preemption_it_is_asked_where_one_node_does_not_help() -> None:
    found = world(*TWO_IN_A_ZONE, preemption=("DefaultPreemption", "CrossNodePreemption"))
    found.add(running("x", "n1"), running("x2", "n2", app="x"))
    found.attempt(preemptor(**apart("x")))
    assert sorted(found.evicted) == ["x", "x2"]


def test_while_victims_are_leaving_elsewhere_no_others_are_evicted() -> None:
    """Also after a restart, when nothing but the API knows of it."""
    found = world(*TWO_IN_A_ZONE)
    leaving: dict[str, Any] = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    }
    pod = make_pod("x", node="n1", priority=5, requests={"cpu": 1}, labels={"app": "x"}, **leaving)
    found.add(pod, running("filler", "n1", cpu=3), running("other", "n2", cpu=4))
    found.attempt(preemptor(4, **apart("x")))
    assert len(found.evicted) == 1


def test_skew_is_cured_by_evicting_in_the_fullest_zone() -> None:
    found = world(zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b"))
    found.add(running("w1", "n1", app="web"), running("w2", "n2", app="web"), running("full", "n3", 10, cpu=4))
    found.attempt(preemptor(app="web", **spread("web")))
    assert len(found.evicted) == 2  # zone a must have none: zone b has none and no room


def test_where_no_filter_looks_beyond_a_node_only_one_node_is_evicted_on() -> None:
    found = World("NodeResourcesFit", "CrossNodePreemption", nodes=[make_node("n1", cpu=4), make_node("n2", cpu=4)])
    found.add(running("a", "n1", cpu=3, priority=5), running("b", "n2", cpu=3, priority=4))
    found.attempt(preemptor(4))
    assert found.evicted == ["b"]


def test_the_least_harm_decides_between_one_node_and_several() -> None:
    found = world(zoned("n1", "a"), zoned("n2", "b"))
    found.add(running("far", "n1", 1, app="x"), running("dear", "n2", 9, cpu=4, app="other"))
    found.attempt(preemptor(2, **apart("x")))
    assert found.evicted == ["far"]


# Budgets

WEB = {"matchLabels": {"app": "x"}}


@pytest.mark.parametrize(("allowed", "evicted"), [(2, 2), (1, 0), (0, 0)])
def test_a_budget_is_never_broken(allowed: int, evicted: int) -> None:
    found = world(*TWO_IN_A_ZONE)
    found.add(budget(WEB, allowed), running("x", "n1"), running("x2", "n2", app="x"))
    found.attempt(preemptor(**apart("x")))
    assert len(found.evicted) == evicted


def test_a_budget_on_one_node_is_not_broken_either() -> None:
    found = World("NodeResourcesFit", "CrossNodePreemption", nodes=[make_node("n1", cpu=4)])
    found.add(budget(WEB, 0), running("x", "n1", cpu=3))
    found.attempt(preemptor(4))
    assert found.evicted == []
    assert found.message.endswith("preemption: every candidate would break a disruption budget")


def test_where_a_budget_allows_one_of_two_another_way_is_taken() -> None:
    found = world(zoned("n1", "a", 2), zoned("n2", "b", 2))
    found.add(
        budget(WEB, 1),
        running("x1", "n1", 1, app="x"),
        running("x2", "n1", 2, app="x"),
        running("y", "n2", 5, cpu=2, app="y"),
    )
    found.attempt(preemptor(2, **apart("none")))
    assert found.evicted == ["y"]


# Bounds


def test_no_more_are_evicted_than_is_allowed() -> None:
    found = world(*TWO_IN_A_ZONE, maxVictims=1)
    found.add(running("x", "n1"), running("x2", "n2", app="x"))
    found.attempt(preemptor(**apart("x")))
    assert found.evicted == []


def test_pods_that_concern_the_preemptor_are_considered_first() -> None:
    nodes = [zoned(f"n{number}", "a", 40) for number in range(3)]
    for most, evicted in ((1, 0), (2, 2)):
        found = world(*nodes, maxPods=most)
        found.add(*(running(f"other{number}", "n0", -5) for number in range(30)))
        found.add(running("x", "n1", 9), running("x2", "n2", 9, app="x"))
        found.attempt(preemptor(**apart("x")))
        assert len(found.evicted) == evicted


def test_no_more_nodes_are_tried_than_is_allowed() -> None:
    nodes = [make_node("n1", cpu=4, labels={ZONE: "a", "host": "n1"}), make_node("n2", cpu=4, labels={ZONE: "b"})]
    for most, evicted in ((1, []), (2, ["x"])):
        found = world(*nodes, maxNodes=most)
        found.add(running("full", "n1", 10, cpu=4, app="full"), running("x", "n2"))
        found.attempt(preemptor(**apart("x")))
        assert found.evicted == evicted


@pytest.mark.parametrize("name", ["max_nodes", "max_pods", "max_victims"])
def test_bounds_are_at_least_one(name: str) -> None:
    [error] = CrossNodePreemptionArgs(**{name: 0}).validate(FieldPath())
    assert error.body.endswith("must be greater than 0")


# Properties


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["n1", "n2", "n3"]),
            st.integers(0, 12),
            st.integers(1, 3),
            st.sampled_from(["x", "y", "z"]),
            st.booleans(),
        ),
        max_size=7,
    ),
    st.integers(1, 4),
    st.sampled_from([("x",), ("x", "y"), ("z",)]),
    st.integers(0, 2),
)
def test_victims_are_enough_none_is_spare_budgets_hold_and_nothing_moves(
    pods: list[tuple[str, int, int, str, bool]], cpu: int, keeps_from: tuple[str, ...], allowed: int
) -> None:
    nodes = [zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b")]
    placed = [
        running(f"p{number}", node, priority, size, app, **(apart("preemptor") if wary else {}))
        for number, (node, priority, size, app, wary) in enumerate(pods)
    ]
    pod = preemptor(cpu, **apart(*keeps_from))
    limit = budget({"matchLabels": {"app": "x"}}, allowed)
    found = world(*nodes)
    found.add(limit, *placed)
    before = [dict(each) for each in found.cluster.pods_on]
    counted = found.cluster.resources.requested[0].tolist()
    found.attempt(pod)
    if found.bound:
        return
    assert [dict(each) for each in found.cluster.pods_on] == before
    assert found.cluster.resources.requested[0].tolist() == counted
    victims = set(found.evicted)
    by_name = {each.name: each for each in placed}
    assert all(by_name[name].priority < 10 for name in victims)
    evicted = [each for each in found.cluster.pods.values() if each.pod.name in victims]
    assert not Budgets([limit]).split(evicted)[0]
    if victims:
        assert _fits(nodes, placed, pod, victims)
        assert not any(_fits(nodes, placed, pod, victims - {name}) for name in victims)
    elif allowed == 2 or not any(app == "x" for *_rest, app, _wary in pods):
        lower = [each.name for each in placed if each.priority < 10]
        sets = (set(chosen) for size in range(1, len(lower) + 1) for chosen in combinations(lower, size))
        assert not any(
            _fits(nodes, placed, pod, chosen) and sum(by_name[name].labels["app"] == "x" for name in chosen) <= allowed
            for chosen in sets
        )


def _fits(nodes: list[Node], placed: list[Pod], pod: Pod, gone: set[str]) -> bool:
    """Whether the preemptor is bound at once where these pods are not there."""
    fresh = World(*PLUGINS, nodes=nodes)
    fresh.add(*(each for each in placed if each.name not in gone))
    fresh.attempt(pod)
    return bool(fresh.bound)
