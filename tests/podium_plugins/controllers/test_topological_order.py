"""Workloads come before those they depend on, in the order that the algorithm of their AppGroup gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_plugins.controllers.topological_order import ALGORITHMS, CycleError, Graph, kahn, sort, tarjan

DIAMOND = {"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []}
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
    assert " ".join(sort(DIAMOND, algorithm)) == expected


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
