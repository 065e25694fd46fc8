from __future__ import annotations

import pytest

from podium.cluster import Cluster, journal
from podium.framework.row_numbers import RowNumbers
from tools.kit.builders import make_cluster, make_node, make_pod


class Asked:
    """Tells how much cpu nodes offer, and remembers about which rows it was asked."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.numbers = RowNumbers(2, self.of_row)

    def of_row(self, cluster: Cluster, row: int) -> list[int]:
        self.rows.append(row)
        return [int(cluster.resources.allocatable[0, row]), row]

    def answer(self, cluster: Cluster) -> tuple[list[int], list[int]]:
        """The first line, and the rows that were asked about for it."""
        self.rows.clear()
        return self.numbers.over_rows(cluster)[0].tolist(), self.rows.copy()


def test_only_nodes_that_changed_are_asked_about_again() -> None:
    cluster, asked = make_cluster([make_node("a", cpu=1), make_node("b", cpu=2)]), Asked()
    assert asked.answer(cluster) == ([1000, 2000], [0, 1])
    assert asked.answer(cluster) == ([1000, 2000], [])
    cluster.set_node(make_node("b", cpu=3))
    cluster.set_node(make_node("b", cpu=4))
    assert asked.answer(cluster) == ([1000, 4000], [1])
    assert asked.numbers.on(cluster, 1) == [4000, 1]
    cluster.set_node(make_node("c", cpu=5))
    assert asked.answer(cluster) == ([1000, 4000, 5000], [2])


def test_pods_that_come_are_no_reason_to_ask() -> None:
    cluster, asked = make_cluster([make_node("a", cpu=1)]), Asked()
    asked.answer(cluster)
    cluster.set_pod(make_pod("p", node="a"))
    assert asked.answer(cluster) == ([1000], [])


def test_another_cluster_is_read_anew() -> None:
    asked = Asked()
    asked.answer(make_cluster([make_node("a", cpu=1), make_node("b", cpu=2)]))
    assert asked.answer(make_cluster([make_node("b", cpu=3)])) == ([3000], [0])


def test_whoever_comes_after_the_journal_was_cut_reads_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, asked = make_cluster([make_node("a", cpu=1), make_node("b", cpu=2)]), Asked()
    asked.answer(cluster)
    monkeypatch.setattr(journal, "LIMIT", 4)
    for cpu in range(8):
        cluster.set_node(make_node("b", cpu=cpu))
    assert asked.answer(cluster) == ([1000, 7000], [0, 1])
