"""Scores nodes by how few NUMA nodes a pod would be spread over, whatever their policy.

For each request the smallest set of zones is looked for that has enough of every resource together, the nearest first
(see `zone_sets`). Each of its zones lists every resource that is asked for, even 0 of one. With
step = 100 / maxNUMANodes:

    score = 100 − zones · step (+ step / 2 if no set of that size is nearer)

In container scope each container takes from the zones of its set, in their order, and the largest set counts. A node
where nothing that is asked for is a matter of zones scores 100; one without a set scores 0, as does one with more zones
than `MOST_ZONES_IN_SETS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium import MAX_SCORE, Scores
from podium.cluster import Rows
from podium_plugins.node_resource_topology_match.strategy import requests_of
from podium_plugins.node_resource_topology_match.topology_object import NO_COST, ManagerSettings
from podium_plugins.node_resource_topology_match.zone_columns import UNLISTED, Amounts, Mask, ZoneColumns, ZoneLayout
from podium_plugins.node_resource_topology_match.zone_needs import Request, ZoneNeeds

SETS_AT_ONCE: Final = 1 << 20
"""So many sets × rows are looked at in one step."""


def score_of(count: int, optimal: bool, max_numa_nodes: int) -> int:
    """The score of a node of which so many zones are needed.

    >>> [score_of(zones, True, 8) for zones in (1, 2, 3)], score_of(1, False, 8)
    ([94, 82, 70], 88)
    """
    step = MAX_SCORE // max_numa_nodes
    return max(0, MAX_SCORE - count * step + (step // 2 if optimal else 0))


class LeastNumaNodes:
    """The strategy, with the sets of zones by layout and size."""

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int], ZoneSets] = {}

    def _sets_of(self, zones: ZoneColumns, number: int, size: int) -> ZoneSets:
        """The sets of one size in the layout with this number."""
        sets = self._sets.get((number, size))
        if sets is None:
            sets = self._sets[number, size] = zone_sets(zones.layouts.values[number], size)
        return sets

    # Many rows at once

    def scores(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
        found = np.zeros(len(rows), dtype=np.int64)
        numbers = zones.layouts.numbers[rows]
        for number in np.unique(numbers).tolist():
            layout = zones.layouts.values[number]
            where = np.flatnonzero(numbers == number)
            together = _rows_together(len(layout.numbers))
            for start in range(0, len(where), together):
                some = where[start : start + together]
                found[some] = _scores(zones, layout, needs, settings, rows[some])
        return found

    # One row

    def score(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, row: int) -> int:
        number: int = zones.layouts.numbers.item(row)
        count = len(zones.layouts.values[number].numbers)
        if count > MOST_ZONES_IN_SETS:
            return 0
        left = {name: zones.available_on(name, row) for name in needs.resources}
        listed = {name for name, amounts in left.items() if max(amounts, default=UNLISTED) > UNLISTED}
        largest, all_optimal, counted = 0, True, False
        requests = requests_of(needs, settings)
        for position, request in enumerate(requests, start=1):
            if not any(each.resource in listed for each in request):
                continue
            counted = True
            wanted = [(left[each.resource], each.amount) for each in request]
            found = None
            for size in range(1, count + 1):
                found = _set_for(wanted, self._sets_of(zones, number, size))
                if found is not None:
                    break
            if found is None:
                return 0
            slots, optimal = found
            largest, all_optimal = max(largest, len(slots)), all_optimal and optimal
            if position < len(requests):
                _drain(left, request, slots)
        return score_of(largest, all_optimal, settings.max_numa_nodes) if counted else MAX_SCORE


def _set_for(wanted: list[tuple[list[int], int]], sets: ZoneSets) -> tuple[tuple[int, ...], bool] | None:
    """The first set of slots that has enough of everything, and whether it is optimal."""
    for position, slots in enumerate(sets.slots):
        if all(_has(amounts, slots, amount) for amounts, amount in wanted):
            return slots, bool(sets.optimal[position])
    return None


def _has(amounts: list[int], slots: tuple[int, ...], amount: int) -> bool:
    """Whether each of the slots lists a resource, and all have enough of it together."""
    together = 0
    for slot in slots:
        have = amounts[slot]
        if have == UNLISTED:
            return False
        together += have
    return together >= amount


def _drain(left: Mapping[str, list[int]], request: Request, slots: tuple[int, ...]) -> None:
    for each in request:
        rest, amounts = each.amount, left[each.resource]
        for slot in slots:
            taken = min(rest, max(0, amounts[slot]))
            amounts[slot] -= taken
            rest -= taken


def _rows_together(zones: int) -> int:
    """Rows whose sets of one size are looked at together, so that the arrays stay small."""
    return max(1, SETS_AT_ONCE >> min(zones, MOST_ZONES_IN_SETS))


def _scores(zones: ZoneColumns, layout: ZoneLayout, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
    """Scores of rows with one layout of zones."""
    count = len(layout.numbers)
    if count > MOST_ZONES_IN_SETS:
        return np.zeros(len(rows), dtype=np.int64)
    left = {name: zones.available(name, rows)[:count] for name in needs.resources}
    listed: dict[str, Mask] = {name: np.any(amounts > UNLISTED, axis=0) for name, amounts in left.items()}
    largest = np.zeros(len(rows), dtype=np.int64)
    optimal, counted, failed = np.ones(len(rows), bool), np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    for request in requests_of(needs, settings):
        asks = np.zeros(len(rows), dtype=np.bool_)
        for each in request:
            asks |= listed[each.resource]
        asks &= ~failed
        counted |= asks
        members, nearest = _sets_for(left, layout, request, asks)
        sizes = members.sum(axis=0)
        failed |= asks & (sizes == 0)
        largest = np.maximum(largest, sizes)
        optimal &= nearest | ~asks
        _drain_rows(left, request, members)
    step = MAX_SCORE // settings.max_numa_nodes
    score = np.maximum(0, MAX_SCORE - largest * step + np.where(optimal, step // 2, 0))
    return np.where(failed, 0, np.where(counted, score, MAX_SCORE))


def _sets_for(left: Mapping[str, Amounts], layout: ZoneLayout, request: Request, asks: Mask) -> tuple[Amounts, Mask]:
    """(0 or 1 [zones, rows]: the set each row takes, none where all are 0; bool[rows]: whether it is optimal)."""
    count, rows = len(layout.numbers), len(asks)
    chosen, optimal = np.zeros((count, rows), dtype=np.int64), np.zeros(rows, dtype=np.bool_)
    open_rows = np.flatnonzero(asks)
    for size in range(1, count + 1):
        if not len(open_rows):
            break
        sets = zone_sets(layout, size)
        if not sets.slots:
            continue
        valid = np.ones((len(sets.slots), len(open_rows)), dtype=np.bool_)
        for each in request:
            amounts = left[each.resource][:, open_rows]
            enough = sets.members @ amounts.clip(min=0) >= each.amount
            enough &= sets.members @ (amounts == UNLISTED).astype(np.int64) == 0
            valid &= enough
        found = valid.any(axis=0)
        first = valid.argmax(axis=0)[found]
        chosen[:, open_rows[found]] = sets.members[first].T
        optimal[open_rows[found]] = sets.optimal[first]
        open_rows = open_rows[~found]
    return chosen, optimal


def _drain_rows(left: Mapping[str, Amounts], request: Request, members: Amounts) -> None:
    """Take a request from the zones of the sets, in their order."""
    for each in request:
        amounts = left[each.resource]
        rest = np.full(amounts.shape[1], each.amount, dtype=np.int64)
        for slot in range(len(amounts)):
            taken = np.minimum(rest, amounts[slot].clip(min=0)) * members[slot]
            amounts[slot] -= taken
            rest -= taken


MOST_ZONES_IN_SETS: Final = 12
"""Nodes with more zones have too many sets to look at."""
FARTHEST: Final = 256.0
"""Sets from this distance on are not taken."""


class ZoneSets(NamedTuple):
    """All sets of one size that may be taken, the nearest first; of equally near ones the one with lower slots."""

    slots: tuple[tuple[int, ...], ...]
    members: NDArray[np.int64]
    """0 or 1 [sets, zones]: the same as a matrix."""
    optimal: NDArray[np.bool_]
    """bool[sets]"""


@lru_cache(maxsize=1024)
def zone_sets(layout: ZoneLayout, size: int) -> ZoneSets:
    """The sets of a node's zones that have this size, those whose zones are nearest to each other first.

    The distance of a set is the mean cost over all ordered pairs of its zones, each zone with itself included, in
    32-bit floats as the original computes it. A set is optimal if no set of its size has a lower distance; no distance
    counts as lower than 255 makes it.
    """
    zones = range(len(layout.numbers))
    slots = list(combinations(zones, size))
    costs = np.array(layout.costs, dtype=np.int64).reshape(len(zones), len(zones))
    distances = np.array(
        [np.float32(costs[np.ix_(each, each)].sum()) / np.float32(size * size) for each in slots], dtype=np.float32
    )
    nearest = min(float(distances.min()), float(NO_COST))
    order = [index for index in np.argsort(distances, kind="stable").tolist() if distances[index] < FARTHEST]
    members = np.zeros((len(order), len(zones)), dtype=np.int64)
    for position, index in enumerate(order):
        members[position, list(slots[index])] = 1
    return ZoneSets(tuple(slots[index] for index in order), members, distances[order] == nearest)
