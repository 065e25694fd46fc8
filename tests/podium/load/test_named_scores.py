from __future__ import annotations

import numpy as np

from podium.cluster import Nodes
from podium.load.named_scores import NamedScores
from podium.load.readings import GenerationCounter
from tools.kit.builders import make_cluster, make_node


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
