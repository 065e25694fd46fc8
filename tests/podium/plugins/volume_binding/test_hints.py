"""Which changes wake a pod that VolumeBinding refused."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Cluster
from podium.framework import Action, Resource
from podium.kube import Pod
from podium.plugins.volume_binding import VolumeBinding
from tools.kit.builders import make_plugin
from tools.kit.storage import (
    ZONE,
    claim_volume,
    ephemeral_volume,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    pod_with,
)


def test_it_wakes_for_everything_that_storage_depends_on() -> None:
    found = make_plugin(VolumeBinding, Cluster()).interests()
    assert [(each.resource, each.action, each.hint is None) for each in found] == [
        (Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, False),
        (Resource.PVC, Action.ADD | Action.UPDATE, False),
        (Resource.PV, Action.ADD | Action.UPDATE, True),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, True),
        (Resource.CSI_NODE, Action.ADD | Action.UPDATE, False),
        (Resource.CSI_DRIVER, Action.UPDATE, False),
        (Resource.CSI_CAPACITY, Action.ADD | Action.UPDATE, False),
    ]


def hint(resource: str, before: Any, after: Any, pod: Pod | None = None) -> bool:
    interests = make_plugin(VolumeBinding, Cluster()).interests()
    found = next(each for each in interests if each.resource == resource)
    assert found.hint is not None
    return found.hint(pod or pod_with(claim_volume("data"), ephemeral_volume("x")), before, after)


def test_a_class_counts_when_new_or_when_its_topologies_change() -> None:
    zonal = make_class(topologies=[{ZONE: ["a"]}])
    assert hint(Resource.STORAGE_CLASS, None, make_class())
    assert hint(Resource.STORAGE_CLASS, make_class(), zonal)
    assert not hint(Resource.STORAGE_CLASS, zonal, make_class(topologies=[{ZONE: ["a"]}], provisioner="other"))


def test_a_claim_counts_when_it_is_the_pods() -> None:
    assert hint(Resource.PVC, None, make_claim("data"))
    assert hint(Resource.PVC, make_claim("p1-x"), make_claim("p1-x"))
    assert not hint(Resource.PVC, None, make_claim("other"))
    assert not hint(Resource.PVC, None, make_claim("data", namespace="other"))


def test_a_csi_node_counts_when_new_or_when_its_migrated_plugins_change() -> None:
    moved = make_csi_node("n1", migrated=["kubernetes.io/aws-ebs"])
    assert hint(Resource.CSI_NODE, None, make_csi_node())
    assert hint(Resource.CSI_NODE, make_csi_node(), moved)
    assert not hint(Resource.CSI_NODE, make_csi_node("n1", {"d": 1}), make_csi_node("n1", {"d": 2}))


@pytest.mark.parametrize(
    ("before", "after", "driver", "wakes"),
    [
        (True, False, "d", True),
        (True, None, "d", True),
        (True, True, "d", False),
        (False, False, "d", False),
        (None, True, "d", False),
        (True, False, "other", False),
    ],
)
def test_a_driver_counts_when_it_stops_reporting_for_an_inline_volume(
    before: bool | None, after: bool | None, driver: str, wakes: bool
) -> None:
    pod = pod_with({"name": "v", "csi": {"driver": driver}})
    old, new = make_driver("d", capacity=before), make_driver("d", capacity=after)
    assert hint(Resource.CSI_DRIVER, old, new, pod) is wakes


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        (None, make_capacity(), True),
        (make_capacity(capacity="1Gi"), make_capacity(capacity="2Gi"), True),
        (make_capacity(capacity="2Gi"), make_capacity(capacity="1Gi"), False),
        (make_capacity(capacity=None), make_capacity(capacity="1Gi"), True),
        (make_capacity(capacity="1Gi"), make_capacity(capacity=None), False),
        (make_capacity(capacity="5Gi", largest="1Gi"), make_capacity(capacity="9Gi", largest="1Gi"), False),
        (make_capacity(capacity="5Gi"), make_capacity(capacity="9Gi", largest="1Gi"), False),
    ],
)
def test_a_pool_counts_when_new_or_when_larger_volumes_fit(before: Any, after: Any, wakes: bool) -> None:
    assert hint(Resource.CSI_CAPACITY, before, after) is wakes
