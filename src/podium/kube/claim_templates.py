"""Makes the resource claims of pods that are not in a cluster yet from their templates.

In a cluster the controller of claims does that once a pod is created, and writes the names into the pod's status. Until
then the pod is held back; so where it would go can only be asked with claims that are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.decode import KubeObject
from podium.kube.devices import ResourceClaim, ResourceClaimTemplate
from podium.kube.meta import ObjectMeta, OwnerReference
from podium.kube.pod import Pod, PodResourceClaim, PodResourceClaimStatus


def with_claims_made(objects: Sequence[KubeObject], others: Iterable[KubeObject] = ()) -> list[KubeObject]:
    """The objects, and the claims that pods among them lack; templates may be among the others, too.

    A pod that has no uid yet goes by its key, as its claims' owner.
    """
    templates = {each.key: each for each in (*others, *objects) if isinstance(each, ResourceClaimTemplate)}
    completed: list[KubeObject] = []
    for each in objects:
        if not isinstance(each, Pod):
            completed.append(each)
            continue
        missing = {
            entry: template
            for entry in each.spec.resource_claims
            if _is_missing(each, entry)
            and (template := templates.get(f"{each.namespace}/{entry.resource_claim_template_name}"))
        }
        completed.append(_naming(each, missing))
        completed += [_claim(each, entry, template) for entry, template in missing.items()]
    return completed


def _is_missing(pod: Pod, entry: PodResourceClaim) -> bool:
    try:
        claim_name(pod, entry)
    except ClaimNotReadyError:
        return entry.resource_claim_template_name is not None
    return False


def _naming(pod: Pod, entries: Iterable[PodResourceClaim]) -> Pod:
    """The pod with the names of claims that are made for it in its status."""
    named = [PodResourceClaimStatus(name=each.name, resource_claim_name=_name(pod, each)) for each in entries]
    statuses = (*pod.status.resource_claim_statuses, *named)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)) if named else pod


def _name(pod: Pod, entry: PodResourceClaim) -> str:
    return f"{pod.name}-{entry.name}"


def _claim(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    name, uid = _name(pod, entry), pod.uid or pod.key
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=uid, controller=True)
    metadata = ObjectMeta(name=name, namespace=pod.namespace, uid=f"{uid}-{entry.name}", owner_references=(owner,))
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
