from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.framework import Cycle
from podium_plugins.pod_state import PodState, TerminatingPods
from tests.podium.plugins.ask import raw_scores
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

LEAVING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def world(terminating: list[int], nominated: list[int]) -> tuple[PodState, Cluster]:
    """Nodes with so many pods that leave, and so many nominated to them; each also has a pod that stays."""
    names = [f"n{number}" for number in range(len(terminating))]
    cluster = make_cluster(map(make_node, names), [make_pod(f"stays-{name}", node=name) for name in names])
    plugin = make_plugin(PodState, cluster)
    for name, leaving, promised in zip(names, terminating, nominated, strict=True):
        for number in range(leaving):
            cluster.set_pod(make_pod(f"leaves-{name}-{number}", node=name, metadata=LEAVING))
        for number in range(promised):
            plugin.handle.nominator.nominate(make_pod(f"comes-{name}-{number}"), name)
    return plugin, cluster


def normalised(plugin: PodState, cluster: Cluster, raw: dict[str, int]) -> list[int]:
    nodes = Nodes(cluster, cluster.order.rows)
    found: list[int] = plugin.normalize(
        Cycle(make_pod(), cluster), nodes, np.array(list(raw.values()), dtype=np.int64)
    ).tolist()
    return found


def test_the_example_of_the_specification() -> None:
    plugin, cluster = world([2, 0, 1], [0, 1, 1])
    raw = raw_scores(plugin, make_pod("new"), cluster)
    assert raw == {"n0": 2, "n1": -1, "n2": 0}
    assert normalised(plugin, cluster, raw) == [100, 0, 33]


def test_nodes_that_are_equal_score_0() -> None:
    plugin, cluster = world([1, 1], [0, 0])
    assert normalised(plugin, cluster, raw_scores(plugin, make_pod("new"), cluster)) == [0, 0]
    quiet, cluster = world([0, 0], [0, 0])
    assert normalised(quiet, cluster, raw_scores(quiet, make_pod("new"), cluster)) == [0, 0]


def test_the_answer_key_moves_with_what_counts_and_with_nothing_else() -> None:
    plugin, cluster = world([0], [0])
    pod = make_pod("new")
    before = plugin.answer_key(pod)
    cluster.set_pod(make_pod("placed", node="n0"))
    assert plugin.answer_key(pod) == before
    cluster.set_pod(make_pod("placed", node="n0", metadata=LEAVING))
    leaving = plugin.answer_key(pod)
    assert leaving != before
    plugin.handle.nominator.nominate(make_pod("promised"), "n0")
    assert plugin.answer_key(pod) != leaving


def test_a_nomination_to_a_node_that_is_gone_counts_nowhere() -> None:
    plugin, cluster = world([0, 0], [0, 0])
    plugin.handle.nominator.nominate(make_pod("promised"), "gone")
    assert raw_scores(plugin, make_pod("new"), cluster) == {"n0": 0, "n1": 0}


def test_profiles_share_one_count() -> None:
    cluster = make_cluster([make_node()])
    assert TerminatingPods.of(cluster) is TerminatingPods.of(cluster)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_both_forms_give_what_the_formula_says(given_nodes: list[tuple[int, int]]) -> None:
    terminating, nominated = [each[0] for each in given_nodes], [each[1] for each in given_nodes]
    plugin, cluster = world(terminating, nominated)
    raw = raw_scores(plugin, make_pod("new"), cluster)
    expected = [a - b for a, b in given_nodes]
    assert list(raw.values()) == expected
    low, high = min(expected), max(expected)
    assert normalised(plugin, cluster, raw) == [
        (each - low) * 100 // (high - low) if high > low else 0 for each in expected
    ]
