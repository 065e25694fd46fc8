"""Says which zones refuse a pod, and what each of them lacks, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.cluster import Cluster
from podium.kube import CPU, EPHEMERAL_STORAGE, MEMORY, MILLI, NANO, format_nano
from podium_plugins.node_resource_topology_match.alignment import ALIGNED, first_misfit
from podium_plugins.node_resource_topology_match.zone_columns import UNLISTED, ZoneColumns
from podium_plugins.node_resource_topology_match.zone_needs import Request, ZoneNeeds

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
