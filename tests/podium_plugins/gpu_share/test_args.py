from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium_plugins.gpu_share import GpuFGD


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "typicalPods: Required value: the classes of pods"),
        ({"typicalPods": [{"cpu": "lots"}]}, 'typicalPods[0].cpu: Invalid value: "lots": must be an amount of cpu'),
        ({"typicalPods": [{"cpu": -1}]}, "typicalPods[0].cpu: Invalid value: -1: must be an amount of cpu"),
        (
            {"typicalPods": [{}, {"gpuCount": 65}]},
            "typicalPods[1].gpuCount: Invalid value: 65: must be",
        ),
        ({"typicalPods": [{"gpuMilli": 0}]}, "typicalPods[0].gpuMilli: Invalid value: 0: must be between 1 and 1000"),
        (
            {"typicalPods": [{"gpuCount": 2, "gpuMilli": 500}]},
            "typicalPods[0].gpuMilli: Invalid value: 500: must",
        ),
        ({"typicalPods": [{"pods": 0}]}, "typicalPods[0].pods: Invalid value: 0: must be between 1 and 1000000000"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(args: dict[str, Any], problem: str) -> None:
    assert GpuFGD.Args is not None
    decoded: Any = msgspec.convert(args, GpuFGD.Args)
    (error,) = decoded.validate(FieldPath())
    assert str(error).startswith(problem)
