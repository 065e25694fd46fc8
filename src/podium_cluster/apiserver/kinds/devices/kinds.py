"""Names the kinds of resource.k8s.io, with what they leave out and the fields by which slices can be selected."""

from __future__ import annotations

from typing import Any, Final

from podium_cluster.apiserver.kind import STATUS, Defaults, Fields, FieldValues, built_in_kind


def _request_defaults(request: dict[str, Any]) -> None:
    if request.get("allocationMode") == "ExactCount":
        request.setdefault("count", 1)


def _slice_values(obj: dict[str, Any]) -> FieldValues:
    spec = obj.get("spec") or {}
    return (spec.get("driver", ""), spec.get("nodeName", ""), (spec.get("pool") or {}).get("name", ""))


_CLAIM_DEFAULTS: Final = Defaults(
    {
        "resource.v1.ExactDeviceRequest": {"allocationMode": "ExactCount"},
        "resource.v1.DeviceSubRequest": {"allocationMode": "ExactCount"},
    },
    {"resource.v1.ExactDeviceRequest": _request_defaults, "resource.v1.DeviceSubRequest": _request_defaults},
)
DEVICE_CLASS: Final = built_in_kind("resource.k8s.io/v1", "DeviceClass deviceclasses", cluster=True)
DEVICE_TAINT_RULE: Final = built_in_kind("resource.k8s.io/v1", "DeviceTaintRule devicetaintrules", STATUS, cluster=True)
RESOURCE_CLAIM: Final = built_in_kind(
    "resource.k8s.io/v1", "ResourceClaim resourceclaims", STATUS, defaults=_CLAIM_DEFAULTS
)
CLAIM_TEMPLATE: Final = built_in_kind(
    "resource.k8s.io/v1", "ResourceClaimTemplate resourceclaimtemplates", defaults=_CLAIM_DEFAULTS
)
RESOURCE_SLICE: Final = built_in_kind(
    "resource.k8s.io/v1",
    "ResourceSlice resourceslices",
    cluster=True,
    fields=Fields(("spec.driver", "spec.nodeName", "spec.pool.name"), _slice_values),
)
