"""Amounts of things that few nodes have, kept by row until many do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.columns import ColumnSet
from podium.cluster.resources import FEW_ROWS, ScalarColumns
from tools.kit.builders import make_cluster, make_node, make_pod


def columns_of(rows: int) -> ColumnSet:
    columns = ColumnSet()
    for _ in range(rows):
        columns.append_row()
    return columns


STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "add", "grow"]), st.sampled_from("ab"), st.integers(0, 199), st.integers(-2, 3)),
    max_size=300,
)


@given(STEPS, st.integers(0, 150))
def test_amounts_are_those_of_a_plain_table(steps: list[tuple[str, str, int, int]], filled: int) -> None:
    columns = columns_of(200)
    scalar = ScalarColumns(columns)
    table = {name: [0] * 200 for name in "abc"}
    for row in range(filled):
        scalar.set("a", row, 1)
        table["a"][row] = 1
    for what, name, row, amount in steps:
        if what == "grow":
            columns.append_row()
            for amounts in table.values():
                amounts.append(0)
        elif what == "set":
            scalar.set(name, row, amount)
            table[name][row] = amount
        else:
            scalar.add(name, row, amount)
            table[name][row] += amount
    for name, amounts in table.items():
        assert scalar.over_rows(name).tolist() == amounts
        assert [scalar.get(name, row) for row in range(len(amounts))] == amounts


def test_sums_past_64_bits_wrap() -> None:
    scalar = ScalarColumns(columns_of(1))
    most = 2**63 - 1
    scalar.add("a", 0, most)
    scalar.add("a", 0, most)
    assert scalar.get("a", 0) == scalar.over_rows("a")[0] == -2
    scalar.add("a", 0, -most)
    assert scalar.get("a", 0) == most


def test_a_thousand_resources_of_one_node_each_take_no_thousand_columns() -> None:
    columns = columns_of(1000)
    scalar = ScalarColumns(columns)
    before = len(columns)
    for row in range(1000):
        scalar.set(f"example.com/device-{row}", row, 1)
    assert len(columns) == before
    for row in range(FEW_ROWS + 1):
        scalar.set("example.com/gpu", row, 1)
    assert len(columns) == before + 1


def test_a_node_that_loses_a_device_offers_none() -> None:
    gpu = {"example.com/gpu": 2, "example.com/other": 1}
    cluster = make_cluster([make_node("n1", allocatable=gpu)], [make_pod(requests={"example.com/gpu": 1}, node="n1")])
    resources = cluster.resources
    assert (resources.scalar_on("example.com/gpu", 0), resources.scalar_on("example.com/other", 0)) == ((2, 1), (1, 0))
    cluster.set_node(make_node("n1", allocatable={"example.com/other": 3}))
    assert (resources.scalar_on("example.com/gpu", 0), resources.scalar_on("example.com/other", 0)) == ((0, 1), (3, 0))
    cluster.remove_pod("default-p1")
    cluster.remove_node("n1")
    cluster.set_node(make_node("n2"))
    assert (resources.scalar_on("example.com/gpu", 0), resources.scalar_on("example.com/other", 0)) == ((0, 0), (0, 0))
