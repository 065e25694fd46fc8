"""In-tree disks translated to CSI: handles, topology keys, and what cannot be translated."""

from __future__ import annotations

from typing import Any

import pytest

from podium.kube import PersistentVolume, Volume
from podium.kube.csi_translation import (
    DRIVERS,
    MIGRATED,
    PLUGINS,
    TranslationError,
    csi_affinity,
    csi_source,
    in_tree_plugin,
    inline_handle,
)
from tools.kit.builders import build

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GCE_ZONE = "topology.gke.io/zone"


def volume(source: dict[str, Any], labels: dict[str, str] | None = None, *terms: dict[str, Any]) -> PersistentVolume:
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    return build(PersistentVolume, {"metadata": {"name": "v", "labels": labels or {}}, "spec": {**source, **affinity}})


def term(**values: list[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": value} for key, value in values.items()]}


def affinity_of(volume: PersistentVolume) -> list[dict[str, list[str]]]:
    affinity = csi_affinity(volume)
    if affinity is None or affinity.required is None:
        return []
    return [
        {each.key: list(each.values) for each in t.match_expressions} for t in affinity.required.node_selector_terms
    ]


def test_seven_plugins_have_a_driver_and_five_are_migrated() -> None:
    assert len(PLUGINS) == len(DRIVERS) == 7
    assert set(DRIVERS) - MIGRATED == {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}


@pytest.mark.parametrize(
    ("source", "plugin", "handle"),
    [
        ({"gcePersistentDisk": {"pdName": "pd"}}, "gce-pd", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "aws-ebs", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}}, "aws-ebs", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, "aws-ebs", "vol-1"),
        ({"cinder": {"volumeID": "c-1"}}, "cinder", "c-1"),
        ({"azureDisk": {"diskURI": "/disks/a"}}, "azure-disk", "/disks/a"),
        ({"azureDisk": {"diskURI": "/disks/a", "kind": "Managed"}}, "azure-disk", "/disks/a"),
        ({"portworxVolume": {"volumeID": "px"}}, "portworx-volume", "px"),
    ],
)
def test_an_inline_disk_has_the_handle_its_driver_knows(source: dict[str, Any], plugin: str, handle: str) -> None:
    inline = build(Volume, {"name": "v", **source})
    found = in_tree_plugin(inline)
    assert found is not None
    assert found.name == f"kubernetes.io/{plugin}"
    assert inline_handle(inline) == handle
    assert csi_source(volume(source)) == (found.driver, handle)


def test_other_volumes_belong_to_no_in_tree_plugin() -> None:
    assert in_tree_plugin(build(Volume, {"name": "v", "emptyDir": {}})) is None
    assert in_tree_plugin(volume({"csi": {"driver": "d"}}).spec) is None


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({ZONE: "us-central1-a"}, "projects/UNSPECIFIED/zones/us-central1-a/disks/pd"),
        ({BETA_ZONE: "us-central1-b", ZONE: "us-central1-a"}, "projects/UNSPECIFIED/zones/us-central1-b/disks/pd"),
        ({ZONE: "us-central1-a__us-central1-b"}, "projects/UNSPECIFIED/regions/us-central1/disks/pd"),
        ({ZONE: ""}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"),
    ],
)
def test_a_gce_disk_is_known_by_its_zone_or_by_the_region_of_its_zones(labels: dict[str, str], handle: str) -> None:
    disk = volume({"gcePersistentDisk": {"pdName": "pd"}}, labels)
    assert csi_source(disk) == ("pd.csi.storage.gke.io", handle)


@pytest.mark.parametrize(
    ("source", "labels", "message"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "aws://zone/disk-1"}},
            {},
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/disk-1)",
        ),
        (
            {"azureDisk": {"diskURI": "u", "kind": "Dedicated"}},
            {},
            "kind(Dedicated) is not supported in csi migration",
        ),
        (
            {"gcePersistentDisk": {"pdName": "pd"}},
            {ZONE: "a__b"},
            "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
        ),
        (
            {"gcePersistentDisk": {"pdName": "pd"}},
            {ZONE: "us-east1-a__eu-west1-b"},
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            "map[eu-west1:{} us-east1:{}]",
        ),
    ],
)
def test_what_the_driver_could_not_know_is_refused_in_kubernetes_words(
    source: dict[str, Any], labels: dict[str, str], message: str
) -> None:
    for question in (csi_source, csi_affinity):
        with pytest.raises(TranslationError) as caught:
            question(volume(source, labels))
        assert str(caught.value) == message


def test_a_broken_aws_address_is_refused() -> None:
    inline = build(Volume, {"awsElasticBlockStore": {"volumeID": "aws://[zone/vol-1"}})
    with pytest.raises(TranslationError, match="Invalid disk name"):
        inline_handle(inline)


EBS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        ({}, [], []),
        ({}, [term(**{ZONE: ["a", "b"]})], [{EBS_ZONE: ["a", "b"]}]),
        ({}, [term(**{BETA_ZONE: ["a"], BETA_REGION: ["r"]})], [{EBS_ZONE: ["a"], REGION: ["r"]}]),
        ({}, [term(**{ZONE: ["a"], BETA_REGION: ["r"]})], [{EBS_ZONE: ["a"], BETA_REGION: ["r"]}]),
        ({ZONE: "a"}, [], [{EBS_ZONE: ["a"]}]),
        ({ZONE: "b__ a __"}, [], [{EBS_ZONE: ["a", "b"]}]),
        ({ZONE: "__"}, [], []),
        (
            {BETA_ZONE: "a"},
            [term(x=["1"]), term(x=["2"])],
            [{"x": ["1"], EBS_ZONE: ["a"]}, {"x": ["2"], EBS_ZONE: ["a"]}],
        ),
        ({ZONE: "a"}, [term(**{BETA_ZONE: ["b"]})], [{EBS_ZONE: ["b"]}]),
    ],
)
def test_the_zone_moves_under_the_drivers_topology_key(
    labels: dict[str, str], terms: list[dict[str, Any]], expected: list[dict[str, list[str]]]
) -> None:
    assert affinity_of(volume({"awsElasticBlockStore": {"volumeID": "vol-1"}}, labels, *terms)) == expected


def test_azure_disks_keep_their_affinity() -> None:
    disk = volume({"azureDisk": {"diskURI": "u"}}, {ZONE: "a"}, term(**{ZONE: ["b"]}))
    assert affinity_of(disk) == [{ZONE: ["b"]}]


def test_each_driver_has_its_own_topology_key() -> None:
    gce = volume({"gcePersistentDisk": {"pdName": "pd"}}, {}, term(**{ZONE: ["a"]}))
    cinder = volume({"cinder": {"volumeID": "c"}}, {}, term(**{ZONE: ["a"]}))
    assert affinity_of(gce) == [{GCE_ZONE: ["a"]}]
    assert affinity_of(cinder) == [{"topology.cinder.csi.openstack.org/zone": ["a"]}]
