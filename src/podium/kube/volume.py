"""Types the sources a volume can come from, shared by pods (inline volumes) and persistent volumes.

Only the sources whose fields decide a placement are spelt out: disks that two pods must not share, and in-tree disks
that are counted as the CSI driver which took them over. `OtherSource` marks the presence of any other kind.
"""

from msgspec import field

from podium.kube.meta import Model


class OtherSource(Model, frozen=True, kw_only=True):
    """A source of which only the presence matters."""


class GCEPersistentDisk(Model, frozen=True, kw_only=True):
    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStore(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class ISCSI(Model, frozen=True, kw_only=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    fs_type: str = ""
    read_only: bool = False


class RBD(Model, frozen=True, kw_only=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    fs_type: str = ""
    read_only: bool = False


class AzureDisk(Model, frozen=True, kw_only=True):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class AzureFile(Model, frozen=True, kw_only=True):
    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False
    secret_namespace: str | None = None


class Cinder(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class VsphereVolume(Model, frozen=True, kw_only=True):
    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class PortworxVolume(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class CSIVolume(Model, frozen=True, kw_only=True):
    """An inline CSI volume of a pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = field(default_factory=dict)


class CSIPersistentVolume(Model, frozen=True, kw_only=True):
    """The CSI source of a persistent volume."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = field(default_factory=dict)


class LocalVolume(Model, frozen=True, kw_only=True):
    path: str = ""
    fs_type: str | None = None


class ImageVolume(Model, frozen=True, kw_only=True):
    """A container image mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class ConfigMapVolume(Model, frozen=True, kw_only=True):
    name: str = ""
    optional: bool | None = None


class SecretVolume(Model, frozen=True, kw_only=True):
    secret_name: str = ""
    optional: bool | None = None


class HostPath(Model, frozen=True, kw_only=True):
    path: str = ""
    type: str | None = None


class ClaimVolume(Model, frozen=True, kw_only=True):
    """A volume that is whatever the named PersistentVolumeClaim is bound to."""

    claim_name: str = ""
    read_only: bool = False
