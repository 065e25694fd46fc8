"""Prepares Services: the server chooses the address and the ports of nodes, and they stay.

Addresses are of 10.96.0.0/16, node ports of 30000–32767, each given once. Nothing routes to them here; clients expect
them to be there. A headless service ("None") and an alias of another name (ExternalName) have none.
"""

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

SERVICE: Final = built_in("v1", "Service")
_CARRIED_OVER: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")
_NODE_PORTS: Final = range(30000, 32768)


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


SERVICE_RULES: Final = KindRules(
    prepare_for_create=_prepare_for_create,
    prepare_for_update=_prepare_for_update,
    returns_deleted=True,
    update_creates=True,
    empty_status={"loadBalancer": {}},
)
