"""Computes what it costs to talk between regions, zones and segments, from latencies measured between nodes.

Each measurement between nodes of two regions is a link between the regions; so for segments, and for zones of one
region. The cost of a pair is the shortest path over such links, in either direction. Where a pair has a path already, a
further measurement counts as the mean of both, rounded down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from podium.kube.json_object import JsonObject

REGION: Final = "topology.kubernetes.io/region"
SEGMENT: Final = "topology.kubernetes.io/segment"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY: Final = "1G"
"""The bandwidth between two labels where none is written by hand."""
MOST_VALUES: Final = 100
"""Values of one label for which costs are computed: for more, an object could not hold the costs of all pairs."""
MOST_DIGITS: Final = 9
NO_PATH: Final = 2**60
_KEY: Final = "netperf.p90.latency.milliseconds.origin.{}.destination.{}"

Pair = tuple[str, str]


class NodeLocation(NamedTuple):
    """Where a node is; empty where it has no such label."""

    name: str
    region: str = ""
    zone: str = ""
    segment: str = ""


class Measurements(NamedTuple):
    """Milliseconds between nodes, and the keys that could not be read (they count as 0)."""

    milliseconds: dict[Pair, int]
    unreadable: list[str]


class CostGraph:
    """Labels and the cost of the shortest path between any two, kept right with each measurement."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.labels = sorted(set(labels))
        self._row = {label: row for row, label in enumerate(self.labels)}
        self._cost = np.full((len(self.labels), len(self.labels)), NO_PATH, dtype=np.int64)
        """int64[labels, labels]"""
        np.fill_diagonal(self._cost, 0)

    def measure(self, origin: str, destination: str, milliseconds: int) -> None:
        """Add one measurement between two labels."""
        here, there = self._row[origin], self._row[destination]
        known = int(self._cost[here, there])
        link = milliseconds if known == NO_PATH else (known + milliseconds) // 2
        if link < known:
            from_here, from_there = self._cost[here].copy(), self._cost[there].copy()
            for one, other in ((from_here, from_there), (from_there, from_here)):
                np.minimum(self._cost, one[:, None] + link + other[None, :], out=self._cost)

    def paths(self, origin: str) -> dict[str, int]:
        """The cost of the shortest path to each label that can be reached."""
        costs = self._cost[self._row[origin]].tolist()
        return {label: cost for label, cost in zip(self.labels, costs, strict=True) if cost < NO_PATH}


def read_measurements(data: Mapping[str, str], nodes: Iterable[str]) -> Measurements:
    """What a ConfigMap says of these nodes.

    >>> read_measurements({"netperf.p90.latency.milliseconds.origin.a.destination.b": "12"}, ["a", "b"]).milliseconds
    {('a', 'b'): 12}
    """
    names = set(nodes)
    milliseconds: dict[Pair, int] = {}
    unreadable = []
    prefix, middle = _KEY.split("{}")[0], ".destination."
    for key in sorted(data):
        if not key.startswith(prefix):
            continue
        pair = _pair(key.removeprefix(prefix), middle, names)
        if pair is None:
            continue
        text = data[key].strip()
        readable = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
        if not readable:
            unreadable.append(key)
        milliseconds[pair] = int(text) if readable else 0
    return Measurements(milliseconds, unreadable)


def _pair(text: str, middle: str, names: set[str]) -> Pair | None:
    """The two nodes of a key; names of nodes may have dots, and even the word between them."""
    at = text.find(middle)
    while at >= 0:
        origin, destination = text[:at], text[at + len(middle) :]
        if origin in names and destination in names and origin != destination:
            return origin, destination
        at = text.find(middle, at + 1)
    return None


def cost_graphs(locations: Sequence[NodeLocation], milliseconds: Mapping[Pair, int]) -> dict[str, CostGraph]:
    """The paths that follow from measurements, by the label that they are of; none of a label with too many values."""
    location_of = {location.name: location for location in locations}
    links: dict[str, list[tuple[str, str, int]]] = {REGION: [], SEGMENT: [], ZONE: []}
    for (origin, destination), cost in sorted(milliseconds.items()):
        here, there = location_of[origin], location_of[destination]
        if here.segment and there.segment and here.segment != there.segment:
            links[SEGMENT].append((here.segment, there.segment, cost))
        if here.region != there.region:
            if here.region and there.region:
                links[REGION].append((here.region, there.region, cost))
        elif here.zone and there.zone and here.zone != there.zone:
            links[ZONE].append((here.zone, there.zone, cost))
    graphs = {}
    for label, measured in links.items():
        graph = CostGraph(end for link in measured for end in link[:2])
        if len(graph.labels) <= MOST_VALUES:
            graphs[label] = graph
            for link in measured:
                graph.measure(*link)
    return graphs


def topology_list(
    graphs: Mapping[str, CostGraph], by_hand: Mapping[tuple[str, str, str], JsonObject], allocated: Mapping[Pair, str]
) -> list[JsonObject]:
    """The `topologyList` of computed costs, sorted by label, origin and destination.

    by_hand: what people wrote, by label, origin and destination; bandwidth and permission are theirs.
    allocated: the bandwidth that pods use, by origin and destination.
    """
    return [
        {"topologyKey": label, "originList": _origins(label, graphs[label], by_hand, allocated)}
        for label in sorted(graphs)
        if label != SEGMENT or graphs[label].labels
    ]


def _origins(
    label: str, graph: CostGraph, by_hand: Mapping[tuple[str, str, str], JsonObject], allocated: Mapping[Pair, str]
) -> list[JsonObject]:
    return [
        {
            "origin": origin,
            "costList": [
                {
                    "destination": destination,
                    "networkCost": cost,
                    "isAllowed": bool(by_hand.get((label, origin, destination), {}).get("isAllowed")),
                    "bandwidthCapacity": by_hand.get((label, origin, destination), {}).get("bandwidthCapacity")
                    or CAPACITY,
                    "bandwidthAllocated": allocated.get((origin, destination), "0"),
                }
                for destination, cost in sorted(graph.paths(origin).items())
                if destination != origin
            ],
        }
        for origin in graph.labels
    ]
