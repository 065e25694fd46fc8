"""Makes the pods of workloads: of a Deployment, StatefulSet, Job, … as their controllers would.

A Deployment's pods belong to a ReplicaSet that does not exist yet, so that is made, too: spreading by default goes by
what owns a pod. A StatefulSet's claims are made from its templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from podium.errors import UserError
from podium.kube import (
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
    PodStatus,
    ReplicaSet,
    StatefulSet,
    Volume,
)
from podium.kube.kinds_around_pods import (
    JobSpec,
    PodTemplateSpec,
    ReplicaSetSpec,
    StatefulSetSpec,
    Workload,
    WorkloadSpec,
)
from podium.kube.volume import ClaimVolume

HASH_LABEL: Final = "pod-template-hash"
HASH: Final = "new"
"""What the label of a ReplicaSet that is made here says."""
STATEFUL_LABELS: Final = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")
JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
JOB_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
INDEX: Final = "batch.kubernetes.io/job-completion-index"


class TemplateError(UserError, ValueError):
    """A workload whose pods cannot be made: one sentence says why."""


class MadePods(NamedTuple):
    """The pods of a workload, and the objects that its controller makes beside them."""

    pods: list[Pod]
    others: list[Any]


def desired(workload: Workload) -> int:
    """How many pods a workload wants; a DaemonSet's number depends on the nodes.

    >>> desired(Workload(kind="Job", spec=WorkloadSpec(parallelism=4, completions=3)))
    3
    """
    spec = workload.spec
    if workload.kind == "CronJob":
        inner = spec.job_template.spec if spec.job_template is not None else None
        return 1 if inner is None else _of_job(inner, 0)
    if workload.kind == "Job":
        done = workload.status.get("succeeded")
        return _of_job(spec, done if isinstance(done, int) else 0)
    return 1 if spec.replicas is None else spec.replicas


def _of_job(spec: WorkloadSpec | JobSpec, succeeded: int) -> int:
    if spec.suspend:
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else max(0, min(parallelism, spec.completions - succeeded))


def template_of(workload: Workload, others: Iterable[Workload] = ()) -> PodTemplateSpec:
    """The template of a workload's pods; that of a CapacityBuffer is one of the others'."""
    spec = workload.spec
    if workload.kind == "CapacityBuffer":
        return _of_buffer(workload, others)
    if workload.kind == "PodTemplate":
        found = workload.template
    elif workload.kind == "CronJob":
        inner = spec.job_template.spec if spec.job_template is not None else None
        found = None if inner is None else inner.template
    else:
        found = spec.template
    if found is None or not found.spec.containers:
        raise TemplateError(f"{named(workload)} has no pod template with containers; write spec.template.spec")
    return found


def _of_buffer(buffer: Workload, others: Iterable[Workload]) -> PodTemplateSpec:
    reference = buffer.spec.pod_template_ref or buffer.spec.scalable_ref
    if reference is None:
        raise TemplateError(f"{named(buffer)} names no pods; write spec.podTemplateRef or spec.scalableRef")
    kind = reference.kind or "PodTemplate"
    for each in others:
        if (each.kind, each.name, each.namespace) == (kind, reference.name, buffer.namespace):
            return template_of(each)
    raise TemplateError(f"{named(buffer)}: {kind} {reference.name} is not in the files; add it with -f")


def make_pods(workload: Workload, count: int, others: Iterable[Workload] = ()) -> MadePods:
    """So many pods of a workload, and what its controller makes beside them."""
    template = template_of(workload, others)
    owner, around = _owner(workload)
    made = MadePods([], around)
    first = workload.spec.ordinals.start
    job = workload.spec.job_template.spec if workload.spec.job_template is not None else workload.spec
    for number in range(first, first + count):
        pod = pod_from(template, workload, f"{workload.name}-{number}", owner)
        if workload.kind == "StatefulSet":
            pod, claims = _stateful(pod, workload, number)
            made.others.extend(claims)
        elif owner is not None and owner.kind == "Job":
            indexed = {INDEX: str(number)} if job is not None and job.completion_mode == "Indexed" else {}
            names = dict.fromkeys(JOB_NAME_LABELS, owner.name) | dict.fromkeys(JOB_UID_LABELS, owner.uid)
            pod = _labelled(pod, names | indexed)
        elif workload.kind == "Deployment":
            pod = _labelled(pod, {HASH_LABEL: HASH})
        made.pods.append(pod)
    return made


def pod_from(template: PodTemplateSpec, workload: Workload, name: str, owner: OwnerReference | None) -> Pod:
    """A pod of the template that no API server has seen yet."""
    metadata = ObjectMeta(
        name=name,
        namespace=workload.namespace,
        labels=dict(template.metadata.labels),
        annotations=dict(template.metadata.annotations),
        owner_references=() if owner is None else (owner,),
    )
    return Pod(metadata=metadata, spec=template.spec, status=PodStatus(phase="Pending"))


def named(workload: Workload) -> str:
    return f"{workload.kind} {workload.key}"


def _owner(workload: Workload) -> tuple[OwnerReference | None, list[Any]]:
    """What owns the pods, and the objects by which spreading finds its selector."""
    kind, name, uid = workload.kind, workload.name, workload.uid or workload.key
    if kind in ("PodTemplate", "CapacityBuffer"):
        return None, []
    metadata = ObjectMeta(name=name, namespace=workload.namespace, uid=uid)
    selector = _selector(workload)
    if kind == "Deployment":
        above = OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=uid, controller=True)
        name, uid = f"{name}-{HASH}", f"{uid}-{HASH}"
        if selector is not None:
            selector = replace(selector, match_labels={**selector.match_labels, HASH_LABEL: HASH})
        metadata = ObjectMeta(name=name, namespace=workload.namespace, uid=uid, owner_references=(above,))
        made: list[Any] = [ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(selector=selector))]
        return _reference("apps/v1", "ReplicaSet", name, uid), made
    if kind == "ReplicaSet":
        return _reference("apps/v1", kind, name, uid), [
            ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(selector=selector))
        ]
    if kind == "StatefulSet":
        spec = StatefulSetSpec(selector=selector, service_name=workload.spec.service_name)
        return _reference("apps/v1", kind, name, uid), [StatefulSet(metadata=metadata, spec=spec)]
    if kind == "CronJob":
        return _reference("batch/v1", "Job", name, uid), []
    return _reference(workload.api_version, kind, name, uid), []


def _reference(version: str, kind: str, name: str, uid: str) -> OwnerReference:
    return OwnerReference(api_version=version, kind=kind, name=name, uid=uid, controller=True)


def _selector(workload: Workload) -> LabelSelector | None:
    written = workload.spec.selector
    if not isinstance(written, Mapping):
        return None
    try:
        return msgspec.convert(written, LabelSelector)
    except msgspec.ValidationError as error:
        raise TemplateError(f"{named(workload)}: spec.selector: {error}") from None


def _labelled(pod: Pod, labels: Mapping[str, str]) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels={**pod.metadata.labels, **labels}))


def _stateful(pod: Pod, workload: Workload, number: int) -> tuple[Pod, list[PersistentVolumeClaim]]:
    """The pod with its own claims as volumes, and the claims."""
    pod = _labelled(pod, dict(zip(STATEFUL_LABELS, (pod.name, str(number)), strict=True)))
    claims, volumes = [], []
    for template in workload.spec.volume_claim_templates:
        name = f"{template.metadata.name}-{pod.name}"
        claims.append(
            PersistentVolumeClaim(
                metadata=replace(template.metadata, name=name, namespace=workload.namespace, uid=f"{pod.key}-{name}"),
                spec=template.spec,
            )
        )
        volumes.append(Volume(name=template.metadata.name, persistent_volume_claim=ClaimVolume(claim_name=name)))
    own = {each.name for each in volumes}
    others_volumes = [each for each in pod.spec.volumes if each.name not in own]
    return replace(pod, spec=replace(pod.spec, volumes=(*others_volumes, *volumes))), claims
