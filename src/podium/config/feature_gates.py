"""Reads `--feature-gates`: which of kube-scheduler's gates are on, refusing what it refuses, in its words.

A KubeSchedulerConfiguration has no field for gates, so the command line is the only place. Podium switches the gates of
pod groups. Every other gate that kube-scheduler knows stays at its default here, which is said where another value is
asked for.

The tables at the end list the gates that kube-scheduler v1.36 knows: their defaults, which are locked, and what depends
on what. So a gate that kube-scheduler knows is not taken for a mistake, and one that it refuses is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from podium.config.problems import ConfigError, ConfigProblem, did_you_mean

FLAG: Final = "--feature-gates"


class Gate(StrEnum):
    """The gates that Podium switches."""

    GENERIC_WORKLOAD = "GenericWorkload"
    GANG_SCHEDULING = "GangScheduling"
    TOPOLOGY_AWARE = "TopologyAwareWorkloadScheduling"
    WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"


Gates = frozenset[Gate]
"""Those that are on."""

NO_GATES: Final[Gates] = frozenset()

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class ReadGates(NamedTuple):
    """The gates that are on, and what the reader should know about those that Podium cannot switch."""

    gates: Gates
    warnings: list[str]


def read_gates(flags: Sequence[str]) -> ReadGates:
    """The gates of all values given with `--feature-gates`; raises ConfigError in kube-scheduler's words.

    >>> sorted(read_gates(["GenericWorkload=true,GangScheduling=true"]).gates)
    [<Gate.GANG_SCHEDULING: 'GangScheduling'>, <Gate.GENERIC_WORKLOAD: 'GenericWorkload'>]
    """
    chosen: dict[str, bool] = {}
    for pair in _pairs(flags):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise _refused(f"missing bool value for {name}")
        if text not in (*_TRUE, *_FALSE):
            raise _refused(f'invalid value of {name}={text}, err: strconv.ParseBool: parsing "{text}": invalid syntax')
        chosen[name] = text in _TRUE
    values = _values(chosen)
    _check_needs(values)
    gates = frozenset(gate for gate in Gate if values[gate])
    return ReadGates(gates, _warnings(chosen, values))


def _pairs(flags: Sequence[str]) -> list[str]:
    """The "name=value" pairs, all with or all without the component they are for, which is always kube."""
    by_component: dict[str, list[str]] = {}
    for pair in ",".join(flags).split(","):
        component, colon, rest = pair.partition(":")
        if pair:
            by_component.setdefault(component.strip() if colon else "", []).append((rest if colon else pair).strip())
    if "" in by_component and "kube" in by_component:
        raise _refused("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    for component in by_component:
        if component not in ("", "kube"):
            raise _refused(f"component not registered: {component}")
    return [pair for pairs in by_component.values() for pair in pairs]


def _values(chosen: dict[str, bool]) -> dict[str, bool]:
    values = dict(DEFAULTS)
    for stage, names in _STAGES.items():
        if stage in chosen:
            values.update(dict.fromkeys(names, chosen[stage]))
    locked = []
    for name, value in chosen.items():
        if name in _STAGES:
            continue
        if name not in DEFAULTS:
            raise _refused(
                f"unrecognized feature gate: {name}",
                did_you_mean(name, DEFAULTS) or f"Podium switches {', '.join(Gate)}",
            )
        if name in (LOCKED_OFF if value else LOCKED_ON):
            wanted, default = (str(each).lower() for each in (value, not value))
            locked.append(f"cannot set feature gate {name} to {wanted}, feature is locked to {default}")
        values[name] = value
    if locked:
        raise _refused(_aggregate(locked))
    return values


def _check_needs(values: dict[str, bool]) -> None:
    problems = []
    for name, needs in NEEDS.items():
        missing = [need for need in needs if not values[need]]
        if values[name] and missing:
            problems.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if problems:
        raise _refused(_aggregate(problems))


def _warnings(chosen: dict[str, bool], values: dict[str, bool]) -> list[str]:
    fixed = [name for name in chosen if name in DEFAULTS and name not in list(Gate) and values[name] != DEFAULTS[name]]
    warnings = [f"feature gate {name}: Podium has no switch for it; it stays {_on(DEFAULTS[name])}" for name in fixed]
    ours = ", ".join(Gate)
    return warnings + [
        f"feature gate {stage}: of these gates Podium switches only {ours}" for stage in _STAGES if stage in chosen
    ]


def _on(value: bool) -> str:
    return "on" if value else "off"


def _aggregate(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _refused(text: str, hint: str = "") -> ConfigError:
    return ConfigError([ConfigProblem(FLAG, 0, "", text, hint)], kube_text=text)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALPHA: Final = _names(
    """
    APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
    CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
    CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
    LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams
    PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
    StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
    WorkloadAwarePreemption WorkloadWithJob
    """
)
"""Off unless they are switched on."""

BETA_ON: Final = _names(
    """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
    ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
    DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
    GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
    InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
    MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums
    OpportunisticBatching PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
    PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
    ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
    StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
    WatchListClient WindowsGracefulNodeShutdown
    """
)
"""On unless they are switched off."""

BETA_OFF: Final = _names(
    """
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
    DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
    SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
    """
)
"""Beta, and off unless they are switched on."""

SETTLED_ON: Final = _names(
    """
    AllowServiceExternalIPs DRAPrioritizedList DisableCPUQuotaWithExclusiveCPUs InformerResourceVersion
    KubeletPodResourcesListUseActivePods MutatingAdmissionPolicy ServiceCIDRStatusFieldWiping StorageNamespaceIndex
    """
)
"""Generally available or deprecated, on, and not locked."""

SETTLED_OFF: Final = _names(
    """
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
    DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    """
)
"""The same, off."""

LOCKED_ON: Final = _names(
    """
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
    CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
    DeclarativeValidation DisableAllocatorDualWrite DisableNodeKubeProxyVersion DynamicResourceAllocation
    ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
    InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy
    KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
    KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
    MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
    OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
    PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
    ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
    SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
    WinDSR WinOverlay
    """
)
"""Cannot be switched off."""

LOCKED_OFF: Final = _names(
    """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """
)
"""Cannot be switched on."""

NEEDS: Final = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAResourceClaimGranularStatusAuthorization": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "InPlacePodLevelResourcesVerticalScaling": ("PodLevelResources", "NodeDeclaredFeatures"),
    "InPlacePodVerticalScalingInitContainers": ("NodeDeclaredFeatures",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": ("NodeDeclaredFeatures",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""Gates that may be on only while others are; needs that are locked on are left out where they are the only one."""

DEFAULTS: Final = {
    **dict.fromkeys((*ALPHA, *BETA_OFF, *SETTLED_OFF, *LOCKED_OFF), False),
    **dict.fromkeys((*BETA_ON, *SETTLED_ON, *LOCKED_ON), True),
}

_STAGES: Final = {"AllAlpha": ALPHA, "AllBeta": BETA_ON | BETA_OFF}
