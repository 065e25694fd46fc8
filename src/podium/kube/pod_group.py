"""Types PodGroup (scheduling.k8s.io): pods that kube-scheduler schedules together.

Only what scheduling reads is here, of v1beta1 and of v1alpha2, which Kubernetes 1.36 serves and no later version. They
differ in how the disruption mode is written. Workload, of which PodGroups may be made, is read by no scheduler.
"""

from __future__ import annotations

from podium.kube.meta import Condition, Model, NamespacedObject
from podium.kube.pod import Pod


class GangPolicy(Model, frozen=True, kw_only=True):
    min_count: int = 0


class GroupSchedulingPolicy(Model, frozen=True, kw_only=True):
    """`basic`: members are bound as they fit; `gang`: none is before `minCount` of them can be."""

    basic: dict[str, object] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Model, frozen=True, kw_only=True):
    key: str = ""


class GroupSchedulingConstraints(Model, frozen=True, kw_only=True):
    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(Model, frozen=True, kw_only=True):
    """Whether preemption takes members one by one, or all at once."""

    single: dict[str, object] | None = None
    all: dict[str, object] | None = None


class PodGroupSpec(Model, frozen=True, kw_only=True):
    scheduling_policy: GroupSchedulingPolicy = GroupSchedulingPolicy()
    scheduling_constraints: GroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | str | None = None
    """Of v1alpha2 it is a word, Pod or PodGroup."""
    priority_class_name: str = ""
    priority: int | None = None


class GroupStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class PodGroup(NamespacedObject, frozen=True, kw_only=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: GroupStatus = GroupStatus()

    @property
    def min_count(self) -> int | None:
        """How many members a gang needs; None for a group that is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def topology_key(self) -> str | None:
        """The node label of which all members must find one value; None where there is no such rule."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else None

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def evicted_whole(self) -> bool:
        """Whether preemption takes all members or none."""
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


def pod_group_key(pod: Pod) -> str | None:
    """The "namespace/name" of the PodGroup that the pod names; None where it names none.

    >>> pod_group_key(Pod()) is None
    True
    """
    group = pod.spec.scheduling_group
    return None if group is None or not group.pod_group_name else f"{pod.namespace}/{group.pod_group_name}"
