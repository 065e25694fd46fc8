"""How pods and claims point at each other."""

from __future__ import annotations

import pytest

from podium.kube.claims import claim_name, foreign_claim, fully_bound, is_ephemeral
from tools.kit.storage import claim_volume, ephemeral_volume, make_claim, owned_by, pod_with


def test_a_claim_is_named_or_made_from_pod_and_volume() -> None:
    pod = pod_with(claim_volume("data"), ephemeral_volume("scratch"), {"name": "x", "emptyDir": {}})
    assert [claim_name(pod, volume) for volume in pod.spec.volumes] == ["data", "p1-scratch", None]
    assert [is_ephemeral(volume) for volume in pod.spec.volumes] == [False, True, False]


def test_only_a_claim_controlled_by_the_pod_is_its_ephemeral_volume() -> None:
    pod = pod_with(ephemeral_volume("scratch"))
    assert foreign_claim(pod, make_claim("p1-scratch", metadata=owned_by(pod))) == ""
    expected = "PVC default/p1-scratch was not created for pod default/p1 (pod is not owner)"
    assert foreign_claim(pod, make_claim("p1-scratch")) == expected
    other = pod_with(ephemeral_volume("scratch"), name="p2")
    assert foreign_claim(pod, make_claim("p1-scratch", metadata=owned_by(other))) == expected


@pytest.mark.parametrize(("volume", "bound", "expected"), [("v", True, True), ("v", False, False), ("", True, False)])
def test_fully_bound_takes_a_volume_name_and_the_controllers_mark(volume: str, bound: bool, expected: bool) -> None:
    assert fully_bound(make_claim(volume=volume, bound=bound)) is expected
