"""Says what a scheduler's upgrade from one Kubernetes minor to another changes: gates, defaults, and decisions.

The sentences of a fact stand here, in the order of `VersionRules`; a test asks for one where minors differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Final, NamedTuple

from podium.kube.versions.rules import VersionRules


class UpgradeChange(NamedTuple):
    """One thing that an upgrade changes."""

    kind: str
    """"gate", "default", "field" or "rule"."""
    name: str
    before: str
    after: str
    effect: str
    """What it does to decisions."""


class _Fact(NamedTuple):
    kind: str
    name: str
    plugin: str
    """The plugin without which the fact does not matter; empty: it always does."""
    on: str
    """What holds where the fact is true, or what it is called."""
    off: str
    effect: str


_FACTS: Final = {
    "node_name_first": _Fact(
        "default",
        "order of the default plugins",
        "",
        "NodeName, NodeUnschedulable",
        "NodeUnschedulable, NodeName",
        "none, except for a pod that names its node: NodeName's reason comes first",
    ),
    "node_name_pre_filters": _Fact(
        "rule",
        "NodeName at PreFilter",
        "NodeName",
        "keeps a pod to the node it names",
        "no PreFilter",
        "other nodes say: node(s) didn't satisfy plugin(s) [NodeName]",
    ),
    "pod_group_post_filter_point": _Fact(
        "field",
        "profiles[].plugins.podGroupPostFilter",
        "",
        "an extension point",
        "not known",
        "which plugins make room for a pod group is said there, and no longer under postFilter",
    ),
    "device_post_filter_gives_reasons": _Fact(
        "rule",
        "message of DynamicResources' PostFilter",
        "DynamicResources",
        "no new claims to deallocate",
        "no text",
        "none; the message of every pod that fits nowhere gets shorter",
    ),
    "preemption_names_the_node": _Fact(
        "rule",
        "message of a preemption",
        "DefaultPreemption",
        "names the node and the number of victims",
        "no text",
        "none; conditions and events say where room is made",
    ),
    "balance_without_the_pod": _Fact(
        "rule",
        "score of NodeResourcesBalancedAllocation",
        "NodeResourcesBalancedAllocation",
        "50 + (50 + with − without the pod)/2",
        "balance with the pod",
        "nodes that the pod unbalances lose points; balanced ones no longer win by standing so",
    ),
    "image_volumes": _Fact(
        "rule",
        "image volumes in ImageLocality",
        "ImageLocality",
        "",
        "",
        "pods with image volumes get other scores",
    ),
    "resize_by_sums": _Fact(
        "rule",
        "requests of a pod under resize",
        "",
        "largest of three sums",
        "sum of each container's largest",
        "a node may have more or less room while a pod on it is resized",
    ),
    "empty_labels_reach_namespaces": _Fact(
        "rule",
        "namespaceSelector that only excludes",
        "InterPodAffinity",
        "reaches every namespace",
        "reaches the namespaces it chooses",
        "affinity terms with NotIn or DoesNotExist count fewer pods",
    ),
    "bind_mount_options": _Fact(
        "rule",
        "pods with bindMountOptions",
        "NodeDeclaredFeatures",
        "need a node that declares VolumeBindMountOptions",
        "go anywhere",
        "such pods may fit nowhere until kubelets are upgraded",
    ),
    "declared_features": _Fact(
        "default",
        "plugin NodeDeclaredFeatures",
        "",
        "enabled",
        "–",
        "pods that need a kubelet feature go only where it is declared",
    ),
    "pod_groups_are_queued": _Fact(
        "rule",
        "pod groups in the queue (GenericWorkload)",
        "",
        "one entity, whose members have its priority",
        "one by one",
        "groups of mixed priorities fail; members do not preempt, the group does",
    ),
    "pod_groups_are_victims": _Fact(
        "rule",
        "pod groups as victims of one pod (GenericWorkload)",
        "DefaultPreemption",
        "disrupted whole, one victim",
        "pod by pod",
        "preemption may choose another node",
    ),
    "pod_group_condition": _Fact(
        "rule",
        "condition of a PodGroup",
        "",
        "",
        "",
        "none; tools that read the condition have to read the new name",
    ),
    "devices": _Fact(
        "rule",
        "allocation of devices",
        "DynamicResources",
        "",
        "",
        "DeviceTaintRules count; distinctAttribute compares all devices; errors name the device",
    ),
    "budgets_stop_at_the_first_broken": _Fact(
        "rule",
        "disruption budgets of a victim that breaks one",
        "DefaultPreemption",
        "the others keep their allowance",
        "all are used up",
        "preemption may choose another node",
    ),
    "unstarted_victims_keep_their_order": _Fact(
        "rule",
        "victims that have not started",
        "DefaultPreemption",
        "the last on the node goes first",
        "the first on the node goes first",
        "of equal pods that wait for their kubelet, another one may be evicted",
    ),
    "own_changes_have_a_name": _Fact(
        "default",
        "events of waiting pods in metrics",
        "",
        "TargetPod for its own changes, UnscheduledPod for those of others",
        "UnschedulablePod",
        "none: change the label event in dashboards and alerts",
    ),
    "taint_changes_wake_node_listeners": _Fact(
        "rule",
        "a node's taints change",
        "",
        "wakes pods that wait for any change of nodes",
        "wakes pods that taints keep out",
        "pods that lack resources are not tried again for it",
    ),
    "any_own_anti_affinity_term_wakes": _Fact(
        "rule",
        "a pod leaves that matches anti-affinity terms",
        "InterPodAffinity",
        "any term suffices to wake",
        "all terms have to match",
        "pods with several anti-affinity terms wait less",
    ),
    "gated_nominations_count": _Fact(
        "rule",
        "nominated node of a gated pod",
        "",
        "is reserved at once",
        "is reserved when the gates are open",
        "pods of lower priority may not take that room",
    ),
    "batches_score_the_last_node_again": _Fact(
        "rule",
        "equal pods in a row (OpportunisticBatching)",
        "",
        "share scores also where a node takes several",
        "share scores where each fills a node",
        "the same scores; of equal nodes another one may be taken",
    ),
    "counts_queued_entities": _Fact(
        "default",
        "metrics of the queue",
        "",
        "queued_entities, queue_incoming_entities_total",
        "of pods alone",
        "none: dashboards may count pod groups",
    ),
    "claim_creates_say_the_owner": _Fact(
        "default",
        "metric of created claims",
        "DynamicResources",
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "scheduler_resourceclaim_creates_total",
        "none: change the name in dashboards and alerts",
    ),
    "bind_retries": _Fact(
        "rule",
        "binding answered with 500, 503 or no connection",
        "",
        "",
        "",
        "fewer pods go back to the queue while an API server restarts",
    ),
}

_SCHEDULING: Final = (
    *("ClearingNominatedNodeName", "CompositePodGroup", "DRA", "DynamicResource", "GangScheduling", "GenericWorkload"),
    *("InPlacePod", "InterPodAffinity", "MatchLabelKeys", "MutableCSINode", "NodeDeclaredFeatures"),
    *("NodeInclusionPolicy", "NominatedNodeName", "OpportunisticBatching", "PodGroup", "PodLevelResources"),
    *("PodScheduling", "Scheduler", "SidecarContainers", "StorageCapacityScoring", "TaintToleration", "TopologyAware"),
    *("VolumeBindMount", "VolumeLimitScaling", "Workload"),
)
"""How the names of gates begin that scheduling depends on."""

_GATE_EFFECTS: Final = {
    "StorageCapacityScoring": "VolumeBinding scores nodes by the storage that is left there",
    "VolumeLimitScaling": "a CSIDriver may keep pods from nodes that do not have it",
    "DRADeviceTaintRules": "taints of DeviceTaintRules keep devices from being allocated",
    "DRAFractionalCapacityRange": "capacity ranges below one unit are computed in thousandths",
    "GangScheduling": "part of GenericWorkload",
    "WorkloadAwarePreemption": "part of GenericWorkload",
    "SchedulerQueueingHints": "none: always on",
}

_GONE, _LOCKED = "–", ", locked"


def changes_between(before: VersionRules, after: VersionRules, plugins: Collection[str]) -> Iterator[UpgradeChange]:
    """What an upgrade changes for a scheduler with these plugins."""
    for field in fields(VersionRules):
        fact = _FACTS.get(field.name)
        old, new = getattr(before, field.name), getattr(after, field.name)
        if fact is None or old == new or (fact.plugin and fact.plugin not in plugins):
            continue
        words = _in_words(fact, old, before), _in_words(fact, new, after)
        yield UpgradeChange(fact.kind, fact.name, *words, fact.effect)
    names = sorted(before.table.defaults.keys() | after.table.defaults.keys())
    for name in (each for each in names if each.startswith(_SCHEDULING)):
        old, new = _state(name, before), _state(name, after)
        if old != new and (old, new) != (_GONE, "off"):
            yield UpgradeChange("gate", name, old, new, _GATE_EFFECTS.get(name, _usual_effect(old, new)))


def explained_facts() -> set[str]:
    return set(_FACTS)


def _in_words(fact: _Fact, value: object, rules: VersionRules) -> str:
    if isinstance(value, bool):
        return fact.on if value else fact.off
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"tried again {value} times" if value else "not tried again"
    return f"as in {rules}"


def _state(name: str, rules: VersionRules) -> str:
    table = rules.table
    if name not in table.defaults:
        return _GONE
    return ("on" if table.defaults[name] else "off") + (_LOCKED if name in table.locked_on | table.locked_off else "")


def _usual_effect(old: str, new: str) -> str:
    if new == _GONE:
        return "kube-scheduler refuses the name: leave it out of --feature-gates"
    if new.endswith(_LOCKED):
        return "cannot be switched any more"
    return f"what it governs is {new} unless you say otherwise"
