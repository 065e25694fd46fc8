from __future__ import annotations

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.load.named_scores import NamedScores
from podium.load.readings import GenerationCounter, RowCache, shared
from tools.kit.builders import make_cluster, make_node, make_pod


class Asked:
    """Remembers names of nodes, and how often it had to look."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.generation, self.looked = cluster, GenerationCounter(), 0
        self.cache = RowCache(cluster, self.generation, self.find)

    def find(self, rows: slice) -> list[tuple[str, int]]:
        found = [(name, self.generation.count) for name in self.cluster.names[rows]]
        self.looked += len(found)
        return found


def test_what_was_found_is_kept_until_there_are_news() -> None:
    asked = Asked(make_cluster([make_node("a"), make_node("b")]))
    assert [asked.cache.of(row) for row in (0, 1, 0)] == [("a", 0), ("b", 0), ("a", 0)]
    assert asked.looked == 2
    asked.generation.count += 1
    assert [asked.cache.of(row) for row in (1, 0)] == [("b", 1), ("a", 1)]
    assert asked.looked == 4


def test_a_node_that_changes_is_looked_at_alone() -> None:
    cluster = make_cluster([make_node("a"), make_node("b")])
    asked = Asked(cluster)
    asked.cache.of(0)
    cluster.set_pod(make_pod("p", node="a"))
    cluster.remove_node("b")
    cluster.set_node(make_node("c"))
    assert asked.cache.of(cluster.row_of["c"]) == ("c", 0)
    assert asked.looked == 4  # two at first, then the row that was left and taken
    cluster.set_node(make_node("d"))
    assert asked.cache.of(cluster.row_of["d"]) == ("d", 0)


def test_equal_values_are_one_object() -> None:
    first, second, third = shared([(1.5, 2), (3.0, 4), (1.5, float(2))])
    assert first is third
    assert (first, second) == ((1.5, 2), (3.0, 4))


def test_scores_hold_until_there_are_news() -> None:
    cluster, generation, found = (
        make_cluster([make_node(name) for name in "abc"]),
        GenerationCounter(),
        {"a": 7, "c": 9},
    )
    asked: list[int] = []

    def find() -> tuple[dict[str, int], int]:
        asked.append(generation.count)
        return dict(found), 5

    scores = NamedScores(generation, find)
    assert np.asarray(scores.over(Nodes(cluster))).tolist() == [7, 5, 9]
    found["b"] = 1
    assert [scores.of(name) for name in "abc"] == [7, 5, 9]
    generation.count += 1
    assert [scores.of(name) for name in "abc"] == [7, 1, 9]
    assert np.asarray(scores.over(Nodes(cluster, np.array([1, 2])))).tolist() == [1, 9]
    assert asked == [0, 1]


def test_where_no_node_has_a_score_all_have_the_same() -> None:
    cluster = make_cluster([make_node("a")])
    scores = NamedScores(GenerationCounter(), lambda: ({}, 3))
    assert (scores.over(Nodes(cluster)), scores.of("a")) == (3, 3)
