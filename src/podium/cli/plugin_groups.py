"""Sorts the plugins into groups, and says in one line what each is for."""

import re
import sys
from typing import Final

from podium.framework import Plugin

GROUPS: Final[dict[str, dict[str, str]]] = {
    "The queue and its order": {
        "SchedulingGates": "pods with scheduling gates wait until all are removed",
        "PrioritySort": "higher priority first, then the pod that has waited longer",
        "QOSSort": "higher priority first, then Guaranteed before Burstable before BestEffort",
        "QosAware": "workloads get the availability they were promised; who is behind goes first",
        "TopologicalSort": "pods of an AppGroup in the order in which their workloads depend on each other",
    },
    "What a node must be": {
        "NodeUnschedulable": "no pods on cordoned nodes",
        "NodeName": "a pod that names its node goes there",
        "TaintToleration": "no pods on nodes with taints that they do not tolerate",
        "NodeAffinity": "node selectors and node affinity, required and preferred",
        "NodePorts": "a host port is used once on a node",
        "NodeDeclaredFeatures": "a feature that a pod needs is one that the node declares",
        "NodeMetadata": "prefer nodes by a number or a time in a label or annotation",
    },
    "Room on nodes": {
        "NodeResourcesFit": "requests fit what is free; least, most or shaped allocation is preferred",
        "NodeResourcesBalancedAllocation": "prefer nodes whose resources the pod evens out",
        "NodeResourcesAllocatable": "prefer small or large nodes, whatever runs on them",
        "ImageLocality": "prefer nodes that have the pod's images",
        "PodState": "prefer nodes that pods are leaving, avoid those with nominated pods",
        "PigeonHoling": "prefer the node after whose choice the whole cluster looks best",
    },
    "Pods near or away from others": {
        "PodTopologySpread": "pods spread evenly over zones, nodes or other domains",
        "InterPodAffinity": "pods near, or away from, pods with given labels",
        "NetworkOverhead": "pods of an AppGroup near the pods they depend on, by network cost",
        "SySched": "pods that use similar system calls share nodes",
    },
    "Gangs and quotas": {
        "Coscheduling": "the pods of a PodGroup start together, or none does",
        "GangScheduling": "the pods of a PodGroup of Kubernetes itself start together, or none does",
        "TopologyPlacementGenerator": "such a PodGroup goes to one zone, rack or other domain, where it asks for that",
        "PodGroupPodsCount": "of several such domains, prefer the one with room for more of its pods",
        "CapacityScheduling": "elastic quotas of namespaces: guaranteed, borrowed, reclaimed",
    },
    "Preemption": {
        "DefaultPreemption": "evict pods of lower priority on one node for a pod that fits nowhere",
        "PreemptionToleration": "the same, but spare pods whose class tolerates it for a while",
        "CrossNodePreemption": "evict pods on several nodes so that a pod fits on one",
    },
    "Devices, NUMA and volumes": {
        "DynamicResources": "devices by resource claims",
        "NodeResourceTopologyMatch": "pods fit a NUMA zone, as the kubelet's topology manager would decide",
        "VolumeRestrictions": "disks and claims that two pods may not share",
        "NodeVolumeLimits": "a driver attaches only so many volumes to a node",
        "VolumeBinding": "a pod goes where its volumes can be",
        "VolumeZone": "a pod goes to the zone of its bound volumes",
        "GpuShare": "parts of GPUs, or whole ones, on one node",
        "GpuRandom": "GPU nodes at random",
        "GpuDotProd": "GPU nodes whose room points another way than the request",
        "GpuPacking": "GPUs in use first, then free GPUs of nodes in use",
        "GpuClustering": "GPU nodes with pods that ask for as many GPUs",
        "GpuBestFit": "GPU nodes with the least room left",
        "GpuFGD": "GPU nodes whose idle GPUs stay usable (fragmentation gradient descent)",
    },
    "Measured load": {
        "MeasuredLoad": "prefer nodes under little pressure, by several metrics together",
        "TargetLoadPacking": "fill nodes up to a cpu utilisation, and spread beyond it",
        "LoadVariationRiskBalancing": "prefer nodes whose load is low and steady",
        "LowRiskOverCommitment": "prefer nodes where pods are least likely to want more than there is",
        "Peaks": "prefer nodes where the pod adds least to the power drawn",
        "NetworkTraffic": "prefer nodes with little network traffic",
        "PrometheusScore": "a score from any PromQL expression",
        "SafeOverload": "no nodes on which usage may well exceed a threshold",
        "SafeBalance": "prefer nodes with low and steady usage",
        "Congestion": "nodes marked as congested come last",
    },
    "Learning": {
        "LearnedScore": "a policy that was trained for the workload",
        "OnlineScore": "prefer nodes on which pods are expected to fare well, by the rewards of others",
        "RewardBias": "prefer nodes on which pods of the same type have fared well",
    },
    "Binding, and a start": {
        "DefaultBinder": "write the binding to the API server",
        "Template": "the plugin to copy",
    },
}
"""What each plugin is for, by group, in the order in which they are shown."""

OTHERS: Final = "Others"
_GROUP_OF: Final = {name: group for group, lines in GROUPS.items() for name in lines}


def group_of(name: str) -> str:
    """
    >>> group_of("Coscheduling")
    'Gangs and quotas'
    """
    return _GROUP_OF.get(name, OTHERS)


def purpose_of(name: str, plugin: type[Plugin]) -> str:
    """What a plugin is for; of one that is not listed, the first sentence of its documentation."""
    listed = GROUPS.get(group_of(name), {}).get(name)
    if listed is not None:
        return listed
    written = plugin.__doc__ or getattr(sys.modules.get(plugin.__module__), "__doc__", None) or ""
    sentence = re.split(r"(?<=[.!?])\s|\n\s*\n", written.strip(), maxsplit=1)[0]
    return " ".join(sentence.split()).rstrip(".")
