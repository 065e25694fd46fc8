"""Prepares resource claims: who may ask for devices that are in use, and what drivers said of devices given back.

Access to devices that other claims have (adminAccess) is for namespaces with a label that says so.
"""

from __future__ import annotations

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, invalid
from podium_cluster.apiserver.kinds import NAMESPACE, built_in
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules
from podium_cluster.apiserver.writes.validation.claim_status import device_key, resource_claim_status
from podium_cluster.apiserver.writes.validation.devices import claim_template, resource_claim

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_NO_ADMIN: Final = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
_CLAIM: Final = built_in("resource.k8s.io/v1", "ResourceClaim")
_TEMPLATE: Final = built_in("resource.k8s.io/v1", "ResourceClaimTemplate")


def _prepare_claim(obj: JsonObject, context: WriteContext) -> None:
    at = _admin_request((obj.get("spec") or {}).get("devices") or {})
    if at is not None and not _has_admins(obj, context):
        raise invalid(_CLAIM, obj["metadata"]["name"], [_refusal(at), *resource_claim(obj)])


def _prepare_template(obj: JsonObject, context: WriteContext) -> None:
    at = _admin_request(((obj.get("spec") or {}).get("spec") or {}).get("devices") or {})
    if at is not None and not _has_admins(obj, context):
        raise invalid(_TEMPLATE, obj["metadata"]["name"], [_refusal(at), *claim_template(obj)])


def _prepare_status(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _forget_devices(new, old)
    if _admin_result(old) is None:
        at = _admin_result(new)
        if at is not None and not _has_admins(new, context):
            cause = field_forbidden(f"status.allocation.devices.results[{at}].adminAccess", _NO_ADMIN)
            raise invalid(_CLAIM, new["metadata"]["name"], [cause, *resource_claim_status(new, old)])


def _forget_devices(new: JsonObject, old: JsonObject) -> None:
    """What drivers reported of devices that the claim has no longer goes with them."""
    status = new.get("status") or {}
    reported = status.get("devices")
    if not reported:
        return
    remaining = [device_key(result) for result in _results(new)]
    gone = [key for key in map(device_key, _results(old)) if key not in remaining]
    left = [device for device in reported if device_key(device) not in gone]
    if left:
        status["devices"] = left
    else:
        del status["devices"]


def _results(claim: JsonObject) -> list[JsonObject]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _admin_request(devices: JsonObject) -> int | None:
    asks = ((request.get("exactly") or {}).get("adminAccess") for request in devices.get("requests") or ())
    return next((at for at, wanted in enumerate(asks) if wanted), None)


def _admin_result(claim: JsonObject) -> int | None:
    return next((at for at, result in enumerate(_results(claim)) if result.get("adminAccess")), None)


def _refusal(at: int) -> Cause:
    return field_forbidden(f"spec.devices.requests[{at}].adminAccess", _NO_ADMIN)


def _has_admins(obj: JsonObject, context: WriteContext) -> bool:
    stored = context.store.get(NAMESPACE, "", obj["metadata"].get("namespace", ""))
    labels = stored.decode()["metadata"].get("labels") or {} if stored is not None else {}
    return bool(labels.get(ADMIN_LABEL) == "true")


RESOURCE_CLAIM_RULES: Final = KindRules(
    prepare_for_create=_prepare_claim, prepare_for_status=_prepare_status, returns_deleted=True, empty_status={}
)
CLAIM_TEMPLATE_RULES: Final = KindRules(prepare_for_create=_prepare_template, returns_deleted=True)
