"""Computes what it costs to talk between regions, zones and segments, from latencies measured between nodes.

Each measurement between nodes of two regions is a link between the regions; so for segments, and for zones of one
region. The cost of a pair is the shortest path over such links, in either direction. Where a pair has a path already, a
further measurement counts as the mean of both, rounded down.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from podium.kube.json_object import JsonObject

REGION: Final = "topology.kubernetes.io/region"
SEGMENT: Final = "topology.kubernetes.io/segment"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY: Final = "1G"
"""The bandwidth between two labels where none is written by hand."""
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
    """Labels and the links between them."""

    def __init__(self) -> None:
        self._links: dict[str, dict[str, int]] = {}

    def measure(self, origin: str, destination: str, cost: int) -> None:
        """Add one measurement between two labels."""
        known = self.path(origin, destination)
        if known is not None:
            cost = (known + cost) // 2
        for end, other in ((origin, destination), (destination, origin)):
            links = self._links.setdefault(end, {})
            links[other] = min(cost, links.get(other, cost))

    def path(self, origin: str, destination: str) -> int | None:
        """The cost of the shortest path; None where there is none."""
        return self.paths(origin, destination).get(destination)

    def paths(self, origin: str, until: str = "") -> dict[str, int]:
        """The cost of the shortest path to each label that can be reached, or to those nearer than `until`."""
        found: dict[str, int] = {}
        ahead = [(0, origin)] if origin in self._links else []
        while ahead:
            cost, label = heapq.heappop(ahead)
            if label not in found:
                found[label] = cost
                if label == until:
                    break
                for each, more in self._links[label].items():
                    if each not in found:
                        heapq.heappush(ahead, (cost + more, each))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._links))


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
        if not text.isascii() or not text.isdecimal():
            unreadable.append(key)
        milliseconds[pair] = int(text) if text.isascii() and text.isdecimal() else 0
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
    """The links that follow from measurements, by the label that they are of."""
    location_of = {location.name: location for location in locations}
    graphs = {REGION: CostGraph(), SEGMENT: CostGraph(), ZONE: CostGraph()}
    for (origin, destination), cost in sorted(milliseconds.items()):
        here, there = location_of[origin], location_of[destination]
        if here.segment and there.segment and here.segment != there.segment:
            graphs[SEGMENT].measure(here.segment, there.segment, cost)
        if here.region != there.region:
            if here.region and there.region:
                graphs[REGION].measure(here.region, there.region, cost)
        elif here.zone and there.zone and here.zone != there.zone:
            graphs[ZONE].measure(here.zone, there.zone, cost)
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
        if label != SEGMENT or any(True for _ in graphs[label])
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
        for origin in graph
    ]
