"""Which changes wake a pod that VolumeBinding refused.

The arguments of VolumeBinding and what is said about wrong ones.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.cluster import Cluster
from podium.config.field import FieldPath
from podium.framework import Action, Resource
from podium.kube import Pod
from podium.kube.versions import KNOWN, NEWEST
from podium.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
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

REMOVE = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"


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


@pytest.mark.parametrize(
    ("args", "messages"),
    [
        ({}, []),
        ({"bindTimeoutSeconds": 0}, []),
        (
            {"bindTimeoutSeconds": -1},
            ["args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            {"shape": [{"utilization": 0, "score": 10}]},
            [f'args.shape: Invalid value: [{{"Utilization":0,"Score":10}}]: {REMOVE}'],
        ),
        ({"shape": []}, [f"args.shape: Invalid value: []: {REMOVE}"]),
        ({"shape": None}, []),
    ],
)
def test_wrong_arguments_are_told_in_kube_schedulers_words(args: dict[str, Any], messages: list[str]) -> None:
    decoded = msgspec.convert(args, VolumeBindingArgs)
    path, rules = FieldPath(("args",)), KNOWN["1.36"]
    decoded = decoded.with_defaults_of(rules)
    assert [str(error) for error in (*decoded.validate(path), *decoded.validate_by(path, rules))] == messages


@pytest.mark.parametrize(
    ("shape", "messages"),
    [
        (None, []),
        ([], []),
        ([{"utilization": 0, "score": 10}], []),
        (
            [{"utilization": 0, "score": 11}],
            ["args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
        ),
    ],
)
def test_with_scoring_by_capacity_the_shape_is_checked_and_has_a_default(shape: Any, messages: list[str]) -> None:
    decoded = msgspec.convert({"shape": shape}, VolumeBindingArgs).with_defaults_of(NEWEST)
    assert decoded.shape
    assert [str(error) for error in decoded.validate_by(FieldPath(("args",)), NEWEST)] == messages


def test_the_default_is_ten_minutes() -> None:
    assert VolumeBindingArgs().bind_timeout_seconds == 600
