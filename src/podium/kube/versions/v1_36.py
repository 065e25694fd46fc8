"""Holds what is particular to Kubernetes 1.36: its feature gates, and the rules that 1.37 changed."""

from podium.kube.versions.devices import BEFORE_1_37
from podium.kube.versions.rules import NO_GATES, Gate, GateTable, ImageVolumes, VersionRules, gate_names

GATES = GateTable(
    alpha=gate_names(
        """
        APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
        CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
        CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
        CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
        DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
        ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
        KubeletInUserNamespace LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS
        MutablePVNodeAffinity NativeHistograms PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
        PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
        RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
        TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
        UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption
        WorkloadWithJob
        """
    ),
    beta_on=gate_names(
        """
        APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
        AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
        ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
        ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
        DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource
        DRAPartitionableDevices DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
        DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
        DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
        InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
        InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
        KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
        LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
        MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
        NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
        PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
        PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
        ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
        ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
        SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
        SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
        StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
        StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
        TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
        UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook
        WatchList WatchListClient WindowsGracefulNodeShutdown
        """
    ),
    beta_off=gate_names(
        """
        ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
        DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
        PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
        """
    ),
    settled_on=gate_names(
        """
        AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList DisableCPUQuotaWithExclusiveCPUs
        InformerResourceVersion KubeletPodResourcesListUseActivePods MutatingAdmissionPolicy
        ServiceCIDRStatusFieldWiping StorageNamespaceIndex
        """
    ),
    settled_off=gate_names(
        """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
        DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
        """
    ),
    locked_on=gate_names(
        """
        APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints
        AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
        CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
        CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
        DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner
        ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex
        JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz
        KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
        LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
        MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery
        NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
        PodObservedGenerationTracking PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType
        RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
        RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName
        SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController
        ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
        ServiceAccountTokenPodNodeInfo SidecarContainers StreamingCollectionEncodingToJSON
        StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration SupplementalGroupsPolicy
        SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR
        WinOverlay
        """
    ),
    locked_off=gate_names(
        """
        AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
        """
    ),
    needs={
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
    },
)

RULES = VersionRules(
    minor=36,
    table=GATES,
    gates=GATES.on_by_default,
    switched=frozenset(set(Gate) - {Gate.DEVICE_TAINT_RULES}),
    part_of_generic_workload=NO_GATES,
    node_name_first=False,
    node_name_pre_filters=False,
    pod_groups_are_queued=False,
    pod_groups_are_victims=False,
    pod_group_post_filter_point=False,
    device_post_filter_gives_reasons=True,
    preemption_names_the_node=False,
    image_volumes=ImageVolumes.IN_THE_SUM,
    resize_by_sums=False,
    empty_labels_reach_namespaces=True,
    bind_mount_options=False,
    pod_group_condition="PodGroupScheduled",
    devices=BEFORE_1_37,
    budgets_stop_at_the_first_broken=False,
    unstarted_victims_keep_their_order=False,
    own_changes_have_a_name=False,
    taint_changes_wake_node_listeners=True,
    any_own_anti_affinity_term_wakes=False,
    gated_nominations_count=False,
    batches_score_the_last_node_again=False,
    counts_queued_entities=False,
    claim_creates_say_the_owner=False,
    bind_retries=0,
)
