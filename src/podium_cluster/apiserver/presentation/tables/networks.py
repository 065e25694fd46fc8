"""Tabulates Services and endpoints."""

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import AGE, NAME, Cells, KindTable, TableColumn, Tables, wide
from podium_cluster.apiserver.presentation.tables.formats import NONE, UNSET, age, at_most_three, labels, load_balancer

_SERVICE: Final = (
    NAME,
    TableColumn("Type", "How the service is offered."),
    TableColumn("Cluster-IP", "Its address inside the cluster."),
    TableColumn("External-IP", "Its addresses outside the cluster."),
    TableColumn("Port(s)", "Its ports."),
    AGE,
    wide("Selector", "The labels of the pods behind it."),
)
_ENDPOINTS: Final = (NAME, TableColumn("Endpoints", "The addresses behind the service."), AGE)
_ENDPOINT_SLICE: Final = (
    NAME,
    TableColumn("AddressType", "What kind of addresses the slice holds."),
    TableColumn("Ports", "The ports of each endpoint."),
    TableColumn("Endpoints", "The addresses."),
    AGE,
)


def _service(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or [NONE]
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        addresses[0],
        _external(obj, spec),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        labels(spec.get("selector")),
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


TABLES: Final[Tables] = {
    ("", "Service"): KindTable(_SERVICE, _service),
    ("", "Endpoints"): KindTable(_ENDPOINTS, _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): KindTable(_ENDPOINT_SLICE, _endpoint_slice),
}
