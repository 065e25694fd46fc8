"""Short ways to write constraints, nodes and pods for spreading."""

from __future__ import annotations

from typing import Any

from podium.kube import Node, Pod
from tools.kit.builders import make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
Data = dict[str, Any]
WEB: Data = {"matchLabels": {"app": "web"}}


def hard(key: str = ZONE, max_skew: int = 1, selector: Data | None = WEB, **more: Any) -> Data:
    return _constraint("DoNotSchedule", key, max_skew, selector, more)


def soft(key: str = ZONE, max_skew: int = 1, selector: Data | None = WEB, **more: Any) -> Data:
    return _constraint("ScheduleAnyway", key, max_skew, selector, more)


def _constraint(action: str, key: str, max_skew: int, selector: Data | None, more: Data) -> Data:
    constraint = {"whenUnsatisfiable": action, "topologyKey": key, "maxSkew": max_skew, **more}
    return constraint if selector is None else {**constraint, "labelSelector": selector}


def spreading(*constraints: Data, name: str = "new", **more: Any) -> Pod:
    """A pod of the app that is spread, with these constraints."""
    spec = {"topologySpreadConstraints": list(constraints), **more.pop("spec", {})}
    return make_pod(name, labels={"app": "web", **more.pop("labels", {})}, spec=spec, **more)


def web(name: str, node: str, **more: Any) -> Pod:
    """A placed pod of that app."""
    return make_pod(name, labels={"app": "web"}, node=node, **more)


def webs(**pods_on: int) -> list[Pod]:
    return [web(f"{node}-{number}", node) for node, count in pods_on.items() for number in range(count)]


def host(name: str, zone: str | None = None, **more: Any) -> Node:
    """A node with a hostname, and a zone where one is given."""
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone}), **more.pop("labels", {})}
    return make_node(name, labels=labels, **more)
