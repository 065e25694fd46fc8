"""Keeps NetworkTopologies (networktopology.diktyo.x-k8s.io): computes the costs `NetperfCosts` from measured latencies.

The ConfigMap `spec.configmapName` of the same namespace has them, as some agent measured them between nodes:

    netperf.p90.latency.milliseconds.origin.NODE.destination.NODE: "12"

Costs are computed when a NetworkTopology is first seen, and then every five minutes; as below.
Beside them stands the bandwidth that pods of AppGroups use between zones and regions. `status` has the number of nodes.

Differs from the original: weights that people wrote stay, whatever their name; pairs that were not measured have no
cost, where the original gives them 0; the bandwidth in use is added up each time, so it cannot drift.

What it costs to talk between regions, zones and segments comes from latencies measured between nodes. Each measurement
between nodes of two regions is a link between the regions; so for segments, and for zones of one region. The cost of a
pair is the shortest path over such links, in either direction. Where a pair has a path already, a further measurement
counts as the mean of both, rounded down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from kubecel.quantity import format_nano, parse
from podium.client import ApiResource
from podium.controllers.controller import (
    WARNING,
    EventNote,
    FetchedObject,
    ReconcileResult,
    Related,
    RelatedCollection,
    everything,
    invalid,
)
from podium.framework.clock import Clock
from podium.kube import Node, Pod
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time, parse_time
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL
from podium_plugins.controllers.app_group import AppGroupController, read_workloads

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

COMPUTED: Final = "NetperfCosts"
BY_HAND: Final = "UserDefined"
INTERVAL: Final = 300.0
"""Seconds between two computations."""
RETRY_PERIOD: Final = 30.0
"""Seconds until a ConfigMap that is missing is looked for again."""
NAMED: Final = 3
"""Keys of a ConfigMap that are named when they cannot be read; the others are counted."""

LABELS: Final = (REGION, SEGMENT, ZONE)

TopologyKey = tuple[str, str, str]
Place = tuple[str, str]
"""A region and a zone."""


class _Cost(msgspec.Struct, frozen=True):
    destination: str


class _Origin(msgspec.Struct, frozen=True, rename="camel"):
    origin: str
    cost_list: list[JsonObject] = []


class _Topology(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str
    origin_list: list[_Origin] = []


class _Weight(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    topology_list: list[_Topology] = []


def costs_by_hand(weights: Iterable[JsonObject]) -> dict[TopologyKey, JsonObject]:
    """What people wrote, by label, origin and destination. Raises ValueError where it cannot be read."""
    return {
        (topology.topology_key, origin.origin, msgspec.convert(cost, _Cost).destination): cost
        for weight in msgspec.convert(list(weights), list[_Weight])
        if weight.name == BY_HAND
        for topology in weight.topology_list
        for origin in topology.origin_list
        for cost in origin.cost_list
    }


def location_of(node: Node) -> NodeLocation:
    labels = node.metadata.labels
    return NodeLocation(node.name, labels.get(REGION, ""), labels.get(ZONE, ""), labels.get(SEGMENT, ""))


def bandwidth_in_use(
    groups: Iterable[JsonObject], pods: Collection[Pod], locations: Iterable[NodeLocation]
) -> dict[Pair, str]:
    """What pods of AppGroups need between zones of a region, and between regions, by origin and destination."""
    location = {each.name: each for each in locations}
    pods_at: dict[tuple[str, str], dict[str, Counter[Place]]] = {}
    for pod in pods:
        at, labels = location.get(pod.spec.node_name), pod.metadata.labels
        if at is not None and (at.region or at.zone) and not pod.finished:
            group = pods_at.setdefault((pod.namespace, labels.get(APP_GROUP_LABEL, "")), {})
            group.setdefault(labels.get(WORKLOAD_LABEL, ""), Counter())[at.region, at.zone] += 1
    used: Counter[Pair] = Counter()
    for item in groups:
        found = pods_at.get((item["metadata"].get("namespace", ""), item["metadata"]["name"]), {})
        try:
            workloads = read_workloads(item).workloads if found else ()
        except ValueError:
            continue  # its own controller says what is wrong with it
        needed: Counter[Pair] = Counter()
        for each in workloads:
            for dependency in each.dependencies:
                ends = each.workload.selector, dependency.workload.selector
                if ends[0] in found and ends[1] in found:
                    needed[ends] += parse(dependency.min_bandwidth)
        for (origin, destination), amount in needed.items():
            for pair, count in _pairs(found[origin], found[destination]):
                used[pair] += count * amount
    return {pair: format_nano(amount, binary=True) for pair, amount in used.items() if amount}


def _pairs(origins: Counter[Place], destinations: Counter[Place]) -> Iterable[tuple[Pair, int]]:
    """The labels that pods of two workloads talk across, and how many pairs of pods do."""
    for (region, zone), count in origins.items():
        for (other_region, other_zone), others in destinations.items():
            if (region, zone) != (other_region, other_zone):
                yield ((zone, other_zone) if region == other_region else (region, other_region)), count * others


class NetworkTopologyController:
    """A `Controller` of NetworkTopologies."""

    name = "networktopology"
    kind = "NetworkTopology"
    resource: ApiResource[JsonObject] = ApiResource("/apis/networktopology.diktyo.x-k8s.io/v1alpha1/networktopologies")
    written = ("networktopologies", "networktopologies/status")
    related = (
        RelatedCollection(ApiResource("/api/v1/nodes", Node), everything, everything),
        RelatedCollection(ApiResource("/api/v1/pods", Pod, {"labelSelector": APP_GROUP_LABEL}), everything, everything),
        RelatedCollection(AppGroupController.resource, everything, everything),
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.fetched = FetchedObject(ApiResource("/api/v1/configmaps"), self._config_map_to_read)

    def reconcile(self, item: JsonObject, related: Related) -> ReconcileResult:
        before: dict[str, Any] = item.get("status") or {}
        nodes = related["nodes"]
        status: JsonObject = {} if before.get("nodeCount") == len(nodes) else {"nodeCount": len(nodes)}
        left = self._seconds_left(item)
        if left > 0:
            return ReconcileResult(status=status or None, due=left)
        config_maps = list(related["configmaps"])
        if not config_maps:
            name = (item.get("spec") or {}).get("configmapName")
            note = f"ConfigMap {name} is not there: no costs are computed, only those written by hand count"
            return ReconcileResult(
                status=status or None, problem=EventNote(WARNING, "ConfigMapMissing", note), due=RETRY_PERIOD
            )
        weights = item["spec"].get("weights") or []
        locations = [location_of(node) for node in nodes]
        measured = read_measurements(config_maps[0].get("data") or {}, [location.name for location in locations])
        graphs = cost_graphs(locations, measured.milliseconds)
        costs = topology_list(
            graphs,
            costs_by_hand(weights),
            bandwidth_in_use(related["appgroups"], related["pods"], locations),
        )
        status["weightCalculationTime"] = format_time(self._clock.now())
        after = with_computed(weights, costs)
        return ReconcileResult(
            status=status,
            spec=None if after == weights else {"weights": after},
            problem=_problem(measured.unreadable, [label for label in LABELS if label not in graphs]),
            due=INTERVAL,
        )

    def _config_map_to_read(self, item: JsonObject) -> str:
        return "" if self._seconds_left(item) > 0 else str((item.get("spec") or {}).get("configmapName") or "")

    def _seconds_left(self, item: JsonObject) -> float:
        """Until the next computation."""
        computed = (item.get("status") or {}).get("weightCalculationTime")
        return parse_time(computed) + INTERVAL - self._clock.now() if computed else 0.0


def with_computed(weights: list[JsonObject], costs: list[JsonObject]) -> list[JsonObject]:
    """The weights of people, and the computed ones after them."""
    by_people = [weight for weight in weights if weight.get("name") != COMPUTED]
    if not any(weight.get("name") == BY_HAND for weight in by_people):
        by_people.insert(0, {"name": BY_HAND, "topologyList": []})
    return [*by_people, {"name": COMPUTED, "topologyList": costs}]


def _problem(keys: list[str], crowded: list[str]) -> EventNote | None:
    if crowded:
        return invalid(f"no costs are computed for {', '.join(crowded)}, which has more than {MOST_VALUES} values")
    if not keys:
        return None
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    return invalid(
        f"these latencies are no whole numbers of milliseconds, and count as 0: {', '.join(keys[:NAMED])}{more}"
    )


# Costs


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
