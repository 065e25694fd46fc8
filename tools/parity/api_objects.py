"""Brings objects into the API server and reads them back.

Creating takes several requests for some kinds: a status is set afterwards, a pod that is going away is deleted with a
grace period nothing ends, a claim that belongs to a pod needs the pod's new uid. An object the server refuses is
counted and left out; the cluster is then simply a smaller one.
"""

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy

from tools.parity.dice import NAMESPACES, Obj
from tools.testbed.apiclient import ApiClient, ApiError

# Kinds the scheduler reads, by whether anything changes them once it runs.
STILL_KINDS = (
    "v1/Namespace",
    "v1/Service",
    "v1/ReplicationController",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "policy/v1/PodDisruptionBudget",
    "storage.k8s.io/v1/StorageClass",
    "storage.k8s.io/v1/CSIDriver",
    "storage.k8s.io/v1/CSINode",
    "storage.k8s.io/v1/CSIStorageCapacity",
    "storage.k8s.io/v1/VolumeAttachment",
    "resource.k8s.io/v1/ResourceSlice",
    "resource.k8s.io/v1/DeviceClass",
    "resource.k8s.io/v1/DeviceTaintRule",
)
MOVING_KINDS = (
    "v1/Node",
    "v1/PersistentVolume",
    "v1/PersistentVolumeClaim",
    "resource.k8s.io/v1/ResourceClaim",
    "v1/Pod",
)
GRACE_SECONDS = 3600
REFUSED = (400, 403, 409, 422)


class Creator:
    """Creates objects, leaving out and counting what the server refuses."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.created = 0
        self.refusals: Counter[str] = Counter()

    def create(self, obj: Obj) -> Obj | None:
        if self.client.find_resource(f"{obj['apiVersion']}/{obj['kind']}") is None:
            self.refusals[f"{obj['kind']}: not served"] += 1
            return None
        try:
            made = self.client.create(obj)
        except ApiError as error:
            if error.code not in REFUSED:
                raise
            self.refusals[f"{obj['kind']}: {error.message}"] += 1
            return None
        self.created += 1
        return made

    def create_many(self, objects: Iterable[Obj]) -> None:
        self.client.for_each(lambda obj: self.create(obj) or {}, objects)

    def create_owned_claims(self, pod: Obj, claims: list[Obj]) -> None:
        """Claims of generic ephemeral volumes, owned by the pod as it now exists."""
        for claim in claims:
            owned = deepcopy(claim)
            for owner in owned["metadata"]["ownerReferences"]:
                owner["uid"] = pod["metadata"]["uid"]
            self.create(owned)


def begin_deletion(client: ApiClient, namespace: str, name: str) -> None:
    """Have a pod on its way out: no kubelet runs, so it stays there."""
    try:
        client.delete("v1/Pod", name, namespace, grace_period_seconds=GRACE_SECONDS)
    except ApiError as error:
        if error.code != 404:  # the pod may have been refused
            raise


def label_namespaces(client: ApiClient, labels: dict[str, Obj]) -> None:
    for name, wanted in labels.items():
        client.patch("v1/Namespace", name, {"metadata": {"labels": wanted}})


def list_objects(client: ApiClient, kinds: Iterable[str]) -> list[Obj]:
    """All objects of the kinds, with apiVersion and kind, in the server's order (by name)."""
    found: list[Obj] = []
    for kind in kinds:
        if client.find_resource(kind) is None:
            continue  # an older minor has none
        version, _, name = kind.rpartition("/")
        items = client.list(kind)
        if name == "Namespace":
            items = [item for item in items if item["metadata"]["name"] in NAMESPACES]
        found += [{"apiVersion": version, "kind": name, **item} for item in items]
    return found


def clear(client: ApiClient) -> None:
    """Delete everything of one cluster; namespaces stay."""
    for kind in (*MOVING_KINDS, *STILL_KINDS[1:]):
        if client.find_resource(kind) is not None:
            _delete_kind(client, kind)


def _delete_kind(client: ApiClient, kind: str) -> None:
    items = [item for item in client.list(kind) if item["metadata"]["name"] != "kubernetes"]
    for item in items:
        metadata = item["metadata"]
        if metadata.get("finalizers"):
            patch = {"metadata": {"finalizers": None}}
            client.patch(kind, metadata["name"], patch, metadata.get("namespace", ""))
    if not items:
        return
    if kind == "v1/Service":  # the API server's own service lives among them
        for item in items:
            client.delete(kind, item["metadata"]["name"], item["metadata"]["namespace"])
    elif kind == "v1/ReplicationController":  # these would wait for a controller to orphan their pods
        for item in items:
            path = client.resource(kind).path(item["metadata"]["namespace"], item["metadata"]["name"])
            client.request("DELETE", path, {"propagationPolicy": "Background"})
    else:
        client.delete_all(kind)
