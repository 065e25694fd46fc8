"""Reads which zone each container has its exclusive resources from, where the agent writes that down.

The containers with exclusive resources of the pods that a report covers are sorted by XXH64 of "namespace NUL pod NUL
container". Each zone but the busiest has a vector: the positions of its containers, the first as it is and each other
as the distance from the one before. All containers in no vector are in the busiest zone. Numbers are written in LEB89:
89 printable symbols, of which the first 64 end a number and the others are digits, base 25, that come before:

    64 + digits · 64 + last
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from podium.kube import Pod
from podium_plugins.node_resource_topology_match.fingerprint import xxh64
from podium_plugins.node_resource_topology_match.manager_settings import POLICY, SINGLE_NUMA_NODE
from podium_plugins.node_resource_topology_match.topology_object import (
    listed_resources,
    read_attributes,
    zone_entries,
)
from podium_plugins.node_resource_topology_match.zone_needs import exclusive_containers

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
