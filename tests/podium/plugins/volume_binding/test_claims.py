"""PreFilter: which claims let a pod go on, and what is said about the others."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import SKIP, Cycle, Status
from podium.kube import Pod
from podium.plugins.volume_binding import VolumeBinding
from podium.plugins.volume_binding.plugin import PodClaims, claims_of
from tools.kit.builders import make_cluster, make_node, make_plugin
from tools.kit.storage import (
    claim_volume,
    ephemeral_volume,
    make_claim,
    make_class,
    make_volume,
    owned_by,
    pod_using,
    pod_with,
)

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NOT_BOUND = "pod has unbound immediate PersistentVolumeClaims"


def outcome(pod: Pod, *objects: Any) -> Status | None:
    cluster = make_cluster([make_node("n1")], objects=objects)
    return make_plugin(VolumeBinding, cluster).pre_filter(Cycle(pod, cluster))


def test_a_pod_without_claims_is_skipped() -> None:
    assert outcome(pod_with()) == SKIP
    assert outcome(pod_with({"name": "v", "emptyDir": {}})) == SKIP


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (None, 'persistentvolumeclaim "data" not found'),
        (
            make_claim(volume="v", phase="Lost"),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        (make_claim(phase="Lost"), 'persistentvolumeclaim "data" bound to non-existent persistentvolume ""'),
        (make_claim(metadata=GOING), 'persistentvolumeclaim "data" is being deleted'),
        (
            make_claim(volume="v", phase="Lost", metadata=GOING),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        (make_claim(storage_class="now"), NOT_BOUND),
        (make_claim(storage_class=None), NOT_BOUND),
        (make_claim(storage_class="missing"), NOT_BOUND),
        (make_claim(volume="v", bound=False), NOT_BOUND),
        (make_claim(bound=True, storage_class="now"), NOT_BOUND),
    ],
)
def test_claims_that_are_not_ready_turn_the_pod_away(claim: Any, reason: str) -> None:
    objects = [make_class(), make_class("now", mode="Immediate"), *([claim] if claim else [])]
    assert outcome(pod_using("data"), *objects) == Status.unresolvable(reason)


def test_the_claim_of_an_ephemeral_volume_must_come_and_be_the_pods_own() -> None:
    pod = pod_with(ephemeral_volume("x"))
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p1-x"'
    assert outcome(pod, make_class()) == Status.unresolvable(waiting)
    foreign = "PVC default/p1-x was not created for pod default/p1 (pod is not owner)"
    assert outcome(pod, make_class(), make_claim("p1-x")) == Status.unresolvable(foreign)
    assert outcome(pod, make_class(), make_claim("p1-x", metadata=owned_by(pod))) is None


def test_the_first_claim_in_trouble_is_the_one_told_about() -> None:
    going = make_claim("b", metadata=GOING)
    assert outcome(pod_using("b", "a"), going) == Status.unresolvable('persistentvolumeclaim "b" is being deleted')
    assert outcome(pod_using("a", "b"), going) == Status.unresolvable('persistentvolumeclaim "a" not found')


def test_a_class_without_a_binding_mode_fails_the_cycle() -> None:
    failed = Status.error('VolumeBindingMode not set for StorageClass "odd"')
    odd = make_class("odd", mode=None)
    assert outcome(pod_using("data"), make_claim(storage_class="odd"), odd) == failed
    immediate = make_claim("now", storage_class=None)
    assert outcome(pod_using("now", "data"), immediate, make_claim(storage_class="odd"), odd) == failed


def test_claims_are_sorted_in_the_order_of_the_volumes() -> None:
    pod = pod_with(claim_volume("c", "1"), claim_volume("b", "2"), claim_volume("a", "3"), claim_volume("b", "4"))
    objects = [make_class(), make_claim("a"), make_claim("b", volume="v"), make_claim("c"), make_volume("v")]
    claims = claims_of(pod, make_cluster([], objects=objects))
    assert isinstance(claims, PodClaims)
    assert [claim.name for claim in claims.bound] == ["b", "b"]
    assert [claim.name for claim in claims.delayed] == ["c", "a"]


def test_the_old_annotation_names_the_class() -> None:
    annotated = make_claim(storage_class="now", annotations={"volume.beta.kubernetes.io/storage-class": "late"})
    assert outcome(pod_using("data"), annotated, make_class(), make_class("now", mode="Immediate")) is None
