"""Prepares volumes and claims: both begin as Pending, and a claim that names no class gets the default one.

Of several default classes the newest counts, of equally old ones the first by name. A claim that says "" wants none.
"""

from typing import Final

from podium.apiserver.kinds import built_in
from podium.apiserver.writes.context import WriteContext
from podium.apiserver.writes.rules.rule import KindRules
from podium.kube.json_object import JsonObject

STORAGE_CLASS: Final = built_in("storage.k8s.io/v1", "StorageClass")
_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def _admit_claim(claim: JsonObject, context: WriteContext) -> None:
    spec = claim.setdefault("spec", {})
    if "storageClassName" in spec or _CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        return
    defaults = []
    for stored in context.store.items(STORAGE_CLASS):
        metadata = stored.decode()["metadata"]
        annotations = metadata.get("annotations") or {}
        if any(annotations.get(name) == "true" for name in _DEFAULT):
            defaults.append((metadata["creationTimestamp"], metadata["name"]))
    if defaults:
        newest = max(created for created, _ in defaults)
        spec["storageClassName"] = min(name for created, name in defaults if created == newest)


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
