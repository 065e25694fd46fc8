"""Ranks follow the names of nodes as they come and go."""

from __future__ import annotations

from podium_lab.learned.row_scores import NameRanks
from podium_plugins.gpu.terms import rank_of
from tests.podium_plugins.gpu_share.gpu_worlds import gpu_node
from tools.kit.builders import make_cluster


def test_ranks_are_those_of_the_names_as_nodes_come_and_go() -> None:
    cluster = make_cluster([gpu_node("a", 1), gpu_node("b", 1)])
    ranks = NameRanks(cluster)

    def found() -> dict[str, float]:
        return {cluster.names[row]: ranks.column().item(row) for row in cluster.order.rows.tolist()}

    assert found() == {name: rank_of(name) for name in ("a", "b")}
    cluster.remove_node("a")
    cluster.set_node(gpu_node("c", 1))
    for i in range(40):
        cluster.set_node(gpu_node(f"n{i}", 1))
    assert found() == {name: rank_of(name) for name in ("b", "c", *(f"n{i}" for i in range(40)))}
