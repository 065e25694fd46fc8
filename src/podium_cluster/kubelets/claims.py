"""Says why a pod's devices are not ready for it on its node: a kubelet starts only pods that their claims name."""

from __future__ import annotations

from collections.abc import Iterator

from podium.kube.claim_status import ClaimNotReadyError, claim_name, is_reserved_for
from podium.kube.decode import decode_json
from podium.kube.devices import ResourceClaim
from podium.kube.pod import Pod
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import not_found
from podium_cluster.apiserver.kinds import built_in

CLAIM = built_in("resource.k8s.io/v1", "ResourceClaim")


def has_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def problem_of_claims(api: EmbeddedApi, pod: Pod) -> str:
    """What is wrong, in a kubelet's words; empty where the pod may start."""
    try:
        for name, is_made in _names(pod):
            stored = api.store.get(CLAIM, pod.namespace, name)
            if stored is None:
                return f"fetch ResourceClaim {name}: {not_found(CLAIM, name).message}"
            claim = decode_json(ResourceClaim, stored.raw)
            owner = claim.metadata.controller
            if is_made and (owner is None or owner.uid != pod.uid):
                return f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            if not is_reserved_for(claim, pod):
                return f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({claim.uid})"
            if claim.status.allocation is None:
                return f"ResourceClaim {name}: not allocated"
    except ClaimNotReadyError as error:
        return str(error)
    return ""


def _names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """The pod's claims, and whether each was made for it from a template."""
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield name, entry.resource_claim_name is None
    special = pod.status.extended_resource_claim_status
    if special is not None:
        yield special.resource_claim_name, False
