"""Types what decides between pods: priority classes, and the disruption budgets that preemption tries to respect."""

from msgspec import field

from podium.kube.meta import ClusterObject, LabelSelector, Model, NamespacedObject


class PriorityClass(ClusterObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


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
