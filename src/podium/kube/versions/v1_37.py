"""Holds what is particular to Kubernetes 1.37: its feature gates. Its rules are the defaults of VersionRules."""

from podium.kube.versions.rules import GateTable, VersionRules, gate_names

GATES = GateTable(
    alpha=gate_names(
        """
        APIServerWebhookAuthenticationToken APIServingWithRoutine AtomicWriteVolumeUserFields
        CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR
        ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
        CompositePodGroup ConsistentListFromCacheSkipTimeoutFallback ContainerStopSignals
        CrossNamespaceVolumeDataSource DRADerivedAttributes DRADeviceCompatibilityGroups DRAListTypeAttributes
        DRANodeAllocatableResources DRAOptionalNodeOperations DRAPartitionableDevicesType DRAResourcePoolStatus
        DefaultPodSysctls EmptyDirVolumeMode EventedPLEG EvictionRequestAPI GRPCContainerProbeTLS
        H2CContainerProbe ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
        InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingMemoryBackedVolumes
        InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
        KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint LoggingAlphaOptions
        MutablePVNodeAffinity NativeHistograms NodeLifecycleConditions PodGroupPreemptionPolicy
        PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
        SchedulerPreQueueingHints ShardedListAndWatch StatefulSetRecreateStrategy StorageVersionAPI
        TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
        UserNamespacesHostNetworkSupport VolumeBindMountOptions WindowsCPUAndMemoryAffinity WorkloadWithJob
        """
    ),
    beta_on=gate_names(
        """
        APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
        AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
        CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
        ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
        ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules
        ContextualLogging DRAConsumableCapacity DRADeviceBindingConditions DRAFractionalCapacityRange
        DRAPartitionableDevices DRAResourceClaimGranularStatusAuthorization
        DRASchedulerFilterTimeout DeclarativeValidationBeta
        DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles EtcdRangeStream
        ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero
        HugepageAwareEviction InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
        KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletSeparateDiskGC
        KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
        ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
        MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
        MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NFTablesNetlink
        NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
        PersistentVolumeClaimUnusedSinceTime PodDeletionCost PodLevelResources PodLevelResourcesFixDefaulting
        PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets
        ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
        ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
        SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
        SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA
        StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
        StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageVersionHash StrictIPCIDRValidation
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
        TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
        UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO VolumeLimitScaling WatchList
        WatchListClient WatchListCompression WebhookRoundTripLoadBalancing WindowsGracefulNodeShutdown
        """
    ),
    beta_off=gate_names(
        """
        CoordinatedLeaderElection DRAWorkloadResourceClaims GenericWorkload
        LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
        SchedulerAsyncAPICalls
        """
    ),
    settled_on=gate_names(
        """
        AllowServiceExternalIPs ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod
        DRADeviceTaintRules DRADeviceTaints InformerResourceVersion KubeProxyIPVS
        KubeletPodResourcesListUseActivePods MutatingAdmissionPolicy PodCertificateRequest SELinuxMount
        ServiceCIDRStatusFieldWiping StorageNamespaceIndex StorageVersionMigrator
        """
    ),
    settled_off=gate_names(
        """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
        KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
        """
    ),
    locked_on=gate_names(
        """
        AggregatedDiscoveryRemoveBetaType CPUManagerPolicyOptions CRDValidationRatcheting
        CSIServiceAccountTokenSecrets CustomResourceFieldSelectors DRAAdminAccess DRAExtendedResource
        DRAPrioritizedList DRAResourceClaimDeviceStatus DeclarativeValidation DisableAllocatorDualWrite
        DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout
        ExternalServiceAccountTokenSigner HPAConfigurableTolerance HostnameOverride ImageMaximumGCAge
        ImageVolume InOrderInformers InPlacePodVerticalScaling InPlacePodVerticalScalingInitContainers
        JobManagedBy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
        KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing MatchLabelKeysInPodAffinity
        MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode NodeDeclaredFeatures
        NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap PLEGOnDemandRelist
        PodObservedGenerationTracking PodReadyToStartContainersCondition PodSchedulingReadiness
        PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
        RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation SELinuxChangePolicy
        SELinuxMountReadWriteOncePod SeparateTaintEvictionController ServiceAccountTokenJTI
        ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
        SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
        VolumeAttributesClass WatchCacheInitializationPostStartHook WinDSR WinOverlay
        """
    ),
    locked_off=gate_names(
        """
        AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver
        SeparateCacheWatchRPC
        """
    ),
    needs={
        "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
        "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
        "DRADeviceCompatibilityGroups": ("DynamicResourceAllocation", "DRAPartitionableDevices"),
        "DRADeviceTaintRules": ("DRADeviceTaints",),
        "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
        "DRAPartitionableDevicesType": (
            "DynamicResourceAllocation",
            "DRAPartitionableDevices",
            "DRAResourcePoolStatus",
        ),
        "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
        "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
        "InPlacePodLevelResourcesVerticalScaling": ("PodLevelResources",),
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
        "NodeControllerLeaseCircuitBreaker": ("AtomicFIFO",),
        "PodGroupPreemptionPolicy": ("GenericWorkload",),
        "PodLevelResourceManagers": ("PodLevelResources",),
        "PodLevelResourcesFixDefaulting": ("PodLevelResources",),
        "PodLevelResourcesFixKubeletQOSClass": ("PodLevelResources",),
        "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
        "RestartAllContainersOnContainerExits": ("ContainerRestartRules",),
        "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
        "StaleControllerConsistencyHPA": ("AtomicFIFO",),
        "StaleControllerConsistencyJob": ("AtomicFIFO",),
        "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
        "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
        "StorageVersionAPI": ("APIServerIdentity",),
        "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
        "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
        "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
        "WorkloadWithJob": ("GenericWorkload",),
    },
)

RULES = VersionRules(minor=37, table=GATES, gates=GATES.on_by_default)
