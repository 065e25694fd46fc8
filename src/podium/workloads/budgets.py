"""Counts what a PodDisruptionBudget allows while pods go and come back.

    allowed = healthy − desired, never below 0, and 0 while no pods are expected

A status that the disruption controller has written counts; in a dump without one, the numbers are worked out from the
pods and the scale of what owns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.kube import Pod, PodDisruptionBudget
from podium.kube.selector import Selector, compile_label_selector
from podium.workloads.deletion_order import is_ready


@dataclass(eq=False)
class Budget:
    """One budget, and how its pods stand."""

    key: str
    namespace: str
    selector: Selector
    selects: bool
    healthy: int
    desired: int
    expected: int
    always_lets_unready_go: bool

    @classmethod
    def of(cls, budget: PodDisruptionBudget, pods: Iterable[Pod], owners: Iterable[Any]) -> Budget:
        """The budget as its status says, or as pods and owners (ReplicaSets, StatefulSets, …) have it."""
        selector = compile_label_selector(budget.spec.selector)
        found = cls(
            budget.key,
            budget.namespace,
            selector,
            budget.spec.selector is not None,
            budget.status.current_healthy,
            budget.status.desired_healthy,
            budget.status.expected_pods,
            budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
        )
        if not budget.status.expected_pods:
            found._count(budget, [pod for pod in pods if found.guards(pod)], owners)
        return found

    def _count(self, budget: PodDisruptionBudget, pods: Sequence[Pod], owners: Iterable[Any]) -> None:
        spec = budget.spec
        self.healthy = sum(_is_healthy(pod) for pod in pods)
        by_number = spec.max_unavailable is None and isinstance(spec.min_available, int)
        self.expected = len(pods) if by_number else expected_pods(pods, owners)
        if spec.max_unavailable is not None:
            self.desired = max(0, self.expected - scaled(spec.max_unavailable, self.expected, round_up=True))
        elif spec.min_available is not None:
            self.desired = scaled(spec.min_available, self.expected, round_up=True)
        else:
            self.desired = 1

    def guards(self, pod: Pod) -> bool:
        return self.selects and pod.namespace == self.namespace and self.selector.matches(pod.labels)

    @property
    def allowed(self) -> int:
        """How many of its pods may be evicted now."""
        return max(0, self.healthy - self.desired) if self.expected else 0

    @property
    def lets_unready_go(self) -> bool:
        """Whether a pod that is not ready may be evicted without counting."""
        return self.always_lets_unready_go or (self.healthy >= self.desired > 0)

    @property
    def never(self) -> str:
        """Why it can never allow an eviction; empty where it can."""
        if self.expected and self.desired >= self.expected:
            return f"budget {self.key} needs {self.desired} of {self.expected} pods: it never allows an eviction"
        return ""


def budgets_of(pod: Pod, budgets: Iterable[Budget]) -> list[Budget]:
    """The budgets that guard a pod."""
    return [budget for budget in budgets if budget.guards(pod)]


def expected_pods(pods: Sequence[Pod], owners: Iterable[Any]) -> int:
    """The scale of the controllers of these pods; of a controller that is not known, its pods."""
    replicas = {(type(each).__name__, each.namespace, each.name): each.spec.replicas for each in owners}
    scales: dict[tuple[str, str, str], int] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None:
            key = (owner.kind, pod.namespace, owner.name)
            counts[key] = counts.get(key, 0) + 1
            scale = replicas.get(key)
            scales[key] = counts[key] if scale is None else scale
    return sum(scales.values())


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """The number meant by `value` out of `total`.

    >>> scaled("25%", 10, round_up=True), scaled("25%", 10, round_up=False), scaled(3, 10, round_up=True)
    (3, 2, 3)
    """
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    percent = (int(text) if text.isdecimal() else 0) * total
    return -(-percent // 100) if round_up else percent // 100


def _is_healthy(pod: Pod) -> bool:
    if pod.terminating:
        return False
    return is_ready(pod) if pod.status.conditions else pod.status.phase in ("Running", "") and bool(pod.node_name)
