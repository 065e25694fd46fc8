"""Declares Services and their endpoints: the server chooses the address and the ports of nodes, and they stay.

Addresses are of 10.96.0.0/16, node ports of 30000–32767, each given once. Nothing routes to them here; clients expect
them to be there. A headless service ("None") and an alias of another name (ExternalName) have none.
Endpoints and EndpointSlices are stored and shown; no controller here makes them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, Fields, FieldValues, built_in_kind
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
    label_cell,
    load_balancer,
    wide,
)
from podium_cluster.apiserver.write_context import WriteContext

_CARRIED_OVER: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")
_NODE_PORTS: Final = range(30000, 32768)
_COLUMNS: Final = (
    NAME,
    TableColumn("Type", "How the service is offered."),
    TableColumn("Cluster-IP", "Its address inside the cluster."),
    TableColumn("External-IP", "Its addresses outside the cluster."),
    TableColumn("Port(s)", "Its ports."),
    AGE,
    wide("Selector", "The labels of the pods behind it."),
)


def _field_values(obj: dict[str, Any]) -> FieldValues:
    spec = obj.get("spec") or {}
    return (spec.get("clusterIP", ""), spec.get("type", ""))


def _spec_defaults(spec: dict[str, Any]) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    outside = kind in ("NodePort", "LoadBalancer")
    if (outside or (kind == "ClusterIP" and spec.get("externalIPs"))) and "externalTrafficPolicy" not in spec:
        spec["externalTrafficPolicy"] = "Cluster"
    if outside or kind == "ClusterIP":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _port_defaults(port: dict[str, Any]) -> None:
    if not port.get("targetPort"):
        port["targetPort"] = port.get("port", 0)


SERVICE: Final = built_in_kind(
    "v1",
    "Service services",
    STATUS,
    short="svc",
    categories="all",
    fields=Fields(("spec.clusterIP", "spec.type"), _field_values),
    defaults=Defaults(rules={"core.v1.ServiceSpec": _spec_defaults, "core.v1.ServicePort": _port_defaults}),
)


def _prepare_for_create(obj: JsonObject, context: WriteContext) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("type", "ClusterIP") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        taken = {stored.fields[0] for stored in context.store.items(SERVICE)}
        spec["clusterIP"] = _address(taken, context)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["clusterIP"] == "None" and not spec.get("selector"):  # Its endpoints may have addresses of any kind.
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
    spec.setdefault("ipFamilies", ["IPv6" if ":" in spec["clusterIP"] else "IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    _give_node_ports(spec, context)


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """Who replaces a service need not repeat what was chosen for it."""
    spec, before = new.setdefault("spec", {}), old.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    for field in _CARRIED_OVER:
        if not spec.get(field) and field in before:
            spec[field] = before[field]
    known = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if not port.get("nodePort") and (chosen := known.get((port.get("port"), port.get("protocol")))):
            port["nodePort"] = chosen
    _prepare_for_create(new, context)


def _address(taken: set[str], context: WriteContext) -> str:
    while True:
        number = context.rng.randrange(1, 65535)
        address = f"10.96.{number >> 8}.{number & 255}"
        if address not in taken:
            return address


def _give_node_ports(spec: JsonObject, context: WriteContext) -> None:
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return
    if spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return
    missing = [port for port in spec.get("ports") or () if not port.get("nodePort")]
    if not missing:
        return
    services = [stored.decode() for stored in context.store.items(SERVICE)]
    taken = {port.get("nodePort") for service in services for port in (service.get("spec") or {}).get("ports") or ()}
    free = [number for number in _NODE_PORTS if number not in taken]
    for port, number in zip(missing, context.rng.sample(free, len(missing)), strict=True):
        port["nodePort"] = number


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or [NONE]
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        addresses[0],
        _external(obj, spec),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        label_cell(spec.get("selector")),
    ]


def _external(obj: JsonObject, spec: JsonObject) -> str:
    kind, given = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        balanced = load_balancer(obj.get("status") or {})
        return ",".join([balanced] * bool(balanced) + given) or "<pending>"
    return spec.get("externalName", "") if kind == "ExternalName" else "<unknown>"


def _port(port: JsonObject) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', '')}"


SERVICE_RECORD: Final = KindRecord(
    SERVICE,
    KindRules(
        prepare_for_create=_prepare_for_create,
        prepare_for_update=_prepare_for_update,
        returns_deleted=True,
        update_creates=True,
        empty_status={"loadBalancer": {}},
    ),
    KindTable(_COLUMNS, _cells),
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
