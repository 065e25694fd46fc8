"""A scheduler with kube-scheduler's gates of pod groups on, and PodGroups (scheduling.k8s.io) with their pods."""

from __future__ import annotations

from typing import Any

from podium.config.feature_gates import Gate
from podium.kube import Condition, Pod, PodGroup
from tests.podium.engine.schedulers import Failed, World
from tools.kit.builders import build, make_pod

GANGS = frozenset((Gate.GENERIC_WORKLOAD, Gate.GANG_SCHEDULING))
TOPOLOGY = GANGS | {Gate.TOPOLOGY_AWARE}
PREEMPTION = GANGS | {Gate.WORKLOAD_AWARE_PREEMPTION}
ALL_GATES = frozenset(Gate)


def pod_group(
    name: str = "g", minimum: int | None = 3, *, key: str = "", conditions: list[Any] | None = None, **spec: Any
) -> PodGroup:
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return build(
        PodGroup,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1},
            "spec": {"schedulingPolicy": policy, **spec},
            "status": {"conditions": conditions or []},
        },
    )


def group_member(name: str, group: str = "g", *, cpu: str | int = 1, **options: Any) -> Pod:
    spec = {"schedulingGroup": {"podGroupName": group}, **options.pop("spec", {})}
    return make_pod(name, requests={"cpu": cpu}, spec=spec, **options)


def group_members(number: int, group: str = "g", **options: Any) -> list[Pod]:
    return [group_member(f"{group}-{i}", group, **options) for i in range(number)]


class PodGroupWorld(World):
    """All default plugins with gates on; `conditions` are what is to be written into PodGroups."""

    def __init__(self, *plugins: Any, gates: frozenset[Gate] = GANGS, **options: Any) -> None:
        self.conditions: list[tuple[str, Condition]] = []
        super().__init__(
            *plugins, default=True, gates=gates, on_group_condition=self._note, **{"parity": True, **options}
        )

    def _note(self, group: PodGroup, condition: Condition) -> None:
        self.conditions.append((group.name, condition))

    def run(self, most: int = 1000) -> None:
        """Try pods until none is ready."""
        for _ in range(most):
            if self.scheduler.schedule_one() is None:
                return
        raise AssertionError(f"still busy after {most} attempts")

    @property
    def last(self) -> dict[str, Failed]:
        """The last failure of each pod, by name."""
        return {failed.key.partition("/")[2]: failed for failed in self.failures}

    @property
    def messages(self) -> dict[str, str]:
        return {name: failed.message for name, failed in self.last.items()}

    @property
    def nominations(self) -> dict[str, str]:
        return {name: failed.nomination.node_name if failed.nomination else "" for name, failed in self.last.items()}

    @property
    def condition(self) -> tuple[str, str, str]:
        """Status, reason and message of what was last written."""
        _group, condition = self.conditions[-1]
        return condition.status, condition.reason, condition.message
