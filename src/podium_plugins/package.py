"""Says what `podium_plugins` brings: the families beyond kube-scheduler, with their commands and controllers."""

from podium.packages import CommandEntry, ListedPlugin, Package

PACKAGE = Package(
    "podium_plugins",
    commands=(
        CommandEntry("annotate", "podium_plugins.cli.annotate:app", "CLUSTER"),
        CommandEntry("manifest annotate", "podium_plugins.cli.annotate:manifest", "CLUSTER"),
        CommandEntry("qos", "podium_plugins.cli.qos:app", "CLUSTER"),
    ),
    plugins=(
        ListedPlugin(
            "NetworkTraffic",
            "podium_plugins.network_traffic:NetworkTraffic",
            "Measured load",
            "prefer nodes with little network traffic",
        ),
        ListedPlugin(
            "PrometheusScore",
            "podium_plugins.prometheus_score:PrometheusScore",
            "Measured load",
            "a score from any PromQL expression",
        ),
        ListedPlugin(
            "LatencyAware",
            "podium_plugins.latency_aware:LatencyAware",
            "Measured load",
            "no nodes beyond the latency that a pod can stand, and rather near ones",
        ),
        ListedPlugin(
            "TargetLoadPacking",
            "podium_plugins.target_load_packing:TargetLoadPacking",
            "Measured load",
            "fill nodes up to a cpu utilisation, and spread beyond it",
        ),
        ListedPlugin(
            "LoadVariationRiskBalancing",
            "podium_plugins.load_variation_risk_balancing:LoadVariationRiskBalancing",
            "Measured load",
            "prefer nodes whose load is low and steady",
        ),
        ListedPlugin(
            "LowRiskOverCommitment",
            "podium_plugins.low_risk_over_commitment:LowRiskOverCommitment",
            "Measured load",
            "prefer nodes where pods are least likely to want more than there is",
        ),
        ListedPlugin(
            "Peaks",
            "podium_plugins.peaks:Peaks",
            "Measured load",
            "prefer nodes where the pod adds least to the power drawn",
        ),
        ListedPlugin(
            "NodeResourcesAllocatable",
            "podium_plugins.node_resources_allocatable:NodeResourcesAllocatable",
            "Room on nodes",
            "prefer small or large nodes, whatever runs on them",
        ),
        ListedPlugin(
            "SafeOverload",
            "podium_plugins.safe:SafeOverload",
            "Measured load",
            "no nodes on which usage may well exceed a threshold",
        ),
        ListedPlugin(
            "SafeBalance", "podium_plugins.safe:SafeBalance", "Measured load", "prefer nodes with low and steady usage"
        ),
        ListedPlugin(
            "Congestion", "podium_plugins.congestion:Congestion", "Measured load", "nodes marked as congested come last"
        ),
        ListedPlugin(
            "PigeonHoling",
            "podium_plugins.pigeon:PigeonHoling",
            "Room on nodes",
            "prefer the node after whose choice the whole cluster looks best",
        ),
        ListedPlugin(
            "MeasuredLoad",
            "podium_plugins.measured_load:MeasuredLoad",
            "Measured load",
            "prefer nodes under little pressure, by several metrics together",
        ),
        ListedPlugin(
            "CapacityScheduling",
            "podium_plugins.capacity_scheduling:CapacityScheduling",
            "Gangs and quotas",
            "elastic quotas of namespaces: guaranteed, borrowed, reclaimed",
        ),
        ListedPlugin(
            "PreemptionToleration",
            "podium_plugins.preemption_toleration:PreemptionToleration",
            "Preemption",
            "the same, but spare pods whose class tolerates it for a while",
        ),
        ListedPlugin(
            "CrossNodePreemption",
            "podium_plugins.cross_node_preemption:CrossNodePreemption",
            "Preemption",
            "evict pods on several nodes so that a pod fits on one",
        ),
        ListedPlugin(
            "GpuShare",
            "podium_plugins.gpu_share:GpuShare",
            "Devices, NUMA and volumes",
            "parts of GPUs, or whole ones, on one node",
        ),
        ListedPlugin(
            "GpuRandom", "podium_plugins.gpu_share:GpuRandom", "Devices, NUMA and volumes", "GPU nodes at random"
        ),
        ListedPlugin(
            "GpuDotProd",
            "podium_plugins.gpu_share:GpuDotProd",
            "Devices, NUMA and volumes",
            "GPU nodes whose room points another way than the request",
        ),
        ListedPlugin(
            "GpuPacking",
            "podium_plugins.gpu_share:GpuPacking",
            "Devices, NUMA and volumes",
            "GPUs in use first, then free GPUs of nodes in use",
        ),
        ListedPlugin(
            "GpuClustering",
            "podium_plugins.gpu_share:GpuClustering",
            "Devices, NUMA and volumes",
            "GPU nodes with pods that ask for as many GPUs",
        ),
        ListedPlugin(
            "GpuBestFit",
            "podium_plugins.gpu_share:GpuBestFit",
            "Devices, NUMA and volumes",
            "GPU nodes with the least room left",
        ),
        ListedPlugin(
            "GpuFGD",
            "podium_plugins.gpu_share:GpuFGD",
            "Devices, NUMA and volumes",
            "GPU nodes whose idle GPUs stay usable (fragmentation gradient descent)",
        ),
        ListedPlugin(
            "Coscheduling",
            "podium_plugins.coscheduling:Coscheduling",
            "Gangs and quotas",
            "the pods of a PodGroup start together, or none does",
        ),
        ListedPlugin(
            "NetworkOverhead",
            "podium_plugins.network_overhead:NetworkOverhead",
            "Pods near or away from others",
            "pods of an AppGroup near the pods they depend on, by network cost",
        ),
        ListedPlugin(
            "TopologicalSort",
            "podium_plugins.topological_sort:TopologicalSort",
            "The queue and its order",
            "pods of an AppGroup in the order in which their workloads depend on each other",
        ),
        ListedPlugin(
            "SySched",
            "podium_plugins.sy_sched:SySched",
            "Pods near or away from others",
            "pods that use similar system calls share nodes",
        ),
        ListedPlugin(
            "NodeMetadata",
            "podium_plugins.node_metadata:NodeMetadata",
            "What a node must be",
            "prefer nodes by a number or a time in a label or annotation",
        ),
        ListedPlugin(
            "PodState",
            "podium_plugins.pod_state:PodState",
            "Room on nodes",
            "prefer nodes that pods are leaving, avoid those with nominated pods",
        ),
        ListedPlugin(
            "QOSSort",
            "podium_plugins.qos_sort:QOSSort",
            "The queue and its order",
            "higher priority first, then Guaranteed before Burstable before BestEffort",
        ),
        ListedPlugin(
            "NodeResourceTopologyMatch",
            "podium_plugins.node_resource_topology_match:NodeResourceTopologyMatch",
            "Devices, NUMA and volumes",
            "pods fit a NUMA zone, as the kubelet's topology manager would decide",
        ),
        ListedPlugin(
            "QosAware",
            "podium_plugins.qos_aware:QosAware",
            "The queue and its order",
            "workloads get the availability they were promised; who is behind goes first",
        ),
    ),
    agents=(
        ("safe", "podium_plugins.agents:SAFE"),
        ("congestion", "podium_plugins.agents:CONGESTION"),
        ("pigeon", "podium_plugins.agents:PIGEON"),
        ("load", "podium_plugins.agents:LOAD"),
    ),
    controllers=(
        ("podgroup", "podium_plugins.controllers.pod_group:PodGroupController"),
        ("elasticquota", "podium_plugins.controllers.elastic_quota:ElasticQuotaController"),
        ("appgroup", "podium_plugins.controllers.app_group:AppGroupController"),
        ("networktopology", "podium_plugins.controllers.network_topology:NetworkTopologyController"),
    ),
    custom_resources=("podium_plugins.crds",),
)
