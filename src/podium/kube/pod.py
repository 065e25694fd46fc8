"""Types the pod: what is wanted (spec) and what has become of it (status), as far as placing it reads either."""

from msgspec import field

from podium.kube.affinity import Affinity, TopologySpreadConstraint
from podium.kube.meta import Condition, Model, NamespacedObject, ObjectMeta, Resources
from podium.kube.storage import PersistentVolumeClaimSpec
from podium.kube.volume import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    ClaimVolume,
    ConfigMapVolume,
    CSIVolume,
    GCEPersistentDisk,
    HostPath,
    ImageVolume,
    OtherSource,
    PortworxVolume,
    SecretVolume,
    VsphereVolume,
)

DEFAULT_SCHEDULER = "default-scheduler"


class ContainerPort(Model, frozen=True, kw_only=True):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ContainerClaim(Model, frozen=True, kw_only=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Model, frozen=True, kw_only=True):
    requests: Resources = field(default_factory=dict)
    limits: Resources = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class RestartExitCodes(Model, frozen=True, kw_only=True):
    operator: str = ""
    values: tuple[int, ...] = ()


class RestartRule(Model, frozen=True, kw_only=True):
    action: str = ""
    exit_codes: RestartExitCodes | None = None


class SeccompProfileSource(Model, frozen=True, kw_only=True):
    """Which system calls are let through; with type Localhost, those of a file on the node."""

    type: str = ""
    localhost_profile: str = ""


class SecurityContext(Model, frozen=True, kw_only=True):
    seccomp_profile: SeccompProfileSource | None = None


class VolumeMount(Model, frozen=True, kw_only=True):
    """How a container mounts a volume: what scheduling reads of it."""

    bind_mount_options: tuple[str, ...] = ()


class Container(Model, frozen=True, kw_only=True):
    """A container of a pod: what scheduling reads of it."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    security_context: SecurityContext | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()

    @property
    def sidecar(self) -> bool:
        """Whether this init container keeps running beside the app containers."""
        return self.restart_policy == "Always"


class Toleration(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class VolumeClaimTemplate(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolume(Model, frozen=True, kw_only=True):
    """A volume whose claim is created for the pod and dies with it."""

    volume_claim_template: VolumeClaimTemplate | None = None


class Volume(Model, frozen=True, kw_only=True):
    """A named volume; exactly one of the sources is set."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CSIVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    image: ImageVolume | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    host_path: HostPath | None = None
    empty_dir: OtherSource | None = None
    projected: OtherSource | None = None
    downward_api: OtherSource | None = field(default=None, name="downwardAPI")
    nfs: OtherSource | None = None
    fc: OtherSource | None = None
    flex_volume: OtherSource | None = None
    cephfs: OtherSource | None = None
    glusterfs: OtherSource | None = None
    flocker: OtherSource | None = None
    git_repo: OtherSource | None = None
    quobyte: OtherSource | None = None
    photon_persistent_disk: OtherSource | None = None
    scale_io: OtherSource | None = field(default=None, name="scaleIO")
    storageos: OtherSource | None = None


class SchedulingGate(Model, frozen=True, kw_only=True):
    name: str = ""


class PodResourceClaim(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Model, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodSpec(Model, frozen=True, kw_only=True):
    """What a pod asks for."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Resources = field(default_factory=dict)
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    security_context: SecurityContext | None = None
    host_network: bool = False
    host_users: bool | None = None
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    restart_policy: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class ContainerStatus(Model, frozen=True, kw_only=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    allocated_resources: Resources = field(default_factory=dict)


class PodResourceClaimStatus(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceRequestMapping(Model, frozen=True, kw_only=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Model, frozen=True, kw_only=True):
    resource_claim_name: str = ""
    request_mappings: tuple[ExtendedResourceRequestMapping, ...] = ()


class PodStatus(Model, frozen=True, kw_only=True):
    """What has become of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    pod_ip: str = field(default="", name="podIP")
    host_ip: str = field(default="", name="hostIP")
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Resources = field(default_factory=dict)
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    resize: str = ""


class Pod(NamespacedObject, frozen=True, kw_only=True):
    """A pod: what is asked for (`spec`) and what has become of it (`status`)."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def node_name(self) -> str:
        return self.spec.node_name

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def finished(self) -> bool:
        """Whether all containers have ended for good, so the pod no longer uses its node."""
        return self.status.phase in ("Succeeded", "Failed")
