"""Makes the pods of a simulation: what is common to many stands in a template, the rest is written on arrival."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.kube.meta import Amount, ObjectMeta, OwnerReference, format_time
from podium.kube.pod import Container, PodSpec, PodStatus, ResourceRequirements
from podium.kube.requests import pod_requests
from podium_plugins.gpu.request import GpuRequestError, read_request

PENDING = PodStatus(phase="Pending")
FOREVER = float("inf")
OWNERS = {"ReplicaSet": ("replicasets.apps", "replicas"), "Job": ("jobs.batch", "parallelism")}
"""Kinds of owners: what plugins call them, and the field that says how many pods they want at a time."""

OF_ONE_OWNER = frozenset(
    (
        "pod-template-hash",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
    )
)
"""Labels that controllers write to tell their own pods apart."""

PodClass = tuple[str, str]
"""What distinguishes pods ("shape", "label app", …), and the value."""


class PodOwner:
    """A ReplicaSet or a Job that pods belong to, as far as plugins read it."""

    def __init__(self, kind: str, name: str, replicas: int) -> None:
        self.resource, field = OWNERS[kind]
        self.reference = OwnerReference(kind=kind, name=name, uid=f"owner/{name}", controller=True)
        metadata = {"name": name, "namespace": "default", "uid": self.reference.uid}
        self.value: JsonObject = {"metadata": metadata, "spec": {field: replicas}}


class PodTemplate:
    """Everything about a pod but its name and its times."""

    __slots__ = (
        "annotations",
        "classes",
        "cpu",
        "gpu",
        "grace",
        "labels",
        "memory",
        "namespace",
        "owner",
        "owner_references",
        "shape",
        "spec",
    )

    def __init__(
        self,
        spec: PodSpec,
        *,
        namespace: str = "default",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        owner_references: tuple[OwnerReference, ...] = (),
        owner: PodOwner | None = None,
        shape: str = "",
    ) -> None:
        self.spec = spec
        self.shape = shape
        self.namespace = namespace
        self.labels = labels or {}
        self.annotations = annotations or {}
        self.owner_references = owner_references if owner is None else (owner.reference,)
        self.owner = owner
        self.classes = self._classes()
        """What results tell its pods apart by."""
        grace = spec.termination_grace_period_seconds
        self.grace = float(30 if grace is None else max(0, grace))
        requests = pod_requests(Pod(spec=spec))
        self.cpu = int(requests.get("cpu", 0))
        """Thousandths of a core."""
        self.memory = int(requests.get("memory", 0))
        self.gpu = _gpu(self.annotations)
        """Thousandths of a GPU, on all devices together."""

    def _classes(self) -> tuple[PodClass, ...]:
        spec = self.spec
        found = [("shape", self.shape)] if self.shape else []
        if spec.priority_class_name:
            found.append(("priorityClassName", spec.priority_class_name))
        found += [("priority", str(spec.priority or 0)), ("namespace", self.namespace)]
        found += [(f"label {key}", value) for key, value in sorted(self.labels.items()) if key not in OF_ONE_OWNER]
        return tuple(found)

    def pod(self, name: str, now: float) -> Pod:
        """A new pod, as the API server would hand it out."""
        metadata = ObjectMeta(
            name=name,
            namespace=self.namespace,
            uid=f"{self.namespace}/{name}",
            labels=self.labels,
            annotations=self.annotations,
            owner_references=self.owner_references,
            creation_timestamp=_timestamp(int(now)),
        )
        return Pod(metadata=metadata, spec=self.spec, status=PENDING)

    def for_scheduler(self, name: str) -> None:
        """Have pods of this template decided by the scheduler of that name."""
        if self.spec.scheduler_name != name:
            self.spec = replace(self.spec, scheduler_name=name)


class PodArrival(NamedTuple):
    """A pod that comes at a time, runs for so long once it has started, and then ends.

    One that has a node already (`node_name`) is running when it comes. At `until` it goes, running or not. Where it is
    one of several `tasks`, the next one comes when it has ended.
    """

    at: float
    name: str
    template: PodTemplate
    lifetime: float
    node_name: str = ""
    until: float = FOREVER
    tasks: JobTasks | None = None


class JobTasks:
    """The tasks of a job that have not come yet."""

    __slots__ = ("first", "left", "name")

    def __init__(self, name: str, first: int, left: int) -> None:
        self.name = name
        self.first = first
        """The number of the next."""
        self.left = left

    def next(self, done: PodArrival, at: float) -> PodArrival | None:
        """The task that comes for one that has ended."""
        if not self.left:
            return None
        self.first, self.left = self.first + 1, self.left - 1
        return done._replace(at=at, name=f"{self.name}-{self.first - 1}")


def plain_spec(
    requests: Mapping[str, Amount],
    limits: Mapping[str, Amount] | None = None,
    *,
    priority: int | None = None,
    further: Mapping[str, Any] | None = None,
    grace: int = 0,
) -> PodSpec:
    """A pod of one container. `further` are fields of its spec, as Kubernetes spells them; raises ValidationError."""
    resources = ResourceRequirements(requests=dict(requests), limits=dict(limits or {}))
    only = Container(name="main", image="registry.k8s.io/pause:3.10", resources=resources)
    spec = PodSpec(containers=(only,), priority=priority, termination_grace_period_seconds=grace)
    if not further:
        return spec
    return msgspec.convert({**msgspec.to_builtins(spec), **further}, PodSpec)


def _gpu(annotations: Mapping[str, str]) -> int:
    try:
        return read_request(annotations).total
    except GpuRequestError:
        return 0


@lru_cache(maxsize=16)
def _timestamp(second: int) -> str:
    return format_time(second)
