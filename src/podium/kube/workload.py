"""Types what makes pods (Deployment, StatefulSet, Job, …): how many pods, and the template they are made from."""

from typing import Any, Final

from msgspec import field

from podium.kube.meta import Model, NamespacedObject, ObjectMeta
from podium.kube.pod import PodSpec, VolumeClaimTemplate


class PodTemplateSpec(Model, frozen=True, kw_only=True):
    """What every pod of a workload is made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class JobSpec(Model, frozen=True, kw_only=True):
    """What a CronJob's Jobs are made from."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    completion_mode: str = ""
    template: PodTemplateSpec | None = None


class JobTemplate(Model, frozen=True, kw_only=True):
    spec: JobSpec | None = None


class Reference(Model, frozen=True, kw_only=True):
    """An object of the same namespace, by name."""

    kind: str = ""
    name: str = ""


class Ordinals(Model, frozen=True, kw_only=True):
    start: int = 0


class WorkloadSpec(Model, frozen=True, kw_only=True):
    """The fields of all kinds together; each kind has some of them."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    completion_mode: str = ""
    ordinals: Ordinals = Ordinals()
    """Where a StatefulSet begins to count."""
    selector: Any = None
    template: PodTemplateSpec | None = None
    service_name: str = ""
    volume_claim_templates: tuple[VolumeClaimTemplate, ...] = ()
    job_template: JobTemplate | None = None
    pod_template_ref: Reference | None = None
    scalable_ref: Reference | None = None


class Workload(NamespacedObject, frozen=True, kw_only=True):
    """An object that makes pods."""

    api_version: str = ""
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    template: PodTemplateSpec | None = None
    """What a PodTemplate has in place of a spec."""
    status: dict[str, Any] = field(default_factory=dict)


WORKLOAD_KINDS: Final = {
    ("apps/v1", "Deployment"): Workload,
    ("apps/v1", "ReplicaSet"): Workload,
    ("apps/v1", "StatefulSet"): Workload,
    ("apps/v1", "DaemonSet"): Workload,
    ("v1", "ReplicationController"): Workload,
    ("v1", "PodTemplate"): Workload,
    ("batch/v1", "Job"): Workload,
    ("batch/v1", "CronJob"): Workload,
    ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer"): Workload,
    ("autoscaling.x-k8s.io/v1alpha1", "CapacityBuffer"): Workload,
}
"""The kinds whose pods can be made here, by apiVersion and kind."""
