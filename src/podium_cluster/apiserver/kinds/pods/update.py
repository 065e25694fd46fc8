"""Validates updates of pods: images, a shorter deadline, more tolerations, fewer gates, and little else may change; and
what the status says about resource claims.

The complaint about anything else ends, in kube-apiserver, with a listing of both specs; here it ends with the
fields that differ.
"""

from __future__ import annotations

from typing import Any, Final

from kubecel.names import dns_subdomain_errors
from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value, invalid_word, required
from podium_cluster.apiserver.kinds.pods.spec import spec_of_pod
from podium_cluster.apiserver.validation.placement import REQUIRED, tolerations
from podium_cluster.apiserver.validation.wording import (
    MAX_INT32,
    Causes,
    Obj,
    between,
    dns_label,
    dns_subdomain,
    sorted_map,
)

UPDATABLE: Final = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
MAY_CHANGE: Final = f"pod updates may not change fields other than {','.join(UPDATABLE)}"
_NO_CLAIM: Final = "must match the name of an entry in `spec.resourceClaims`"
_NO_CONTAINER: Final = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
_NO_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)


def pod_update(new: Obj, old: Obj) -> Causes:
    if new.get("spec") == old.get("spec"):
        return
    yield from spec_of_pod(new)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        mine, theirs = after.get(name) or [], before.get(name) or []
        if len(mine) != len(theirs):
            yield field_forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
        yield from _images(f"spec.{name}", mine)
    stop = False
    for cause in _deadline(after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")):
        yield cause
        stop = "nil" not in cause.message
    if stop:
        return
    yield from _tolerations(after.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(after.get("schedulingGates") or [], before.get("schedulingGates") or [])
    allowed = _with_allowed_changes_undone(after, before)
    if before.get("schedulingGates"):
        yield from _gated(allowed, before)
    if allowed != before:
        fields = ", ".join(f"spec.{name}" for name in sorted(_different(allowed, before)))
        yield field_forbidden("spec", f"{MAY_CHANGE}\n{fields}")


def _images(path: str, containers: list[dict[str, Any]]) -> Causes:
    for at, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            yield required(f"{path}[{at}].image")
        if image != image.strip():
            yield invalid_value(f"{path}[{at}].image", image, "must not have leading or trailing whitespace")


def _deadline(after: int | None, before: int | None) -> Causes:
    field = "spec.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            yield invalid_value(field, None, "must not update from a positive integer to nil value")
    elif not 0 <= after <= MAX_INT32:
        yield invalid_value(field, after, between(0, MAX_INT32))
    elif before is not None and before < after:
        yield invalid_value(field, after, "must be less than or equal to previous value")


def _tolerations(after: list[dict[str, Any]], before: list[dict[str, Any]]) -> Causes:
    present = [_without_seconds(toleration) for toleration in after]
    if any(_without_seconds(toleration) not in present for toleration in before):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield field_forbidden("spec.tolerations", detail)
        return
    yield from tolerations("spec.tolerations", after)


def _without_seconds(toleration: Obj) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(after: list[dict[str, Any]], before: list[dict[str, Any]]) -> Causes:
    known = {gate.get("name", "") for gate in before}
    for at, gate in enumerate(after):
        name = gate.get("name", "")
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield field_forbidden(f"spec.schedulingGates[{at}].name", detail)


def _with_allowed_changes_undone(after: Obj, before: Obj) -> dict[str, Any]:
    undone = dict(after)
    for name in ("containers", "initContainers"):
        if after.get(name):
            undone[name] = [
                {**mine, **({"image": theirs["image"]} if "image" in theirs else {})}
                for mine, theirs in zip(after[name], before[name], strict=True)
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take_back(undone, before, name)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
        _take_back(undone, before, "terminationGracePeriodSeconds")
    return undone


def _gated(undone: dict[str, Any], before: Obj) -> Causes:
    """A gated pod's node selector may gain labels, its required node affinity terms more."""
    after, had = undone.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if after != had and any(after.get(key) != value for key, value in had.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid_value("spec.nodeSelector", sorted_map(after) or {}, detail)
    _take_back(undone, before, "nodeSelector")
    mine, theirs = undone.get("affinity") or {}, before.get("affinity") or {}
    yield from _only_narrower(mine.get("nodeAffinity") or {}, theirs.get("nodeAffinity") or {})
    rest = {key: value for key, value in mine.items() if key != "nodeAffinity"}
    if rest == {key: value for key, value in theirs.items() if key != "nodeAffinity"}:
        _take_back(undone, before, "affinity")


def _only_narrower(after: Obj, before: Obj) -> Causes:
    """Terms that were required stay, and may only ask for more."""
    had = (before.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    has = (after.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if had and len(had) != len(has):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid_value(path, [_go_term(term) for term in has] or None, detail)
        return
    for at, (mine, theirs) in enumerate(zip(has, had, strict=False)):
        if not _asks_for_more(mine, theirs):
            detail = "only additions are allowed (no mutations or deletions)"
            yield invalid_value(f"{path}[{at}]", _go_term(mine), detail)


def _asks_for_more(after: Obj, before: Obj) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(before.get(name) for name in parts):  # matched nothing, and must go on matching nothing
        return not any(after.get(name) for name in parts)
    return all((after.get(name) or [])[: len(before.get(name) or [])] == (before.get(name) or []) for name in parts)


def _go_term(term: Obj) -> dict[str, Any]:
    def requirements(name: str) -> list[dict[str, Any]] | None:
        found = [
            {"Key": each.get("key", ""), "Operator": each.get("operator", ""), "Values": each.get("values")}
            for each in term.get(name) or ()
        ]
        return found or None

    return {"MatchExpressions": requirements("matchExpressions"), "MatchFields": requirements("matchFields")}


def _take_back(undone: dict[str, Any], before: Obj, name: str) -> None:
    if name in before:
        undone[name] = before[name]
    else:
        undone.pop(name, None)


def _different(after: Obj, before: Obj) -> set[str]:
    return {name for name in {*after, *before} if after.get(name) != before.get(name)}


def pod_claim_status(new: Obj, _old: Obj) -> Causes:
    """Which claims were made for the pod, and which device of the claim for extended resources each container gets."""
    spec, status = new.get("spec") or {}, new.get("status") or {}
    if status.get("resourceClaimStatuses"):
        yield from _claim_statuses("status.resourceClaimStatuses", spec, status)
    if status.get("extendedResourceClaimStatus") is not None:
        yield from _extended_claim("status.extendedResourceClaimStatus", spec, status["extendedResourceClaimStatus"])


def _claim_statuses(path: str, spec: Obj, status: Obj) -> Causes:
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


def _extended_claim(path: str, spec: Obj, claim: Obj) -> Causes:
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
