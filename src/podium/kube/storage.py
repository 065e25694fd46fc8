"""Types storage that outlives pods: persistent volumes, the claims bound to them, classes, what CSI drivers report."""

from collections.abc import Iterable, Mapping

from msgspec import field

from podium.kube.affinity import NodeSelector
from podium.kube.meta import (
    Amount,
    ClusterObject,
    Condition,
    LabelSelector,
    Model,
    NamespacedObject,
    ObjectReference,
    Resources,
)
from podium.kube.volume import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    CSIPersistentVolume,
    GCEPersistentDisk,
    HostPath,
    LocalVolume,
    OtherSource,
    PortworxVolume,
    VsphereVolume,
)

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS_ANNOTATION = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class VolumeNodeAffinity(Model, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Model, frozen=True, kw_only=True):
    capacity: Resources = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    local: LocalVolume | None = None
    host_path: HostPath | None = None
    nfs: OtherSource | None = None
    fc: OtherSource | None = None
    flex_volume: OtherSource | None = None
    cephfs: OtherSource | None = None
    glusterfs: OtherSource | None = None
    flocker: OtherSource | None = None
    quobyte: OtherSource | None = None
    photon_persistent_disk: OtherSource | None = None
    scale_io: OtherSource | None = field(default=None, name="scaleIO")
    storageos: OtherSource | None = None


class PersistentVolumeStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(ClusterObject, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class_name(self) -> str:
        """The class: the old annotation wins over the field."""
        return self.metadata.annotations.get(BETA_CLASS_ANNOTATION, self.spec.storage_class_name)


class VolumeResources(Model, frozen=True, kw_only=True):
    requests: Resources = field(default_factory=dict)
    limits: Resources = field(default_factory=dict)


class PersistentVolumeClaimSpec(Model, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: ObjectReference | None = None
    data_source_ref: ObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Model, frozen=True, kw_only=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Resources = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    current_volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(NamespacedObject, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def storage_class_name(self) -> str:
        """The class, "" when none is asked for: the old annotation wins over the field."""
        return self.metadata.annotations.get(BETA_CLASS_ANNOTATION, self.spec.storage_class_name or "")


class TopologySelectorLabelRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Model, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ClusterObject, frozen=True, kw_only=True):
    provisioner: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


def is_default_class(annotations: Mapping[str, str]) -> bool:
    """Whether a StorageClass with these annotations is a default one."""
    return "true" in (annotations.get(DEFAULT_CLASS_ANNOTATION), annotations.get(BETA_DEFAULT_CLASS_ANNOTATION))


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none: the newest of the default ones, of equally old ones the first by name."""
    defaults = [each for each in classes if is_default_class(each.metadata.annotations)]
    newest = max((each.metadata.creation_timestamp or "" for each in defaults), default="")
    as_new = (each for each in defaults if (each.metadata.creation_timestamp or "") == newest)
    return min(as_new, key=lambda each: each.name, default=None)


class VolumeNodeResources(Model, frozen=True, kw_only=True):
    count: int | None = None


class CSINodeDriver(Model, frozen=True, kw_only=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Model, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ClusterObject, frozen=True, kw_only=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Model, frozen=True, kw_only=True):
    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    storage_capacity: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ClusterObject, frozen=True, kw_only=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(NamespacedObject, frozen=True, kw_only=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None


class VolumeAttachmentSource(Model, frozen=True, kw_only=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Model, frozen=True, kw_only=True):
    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Model, frozen=True, kw_only=True):
    attached: bool = False


class VolumeAttachment(ClusterObject, frozen=True, kw_only=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
