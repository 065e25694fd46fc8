"""Defines the record of what differs between Kubernetes minors: one field for each fact, handed to whatever decides.

A field's default is the rule of the newest minor. The file of an older minor names only what was different then, so a
fact is added here and in the files of the minors it differs in, and nothing else asks for a version. When a minor is
dropped, `tests/podium/kube/versions` names the facts in which the others no longer differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from podium.kube.versions.devices import DeviceRules


class Gate(StrEnum):
    """The feature gates of kube-scheduler that Podium switches."""

    GENERIC_WORKLOAD = "GenericWorkload"
    GANG_SCHEDULING = "GangScheduling"
    TOPOLOGY_AWARE = "TopologyAwareWorkloadScheduling"
    WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"
    STORAGE_CAPACITY_SCORING = "StorageCapacityScoring"
    VOLUME_LIMIT_SCALING = "VolumeLimitScaling"
    DEVICE_TAINT_RULES = "DRADeviceTaintRules"


Gates = frozenset[Gate]
"""Those that are on."""

NO_GATES: Gates = frozenset()


class GateTable(NamedTuple):
    """The feature gates that the kube-scheduler of one minor knows, by stage, and which need others."""

    alpha: frozenset[str]
    """Off unless they are switched on."""
    beta_on: frozenset[str]
    """On unless they are switched off."""
    beta_off: frozenset[str]
    """Beta, and off unless they are switched on."""
    settled_on: frozenset[str]
    """Generally available or deprecated, on, and not locked."""
    settled_off: frozenset[str]
    """The same, off."""
    locked_on: frozenset[str]
    """Cannot be switched off."""
    locked_off: frozenset[str]
    """Cannot be switched on."""
    needs: Mapping[str, tuple[str, ...]]
    """Gates that may be on only while others are; where all that one needs is locked on, it is left out."""

    @property
    def defaults(self) -> dict[str, bool]:
        on = (*self.beta_on, *self.settled_on, *self.locked_on)
        off = (*self.alpha, *self.beta_off, *self.settled_off, *self.locked_off)
        return {**dict.fromkeys(off, False), **dict.fromkeys(on, True)}

    @property
    def on_by_default(self) -> Gates:
        """Of the gates that Podium switches."""
        defaults = self.defaults
        return frozenset(gate for gate in Gate if defaults.get(gate))


def gate_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SWITCHED: Final = frozenset(
    (
        Gate.GENERIC_WORKLOAD,
        Gate.TOPOLOGY_AWARE,
        Gate.STORAGE_CAPACITY_SCORING,
        Gate.VOLUME_LIMIT_SCALING,
        Gate.DEVICE_TAINT_RULES,
    )
)


class ImageVolumes(StrEnum):
    """How ImageLocality counts the images of a pod's image volumes."""

    IGNORED = "ignored"
    IN_THE_SUM = "in the sum"
    IN_SUM_AND_LIMIT = "in the sum and its limit"


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRules:
    """What the kube-scheduler of one minor does that another does not; the defaults are those of the newest."""

    minor: int
    """The 37 of 1.37."""
    table: GateTable = field(hash=False)
    """The feature gates it knows."""
    gates: Gates
    """The gates that are on: by default, or as `--feature-gates` says."""
    switched: Gates = _SWITCHED
    """The gates that Podium switches; any other stays at its default."""
    part_of_generic_workload: Gates = frozenset((Gate.GANG_SCHEDULING, Gate.WORKLOAD_AWARE_PREEMPTION))
    """What GenericWorkload alone switches on; before, each was a gate."""

    # Configuration

    node_name_first: bool = True
    """NodeName stands before NodeUnschedulable in the default plugins."""
    node_name_pre_filters: bool = True
    """NodeName restricts a pod to the node it names at PreFilter."""

    pod_groups_are_queued: bool = True
    """A pod group waits in the queue as one entity, is checked before its cycle, and its members are tried without
    PostFilter and Permit; before, the first member to be popped pulled the others along."""
    pod_groups_are_victims: bool = True
    """For a single pod that preempts, a pod group that is disrupted whole is one victim; before, each pod was."""
    pod_group_post_filter_point: bool = True
    """Making room for a pod group has an extension point of its own, podGroupPostFilter; before, postFilter did it."""

    # Messages

    device_post_filter_gives_reasons: bool = False
    """PostFilter of DynamicResources gives a reason where it has nothing to free."""
    preemption_names_the_node: bool = True
    """A successful preemption says on which node and how many victims."""

    # Scores

    balance_without_the_pod: bool = True
    """NodeResourcesBalancedAllocation compares with the node as it is without the pod."""
    image_volumes: ImageVolumes = ImageVolumes.IN_SUM_AND_LIMIT
    """How ImageLocality counts images that are volumes."""

    # Filters

    resize_by_sums: bool = True
    """A pod under resize occupies the maximum of whole-pod sums, not the sum of its containers' maxima."""
    empty_labels_reach_namespaces: bool = False
    """A pod's namespaceSelector that a namespace without labels matches reaches every namespace."""
    bind_mount_options: bool = True
    """A pod with bindMountOptions needs a node that declares VolumeBindMountOptions."""
    declared_features: bool = True
    """NodeDeclaredFeatures is among the default plugins, and looks at pods; before, it let all pass."""

    pod_group_condition: str = "PodGroupInitiallyScheduled"
    """The condition that the scheduler writes into the status of a PodGroup."""
    devices: DeviceRules = DeviceRules()  # noqa: RUF009  it is frozen
    """How devices are allocated."""

    # Preemption

    budgets_stop_at_the_first_broken: bool = True
    """A victim that breaks one disruption budget does not use up the budgets after it."""

    unstarted_victims_keep_their_order: bool = True
    """Of victims that have not started, the first on the node stays first; before, the last did."""

    # Queue

    own_changes_have_a_name: bool = True
    """Events call the waiting pod itself TargetPod, and others UnscheduledPod; before, all were UnschedulablePod."""
    taint_changes_wake_node_listeners: bool = False
    """A plugin that listens to added nodes, but not to taints, has its pods woken by every change of taints."""
    any_own_anti_affinity_term_wakes: bool = True
    """A pod is woken when a pod leaves that matches any of its anti-affinity terms; before, all of them."""
    gated_nominations_count: bool = True
    """The nominated node of a gated pod is reserved for it as soon as the pod is seen."""

    # Batches

    batches_score_the_last_node_again: bool = True
    """A batch goes on where the node that the last pod took has room for the next; before, it ended there."""

    # Metrics

    counts_queued_entities: bool = True
    """Metrics count what is queued as entities, pods or pod groups, too, and groups that wait in pending_pods."""
    claim_creates_say_the_owner: bool = True
    """The metric of created claims has the name it has in the resource claim controller, and labels of the owner."""

    # Binding

    bind_retries: int = 3
    """How often a binding that got 500, 503 or no connection is tried again."""

    def __str__(self) -> str:
        """
        >>> from podium.kube.versions import NEWEST
        >>> str(NEWEST)
        '1.37'
        """
        return f"1.{self.minor}"

    @property
    def gates_switched(self) -> list[str]:
        """What `--feature-gates` has to say: the gates that are not at their default, as "GenericWorkload=true"."""
        parts = self.part_of_generic_workload
        off, on = self.table.on_by_default - self.gates, self.gates - self.table.on_by_default - parts
        return sorted([*(f"{gate}=true" for gate in on), *(f"{gate}=false" for gate in off)])

    def with_gates(self, on: Iterable[Gate]) -> VersionRules:
        """The same rules with exactly these gates on."""
        return replace(self, gates=frozenset(on))

    def and_gates(self, *on: Gate) -> VersionRules:
        """The same rules with these gates on, too."""
        return replace(self, gates=self.gates | frozenset(on))
