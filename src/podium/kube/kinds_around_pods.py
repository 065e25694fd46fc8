"""Types the kinds around pods: what owns or fronts them, what decides between them, and the namespaces they are in.

Scheduling reads only how a Service, ReplicationController, ReplicaSet or StatefulSet selects its pods. Priority classes
decide who goes first, runtime classes add to what their pods ask for, disruption budgets are what preemption tries to
respect, and affinity terms select namespaces by their labels.

Also types what makes pods (Deployment, StatefulSet, Job, …): how many pods, and the template they are made from.
"""

from typing import Any, Final

from msgspec import field

from podium.kube.meta import ClusterObject, LabelSelector, Model, NamespacedObject, ObjectMeta, Resources
from podium.kube.pod import PodSpec, Toleration, VolumeClaimTemplate


class ServiceSpec(Model, frozen=True, kw_only=True):
    selector: dict[str, str] = field(default_factory=dict)
    type: str = ""


class Service(NamespacedObject, frozen=True, kw_only=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(NamespacedObject, frozen=True, kw_only=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(NamespacedObject, frozen=True, kw_only=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""


class StatefulSet(NamespacedObject, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class NamespaceStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class Namespace(ClusterObject, frozen=True, kw_only=True):
    status: NamespaceStatus = NamespaceStatus()


class PriorityClass(ClusterObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class RuntimeOverhead(Model, frozen=True, kw_only=True):
    pod_fixed: Resources = field(default_factory=dict)


class RuntimeScheduling(Model, frozen=True, kw_only=True):
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(ClusterObject, frozen=True, kw_only=True):
    overhead: RuntimeOverhead = RuntimeOverhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()


class PodDisruptionBudgetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Model, frozen=True, kw_only=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = field(default_factory=dict)


class PodDisruptionBudget(NamespacedObject, frozen=True, kw_only=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


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
