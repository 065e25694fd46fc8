"""Endpoints and EndpointSlices: stored and shown; no controller here makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    KindTable,
    TableColumn,
    age,
    at_most_three,
)

_ENDPOINTS: Final = (NAME, TableColumn("Endpoints", "The addresses behind the service."), AGE)
_ENDPOINT_SLICE: Final = (
    NAME,
    TableColumn("AddressType", "What kind of addresses the slice holds."),
    TableColumn("Ports", "The ports of each endpoint."),
    TableColumn("Endpoints", "The addresses."),
    AGE,
)


def _endpoints(obj: JsonObject, now: datetime) -> Cells:
    shown: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = [port["port"] for port in subset.get("ports") or ()]
        shown += [_joined(ip, port) for port in ports for ip in addresses] if ports else addresses
    empty = "" if obj.get("subsets") else NONE
    return [obj["metadata"]["name"], at_most_three(shown, empty), age(obj, now)]


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _endpoint_slice(obj: JsonObject, now: datetime) -> Cells:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        at_most_three(ports, UNSET),
        at_most_three(addresses, UNSET),
        age(obj, now),
    ]


ENDPOINTS: Final = KindRecord(
    built_in_kind(
        "v1",
        "Endpoints endpoints",
        short="ep",
        defaults=Defaults({"core.v1.EndpointPort": {"protocol": "TCP"}}),
    ),
    KindRules(update_creates=True),
    KindTable(_ENDPOINTS, _endpoints),
)
ENDPOINT_SLICE: Final = KindRecord(
    built_in_kind(
        "discovery.k8s.io/v1",
        "EndpointSlice endpointslices",
        defaults=Defaults({"discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"}}),
    ),
    KindRules(generation="whole object"),
    KindTable(_ENDPOINT_SLICE, _endpoint_slice),
)
