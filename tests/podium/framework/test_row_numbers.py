"""Numbers in annotations: what Go reads is read, nothing else is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, journal
from podium.framework.row_numbers import RowNumbers, read_decimal, read_whole
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


@pytest.mark.parametrize(
    "text", [None, "", " 7", "7 ", "7\n", "1_000", "0x10", "N/A", "None", "1,5", "--1", "٣", "1e", "."]
)
def test_what_is_no_number_is_none(text: str | None) -> None:
    assert read_decimal(text) is None
    assert read_whole(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7.0), ("+7", 7.0), ("-7.5", -7.5), (".5", 0.5), ("5.", 5.0), ("1E+3", 1000.0), ("1e-3", 0.001)],
)
def test_decimals_have_a_sign_a_point_and_an_exponent(text: str, number: float) -> None:
    assert read_decimal(text) == number


@pytest.mark.parametrize("text", ["inf", "+Inf", "-INFINITY"])
def test_infinity_is_told_from_nothing(text: str) -> None:
    number = read_decimal(text)
    assert number is not None
    assert math.isinf(number)


@pytest.mark.parametrize("text", ["nan", "NaN", "NAN"])
def test_no_number_is_told_from_nothing(text: str) -> None:
    number = read_decimal(text)
    assert number is not None
    assert math.isnan(number)


def test_numbers_too_large_are_none() -> None:
    assert read_decimal("1e999") is None


@pytest.mark.parametrize("text", ["5.5", "5.0", "1e3", "nan", "inf"])
def test_a_whole_number_is_digits_only(text: str) -> None:
    assert read_whole(text) is None


@given(st.integers())
def test_every_whole_number_is_read_back(number: int) -> None:
    assert read_whole(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_decimal_is_read_back(number: float) -> None:
    assert read_decimal(str(number)) == number


@given(st.text(max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_whole(text) is None or read_decimal(text) == float(text)
