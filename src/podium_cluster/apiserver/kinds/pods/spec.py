"""Validates the spec of a pod, whether in a pod or in a template, and the template around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kubecel.names import qualified_name_errors
from podium_cluster.apiserver.errors import Cause, duplicate, field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kinds.pods.containers import containers, images_without_spaces, init_containers
from podium_cluster.apiserver.validation.placement import affinity, scheduling_gates, spread_constraints, tolerations
from podium_cluster.apiserver.validation.resources import requirements
from podium_cluster.apiserver.validation.volumes import volumes
from podium_cluster.apiserver.validation.wording import (
    MAX_INT32,
    Causes,
    Obj,
    address,
    between,
    dns_label,
    dns_subdomain,
    each,
    label_name,
    labels,
)

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_MOST_KNOWN: Final = 1024
_encode: Final = msgspec.json.Encoder().encode
_known_good: Final[set[bytes]] = set()


def pod(obj: Obj) -> Iterable[Cause]:
    """A new pod. Most are made from a template that made others before: what was good then is good now."""
    spec = obj.get("spec") or {}
    text = _encode(spec)
    if text in _known_good:
        return ()
    causes = list(_new_pod(obj))
    if not causes and not any("ephemeral" in volume for volume in spec.get("volumes") or ()):  # those go by the name
        if len(_known_good) >= _MOST_KNOWN:
            _known_good.clear()
        _known_good.add(text)
    return causes


def _new_pod(obj: Obj) -> Causes:
    yield from spec_of_pod(obj)
    spec = obj.get("spec") or {}
    if spec.get("ephemeralContainers"):
        yield field_forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield field_forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def spec_of_pod(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from pod_spec("spec", spec, pod_name=obj["metadata"].get("name", ""), in_pod=True)
    yield from images_without_spaces("spec.containers", spec.get("containers") or [])
    yield from images_without_spaces("spec.initContainers", spec.get("initContainers") or [])


def template(path: str, value: Obj) -> Causes:
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    yield from labels(f"{path}.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or ():
        yield from label_name(f"{path}.annotations", key.lower())
    yield from pod_spec(f"{path}.spec", spec, pod_name="", in_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield field_forbidden(f"{path}.spec.ephemeralContainers", detail)


def pod_spec(path: str, spec: Obj, *, pod_name: str, in_pod: bool) -> Causes:
    known: dict[str, Obj] = {}
    if "volumes" in spec:
        yield from volumes(f"{path}.volumes", spec["volumes"], pod_name, known)
    claims = spec.get("resourceClaims") or []
    if claims:
        yield from _resource_claims(f"{path}.resourceClaims", claims)
    claim_names = {claim["name"] for claim in claims if claim.get("name")}
    regular = spec.get("containers") or []
    yield from containers(f"{path}.containers", regular, known, claim_names)
    if "initContainers" in spec:
        initial = spec["initContainers"]
        yield from init_containers(f"{path}.initContainers", initial, regular, known, claim_names)
    if spec.get("resources"):
        yield from requirements(f"{path}.resources", spec["resources"], claim_names)
    if spec.get("hostNetwork"):
        yield from _host_network(f"{path}.containers", regular, in_pod=in_pod)
    yield from _word(f"{path}.restartPolicy", spec.get("restartPolicy", ""), RESTART_POLICIES)
    yield from _word(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), DNS_POLICIES)
    if "nodeSelector" in spec:
        yield from labels(f"{path}.nodeSelector", spec["nodeSelector"])
    if "affinity" in spec:
        yield from affinity(f"{path}.affinity", spec["affinity"])
    for at, gate in enumerate(spec.get("readinessGates") or ()):
        condition = gate.get("conditionType", "")
        yield from each(f"{path}.readinessGates[{at}].conditionType", condition, qualified_name_errors(condition))
    if "schedulingGates" in spec:
        yield from scheduling_gates(f"{path}.schedulingGates", spec["schedulingGates"])
    if "topologySpreadConstraints" in spec:
        yield from spread_constraints(f"{path}.topologySpreadConstraints", spec["topologySpreadConstraints"])
    yield from _names_and_limits(path, spec)
    if "tolerations" in spec:
        yield from tolerations(f"{path}.tolerations", spec["tolerations"])
    for at, alias in enumerate(spec.get("hostAliases") or ()):
        field = f"{path}.hostAliases[{at}]"
        yield from address(f"{field}.ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from dns_subdomain(f"{field}.hostnames[{number}]", name)
    if spec.get("priorityClassName"):
        yield from dns_subdomain(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        yield from dns_subdomain(f"{path}.runtimeClassName", spec["runtimeClassName"])
    if spec.get("preemptionPolicy") is not None:
        yield from _word(f"{path}.preemptionPolicy", spec["preemptionPolicy"], PREEMPTION_POLICIES)
    if spec.get("overhead"):
        yield from requirements(f"{path}.overhead", {"limits": spec["overhead"]})


def _names_and_limits(path: str, spec: Obj) -> Causes:
    if spec.get("serviceAccountName"):
        yield from dns_subdomain(f"{path}.serviceAccountName", spec["serviceAccountName"])
    if spec.get("nodeName"):
        yield from dns_subdomain(f"{path}.nodeName", spec["nodeName"])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        yield invalid_value(f"{path}.activeDeadlineSeconds", deadline, between(1, MAX_INT32))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from dns_label(f"{path}.{name}", spec[name])


def _word(field: str, value: str, allowed: tuple[str, ...]) -> Causes:
    if not value:
        yield required(field)
    elif value not in allowed:
        yield not_supported(field, value, allowed)


def _host_network(path: str, given: list[dict[str, Any]], *, in_pod: bool) -> Causes:
    for at, container in enumerate(given):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (in_pod or host) and host != port.get("containerPort", 0):
                field = f"{path}[{at}].ports[{number}].hostPort"
                yield invalid_value(field, host, "must match `containerPort` when `hostNetwork` is true")


def _resource_claims(path: str, claims: list[dict[str, Any]]) -> Causes:
    seen: set[str] = set()
    for at, claim in enumerate(claims):
        field, name = f"{path}[{at}]", claim.get("name", "")
        if not name:
            yield required(f"{field}.name")
        elif name in seen:
            yield duplicate(f"{field}.name", name)
        else:
            yield from dns_label(f"{field}.name", name)
            seen.add(name)
        direct, made = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": direct, "ResourceClaimTemplateName": made}
        if direct is not None and made is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid_value(field, shown, detail)
        if direct is None and made is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid_value(field, shown, detail)
        if direct is not None:
            yield from dns_subdomain(f"{field}.resourceClaimName", direct)
        if made is not None:
            yield from dns_subdomain(f"{field}.resourceClaimTemplateName", made)
