"""Makes resource claims from templates for pods, and reserves claims for pods that were bound without a scheduler.

A pod that names a template gets a claim of its own, "{pod}-{entry}-xxxxx", which the pod owns and whose name stands in
pod.status.resourceClaimStatuses.

Pods that have ended no longer use their claims, and a claim without users gives its devices back: it loses its devices
and then its finalizer. One that has devices but never had a user keeps them until it is deleted. One that was made for
a pod which has ended is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.decode import decode_json
from podium.kube.devices import FINALIZER, POD_CLAIM_NAME
from podium.kube.json_object import JsonObject
from podium.kube.pod import Pod, PodResourceClaim
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.context import ControllerContext, copied, key_of
from podium_cluster.controllers.ownership import controller_of
from podium_cluster.controllers.pods import Key, PodView

MANAGER = "ResourceClaimController"
LONGEST_BASE = 57
"""Of a claim's name of 63 characters a dash and five random ones are left."""
_APPLY = "application/apply-patch+yaml"
_CLAIM, _TEMPLATE = "claim", "template"
_Reference = tuple[str, Key]
"""A claim or a template that a pod refers to."""


class ResourceClaims:
    """Knows the pods that have claims, by the claims and templates that they refer to."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("resource_claim")
        self._pods: dict[Key, Pod] = {}
        self._users: dict[_Reference, dict[Key, None]] = {}
        self._pod_lane = context.lane("ResourceClaimPod", self._sync_pod)
        self._claim_lane = context.lane("ResourceClaim", lambda key: release(context, key))
        context.watch("Pod", self._pod_changed)
        context.watch("ResourceClaim", self._claim_changed)
        context.watch("ResourceClaimTemplate", self._template_changed)

    # What is looked at when something changes.

    def _pod_changed(self, change: ObjectChange) -> None:
        key, raw = key_of(change), change.new.raw
        deleted = change.type == "DELETED"
        if b'"resourceClaims"' not in raw and b'"extendedResourceClaimStatus"' not in raw:
            return
        before = self._pods.pop(key, None)
        for reference in _references(before) if before is not None else ():
            self._users[reference].pop(key, None)
            if not self._users[reference]:
                del self._users[reference]
        pod = decode_json(Pod, raw)
        if not deleted:
            self._pods[key] = pod
            for reference in _references(pod):
                self._users.setdefault(reference, {})[key] = None
        if deleted or is_done(pod):
            for kind, claim in _references(pod):
                if kind == _CLAIM:
                    self._claim_lane.add(claim)
        if not deleted:
            self._pod_lane.add(key)

    def _claim_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._claim_lane.add(key_of(change))
        self._look_at_users((_CLAIM, key_of(change)))

    def _template_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._look_at_users((_TEMPLATE, key_of(change)))

    def _look_at_users(self, reference: _Reference) -> None:
        for key in self._users.get(reference, ()):
            self._pod_lane.add(key)

    # A pod.

    def _sync_pod(self, key: Key) -> None:
        obj, pod = self._context.get("Pod", *key), self._pods.get(key)
        if obj is None or pod is None or pod.terminating or is_done(pod):
            return
        made: dict[str, str] = {}
        for entry in pod.spec.resource_claims:
            try:
                name = self._made_claim(pod, entry)
            except StatusError as error:
                why = f"PodResourceClaim {entry.name}: {error.message}"
                self._recorder.warning(obj, "FailedResourceClaimCreation", why)
                raise
            if name:
                made[entry.name] = name
        if made:
            self._write_names(pod, made)
        elif pod.spec.node_name:
            self._reserve(pod)

    def _made_claim(self, pod: Pod, entry: PodResourceClaim) -> str:
        """The name of a claim that the pod's status does not have yet; empty where nothing is missing."""
        if not entry.resource_claim_template_name:
            return ""
        try:
            name = claim_name(pod, entry)
        except ClaimNotReadyError:
            pass
        else:
            claim = self._context.get("ResourceClaim", pod.namespace, name) if name else None
            if name is None or (claim is not None and _is_made_for(claim, pod)):
                return ""
        return self._abandoned_claim(pod, entry) or self._create(pod, entry)

    def _abandoned_claim(self, pod: Pod, entry: PodResourceClaim) -> str:
        """The name of a claim that was made before, without the pod's status being written."""
        uid = pod.uid.encode()
        for stored in self._context.api.store.items(self._context.kind("ResourceClaim"), pod.namespace):
            claim = stored.decode() if uid in stored.raw else None
            if claim is not None and _is_made_for(claim, pod):
                annotations = claim["metadata"].get("annotations") or {}
                if annotations.get(POD_CLAIM_NAME) == entry.name:
                    return stored.name
        return ""

    def _create(self, pod: Pod, entry: PodResourceClaim) -> str:
        name = entry.resource_claim_template_name or ""
        template = self._context.get("ResourceClaimTemplate", pod.namespace, name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise StatusError(404, "NotFound", f'resource claim template "{name}": {missing}')
        spec = template["spec"]
        meta = spec.get("metadata") or {}
        metadata: JsonObject = {
            "generateName": base_name(pod.name, entry.name),
            "namespace": pod.namespace,
            "annotations": {**(meta.get("annotations") or {}), POD_CLAIM_NAME: entry.name},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
            ],
        }
        if meta.get("labels"):
            metadata["labels"] = dict(meta["labels"])
        try:
            claim = self._context.create("ResourceClaim", {"metadata": metadata, "spec": copied(spec["spec"])})
        except StatusError as error:
            raise StatusError(error.code, error.reason, f"create ResourceClaim : {error.message}") from None
        return str(claim["metadata"]["name"])

    def _write_names(self, pod: Pod, made: dict[str, str]) -> None:
        statuses = [{"name": entry, "resourceClaimName": name} for entry, name in made.items()]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "status": {"resourceClaimStatuses": statuses},
        }
        kind = self._context.kind("Pod")
        self._context.api.patch(
            kind, pod.namespace, pod.name, body, _APPLY, subresource="status", manager=MANAGER, force=True
        )

    def _reserve(self, pod: Pod) -> None:
        for claim in self._claims_of(pod):
            status = claim.get("status") or {}
            users = status.get("reservedFor") or []
            if "allocation" in status and all(user["uid"] != pod.uid for user in users):
                user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
                self._context.update_status("ResourceClaim", claim, {**status, "reservedFor": [*users, user]})

    def _claims_of(self, pod: Pod) -> Iterator[JsonObject]:
        for entry in pod.spec.resource_claims:
            name = claim_name(pod, entry)
            claim = self._context.get("ResourceClaim", pod.namespace, name) if name else None
            if claim is not None and (entry.resource_claim_name or _is_made_for(claim, pod)):
                yield claim


