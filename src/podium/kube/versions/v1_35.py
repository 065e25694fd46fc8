"""Holds what is particular to Kubernetes 1.35: its feature gates, and the rules that later minors changed."""

from dataclasses import replace

from podium.kube.versions import v1_36
from podium.kube.versions.devices import BEFORE_1_36
from podium.kube.versions.rules import Gate, GateTable, ImageVolumes, gate_names

GATES = GateTable(
    alpha=gate_names(
        """
        APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
        CPUManagerPolicyAlphaOptions CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
        CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ComponentFlagz
        ComponentStatusz ConstrainedImpersonation ContainerStopSignals CrossNamespaceVolumeDataSource
        CustomCPUCFSQuotaPeriod DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules
        DRADeviceTaints DRAExtendedResource DRAPartitionableDevices EventedPLEG GangScheduling GenericWorkload
        HPAScaleToZero InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingExclusiveCPUs
        InPlacePodVerticalScalingExclusiveMemory InTreePluginPortworxUnregister KubeletInUserNamespace
        LoggingAlphaOptions MemoryQoS MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
        MutableSchedulingDirectivesForSuspendedJobs NativeHistograms NodeDeclaredFeatures
        PodAndContainerStatsFromCRI PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay
        RelaxedServiceNameValidation ResourceHealthStatus RestartAllContainersOnContainerExits
        RuntimeClassInImageCriApi StorageCapacityScoring StorageVersionAPI StrictIPCIDRValidation
        TaintTolerationComparisonOperators TopologyManagerPolicyAlphaOptions UnknownVersionInteroperabilityProxy
        UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
        """
    ),
    beta_on=gate_names(
        """
        APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
        AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CSIServiceAccountTokenSecrets
        ClearingNominatedNodeNameAfterBinding ContainerCheckpoint ContainerRestartRules ContextualLogging
        DRAAdminAccess DRAPrioritizedList DRAResourceClaimDeviceStatus DRASchedulerFilterTimeout
        DeclarativeValidation DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
        DisableCPUQuotaWithExclusiveCPUs EnvFiles ExternalServiceAccountTokenSigner GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride ImageVolume
        InOrderInformers InOrderInformersBatchProcess KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
        KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
        KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
        LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
        MutableCSINodeAllocatableCount NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
        PodDeletionCost PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission
        PortForwardWebsockets PreventStaticPodAPIReferences ProcMountType ReloadKubeletServerCertificateFile
        RemoteRequestHeaderUID RotateKubeletServerCertificate SELinuxChangePolicy SELinuxMountReadWriteOncePod
        SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
        SizeBasedListCostEstimate StatefulSetSemanticRevisionComparison StorageVersionHash
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
        TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation UserNamespacesSupport WatchList
        WatchListClient WindowsGracefulNodeShutdown
        """
    ),
    beta_off=gate_names(
        """
        CRDObservedGenerationTracking ClusterTrustBundle ClusterTrustBundleProjection
        ConcurrentWatchObjectDecode CoordinatedLeaderElection DeclarativeValidationTakeover
        LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet MutatingAdmissionPolicy
        NodeLogQuery PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
        WatchCacheInitializationPostStartHook
        """
    ),
    settled_on=gate_names(
        """
        DisableNodeKubeProxyVersion InformerResourceVersion KubeletPodResourcesListUseActivePods
        StorageNamespaceIndex TopologyManagerPolicyOptions VolumeAttributesClass
        """
    ),
    settled_off=gate_names(
        """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
        GitRepoVolumeDriver InPlacePodVerticalScalingAllocatedStatus KMSv1 KubeletRegistrationGetOnExistsOnly
        SeparateCacheWatchRPC WindowsHostNetwork
        """
    ),
    locked_on=gate_names(
        """
        APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints
        AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
        CPUManagerPolicyOptions CRDValidationRatcheting CSIMigrationPortworx ConsistentListFromCache
        CustomResourceFieldSelectors DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
        HonorPVReclaimPolicy ImageMaximumGCAge InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy
        JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletTracing LogarithmicScaleDown
        MatchLabelKeysInPodAffinity MemoryManager MultiCIDRServiceAllocator NFTablesProxyMode
        NodeInclusionPolicyInPodTopologySpread NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
        PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
        PreferSameTrafficDistribution RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
        RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
        RetryGenerateName SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
        ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
        ServiceTrafficDistribution SidecarContainers StreamingCollectionEncodingToJSON
        StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
        StructuredAuthorizationConfiguration SupplementalGroupsPolicy SystemdWatchdog TopologyAwareHints WinDSR
        WinOverlay
        """
    ),
    locked_off=gate_names(
        """
        AllowOverwriteTerminationGracePeriodSeconds WatchFromStorageWithoutResourceVersion
        """
    ),
    needs={
        "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
        "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
        "DRADeviceTaintRules": ("DRADeviceTaints",),
        "DeclarativeValidationTakeover": ("DeclarativeValidation",),
        "GangScheduling": ("GenericWorkload",),
        "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
        "InPlacePodLevelResourcesVerticalScaling": ("PodLevelResources", "NodeDeclaredFeatures"),
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
        "ProcMountType": ("UserNamespacesSupport",),
        "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
        "StorageVersionAPI": ("APIServerIdentity",),
        "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
        "UserNamespacesHostNetworkSupport": ("UserNamespacesSupport",),
        "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    },
)

RULES = replace(
    v1_36.RULES,
    minor=35,
    table=GATES,
    gates=GATES.on_by_default,
    switched=frozenset({Gate.STORAGE_CAPACITY_SCORING}),
    balance_without_the_pod=False,
    image_volumes=ImageVolumes.IGNORED,
    declared_features=False,
    devices=BEFORE_1_36,
)
