"""Gives zones back what victims of preemption hold there, in a dry run.

A victim that no report covers counts in no zone as soon as it is taken off (see `topology_cache`). One that is covered
gives back what its app containers have for themselves, in the zone where the agent says they are; without that, its
zones are as they were.

The agent may write down which zone each container has its exclusive resources from. The containers with exclusive
resources of the pods that a report covers are sorted by XXH64 of "namespace NUL pod NUL container". Each zone but the
busiest has a vector: the positions of its containers, the first as it is and each other as the distance from the one
before. All containers in no vector are in the busiest zone. Numbers are written in LEB89: 89 printable symbols, of
which the first 64 end a number and the others are digits, base 25, that come before:

    64 + digits · 64 + last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from podium.cluster import PlacedPod
from podium.kube import GUARANTEED, Pod, QuantityError, qos_class_of
from podium_plugins.node_resource_topology_match.fingerprint import xxh64
from podium_plugins.node_resource_topology_match.topology_cache import OverReserveCache
from podium_plugins.node_resource_topology_match.topology_object import (
    POLICY,
    SINGLE_NUMA_NODE,
    amount_of,
    listed_resources,
    read_attributes,
    resource_entries,
    zone_entries,
)
from podium_plugins.node_resource_topology_match.zone_columns import UNLISTED
from podium_plugins.node_resource_topology_match.zone_needs import exclusive_containers, exclusive_requests, is_native

NOTHING_TO_ADD: Final = "no resources to add, cannot process eviction simulation"
TOO_MUCH: Final = "resource release request exceeds NUMA allocatable"


class TakenOff:
    """The pods that a dry run has taken off, by uid."""

    def __init__(self, pods: Mapping[str, PlacedPod] | None = None) -> None:
        self._pods = dict(pods or {})

    def clone(self) -> TakenOff:
        return TakenOff(self._pods)

    def remove(self, placed: PlacedPod) -> None:
        self._pods[placed.pod.uid] = placed

    def add(self, placed: PlacedPod) -> None:
        self._pods.pop(placed.pod.uid, None)

    @property
    def rows(self) -> set[int]:
        return {placed.row for placed in self._pods.values()}

    def on(self, row: int) -> list[Pod]:
        return [placed.pod for placed in self._pods.values() if placed.row == row]


def give_back(cache: OverReserveCache, name: str, row: int, victims: Iterable[Pod], left: dict[str, list[int]]) -> str:
    """Add what victims hold to what the zones of a row have left; "" or why the dry run is not possible."""
    report = cache.zones.report(name)
    covered = [pod for pod in victims if cache.covers(pod) and _may_hold(pod)]
    placement = placement_of(report, cache.covered_pods(name)) if covered and report is not None else None
    if report is None or placement is None:
        return ""
    slots = {number: slot for slot, number in enumerate(cache.zones.zone_numbers(row))}
    most, listed, added = _allocatable(report), listed_resources(report), False
    for pod in covered:
        guaranteed = qos_class_of(pod) == GUARANTEED
        for container in pod.spec.containers:
            zone = placement.get((pod.uid, container.name))
            if zone is None or zone not in slots:
                continue
            for resource, amount in exclusive_requests(container, guaranteed, listed):
                added = True
                amounts = left.get(resource)
                if amounts is None or amounts[slots[zone]] == UNLISTED:
                    continue
                amounts = left[resource] = amounts.copy()
                amounts[slots[zone]] += amount
                if amounts[slots[zone]] > most.get((zone, resource), 0):
                    return TOO_MUCH
    return "" if added else NOTHING_TO_ADD


def _may_hold(pod: Pod) -> bool:
    """Whether a victim can hold something of a zone."""
    if qos_class_of(pod) == GUARANTEED:
        return True
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return any(not is_native(name) for each in containers for name in each.resources.requests)


def _allocatable(report: Mapping[str, Any]) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for number, zone in zone_entries(report):
        for resource in resource_entries(zone):
            try:
                found[number, resource["name"]] = amount_of(resource["name"], resource.get("allocatable"))
            except QuantityError:
                continue
    return found


# Placement vectors

METADATA: Final = "topology.node.k8s.io/numaplacement-metadata"
VECTOR: Final = "topology.node.k8s.io/numaplacement-vector"
PREFIX: Final = "npv0v001"
ALPHABET: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
ENDS: Final = 64
_VALUE: Final = {symbol: value for value, symbol in enumerate(ALPHABET)}

Placement = dict[tuple[str, str], int]
"""(uid of a pod, name of a container) → number of the zone."""


def decode_numbers(text: str) -> Iterator[int]:
    """The numbers of a LEB89 text; raises ValueError where it is none.

    >>> list(decode_numbers("!f!"))
    [0, 64]
    """
    digits, open_number = 0, False
    for symbol in text:
        value = _VALUE.get(symbol)
        if value is None:
            raise ValueError(f'"{symbol}" is not a symbol of LEB89')
        if value >= ENDS:
            digits, open_number = digits * (len(ALPHABET) - ENDS) + value - ENDS, True
        else:
            yield ENDS + digits * ENDS + value if open_number else value
            digits, open_number = 0, False
    if open_number:
        raise ValueError("the last number has no end")


def placement_of(report: Mapping[str, Any], pods: Sequence[Pod]) -> Placement | None:
    """Where the containers of the covered pods are; None where the report does not say, or speaks of others."""
    attributes = read_attributes(report)
    fields = _metadata(attributes.get(METADATA, ""))
    if fields is None or attributes.get(POLICY) != SINGLE_NUMA_NODE:
        return None
    listed = listed_resources(report)
    named = sorted(
        (xxh64(f"{pod.namespace}\0{pod.name}\0{container.name}".encode()), pod.uid, container.name)
        for pod in pods
        for container in exclusive_containers(pod, listed)
    )
    count, busiest = fields
    if len(named) != count:
        return None
    zones = [busiest] * count
    for number, zone in zone_entries(report):
        position = 0
        try:
            for distance in decode_numbers(read_attributes(zone).get(VECTOR, "").removeprefix(PREFIX)):
                position += distance
                zones[position] = number
        except (ValueError, IndexError):
            return None
    return {(uid, container): zone for (_hash, uid, container), zone in zip(named, zones, strict=True)}


def _metadata(text: str) -> tuple[int, int] | None:
    """(number of containers, busiest zone)"""
    prefix, *pairs = text.split("::")
    fields = dict(pair.partition("=")[::2] for pair in pairs)
    count, busiest = fields.get("cc", ""), fields.get("bn", "")
    if prefix != PREFIX or fields.get("ve", "leb89") != "leb89" or not (count.isdecimal() and busiest.isdecimal()):
        return None
    return (int(count), int(busiest)) if len(count) < 9 and len(busiest) < 9 else None
