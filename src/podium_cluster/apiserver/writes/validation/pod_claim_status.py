"""Validates what the status of a pod says about its resource claims: which were made for it, and which device of the
claim for its extended resources each container gets."""

from __future__ import annotations

from typing import Final

from kubecel.names import dns_subdomain_errors
from podium_cluster.apiserver.errors import duplicate, invalid_value, invalid_word, required
from podium_cluster.apiserver.writes.validation.wording import Causes, Obj, dns_label, dns_subdomain

_NO_CLAIM: Final = "must match the name of an entry in `spec.resourceClaims`"
_NO_CONTAINER: Final = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
_NO_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)


def pod_claim_status(new: Obj, _old: Obj) -> Causes:
    spec, status = new.get("spec") or {}, new.get("status") or {}
    if status.get("resourceClaimStatuses"):
        yield from _claims("status.resourceClaimStatuses", spec, status)
    if status.get("extendedResourceClaimStatus") is not None:
        yield from _extended("status.extendedResourceClaimStatus", spec, status["extendedResourceClaimStatus"])


def _claims(path: str, spec: Obj, status: Obj) -> Causes:
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for at, claim in enumerate(status["resourceClaimStatuses"]):
        name, made = claim.get("name", ""), claim.get("resourceClaimName")
        if name not in known:
            yield invalid_value(f"{path}[{at}].name", name, _NO_CLAIM)
        if name in seen:
            yield duplicate(f"{path}[{at}].name", name)
        seen.add(name)
        for problem in dns_subdomain_errors(made) if made is not None else ():
            yield invalid_word(f"{path}[{at}].resourceClaimName", made, problem)


def _extended(path: str, spec: Obj, claim: Obj) -> Causes:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requests = {each.get("name", ""): (each.get("resources") or {}).get("requests") or {} for each in containers}
    mappings = claim.get("requestMappings") or ()
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for at, mapping in enumerate(mappings):
        where = f"{path}.requestMappings[{at}]"
        container, resource = mapping.get("containerName", ""), mapping.get("resourceName", "")
        if container not in requests:
            yield invalid_value(f"{where}.containerName", container, _NO_CONTAINER)
        elif resource not in requests[container]:
            yield invalid_value(f"{where}.resourceName", resource, _NO_RESOURCE)
        yield from dns_label(f"{path}.requestName", mapping.get("requestName", ""))
        key = (container, resource, mapping.get("requestName", ""))
        if key in seen:
            for field, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield duplicate(f"{where}.{field}", value)
        seen.add(key)
    if claim.get("resourceClaimName"):
        yield from dns_subdomain(f"{path}.resourceClaimName", claim["resourceClaimName"])
    else:
        yield required(f"{path}.resourceClaimName")
