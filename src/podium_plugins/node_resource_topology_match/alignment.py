"""Decides whether a pod can be aligned to one zone of a node (policy single-numa-node), for many rows or for one.

A zone will do for a request if, of every resource, it has as much left as is asked for (or lists it at all, where the
amount does not count). A resource that no zone of a node lists is no matter of zones there if it is optional; otherwise
no zone will do. Of the zones that will do, the one with the lowest number is taken.

    pod scope         one zone for the whole pod
    container scope   init containers and sidecars, each against what there is at first; then app containers one after
                      the other, each leaving less in the zone it takes

`aligned_rows` and `first_misfit` are the same rule on arrays and on plain numbers.

`zone_refusals` says for people which zones refuse a pod, and what each of them lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.kube import CPU, EPHEMERAL_STORAGE, MEMORY, MILLI, NANO, format_nano
from podium_plugins.node_resource_topology_match.zone_columns import UNLISTED, Amounts, Mask, ZoneColumns
from podium_plugins.node_resource_topology_match.zone_needs import ContainerNeeds, Request, ZoneNeeds

ALIGNED = -1
"""Every container has a zone."""


# Many rows at once


def aligned_rows(
    zones: ZoneColumns, cluster: Cluster, needs: ZoneNeeds, rows: Rows, *, by_pod: bool
) -> NDArray[np.int64]:
    """int64[rows]: the position of the first container that has no zone, 0 for a whole pod; ALIGNED where all have."""
    left = {name: zones.available(name, rows) for name in needs.resources}
    if by_pod:
        return np.where(_zones_for(left, cluster, needs.whole, rows) < 0, 0, ALIGNED)
    misfit = np.full(len(rows), ALIGNED, dtype=np.int64)
    for position, container in enumerate(needs.containers):
        chosen = _zones_for(left, cluster, container.request, rows)
        misfit[(chosen < 0) & (misfit == ALIGNED)] = position
        if container.takes:
            _take(left, container.request, chosen)
    return misfit


def _zones_for(left: Mapping[str, Amounts], cluster: Cluster, request: Request, rows: Rows) -> NDArray[np.intp]:
    """intp[rows]: the first slot that will do, −1 where none does."""
    fits: Mask | None = None
    offered: Mask | None = None
    for each in request:
        amounts = left[each.resource]
        suits = amounts >= each.amount if each.counts else amounts > UNLISTED
        if each.optional:
            suits |= (amounts == UNLISTED).all(axis=0)
        fits = suits if fits is None else fits & suits
        if not each.offered:
            has = cluster.resources.allocatable_of(each.resource)[rows] > 0
            offered = has if offered is None else offered & has
    if fits is None:
        return np.zeros(len(rows), dtype=np.intp)
    some = fits.any(axis=0) if offered is None else fits.any(axis=0) & offered
    return np.where(some, fits.argmax(axis=0), -1)


def _take(left: Mapping[str, Amounts], request: Request, chosen: NDArray[np.intp]) -> None:
    """Subtract a request from the chosen slots; where there is none, nothing depends on what is left."""
    columns = np.arange(len(chosen))
    for each in request:
        if each.counts:
            amounts = left[each.resource]
            listed = amounts[chosen, columns] > UNLISTED
            amounts[chosen[listed], columns[listed]] -= each.amount


# One row


def some_zone_fits(zones: ZoneColumns, cluster: Cluster, row: int, request: Request) -> bool:
    """Whether some zone of a row will do for a request: the quick way, where nothing follows it."""
    wanted: list[tuple[list[int], int]] = []
    for resource, amount, counts, optional, offered in request:
        amounts = zones.reported_on(resource, row)
        if not offered and cluster.resources.scalar_on(resource, row)[0] <= 0:
            return False
        if not optional or max(amounts, default=UNLISTED) > UNLISTED:
            wanted.append((amounts, amount + zones.held_on(resource, row) if counts else 0))
    if not wanted:
        return True
    for slot in range(len(wanted[0][0])):  # mostly the first will do
        for amounts, least in wanted:
            if amounts[slot] < least:
                break
        else:
            return True
    return False


def first_misfit(left: dict[str, list[int]], cluster: Cluster, row: int, needs: ZoneNeeds, *, by_pod: bool) -> int:
    """The same of one row; in `left`, the amounts that its zones have, there is less afterwards."""
    if by_pod:
        return 0 if zone_for(left, cluster, row, needs.whole) is None else ALIGNED
    last = len(needs.containers) - 1
    for position, container in enumerate(needs.containers):
        chosen = zone_for(left, cluster, row, container.request)
        if chosen is None:
            return position
        if container.takes and position < last:
            take_from(left, container, chosen)
    return ALIGNED


def zone_for(left: Mapping[str, list[int]], cluster: Cluster, row: int, request: Request) -> int | None:
    """The first slot that will do for a request; None where none does."""
    fits: list[bool] | None = None
    for resource, amount, counts, optional, offered in request:
        amounts = left[resource]
        if not offered and cluster.resources.scalar_on(resource, row)[0] <= 0:
            return None
        if optional and max(amounts, default=UNLISTED) == UNLISTED:
            continue
        least = amount if counts else 0
        if fits is None:
            fits = [have >= least for have in amounts]
        else:
            fits = [fit and have >= least for fit, have in zip(fits, amounts, strict=True)]
    if fits is None:
        return 0
    return fits.index(True) if True in fits else None


def take_from(left: dict[str, list[int]], container: ContainerNeeds, chosen: int) -> None:
    for each in container.request:
        amounts = left[each.resource]
        if each.counts and chosen < len(amounts) and amounts[chosen] > UNLISTED:
            amounts = left[each.resource] = amounts.copy()
            amounts[chosen] -= each.amount


# What is said of refusals

MOST_NODES: Final = 5
"""Nodes that are described; of the others it is said how many there are."""


def zone_refusals(zones: ZoneColumns, cluster: Cluster, needs: ZoneNeeds) -> list[str]:
    """A sentence for each of the first nodes whose zones refuse the pod."""
    found = [sentence for row in cluster.order.rows.tolist() if (sentence := _refusal(zones, cluster, needs, row))]
    more = len(found) - MOST_NODES
    if more > 0:
        found[MOST_NODES:] = [f"{more} more {'node has' if more == 1 else 'nodes have'} no zone that the pod fits"]
    return found


def _refusal(zones: ZoneColumns, cluster: Cluster, needs: ZoneNeeds, row: int) -> str:
    name, settings = cluster.names[row], zones.settings.values[zones.settings.numbers.item(row)]
    if settings is None:
        return ""
    if zones.stale[row]:
        return f"{name}: what is known of its zones is out of date; it counts again after the agent's next report"
    if not settings.aligns:
        return ""
    left = {resource: zones.available_on(resource, row) for resource in needs.resources}
    misfit = first_misfit(left, cluster, row, needs, by_pod=settings.by_pod)
    if misfit == ALIGNED:
        return ""
    if settings.by_pod:
        who, request = "the pod", needs.whole
    else:
        container = needs.containers[misfit]
        who, request = f"{container.kind} {container.name}", container.request
    numbers = zones.zone_numbers(row)
    reasons = [f"node-{number} {_lacks(left, request, slot)}" for slot, number in enumerate(numbers)]
    return f"{name}: {who} fits no zone: {'; '.join(reasons) or 'none is reported'}{_unoffered(cluster, row, request)}"


def _lacks(left: Mapping[str, list[int]], request: Request, slot: int) -> str:
    short: list[str] = []
    unlisted: list[str] = []
    for each in request:
        amounts = left[each.resource]
        if each.optional and all(amount == UNLISTED for amount in amounts):
            continue
        if amounts[slot] == UNLISTED:
            unlisted.append(each.resource)
        elif each.counts and amounts[slot] < each.amount:
            have, want = _shown(each.resource, amounts[slot]), _shown(each.resource, each.amount)
            short.append(f"{have} of {want} {each.resource}")
    lacks = [f"has {' and '.join(short)}"] * bool(short) + [f"does not list {', '.join(unlisted)}"] * bool(unlisted)
    return " and ".join(lacks) or "has enough"


def _unoffered(cluster: Cluster, row: int, request: Request) -> str:
    missing = [
        each.resource
        for each in request
        if not each.offered and cluster.resources.scalar_on(each.resource, row)[0] <= 0
    ]
    return f"; the node does not offer {', '.join(missing)}" if missing else ""


def _shown(resource: str, amount: int) -> str:
    nano = amount * (MILLI if resource == CPU else NANO)
    return format_nano(nano, binary=resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"))
