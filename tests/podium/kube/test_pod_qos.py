"""QoS classes, of typed pods and of specs as the API writes them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.kube import Pod
from podium.kube.pod_qos import qos_class, qos_class_of
from tools.kit.builders import build, make_pod

BOTH = {"cpu": "1", "memory": "1Gi"}


def container(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {"containers": [container()]}, "BestEffort"),
    ("other resources alone", {"containers": [container({"example.com/gpu": 1})]}, "BestEffort"),
    ("zero of both", {"containers": [container({"cpu": 0, "memory": "0"})]}, "BestEffort"),
    ("requests alone", {"containers": [container(BOTH)]}, "Burstable"),
    ("requests equal to limits", {"containers": [container(BOTH, BOTH)]}, "Guaranteed"),
    ("the same, written otherwise", {"containers": [container({"cpu": "1000m", "memory": 2**30}, BOTH)]}, "Guaranteed"),
    ("a limit of cpu alone", {"containers": [container({"cpu": 1}, {"cpu": 1})]}, "Burstable"),
    ("one container without", {"containers": [container(BOTH, BOTH), container()]}, "Burstable"),
    (
        "an init container without",
        {"containers": [container(BOTH, BOTH)], "initContainers": [container()]},
        "Burstable",
    ),
    (
        "resources of the pod",
        {"containers": [container()], "resources": {"requests": BOTH, "limits": BOTH}},
        "Guaranteed",
    ),
    (
        "requests of the pod alone",
        {"containers": [container(BOTH, BOTH)], "resources": {"requests": BOTH}},
        "Burstable",
    ),
]


@pytest.mark.parametrize(("spec", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_class_follows_from_the_resources(spec: dict[str, Any], expected: str) -> None:
    assert qos_class(spec) == expected
    assert qos_class_of(build(Pod, {"spec": spec})) == expected


def test_the_class_in_the_status_counts() -> None:
    assert qos_class_of(make_pod(requests=BOTH, status={"qosClass": "Guaranteed"})) == "Guaranteed"