def base_name(pod: str, entry: str) -> str:
    """What the name of a claim begins with; where it is too long both parts are cut in proportion.

    >>> base_name("web-0", "gpu"), base_name("p" * 80, "c" * 20)
    ('web-0-gpu-', 'pppppppppppppppppppppppppppppppppppppppppppp-ccccccccccc')
    """
    name = f"{pod}-{entry}-"
    if len(name) <= LONGEST_BASE:
        return name
    return f"{pod[: len(pod) * LONGEST_BASE // len(name)]}-{entry[: len(entry) * LONGEST_BASE // len(name)]}"


def _is_made_for(claim: JsonObject, pod: Pod) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner["uid"] == pod.uid


def _references(pod: Pod) -> Iterable[_Reference]:
    """Every claim and template that the pod refers to, as far as their names are known."""
    found: dict[_Reference, None] = {}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name:
            found[_TEMPLATE, (pod.namespace, entry.resource_claim_template_name)] = None
        try:
            name = claim_name(pod, entry)
        except ClaimNotReadyError:
            continue
        if name:
            found[_CLAIM, (pod.namespace, name)] = None
    special = pod.status.extended_resource_claim_status
    if special is not None and special.resource_claim_name:
        found[_CLAIM, (pod.namespace, special.resource_claim_name)] = None
    return found


def is_done(pod: Pod | PodView) -> bool:
    """Whether the pod will not run any more, or never will."""
    return pod.status.phase in ("Succeeded", "Failed") or (pod.terminating and not pod.spec.node_name)


def release(context: ControllerContext, key: Key) -> None:
    """Takes users that are done from the claim, and then what the claim no longer needs."""
    claim = context.get("ResourceClaim", *key)
    if claim is None:
        return
    status = claim.get("status") or {}
    users = status.get("reservedFor") or []
    left = [user for user in users if _uses(context, key[0], user)]
    has_finalizer = FINALIZER in (claim["metadata"].get("finalizers") or ())
    if len(left) < len(users):
        status = {**status, "reservedFor": left}
        if not left:
            del status["reservedFor"]
            if has_finalizer:
                status.pop("allocation", None)
        claim = context.update_status("ResourceClaim", claim, status)
        if has_finalizer and "allocation" not in (claim.get("status") or {}):
            _remove_finalizer(context, claim)
    elif has_finalizer and "deletionTimestamp" in claim["metadata"] and not left:
        if "allocation" in status:
            status = {field: value for field, value in status.items() if field != "allocation"}
            claim = context.update_status("ResourceClaim", claim, status)
        _remove_finalizer(context, claim)
    if not left:
        _delete_unneeded(context, claim)


def _uses(context: ControllerContext, namespace: str, user: JsonObject) -> bool:
    """Users of kinds that are not known here stay."""
    if user.get("apiGroup") or user.get("resource") != "pods":
        return True
    pod = context.pods.all.get((namespace, user["name"]))
    return pod is not None and pod.metadata.uid == user["uid"] and not is_done(pod)


def _remove_finalizer(context: ControllerContext, claim: JsonObject) -> None:
    metadata = claim["metadata"]
    metadata["finalizers"] = [each for each in metadata["finalizers"] if each != FINALIZER]
    context.update("ResourceClaim", claim)


def _delete_unneeded(context: ControllerContext, claim: JsonObject) -> None:
    """Deletes a claim that was made for a pod which is done; that of a pod that is gone the garbage collector takes."""
    owner, namespace = controller_of(claim), claim["metadata"]["namespace"]
    if owner is None or (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
        return
    pod = context.pods.all.get((namespace, owner["name"]))
    if pod is not None and (pod.metadata.uid != owner["uid"] or is_done(pod)):
        context.delete("ResourceClaim", namespace, claim["metadata"]["name"], uid=claim["metadata"]["uid"])
