"""Names pods and what can be done with them, and the fields by which they can be selected."""

from __future__ import annotations

from typing import Any, Final

from podium_cluster.apiserver.kind import (
    ONLY_CREATE,
    STATUS,
    Fields,
    FieldValues,
    Subresource,
    boolean_field,
    built_in_kind,
)
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS


def _field_values(obj: dict[str, Any]) -> FieldValues:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    ip = status.get("podIP", "")
    if not ip and (ips := status.get("podIPs")):
        ip = ips[0].get("ip", "")
    return (
        spec.get("nodeName", ""),
        spec.get("restartPolicy", ""),
        spec.get("schedulerName", ""),
        spec.get("serviceAccountName", ""),
        boolean_field(spec.get("hostNetwork")),
        status.get("phase", ""),
        ip,
        status.get("nominatedNodeName", ""),
    )


POD: Final = built_in_kind(
    "v1",
    "Pod pods",
    Subresource("binding", "Binding", verbs=ONLY_CREATE),
    Subresource("eviction", "Eviction", "policy", "v1", verbs=ONLY_CREATE),
    Subresource("resize"),
    STATUS,
    short="po",
    categories="all",
    fields=Fields(
        (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        _field_values,
    ),
    defaults=POD_DEFAULTS,
)
BINDING: Final = built_in_kind("v1", "Binding bindings", verbs=ONLY_CREATE)
