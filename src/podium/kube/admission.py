"""Completes pods from manifests as the API server and its controllers would have stored them.

A pod that kubectl printed has been through the API server and carries the uid it got there; a pod from a manifest has
not. What the API server fills in and scheduling reads is then filled in here: requests that follow from limits, host
ports of pods on the host's network, the priority of the pod's class, what its RuntimeClass adds, and the label keys of
affinity terms. Requests that follow from a container's limits are filled in for all pods: where the API server has done
so, nothing is left to do. Claims of volumes that name no class get the default one.

The claims that a pod needs, of devices and of generic ephemeral volumes, are made from their templates. In a cluster
controllers do that once a pod is created. Until then the pod waits; so where it would go can only be asked with claims
that are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.errors import UserError
from podium.kube.affinity import Affinity, PodAffinityTerm
from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.claims import claim_name as volume_claim_name
from podium.kube.claims import is_ephemeral
from podium.kube.decode import KubeObject
from podium.kube.devices import ResourceClaim, ResourceClaimTemplate
from podium.kube.kinds_around_pods import PriorityClass, RuntimeClass
from podium.kube.meta import LabelSelectorRequirement, ObjectMeta, OwnerReference
from podium.kube.pod import Container, Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec, Volume
from podium.kube.requests import pod_requests
from podium.kube.storage import BETA_CLASS_ANNOTATION, PersistentVolumeClaim, StorageClass, default_class

IN_FILES = "the files"
ADVICE = {
    "the cluster": "create it, or give it with -f",
    IN_FILES: "add what kubectl get priorityclasses -o json prints with --from",
}
"""What to do about a class that is missing, by where it was looked for."""
BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class AdmissionError(UserError, ValueError):
    """A pod that the API server would refuse: one sentence says why."""


@dataclass
class _Classes:
    """What admission looks up."""

    priority: dict[str, PriorityClass]
    runtime: dict[str, RuntimeClass]
    storage: StorageClass | None
    """The default one."""
    origin: str
    """What the cluster's objects come from, for messages."""


def as_admitted(
    objects: Sequence[KubeObject], others: Iterable[KubeObject] = (), origin: str = IN_FILES
) -> list[KubeObject]:
    """The objects, with pods and claims of volumes filled in; the classes that they name may be among the others, too.

    `origin` is what the cluster's objects come from, for messages.
    """
    known = (*others, *objects)
    classes = _Classes(
        {each.name: each for each in known if isinstance(each, PriorityClass)},
        {each.name: each for each in known if isinstance(each, RuntimeClass)},
        default_class(each for each in known if isinstance(each, StorageClass)),
        origin,
    )
    return [_completed(each, classes) if isinstance(each, Pod | PersistentVolumeClaim) else each for each in objects]


def _completed(item: Pod | PersistentVolumeClaim, classes: _Classes) -> Pod | PersistentVolumeClaim:
    if isinstance(item, PersistentVolumeClaim):
        return _with_class(item, classes.storage)
    return _requesting(item) if item.uid else _admitted(item, classes)


def _with_class(claim: PersistentVolumeClaim, default: StorageClass | None) -> PersistentVolumeClaim:
    """The claim with the default class, if it names none."""
    spec = claim.spec
    if default is None or spec.storage_class_name is not None or BETA_CLASS_ANNOTATION in claim.metadata.annotations:
        return claim
    return claim if spec.volume_name else replace(claim, spec=replace(spec, storage_class_name=default.name))


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


def _admitted(pod: Pod, classes: _Classes) -> Pod:
    spec = replace(
        pod.spec,
        containers=tuple(_container(each, pod.spec.host_network) for each in pod.spec.containers),
        init_containers=tuple(_container(each, pod.spec.host_network) for each in pod.spec.init_containers),
        affinity=_with_label_keys(pod.spec.affinity, pod.labels),
        **_of_runtime(pod, classes.runtime),
    )
    pod = replace(pod, spec=replace(spec, **_priority(pod, classes)))
    return _with_pod_requests(pod)


