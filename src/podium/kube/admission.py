"""Completes pods from manifests as the API server and its controllers would have stored them.

A pod that kubectl printed has been through the API server and carries the uid it got there; a pod from a manifest has
not. What the API server fills in and scheduling reads is then filled in here: requests that follow from limits, host
ports of pods on the host's network, and the priority of the pod's class. Requests that follow from a container's limits
are filled in for all pods: where the API server has done so, nothing is left to do.

The resource claims that a pod needs are made from their templates. In a cluster the controller of claims does that once
a pod is created, and writes the names into the pod's status. Until then the pod is held back; so where it would go can
only be asked with claims that are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from podium.errors import UserError
from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.decode import KubeObject
from podium.kube.devices import ResourceClaim, ResourceClaimTemplate
from podium.kube.kinds_around_pods import PriorityClass
from podium.kube.meta import ObjectMeta, OwnerReference
from podium.kube.pod import Container, Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec
from podium.kube.requests import pod_requests

IN_FILES = "the files"
ADVICE = {
    "the cluster": "create it, or give it with -f",
    IN_FILES: "add what kubectl get priorityclasses -o json prints with --from",
}
"""What to do about a class that is missing, by where it was looked for."""
BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class AdmissionError(UserError, ValueError):
    """A pod that the API server would refuse: one sentence says why."""


def as_admitted(
    objects: Sequence[KubeObject], others: Iterable[KubeObject] = (), origin: str = IN_FILES
) -> list[KubeObject]:
    """The objects with the pods among them filled in; priority classes may be among the others, too.

    `origin` is what the cluster's objects come from, for messages.
    """
    classes = {each.name: each for each in (*others, *objects) if isinstance(each, PriorityClass)}
    return [_completed(each, classes, origin) if isinstance(each, Pod) else each for each in objects]


def _completed(pod: Pod, classes: Mapping[str, PriorityClass], origin: str) -> Pod:
    return _requesting(pod) if pod.uid else _admitted(pod, classes, origin)


def _requesting(pod: Pod) -> Pod:
    """The pod with requests for all that its containers have limits of."""
    spec = pod.spec
    if all(each.resources.limits.keys() <= each.resources.requests.keys() for each in _containers(spec)):
        return pod
    containers, init_containers = (tuple(map(_with_requests, each)) for each in (spec.containers, spec.init_containers))
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers))


def _containers(spec: PodSpec) -> Iterable[Container]:
    return (*spec.containers, *spec.init_containers)


def _with_requests(container: Container) -> Container:
    resources = container.resources
    return replace(container, resources=replace(resources, requests={**resources.limits, **resources.requests}))


def _admitted(pod: Pod, classes: Mapping[str, PriorityClass], origin: str) -> Pod:
    spec = replace(
        pod.spec,
        containers=tuple(_container(each, pod.spec.host_network) for each in pod.spec.containers),
        init_containers=tuple(_container(each, pod.spec.host_network) for each in pod.spec.init_containers),
    )
    pod = replace(pod, spec=replace(spec, **_priority(pod, classes, origin)))
    return _with_pod_requests(pod)


def _container(container: Container, host_network: bool) -> Container:
    ports = container.ports
    if host_network:
        ports = tuple(replace(port, host_port=port.host_port or port.container_port) for port in ports)
    return replace(_with_requests(container), ports=ports)


def _with_pod_requests(pod: Pod) -> Pod:
    """Limits on the pod itself imply requests: what its containers ask for, else the limit."""
    stated = pod.spec.resources
    if stated is None or not stated.limits:
        return pod
    of_containers = pod_requests(replace(pod, spec=replace(pod.spec, overhead={})), pod_level=False)
    implied = {
        name: limit if name not in of_containers else f"{of_containers[name]}{'m' if name == 'cpu' else ''}"
        for name, limit in stated.limits.items()
    }
    return replace(pod, spec=replace(pod.spec, resources=replace(stated, requests={**implied, **stated.requests})))


def _priority(pod: Pod, classes: Mapping[str, PriorityClass], origin: str) -> dict[str, Any]:
    """The fields that the pod's priority class decides."""
    if pod.spec.priority is not None:
        return {}
    name = pod.spec.priority_class_name
    if not name:
        defaults = sorted((each for each in classes.values() if each.global_default), key=lambda each: each.value)
        chosen = defaults[0] if defaults else None
    elif name in classes:
        chosen = classes[name]
    elif name in BUILT_IN:
        return {"priority": BUILT_IN[name]}
    else:
        advice = ADVICE.get(origin, "add it")
        raise AdmissionError(f"pod {pod.key}: PriorityClass {name} is not in {origin}; {advice}")
    if chosen is None:
        return {}
    return {"priority": chosen.value, "preemption_policy": pod.spec.preemption_policy or chosen.preemption_policy}


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
