"""Types the kinds around pods: what owns or fronts them, what decides between them, and the namespaces they are in.

Scheduling reads only how a Service, ReplicationController, ReplicaSet or StatefulSet selects its pods. Priority classes
decide who goes first, runtime classes add to what their pods ask for, disruption budgets are what preemption tries to
respect, and affinity terms select namespaces by their labels.
"""

from msgspec import field

from podium.kube.meta import ClusterObject, LabelSelector, Model, NamespacedObject, Resources
from podium.kube.pod import Toleration


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
