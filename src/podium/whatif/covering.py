"""Bounds the price of the nodes that hold some pods, and chooses nodes that nearly do: a covering problem.

    least Σ price · nodes, so that every pod has a place, and no node's room is exceeded in the sum over its type

Pods are counted by signature, and split over nodes as if they were liquid; nodes are whole. That can only be cheaper
than the truth, so its least price is a lower bound. scipy solves it where it is installed; without it the bound is the
largest, over resources, of what is missing at the best price for that resource alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]
"""Per resource; the last column counts pods."""
Mask = NDArray[np.bool_]


@dataclass
class Cover:
    """What is asked for and what is offered."""

    demand: Sequence[int]
    """Pods of each signature."""
    requests: Amounts
    """[signature, resource]"""
    rooms: Amounts
    """[offer, resource]: what one node of the offer has for them."""
    prices: Amounts
    able: Mask
    """[signature, offer]"""
    free: Amounts
    """[node, resource]: what nodes that exist have free."""
    able_here: Mask
    """[signature, node]"""
    most: Sequence[int | None]
    """How many nodes of each offer there may be."""

    @property
    def wanted(self) -> Amounts:
        """Per resource, of all pods."""
        total: Amounts = np.asarray(self.demand, dtype=np.float64) @ self.requests
        return total

    def with_unused(self, share: float) -> Cover:
        """The same with nodes that leave so much of a pod of the mean size unused."""
        unused = share * self.wanted / max(1, sum(self.demand))
        unused[-1] = 0.0  # slots are counted in whole pods
        return replace(self, rooms=np.maximum(self.rooms - unused, 0.0))

    def may_hold(self, key: Iterable[int]) -> bool:
        """Whether amounts alone let these offers and the free room hold all pods."""
        chosen = list(key)
        room = self.rooms[chosen].sum(axis=0) + self.free[self.able_here.any(axis=0)].sum(axis=0)
        somewhere = self.able[:, chosen].any(axis=1) | self.able_here.any(axis=1)
        return bool((room >= self.wanted - 1e-6).all() and somewhere.all())

    def packs(self, key: Iterable[int]) -> bool:
        """Whether the pods, the largest first, each on the first node with room, fit these offers and the free room."""
        chosen = list(key)
        rooms = np.concatenate([self.free, self.rooms[chosen]])
        able = np.concatenate([self.able_here, self.able[:, chosen]], axis=1)
        scale = np.maximum(rooms.max(axis=0, initial=1.0), 1.0)
        for signature in np.argsort(-(self.requests / scale).max(axis=1)):
            for _ in range(self.demand[signature]):
                fits = able[signature] & (rooms >= self.requests[signature]).all(axis=1)
                if not fits.any():
                    return False
                rooms[int(fits.argmax())] -= self.requests[signature]
        return True

    def fills(self) -> list[dict[int, int]]:
        """For each offer, the cheapest first: how many nodes of it alone hold what the free room does not."""
        missing = np.maximum(self.wanted - self.free[self.able_here.any(axis=0)].sum(axis=0), 0.0)
        found = []
        for index, room in enumerate(self.rooms):
            mine = np.asarray(self.demand, dtype=np.float64)[self.able[:, index]] @ self.requests[self.able[:, index]]
            requested = np.minimum(np.maximum(missing, 0.0), mine)
            if not len(requested) or not mine.any() or ((requested > 0) & (room <= 0)).any():
                continue
            count = int(
                np.ceil(np.max(np.divide(requested, room, out=np.zeros_like(requested), where=room > 0)) - 1e-9)
            )
            limit = self.most[index]
            count = max(1, count if limit is None else min(count, limit))
            left = 0.0 if self.able[:, index].all() else 1.0
            found.append((left, count * float(self.prices[index]), index, count))
        return [{index: count} for _left, _price, index, count in sorted(found)]


@dataclass
class CoverBound:
    """A proven lower bound, and the nodes that come with it where it was solved."""

    price: float
    counts: dict[int, int] | None


def solve(cover: Cover, seconds: float) -> CoverBound:
    """The bound, with scipy where it is installed."""
    try:
        return _with_scipy(cover, seconds)
    except ImportError:
        return CoverBound(_by_resource(cover), None)


def _by_resource(cover: Cover) -> float:
    missing = cover.wanted - cover.free[cover.able_here.any(axis=0)].sum(axis=0)
    best = 0.0
    for resource, amount in enumerate(missing):
        rooms = cover.rooms[:, resource]
        if amount > 0 and (rooms > 0).any():
            best = max(best, float(amount * (cover.prices[rooms > 0] / rooms[rooms > 0]).min()))
    return best


def _with_scipy(cover: Cover, seconds: float) -> CoverBound:
    from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
    from scipy.sparse import coo_array  # type: ignore[import-untyped]

    offers, resources = len(cover.prices), cover.requests.shape[1]
    pairs = np.argwhere(cover.able)
    useful = np.flatnonzero(cover.able_here.any(axis=0))
    here = np.argwhere(cover.able_here[:, useful])
    columns = offers + len(pairs) + len(here)
    scale = np.maximum(cover.requests.max(axis=0), 1.0)
    rows: list[Any] = []
    # Each signature has all its pods somewhere.
    number = np.arange(len(pairs)) + offers
    here_number = np.arange(len(here)) + offers + len(pairs)
    placed = coo_array(
        (np.ones(len(pairs) + len(here)), (np.r_[pairs[:, 0], here[:, 0]], np.r_[number, here_number])),
        shape=(len(cover.demand), columns),
    )
    demand = np.asarray(cover.demand, dtype=np.float64)
    rows.append(LinearConstraint(placed.tocsr(), demand, demand))
    for resource in range(resources):
        requested = cover.requests[:, resource] / scale[resource]
        in_offers = coo_array(
            (
                np.r_[requested[pairs[:, 0]], -cover.rooms[:, resource] / scale[resource]],
                (np.r_[pairs[:, 1], np.arange(offers)], np.r_[number, np.arange(offers)]),
            ),
            shape=(offers, columns),
        )
        rows.append(LinearConstraint(in_offers.tocsr(), -np.inf, 0.0))
        if len(here):
            on_nodes = coo_array((requested[here[:, 0]], (here[:, 1], here_number)), shape=(len(useful), columns))
            rows.append(LinearConstraint(on_nodes.tocsr(), -np.inf, cover.free[useful, resource] / scale[resource]))
    # A node holds only whole pods of a signature.
    whole = np.floor(
        np.min(
            np.divide(
                cover.rooms[pairs[:, 1]],
                cover.requests[pairs[:, 0]],
                out=np.full((len(pairs), resources), np.inf),
                where=cover.requests[pairs[:, 0]] > 0,
            ),
            axis=1,
            initial=1e9,
        )
        + 1e-9
    )
    pair = np.arange(len(pairs))
    only_whole = coo_array(
        (np.r_[np.ones(len(pairs)), -whole], (np.r_[pair, pair], np.r_[number, pairs[:, 1]])),
        shape=(len(pairs), columns),
    )
    if len(pairs):
        rows.append(LinearConstraint(only_whole.tocsr(), -np.inf, 0.0))
    most = np.array([np.inf if each is None else each for each in cover.most])
    with _quiet():
        found = milp(
            np.r_[cover.prices, np.zeros(len(pairs) + len(here))],
            constraints=rows,
            integrality=np.r_[np.ones(offers), np.zeros(len(pairs) + len(here))],
            bounds=Bounds(0.0, np.r_[most, np.full(len(pairs) + len(here), np.inf)]),
            options={"time_limit": seconds, "mip_rel_gap": 0.005},
        )
    bound = getattr(found, "mip_dual_bound", None)
    price = 0.0 if bound is None or not np.isfinite(bound) else max(0.0, float(bound) - 1e-6)
    if found.x is None:
        return CoverBound(price if found.status != 2 else _by_resource(cover), None)
    counts = {index: round(value) for index, value in enumerate(found.x[:offers]) if round(value)}
    return CoverBound(price, counts)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the solver prints away from standard output, which has the answer and nothing else."""
    sys.stdout.flush()
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)
        os.close(nowhere)
