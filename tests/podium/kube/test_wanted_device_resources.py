"""Which resources of a pod devices may stand behind: those in the sum of its requests, found without adding it up."""

import random
from typing import Any

import pytest

from podium.kube.extended_resources import wanted_device_resources, wanted_names
from podium.kube.requests import fit_requests
from tools.kit.builders import make_pod
from tools.kit.effort import seeds

NAMES = (
    "cpu",
    "memory",
    "hugepages-2Mi",
    "example.com/gpu",
    "deviceclass.resource.kubernetes.io/c",
    "kubernetes.io/x",
    "requests.example.com/y",
)


def _requests(dice: random.Random) -> dict[str, str]:
    return {name: dice.choice("0112") for name in dice.sample(NAMES, dice.choice((0, 1, 2)))}


@pytest.mark.parametrize("seed", seeds(300))
def test_they_are_those_that_the_sum_of_the_requests_names(seed: int) -> None:
    dice = random.Random(seed)
    spec: dict[str, Any] = {
        kind: [
            {"name": f"c{number}", "resources": {"requests": _requests(dice)}} for number in range(dice.randint(0, 2))
        ]
        for kind in ("containers", "initContainers")
    }
    if dice.random() < 0.3:
        spec["overhead"] = _requests(dice)
    if dice.random() < 0.3:
        spec["resources"] = {"requests": _requests(dice)}
    pod = make_pod("p", spec=spec)
    assert list(wanted_device_resources(pod)) == list(wanted_names(fit_requests(pod)))


def test_most_pods_want_none() -> None:
    assert wanted_device_resources(make_pod("p", requests={"cpu": "1", "memory": "1Gi"})) == ()
    assert wanted_device_resources(make_pod("p", requests={"example.com/gpu": "1"})) == ["example.com/gpu"]
