"""Gives zones back what victims of preemption hold there, in a dry run.

A victim that no report covers counts in no zone as soon as it is taken off (see `over_reserve`). One that is covered
gives back what its app containers have for themselves, in the zone where the agent says they are; without that, its
zones are as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from podium.cluster import PlacedPod
from podium.kube import GUARANTEED, Pod, QuantityError, qos_class_of
from podium_plugins.node_resource_topology_match.over_reserve import OverReserveCache
from podium_plugins.node_resource_topology_match.placement_vectors import placement_of
from podium_plugins.node_resource_topology_match.topology_object import (
    amount_of,
    listed_resources,
    resource_entries,
    zone_entries,
)
from podium_plugins.node_resource_topology_match.zone_columns import UNLISTED
from podium_plugins.node_resource_topology_match.zone_needs import exclusive_requests, is_native

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
