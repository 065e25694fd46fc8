"""Binds PersistentVolumes to claims, provisions them, and decides what becomes of a volume afterwards.

A claim of a class that binds immediately gets the smallest volume that fits. One that waits for its first consumer is
bound when the scheduler has chosen: it reserves a volume for the claim, or names the node where one is to be made. The
provisioner `podium.dev/local` makes a volume on the spot, on that node where one is named.
"""

from __future__ import annotations

from kubecel.quantity import parse
from podium.kube.decode import decode_json
from podium.kube.json_object import JsonObject
from podium.kube.storage import BETA_CLASS_ANNOTATION, StorageClass, default_class
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.context import ControllerContext, key_of
from podium_cluster.controllers.ownership import selector_of
from podium_cluster.controllers.pods import Key

PROVISIONER = "podium.dev/local"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Volumes:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("persistentvolume-controller")
        self._claims = context.lane("PersistentVolumeClaim", self._sync_claim)
        self._volumes = context.lane("PersistentVolume", self._sync_volume)
        context.watch("PersistentVolumeClaim", self._claim_changed)
        context.watch("PersistentVolume", self._volume_changed)
        context.watch("StorageClass", self._class_changed)

    # Claims.

    def _sync_claim(self, key: Key) -> None:
        claim = self._context.get("PersistentVolumeClaim", *key)
        if claim is None:
            return
        if claim["spec"].get("volumeName"):
            self._sync_bound(claim)
        elif "deletionTimestamp" not in claim["metadata"]:
            self._sync_unbound(claim)

    def _sync_bound(self, claim: JsonObject) -> None:
        """A claim that names its volume: completed, waiting for it, or lost."""
        volume = self._context.get("PersistentVolume", "", claim["spec"]["volumeName"])
        completed = BIND_COMPLETED in (claim["metadata"].get("annotations") or {})
        if volume is None:
            if completed:
                self._write_claim_status(claim, {"phase": "Lost"})
            return
        reserved = volume["spec"].get("claimRef")
        if (reserved is None and not completed) or (reserved is not None and refers_to(reserved, claim)):
            self._bind(claim, volume)
        elif completed:
            self._write_claim_status(claim, {"phase": "Lost"})

    def _sync_unbound(self, claim: JsonObject) -> None:
        volumes = self._context.list("PersistentVolume")
        reserved = [each for each in volumes if refers_to(each["spec"].get("claimRef"), claim)]
        if reserved:
            self._bind(claim, reserved[0])
            return
        claim, storage_class = self._classed(claim)
        waits = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if waits and not node:
            message = "waiting for first consumer to be created before binding"
            self._recorder.normal(claim, "WaitForFirstConsumer", message)
            return
        volume = best_volume(claim, volumes) if not waits else None
        if volume is not None:
            self._bind(claim, volume)
        elif storage_class is not None and storage_class.get("provisioner") == PROVISIONER:
            self._provision(claim, storage_class, node)
        elif storage_class is None:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._recorder.normal(claim, "FailedBinding", message)
        elif storage_class["provisioner"] != "kubernetes.io/no-provisioner":
            message = (
                "Waiting for a volume to be created either by the external provisioner "
                f"'{storage_class['provisioner']}' or manually by the system administrator. If volume creation is "
                "delayed, please verify that the provisioner is running and correctly registered."
            )
            self._recorder.normal(claim, "ExternalProvisioning", message)

    def _classed(self, claim: JsonObject) -> tuple[JsonObject, JsonObject | None]:
        """The claim and its class; one that says nothing gets the default class, once there is one."""
        annotations = claim["metadata"].get("annotations") or {}
        name = annotations.get(BETA_CLASS_ANNOTATION, claim["spec"].get("storageClassName"))
        if name is None:
            classes = self._context.api.store.items(self._context.kind("StorageClass"))
            found = default_class(decode_json(StorageClass, each.raw) for each in classes)
            if found is None:
                return claim, None
            name = claim["spec"]["storageClassName"] = found.name
            claim = self._context.update("PersistentVolumeClaim", claim)
        return claim, self._context.get("StorageClass", "", name) if name else None

    def _bind(self, claim: JsonObject, volume: JsonObject) -> None:
        """Both sides of the binding, volume first; each is written only where something is missing."""
        meta = claim["metadata"]
        reference = {"kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"]}
        reference |= {"uid": meta["uid"], "apiVersion": "v1", "resourceVersion": meta["resourceVersion"]}
        had = volume["spec"].get("claimRef")
        if had is None or had.get("uid") != meta["uid"]:
            volume["spec"]["claimRef"] = reference
            if had is None:
                annotations = volume["metadata"].get("annotations") or {}
                volume["metadata"]["annotations"] = {**annotations, BOUND_BY_CONTROLLER: "yes"}
            volume = self._context.update("PersistentVolume", volume)
        if (volume.get("status") or {}).get("phase") != "Bound":
            volume = self._context.update_status("PersistentVolume", volume, {"phase": "Bound"})
        annotations = dict(meta.get("annotations") or {})
        if BIND_COMPLETED not in annotations or not claim["spec"].get("volumeName"):
            annotations[BIND_COMPLETED] = "yes"
            if not claim["spec"].get("volumeName"):
                annotations[BOUND_BY_CONTROLLER] = "yes"
            claim["metadata"]["annotations"] = annotations
            claim["spec"]["volumeName"] = volume["metadata"]["name"]
            claim = self._context.update("PersistentVolumeClaim", claim)
        status = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"]}
        self._write_claim_status(claim, status | {"capacity": {"storage": volume["spec"]["capacity"]["storage"]}})

    def _provision(self, claim: JsonObject, storage_class: JsonObject, node: str | None) -> None:
        name = f"pvc-{claim['metadata']['uid']}"
        if self._context.get("PersistentVolume", "", name) is not None:
            return
        meta, spec = claim["metadata"], claim["spec"]
        reference = {"kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"]}
        volume: JsonObject = {
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "storageClassName": storage_class["metadata"]["name"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "hostPath": {"path": f"/var/lib/podium/{name}", "type": "DirectoryOrCreate"},
                "claimRef": reference | {"uid": meta["uid"], "apiVersion": "v1"},
            },
        }
        if node:
            labels = self._context.nodes[node].labels if node in self._context.nodes else {}
            values = [labels.get("kubernetes.io/hostname", node)]
            host = {"key": "kubernetes.io/hostname", "operator": "In", "values": values}
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}
        self._context.create("PersistentVolume", volume)
        self._recorder.normal(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _write_claim_status(self, claim: JsonObject, status: JsonObject) -> None:
        if status != claim.get("status"):
            self._context.update_status("PersistentVolumeClaim", claim, status)

    # Volumes.

    def _sync_volume(self, key: Key) -> None:
        volume = self._context.get("PersistentVolume", "", key[1])
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            self._phase(volume, "Available")
            return
        claim = self._context.get("PersistentVolumeClaim", reference["namespace"], reference["name"])
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            self._claims.add((reference["namespace"], reference["name"]))
            return
        self._phase(volume, "Released")
        ours = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == PROVISIONER
        if ours and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._context.delete("PersistentVolume", "", key[1])

    def _phase(self, volume: JsonObject, phase: str) -> None:
        if (volume.get("status") or {}).get("phase") != phase:
            self._context.update_status("PersistentVolume", volume, {"phase": phase})

    # Who is looked at when something changes.

    def _claim_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._claims.add(key_of(change))
        else:
            name = change.new.decode()["spec"].get("volumeName")
            if name:
                self._volumes.add(("", name))

    def _volume_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._volumes.add(("", change.new.name))
        for stored in self._context.api.store.items(self._context.kind("PersistentVolumeClaim")):
            if b'"phase":"Bound"' not in stored.raw or change.type == "DELETED":
                self._claims.add((stored.namespace, stored.name))

    def _class_changed(self, change: ObjectChange) -> None:
        for stored in self._context.api.store.items(self._context.kind("PersistentVolumeClaim")):
            if b'"phase":"Bound"' not in stored.raw:
                self._claims.add((stored.namespace, stored.name))


def refers_to(reference: JsonObject | None, claim: JsonObject) -> bool:
    if reference is None:
        return False
    meta = claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return reference.get("uid") in (None, "", meta["uid"])


def best_volume(claim: JsonObject, volumes: list[JsonObject]) -> JsonObject | None:
    """The smallest free volume that fits the claim."""
    spec = claim["spec"]
    wanted = parse(spec["resources"]["requests"]["storage"])
    selector = selector_of(spec) if spec.get("selector") is not None else None
    fitting = []
    for volume in volumes:
        offered = volume["spec"]
        fits = (
            offered.get("claimRef") is None
            and "deletionTimestamp" not in volume["metadata"]
            and (volume.get("status") or {}).get("phase") in (None, "Available", "Pending")
            and (offered.get("storageClassName") or "") == (spec.get("storageClassName") or "")
            and offered.get("volumeMode", "Filesystem") == spec.get("volumeMode", "Filesystem")
            and set(spec["accessModes"]) <= set(offered["accessModes"])
            and parse(offered["capacity"]["storage"]) >= wanted
            and (selector is None or selector.matches(volume["metadata"].get("labels") or {}))
        )
        if fits:
            fitting.append(volume)
    return min(
        fitting, key=lambda each: (parse(each["spec"]["capacity"]["storage"]), each["metadata"]["name"]), default=None
    )
