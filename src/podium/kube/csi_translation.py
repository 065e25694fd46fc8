"""Translates in-tree disks into what the CSI drivers that took them over see.

Volumes written with a source that Kubernetes once handled itself (an EBS volume, a GCE disk) are served by a CSI driver
today. The driver knows the disk by a handle, and expects the disk's zone under a topology key of its own. What is
written in an object is therefore translated before it is counted or matched: source → driver and handle, zone
labels and zone node affinity → the driver's topology key.

Translation exists for seven plugins; it is in force for the five in `MIGRATED`.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from podium.kube.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.kube.pod import Volume
from podium.kube.storage import PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from podium.kube.volume import AzureDisk

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
MULTI_ZONE_DELIMITER: Final = "__"

_UNSPECIFIED: Final = "UNSPECIFIED"
_MANAGED: Final = "managed"
_EBS_VOLUME: Final = re.compile(r"vol-[^/]*")


class InTreePlugin(NamedTuple):
    """An in-tree plugin: its name, the driver that replaced it, and the driver's topology key ("": none)."""

    name: str
    driver: str
    topology_key: str = ""


PLUGINS: Final[dict[str, InTreePlugin]] = {
    "gce_persistent_disk": InTreePlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "aws_elastic_block_store": InTreePlugin(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    "cinder": InTreePlugin(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    "azure_disk": InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "azure_file": InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com"),
    "vsphere_volume": InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    "portworx_volume": InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}
"""By the field that holds the source, the same in a pod's volume and in a persistent volume."""

DRIVERS: Final[dict[str, str]] = {plugin.name: plugin.driver for plugin in PLUGINS.values()}
"""In-tree plugin name → driver."""

MIGRATED: Final = frozenset(
    PLUGINS[source].name
    for source in ("aws_elastic_block_store", "portworx_volume", "gce_persistent_disk", "azure_disk", "cinder")
)
"""The plugins whose migration is switched on for good; the others still count as in-tree."""


class TranslationError(ValueError):
    """A source that its driver could not make sense of."""


def in_tree_plugin(holder: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree plugin of a pod's volume or of a persistent volume; None when it has no translation."""
    for source, plugin in PLUGINS.items():
        if getattr(holder, source) is not None:
            return plugin
    return None


def inline_handle(volume: Volume) -> str:
    """The handle by which the driver knows an inline disk of a migrated plugin; raises TranslationError."""
    disk = volume.gce_persistent_disk
    if disk is not None:
        return _gce_handle("zones", _UNSPECIFIED, disk.pd_name)
    return _plain_handle(volume)


def csi_source(volume: PersistentVolume) -> tuple[str, str]:
    """Driver and handle of a volume of a migrated plugin; raises TranslationError."""
    plugin = in_tree_plugin(volume.spec)
    assert plugin is not None, "only volumes of in-tree plugins are translated"
    assert plugin.name in MIGRATED, f"volumes of {plugin.name} are not translated"
    disk = volume.spec.gce_persistent_disk
    return plugin.driver, _plain_handle(volume.spec) if disk is None else _gce_handle_of(volume, disk.pd_name)


def csi_affinity(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """The node affinity of a volume of a migrated plugin, in its driver's terms; raises TranslationError.

    A zone in the affinity is renamed; failing that, the zones of the volume's label are asked for in addition. Beta
    labels also give way to the current ones for the region.
    """
    csi_source(volume)  # what has no handle is not translated at all
    plugin = in_tree_plugin(volume.spec)
    affinity = volume.spec.node_affinity
    if plugin is None or not plugin.topology_key:
        return affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    zone, region = _topology_labels(volume, terms)
    if _values(terms, zone):
        terms = _renamed(terms, zone, plugin.topology_key)
    elif zone in volume.labels:
        terms = _narrowed(terms, plugin.topology_key, volume.labels[zone].split(MULTI_ZONE_DELIMITER))
    if region == BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, REGION)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _plain_handle(holder: Volume | PersistentVolumeSpec) -> str:
    """The handle of a disk that needs nothing but its source."""
    if holder.aws_elastic_block_store is not None:
        return _ebs_handle(holder.aws_elastic_block_store.volume_id)
    if holder.azure_disk is not None:
        return _azure_handle(holder.azure_disk)
    if holder.cinder is not None:
        return holder.cinder.volume_id
    assert holder.portworx_volume is not None, "only migrated plugins have handles"
    return holder.portworx_volume.volume_id


def _ebs_handle(volume_id: str) -> str:
    """Plain ids stay; aws://zone/vol-id is reduced to its last part."""
    if not volume_id.startswith("aws://"):
        return volume_id
    failed = "failed to translate Kubernetes ID to EBS Volume ID"
    try:
        handle = unquote(urlsplit(volume_id).path).strip("/")
    except ValueError as error:
        raise TranslationError(f'{failed} Invalid disk name ({volume_id}): parse "{volume_id}": {error}') from None
    if _EBS_VOLUME.fullmatch(handle) is None:
        raise TranslationError(f"{failed} Invalid format for AWS volume ({volume_id})")
    return handle


def _azure_handle(disk: AzureDisk) -> str:
    if disk.kind is not None and disk.kind.lower() != _MANAGED:
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _gce_handle_of(volume: PersistentVolume, disk_name: str) -> str:
    """A disk in one zone has a zonal handle, one in several zones a regional one."""
    zones = (volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, "")).split(MULTI_ZONE_DELIMITER)
    if len(zones) > 1:
        return _gce_handle("regions", _gce_region(zones), disk_name)
    return _gce_handle("zones", zones[0] or _UNSPECIFIED, disk_name)


def _gce_handle(scope: str, location: str, disk_name: str) -> str:
    return f"projects/{_UNSPECIFIED}/{scope}/{location}/disks/{disk_name}"


def _gce_region(zones: list[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, "
                f"got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


def _topology_labels(volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]) -> tuple[str, str]:
    """Which generation of zone and region labels the volume speaks: its affinity decides before its labels."""
    affinity_keys = {expression.key for term in terms for expression in term.match_expressions}
    for keys in (affinity_keys, volume.labels):
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: tuple[NodeSelectorTerm, ...], key: str) -> set[str]:
    return {value for term in terms for each in term.match_expressions if each.key == key for value in each.values}


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    def rename(expression: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return replace(expression, key=new) if expression.key == old else expression

    return tuple(replace(term, match_expressions=tuple(map(rename, term.match_expressions))) for term in terms)


def _narrowed(terms: tuple[NodeSelectorTerm, ...], key: str, zones: list[str]) -> tuple[NodeSelectorTerm, ...]:
    wanted = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not wanted:
        return terms
    more = NodeSelectorRequirement(key=key, operator="In", values=wanted)
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, more)) for term in terms or (NodeSelectorTerm(),)
    )
