"""The status of an AppGroup: how many pods run, and in which order its workloads are tried.

Workloads come before those they depend on, in the order that the algorithm of their AppGroup gives.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.controllers.controller import ReconcileResult
from podium.framework import ManualClock
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium_plugins.controllers.app_group import ALGORITHMS, AppGroupController, CycleError, Graph, kahn, sort, tarjan
from tools.kit.builders import build

NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"


def workload(name: str, *below: str, selector: str = "") -> JsonObject:
    dependencies = [{"workload": _reference(each), "minBandwidth": "100Mi", "maxNetworkCost": 30} for each in below]
    return {"workload": _reference(name, selector), "dependencies": dependencies}


def _reference(name: str, selector: str = "") -> JsonObject:
    return {"kind": "Deployment", "name": name, "selector": selector or name}


DIAMOND = [workload("p1", "p2", "p3"), workload("p2", "p4"), workload("p3", "p4"), workload("p4")]


def app_group(workloads: Any, algorithm: str = "KahnSort", status: JsonObject | None = None) -> JsonObject:
    spec = {"numMembers": 4, "topologySortingAlgorithm": algorithm, "workloads": workloads}
    return {"metadata": {"name": "a1", "namespace": "default"}, "spec": spec, "status": status or {}}


def reconcile(item: JsonObject, *phases: str, at: float = NOW) -> ReconcileResult:
    pods = [build(Pod, {"metadata": {"name": "p"}, "status": {"phase": phase}}) for phase in phases]
    return AppGroupController(ManualClock(at)).reconcile(item, {"pods": pods})


def order(result: ReconcileResult) -> dict[str, int]:
    assert result.status is not None
    return {each["workload"]["selector"]: each["index"] for each in result.status["topologyOrder"]}


def test_the_order_is_listed_by_selector_and_counts_from_1() -> None:
    result = reconcile(app_group(DIAMOND))
    assert list(order(result).items()) == [("p1", 1), ("p2", 3), ("p3", 2), ("p4", 4)]
    assert result.problem is None
    assert result.status is not None
    assert result.status["topologyCalculationTime"] == TIME


def test_a_selector_other_than_the_name_does_not_undo_the_order() -> None:
    workloads = [workload("front", "back", selector="z"), workload("back", selector="a")]
    assert order(reconcile(app_group(workloads))) == {"z": 1, "a": 2}


def test_a_workload_that_has_nothing_to_do_with_others_has_no_place() -> None:
    assert order(reconcile(app_group([*DIAMOND, workload("alone")]))).keys() == {"p1", "p2", "p3", "p4"}


def test_running_pods_are_counted() -> None:
    status = reconcile(app_group(DIAMOND), "Running", "Pending", "Running", "Succeeded").status
    assert status is not None
    assert status["runningWorkloads"] == 2


def test_what_is_right_is_not_written_again_until_a_day_has_passed() -> None:
    status = reconcile(app_group(DIAMOND), "Running").status
    later = app_group(DIAMOND, status=status)
    assert reconcile(later, "Running", at=NOW + 60) == ReconcileResult(due=24 * 3600 - 60)
    assert reconcile(later, "Running", at=NOW + 24 * 3600).status is not None


def test_the_order_follows_the_spec_at_once() -> None:
    status = reconcile(app_group(DIAMOND)).status
    changed = reconcile(app_group(DIAMOND, "ReverseKahn", status), at=NOW + 1)
    assert order(changed) == {"p4": 1, "p2": 2, "p3": 3, "p1": 4}


def test_a_circle_keeps_the_order_in_which_workloads_are_written_and_is_reported() -> None:
    result = reconcile(app_group([workload("b", "a"), workload("a", "b"), workload("c")]))
    assert order(result) == {"b": 1, "a": 2, "c": 3}
    assert result.problem is not None
    assert result.problem.note.startswith("workloads depend on each other in a circle (b → a → b)")
    assert result.status is not None
    assert result.status["message"] == result.problem.note
    mended = reconcile(app_group([workload("b", "a"), workload("a")], status=result.status)).status
    assert mended is not None
    assert mended["message"] is None


def test_an_unknown_algorithm_is_reported() -> None:
    result = reconcile(app_group(DIAMOND, "BubbleSort"))
    assert order(result)["p3"] == 2
    assert result.problem is not None
    assert 'topologySortingAlgorithm "BubbleSort" is unknown, and KahnSort is used' in result.problem.note


@pytest.mark.parametrize(
    ("workloads", "why"),
    [
        ("p1", "Expected `array`"),
        ([{"dependencies": []}], "missing required field `workload`"),
        ([{"workload": {"kind": "Deployment", "name": "p1"}}], "missing required field `selector`"),
        ([workload("a", "b") | {"dependencies": [{"workload": _reference("b"), "minBandwidth": "lots"}]}], "lots"),
        ([workload("a", "b") | {"dependencies": [{"workload": _reference("b"), "minBandwidth": "-1"}]}], "negative"),
    ],
)
def test_a_group_that_cannot_be_read_keeps_its_order_and_is_reported(workloads: Any, why: str) -> None:
    result = reconcile(app_group(workloads, status={"topologyOrder": []}), "Running")
    assert result.problem is not None
    assert result.status == {"runningWorkloads": 1, "message": result.problem.note}
    assert why in result.problem.note
    assert result.problem.type == "Warning"


DIAMOND_GRAPH = {"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []}
CHAIN = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["e"], "e": []}
TWO_ROOTS = {"x": ["z"], "y": ["z"], "z": []}


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("KahnSort", "p1 p3 p2 p4"),
        ("TarjanSort", "p1 p3 p2 p4"),
        ("ReverseKahn", "p4 p2 p3 p1"),
        ("ReverseTarjan", "p4 p2 p3 p1"),
        ("AlternateKahn", "p1 p4 p3 p2"),
        ("AlternateTarjan", "p1 p4 p3 p2"),
        ("unknown", "p1 p3 p2 p4"),
        ("", "p1 p3 p2 p4"),
    ],
)
def test_the_example_of_four_workloads(algorithm: str, expected: str) -> None:
    assert " ".join(sort(DIAMOND_GRAPH, algorithm)) == expected


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [("KahnSort", "abcde"), ("ReverseTarjan", "edcba"), ("AlternateKahn", "aebdc"), ("AlternateTarjan", "aebdc")],
)
def test_a_chain_of_five(algorithm: str, expected: str) -> None:
    assert "".join(sort(CHAIN, algorithm)) == expected


def test_of_several_roots_the_first_written_comes_first() -> None:
    assert kahn(TWO_ROOTS) == ["x", "y", "z"]
    assert tarjan(TWO_ROOTS) == ["y", "x", "z"]  # each later one is placed before what is placed already


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_empty_graph_has_an_empty_order(algorithm: str) -> None:
    assert sort({}, algorithm) == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("graph", "circle"),
    [
        ({"a": ["a"]}, "a → a"),
        ({"a": ["b"], "b": ["a"]}, "a → b → a"),
        ({"r": ["a"], "a": ["b"], "b": ["c"], "c": ["a"], "leaf": []}, "a → b → c → a"),
    ],
)
def test_a_circle_is_named(algorithm: str, graph: dict[str, list[str]], circle: str) -> None:
    with pytest.raises(CycleError) as error:
        sort(graph, algorithm)
    assert str(error.value) == circle


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"w{number}" for number in range(draw(st.integers(1, 12)))]
    graph = {
        name: draw(st.lists(st.sampled_from(names[at + 1 :]), max_size=4)) if at + 1 < len(names) else []
        for at, name in enumerate(names)
    }
    return {name: graph[name] for name in draw(st.permutations(names))}


@given(acyclic())
def test_each_workload_comes_once_and_before_what_it_depends_on(graph: dict[str, list[str]]) -> None:
    for order in (kahn(graph), tarjan(graph)):
        assert sorted(order) == sorted(graph)
        place = {name: at for at, name in enumerate(order)}
        assert all(place[name] < place[below] for name, dependencies in graph.items() for below in dependencies)


@given(acyclic())
def test_every_algorithm_gives_each_workload_once(graph: dict[str, list[str]]) -> None:
    for algorithm in ALGORITHMS:
        assert sorted(sort(graph, algorithm)) == sorted(graph)


@pytest.mark.parametrize("order", [kahn, tarjan])
def test_the_time_is_linear_in_the_workloads(order: Callable[[Graph], list[str]]) -> None:
    """A chain of 20,000, closed to a circle or leading to one: what is quadratic takes a minute."""
    names = [f"w{number:05}" for number in range(20_000)]
    chain = {name: [following] for name, following in pairwise(names)}
    assert order(chain | {names[-1]: []}) == names
    with pytest.raises(CycleError, match=r"^w00000 → w00001 → .* → w00005 → … 19994 more → w00000$"):
        order(chain | {names[-1]: [names[0]]})
    with pytest.raises(CycleError, match=r"^a → b → a$"):
        order(chain | {names[-1]: ["a"], "a": ["b"], "b": ["a"]})
