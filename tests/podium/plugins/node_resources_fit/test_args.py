from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.plugins.node_resources_fit import NodeResourcesFitArgs
from tools.kit.builders import build


def errors_of(args: dict[str, Any]) -> list[str]:
    return [str(error) for error in build(NodeResourcesFitArgs, args).validate(FieldPath())]


def test_the_default_is_least_allocated_over_cpu_and_memory() -> None:
    args = NodeResourcesFitArgs()
    assert args.scoring_strategy.type == "LeastAllocated"
    assert [(each.name, each.weight) for each in args.scoring_strategy.resources] == [("cpu", 1), ("memory", 1)]
    assert list(args.validate(FieldPath())) == []


def test_weights_of_0_and_empty_resource_lists_take_their_defaults() -> None:
    given = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}, {"name": "memory"}]}
    args = build(NodeResourcesFitArgs, {"scoringStrategy": given})
    assert [each.weight for each in args.scoring_strategy.resources] == [1, 1]
    empty = build(NodeResourcesFitArgs, {"scoringStrategy": {"type": "MostAllocated", "resources": []}})
    assert [each.name for each in empty.scoring_strategy.resources] == ["cpu", "memory"]


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="ignoredResource"):
        build(NodeResourcesFitArgs, {"ignoredResource": []})


SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
RATIO = "RequestedToCapacityRatio"


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        ({"ignoredResources": ["example.com/gpu", "cpu"], "ignoredResourceGroups": ["example.com"]}, []),
        ({"scoringStrategy": {"type": RATIO, "requestedToCapacityRatio": SHAPE}}, []),
        (
            {"ignoredResources": ["a", ""]},
            [
                'ignoredResources[1]: Invalid value: "": name part must be non-empty',
                'ignoredResources[1]: Invalid value: "": name part must consist of',
            ],
        ),
        (
            {"ignoredResourceGroups": ["example.com/"]},
            [
                "ignoredResourceGroups[0]: Invalid value: \"example.com/\": resource group name can't contain '/'",
                'ignoredResourceGroups[0]: Invalid value: "example.com/": name part must be non-empty',
                'ignoredResourceGroups[0]: Invalid value: "example.com/": name part must consist of',
            ],
        ),
        (
            {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
            [
                'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", '
                '"RequestedToCapacityRatio"'
            ],
        ),
        (
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of cpu not in valid range (0, 100]"
            ],
        ),
        (
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "x", "weight": -1}]}},
            [
                "scoringStrategy.resources[0].weight: Invalid value: -1: "
                "resource weight of x not in valid range (0, 100]"
            ],
        ),
        (
            {"scoringStrategy": {"type": RATIO}},
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ],
        ),
        (
            {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": SHAPE}},
            [
                "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ],
        ),
        (
            {"scoringStrategy": {"type": RATIO, "requestedToCapacityRatio": {"shape": []}}},
            ["scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"],
        ),
    ],
)
def test_limits(args: dict[str, Any], errors: list[str]) -> None:
    found = errors_of(args)
    assert len(found) == len(errors)
    for message, start in zip(found, errors, strict=True):
        assert message.startswith(start)
