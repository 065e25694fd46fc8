"""Visiting order: zones take turns, whatever came and went before, and whenever somebody looked."""

from __future__ import annotations

from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster.order import PATCHES, NodeOrder
from tools.kit.effort import examples

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "add", "remove", "remove", "relabel", "look", "look")),
        st.integers(0, 11),
        st.integers(0, 3),
    ),
    max_size=60,
)


def turns(zones: dict[int, list[int]]) -> list[int]:
    """The rule itself: the first node of every zone, then the second of every zone, …"""
    return [row for tier in zip_longest(*zones.values()) for row in tier if row is not None]


def leave(zones: dict[int, list[int]], row: int) -> None:
    for zone, rows in list(zones.items()):
        if row in rows:
            rows.remove(row)
        if not rows:
            del zones[zone]


@settings(max_examples=examples(300), deadline=None)
@given(STEPS)
def test_zones_take_turns_after_any_changes(steps: list[tuple[str, int, int]]) -> None:
    order = NodeOrder()
    zones: dict[int, list[int]] = {}
    expected: list[int] = []
    for step, row, zone in steps:
        known = any(row in rows for rows in zones.values())
        labels = {ZONE: f"z{zone}"}
        if step == "look":
            assert order.rows.tolist() == expected
        elif step == "add" and not known:
            order.add(row, labels)
            zones.setdefault(zone, []).append(row)
            expected = turns(zones)
        elif step == "remove" and known:
            order.remove(row)
            leave(zones, row)
            expected = turns(zones)
        elif step == "relabel" and known and row not in zones.get(zone, ()):
            looked = order.rows.tolist()  # from here on the list stands until a node comes or goes
            order.update(row, labels)
            leave(zones, row)
            zones.setdefault(zone, []).append(row)
            expected = looked
    assert order.rows.tolist() == expected


def test_a_list_that_was_read_is_not_changed_by_what_comes_after() -> None:
    order = NodeOrder()
    for row in range(4):
        order.add(row, {ZONE: f"z{row % 2}"})
    read = order.rows
    order.remove(0)
    order.add(9, {})
    assert read.tolist() == [0, 1, 2, 3]
    assert order.rows.tolist() == [2, 1, 9, 3]


@pytest.mark.parametrize("changes", [1, PATCHES, PATCHES + 1, 3 * PATCHES])
def test_many_unseen_changes_lead_to_the_same_order(changes: int) -> None:
    order = NodeOrder()
    for row in range(10):
        order.add(row, {ZONE: f"z{row % 3}"})
    assert len(order.rows) == 10
    for row in range(10, 10 + changes):
        order.add(row, {ZONE: f"z{row % 3}"})
    assert order.rows.tolist() == list(range(10 + changes))


def test_a_zone_that_was_empty_for_a_while_comes_last() -> None:
    order = NodeOrder()
    for row, zone in enumerate("abab"):
        order.add(row, {ZONE: zone})
    assert order.rows.tolist() == [0, 1, 2, 3]
    order.remove(0)
    order.remove(2)
    order.add(4, {ZONE: "a"})
    assert order.rows.tolist() == [1, 4, 3]


def test_zones_of_different_regions_are_different_and_the_older_label_wins() -> None:
    order = NodeOrder()
    order.add(0, {ZONE: "z", REGION: "east"})
    order.add(1, {ZONE: "z", REGION: "east"})
    order.add(2, {ZONE: "z", REGION: "west"})
    order.add(3, {ZONE: "z", OLD_ZONE: "old", REGION: "east"})
    assert order.rows.tolist() == [0, 2, 3, 1]
