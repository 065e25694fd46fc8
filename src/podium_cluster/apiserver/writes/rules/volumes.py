"""Prepares volumes and claims: both begin as Pending, and a claim that names no class gets the default one.

A claim that says "" wants none.
"""

from typing import Final

from podium.kube.decode import decode_json
from podium.kube.json_object import JsonObject
from podium.kube.storage import BETA_CLASS_ANNOTATION, StorageClass, default_class
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

STORAGE_CLASS: Final = built_in("storage.k8s.io/v1", "StorageClass")


def _admit_claim(claim: JsonObject, context: WriteContext) -> None:
    spec = claim.setdefault("spec", {})
    if "storageClassName" in spec or BETA_CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        return
    found = default_class(decode_json(StorageClass, stored.raw) for stored in context.store.items(STORAGE_CLASS))
    if found is not None:
        spec["storageClassName"] = found.name


def _prepare_volume(obj: JsonObject, context: WriteContext) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now()}


def _prepare_volume_status(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """The time of the last change of phase is the server's to write."""
    status, before = new.get("status") or {}, old.get("status") or {}
    if status.get("phase") != before.get("phase"):
        status["lastPhaseTransitionTime"] = context.now()
    elif "lastPhaseTransitionTime" not in status and "lastPhaseTransitionTime" in before:
        status["lastPhaseTransitionTime"] = before["lastPhaseTransitionTime"]


CLAIM_RULES: Final = KindRules(admit=_admit_claim, returns_deleted=True, empty_status={"phase": "Pending"})
VOLUME_RULES: Final = KindRules(
    prepare_for_create=_prepare_volume, prepare_for_status=_prepare_volume_status, returns_deleted=True
)
