"""Lists what Kubernetes 1.37 requires of its own scheduler: the CI thresholds of scheduler_perf, in pods a second.

They are those of the `performance-config.yaml` files below `test/integration/scheduler_perf`, for each workload at the
size it is written for. A workload that has none there, or is Podium's own, has none here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

THRESHOLDS: Final[Mapping[str, float]] = {
    "SchedulingBasic/5000Nodes_10000Pods": 680,
    "SchedulingBasic/5000Nodes_50000Pods": 790,
    "SchedulingDaemonset/15000Nodes": 1100,
    "Unschedulable/5kNodes/100Init/10kPods": 590,
    "Unschedulable/5kNodes/20kInit/10kPods": 600,
    "SchedulingWithMixedChurn/5000Nodes_10000Pods": 710,
    "SchedulingWhileGated/1Node_10000GatedPods": 910,
    "SchedulingDeletedPodsWithFinalizers/5000Node_5000DeletingPods": 830,
    "SchedulingWithExtendedResource/5000pods_5000nodes": 180,
    "NodeDeclaredFeaturesEnabled/5000Nodes20DeclaredFeatures": 890,
    "NodeDeclaredFeaturesEnabled/5000Nodes40DeclaredFeatures": 890,
    "NodeDeclaredFeaturesEnabled/5000Nodes100DeclaredFeatures": 890,
    "PreemptionAsync/5000Nodes": 570,
    "SchedulingPodAntiAffinity/5000Nodes_2000Pods": 180,
    "SchedulingPodMatchingAntiAffinity/5000Nodes_5000Pods": 540,
    "SchedulingPodAffinity/5000Nodes_5000Pods": 70,
    "SchedulingPreferredPodAffinity/5000Nodes_5000Pods": 160,
    "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods": 190,
    "SchedulingNodeAffinity/5000Nodes_10000Pods": 540,
    "MixedSchedulingBasePod/5000Nodes_5000Pods": 540,
    "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods": 140,
    "SchedulingPreferredAntiAffinityWithNSSelector/5000Nodes_2000Pods": 180,
    "SchedulingRequiredPodAffinityWithNSSelector/5000Nodes_2000Pods": 180,
    "SchedulingPreferredAffinityWithNSSelector/5000Nodes_5000Pods": 190,
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput/1Node_10000GatedPods": 750,
    "TopologySpreading/5000Nodes_5000Pods": 460,
    "PreferredTopologySpreading/5000Nodes_5000Pods": 340,
    "DefaultTopologySpreading/5000Nodes_50000Pods": 160,
    "SchedulingWithNodeInclusionPolicy/5000Nodes": 270,
    "SchedulingSecrets/5000Nodes_10000Pods": 790,
    "SchedulingInTreePVs/5000Nodes_2000Pods": 290,
    "SchedulingMigratedInTreePVs/5000Nodes_5000Pods": 100,
    "SchedulingCSIPVs/5000Nodes_5000Pods": 100,
    "SchedulingWithResourceClaimTemplate/5000pods_500nodes": 56,
    "SteadyStateClusterResourceClaimTemplate/empty_500nodes": 64,
    "SteadyStateClusterResourceClaimTemplate/half_500nodes": 60,
    "SteadyStateClusterResourceClaimTemplate/full_500nodes": 60,
    "ExtendedResource_25Classes/5000pods_500nodes": 120,
    "ExtendedResource_50Classes/5000pods_500nodes": 130,
    "ImplicitExtendedResource_25Classes/5000pods_500nodes": 130,
    "ExtendedResourceScoring/5000pods_500nodes": 70,
}

NAMES_IN_1_37: Final[Mapping[str, str]] = {
    "SchedulingWithExtendedResource/5000pods_5000nodes": (
        "SchedulingWithExtendedResource/5000pods_5000nodes_DRAExtendedResourceEnabled"
    ),
    "SteadyStateClusterResourceClaimTemplate/empty_500nodes": "SchedulingWithResourceClaimTemplate/empty_500nodes",
    "SteadyStateClusterResourceClaimTemplate/half_500nodes": "SchedulingWithResourceClaimTemplate/half_500nodes",
    "SteadyStateClusterResourceClaimTemplate/full_500nodes": "SchedulingWithResourceClaimTemplate/full_500nodes",
    "ExtendedResource_25Classes/5000pods_500nodes": "ExtendedResource/Explicit_25classes_5000pods_500nodes",
    "ExtendedResource_50Classes/5000pods_500nodes": "ExtendedResource/Explicit_50classes_5000pods_500nodes",
    "ImplicitExtendedResource_25Classes/5000pods_500nodes": "ExtendedResource/Implicit_25classes_5000pods_500nodes",
}
"""What 1.37 calls the workloads that keep the name they had in 1.36."""