def _of_runtime(pod: Pod, classes: Mapping[str, RuntimeClass]) -> dict[str, Any]:
    """The fields that the pod's RuntimeClass adds to; raises AdmissionError where the two contradict each other."""
    found = classes.get(pod.spec.runtime_class_name or "")
    if found is None:
        return {}
    spec, scheduling = pod.spec, found.scheduling
    for key, value in scheduling.node_selector.items():
        if spec.node_selector.get(key, value) != value:
            raise AdmissionError(f"pod {pod.key}: its nodeSelector says another {key} than RuntimeClass {found.name}")
    if spec.overhead and spec.overhead != found.overhead.pod_fixed:
        raise AdmissionError(f"pod {pod.key}: its overhead is not that of RuntimeClass {found.name}; leave it out")
    return {
        "overhead": found.overhead.pod_fixed,
        "node_selector": {**spec.node_selector, **scheduling.node_selector},
        "tolerations": tuple(dict.fromkeys((*spec.tolerations, *scheduling.tolerations))),
    }


def _with_label_keys(affinity: Affinity | None, labels: Mapping[str, str]) -> Affinity | None:
    """The affinity whose terms select what their matchLabelKeys and mismatchLabelKeys mean for this pod."""

    def selecting(term: PodAffinityTerm) -> PodAffinityTerm:
        keys = (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys))
        added = [
            LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
            for operator, names in keys
            for key in names
            if key in labels
        ]
        selector = term.label_selector
        if selector is None or not added:
            return term
        expressions = (*selector.match_expressions, *added)
        return replace(term, label_selector=replace(selector, match_expressions=expressions))

    def completed(terms: Any) -> Any:
        if terms is None:
            return None
        weighted = terms.preferred_during_scheduling_ignored_during_execution
        return replace(
            terms,
            required_during_scheduling_ignored_during_execution=tuple(map(selecting, terms.required)),
            preferred_during_scheduling_ignored_during_execution=tuple(
                replace(each, pod_affinity_term=selecting(each.pod_affinity_term)) for each in weighted
            ),
        )

    if affinity is None:
        return None
    return replace(
        affinity,
        pod_affinity=completed(affinity.pod_affinity),
        pod_anti_affinity=completed(affinity.pod_anti_affinity),
    )


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


def _priority(pod: Pod, known: _Classes) -> dict[str, Any]:
    """The fields that the pod's priority class decides."""
    if pod.spec.priority is not None:
        return {}
    name, classes = pod.spec.priority_class_name, known.priority
    if not name:
        defaults = sorted((each for each in classes.values() if each.global_default), key=lambda each: each.value)
        chosen = defaults[0] if defaults else None
    elif name in classes:
        chosen = classes[name]
    elif name in BUILT_IN:
        return {"priority": BUILT_IN[name]}
    else:
        advice = ADVICE.get(known.origin, "add it")
        raise AdmissionError(f"pod {pod.key}: PriorityClass {name} is not in {known.origin}; {advice}")
    if chosen is None:
        return {}
    return {"priority": chosen.value, "preemption_policy": pod.spec.preemption_policy or chosen.preemption_policy}


def with_claims_made(objects: Sequence[KubeObject], others: Iterable[KubeObject] = ()) -> list[KubeObject]:
    """The objects, and the claims that pods among them lack; templates may be among the others, too. Of volumes, only
    pods from manifests get claims: the controller has seen the others.

    A pod that has no uid yet goes by its key, as its claims' owner.
    """
    known = (*others, *objects)
    templates = {each.key: each for each in known if isinstance(each, ResourceClaimTemplate)}
    volume_claims = {each.key for each in known if isinstance(each, PersistentVolumeClaim)}
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
        if not each.uid:
            made = (_volume_claim(each, volume) for volume in each.spec.volumes if is_ephemeral(volume))
            completed += [claim for claim in made if claim.key not in volume_claims]
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
    return ResourceClaim(metadata=_owned(pod, entry.name, _name(pod, entry)), spec=template.spec.spec)


def _volume_claim(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
    metadata = _owned(pod, volume.name, str(volume_claim_name(pod, volume)))
    if template is None:
        return PersistentVolumeClaim(metadata=metadata)
    metadata = replace(metadata, labels=template.metadata.labels, annotations=template.metadata.annotations)
    return PersistentVolumeClaim(metadata=metadata, spec=template.spec)


def _owned(pod: Pod, entry: str, name: str) -> ObjectMeta:
    uid = pod.uid or pod.key
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=uid, controller=True)
    return ObjectMeta(name=name, namespace=pod.namespace, uid=f"{uid}-{entry}", owner_references=(owner,))
