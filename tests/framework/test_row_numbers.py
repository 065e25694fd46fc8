from __future__ import annotations

import pytest

from podium.cluster import Cluster, journal
from podium.framework.row_numbers import RowNumbers
from tests.builders import make_cluster, make_node, make_pod


class Asked:
    """Counts pods, and remembers about which rows it was asked."""

    def __init__(self, *, pods: bool = True) -> None:
        self.rows: list[int] = []
        self.numbers = RowNumbers(2, self.of_row, pods=pods)

    def of_row(self, cluster: Cluster, row: int) -> list[int]:
        self.rows.append(row)
        return [len(cluster.pods_on[row]), row]

    def answer(self, cluster: Cluster) -> tuple[list[int], list[int]]:
        """The first line, and the rows that were asked about for it."""
        self.rows.clear()
        return self.numbers.over_rows(cluster)[0].tolist(), self.rows.copy()


def test_only_rows_that_changed_are_asked_about_again() -> None:
    cluster, asked = make_cluster([make_node("a"), make_node("b")]), Asked()
    assert asked.answer(cluster) == ([0, 0], [0, 1])
    assert asked.answer(cluster) == ([0, 0], [])
    cluster.set_pod(make_pod("p", node="b"))
    cluster.set_pod(make_pod("q", node="b"))
    assert asked.answer(cluster) == ([0, 2], [1])
    assert asked.numbers.on(cluster, 1) == [2, 1]
    cluster.set_node(make_node("c"))
    assert asked.answer(cluster) == ([0, 2, 0], [2])
    asked.numbers.ask_again([0])
    assert asked.answer(cluster) == ([0, 2, 0], [0])


def test_what_depends_on_nodes_alone_is_not_asked_when_pods_come() -> None:
    cluster, asked = make_cluster([make_node("a")]), Asked(pods=False)
    asked.answer(cluster)
    cluster.set_pod(make_pod("p", node="a"))
    assert asked.answer(cluster) == ([0], [])
    cluster.set_node(make_node("a", cpu=9))
    assert asked.answer(cluster) == ([1], [0])


def test_another_cluster_is_read_anew() -> None:
    asked = Asked()
    asked.answer(make_cluster([make_node("a"), make_node("b")], [make_pod(node="a")]))
    assert asked.answer(make_cluster([make_node("b")])) == ([0], [0])


def test_whoever_comes_after_the_journal_was_cut_reads_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, asked = make_cluster([make_node("a"), make_node("b")]), Asked()
    asked.answer(cluster)
    monkeypatch.setattr(journal, "LIMIT", 4)
    for i in range(8):
        cluster.set_pod(make_pod(f"p{i}", node="a" if i < 2 else "b"))
    assert asked.answer(cluster) == ([2, 6], [0, 1])
