from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.framework import Action, Resource
from podium.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.podium.plugins.ask import events_of, hint_of
from tests.podium.plugins.resource_worlds import GPU
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

PLUGIN = make_plugin(NodeResourcesFit, make_cluster([]), ignoredResources=[GPU])
AFTER_POD = hint_of(PLUGIN, Resource.POD)
AFTER_NODE = hint_of(PLUGIN, Resource.NODE)
WAITING = make_pod("waiting", requests={"cpu": "1"})


def test_events() -> None:
    assert events_of(PLUGIN) == [
        (Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        (Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
    ]


def test_a_pod_that_left_wakes_only_if_it_had_a_node_or_was_promised_one() -> None:
    assert AFTER_POD(WAITING, make_pod("x", node="n"), None)
    assert AFTER_POD(WAITING, make_pod("x", status={"nominatedNodeName": "n"}), None)
    assert not AFTER_POD(WAITING, make_pod("x"), None)


@pytest.mark.parametrize(
    ("wanted", "before", "after", "wakes"),
    [
        ({"cpu": "1"}, {"cpu": "2"}, {"cpu": "1"}, True),
        ({"cpu": "1"}, {"cpu": "1"}, {"cpu": "2"}, False),
        ({"cpu": "1"}, {"memory": "2Gi"}, {"memory": "1Gi"}, False),
        ({"cpu": 0, "memory": "1Gi"}, {"cpu": "2"}, {"cpu": "1"}, False),
        ({"memory": "1Gi"}, {"memory": "2Gi"}, {}, True),
        ({GPU: 1}, {GPU: 2}, {GPU: 1}, True),
        ({"strange": 1}, {"strange": 2}, {"strange": 1}, False),
        ({}, {"cpu": "2"}, {"cpu": "1"}, False),
    ],
)
def test_a_placed_pod_that_shrinks_wakes_pods_that_want_what_it_gave_up(
    wanted: dict[str, Any], before: dict[str, Any], after: dict[str, Any], wakes: bool
) -> None:
    old, new = make_pod("x", requests=before, node="n"), make_pod("x", requests=after, node="n")
    assert AFTER_POD(make_pod("waiting", requests=wanted), old, new) is wakes


def test_a_pod_that_shrinks_wakes_itself_but_an_unplaced_one_nobody_else() -> None:
    old, new = make_pod("x", requests={"cpu": "2"}), make_pod("x", requests={"cpu": "1"})
    assert AFTER_POD(old, old, new)
    assert not AFTER_POD(WAITING, old, new)


def test_what_is_in_force_counts_more_than_what_is_asked_for_while_a_pod_shrinks() -> None:
    in_force = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    old = make_pod("x", requests={"cpu": "2"}, node="n", status=in_force)
    asked = make_pod("x", requests={"cpu": "1"}, node="n", status=in_force)
    assert not AFTER_POD(WAITING, old, asked)


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        pytest.param(None, {"cpu": "1"}, True, id="a new node that is large enough"),
        pytest.param(None, {"cpu": "900m"}, False, id="a new node that is too small"),
        pytest.param(None, {"cpu": "1", "pods": 0}, False, id="a new node that takes no pods"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, True, id="more of what the pod wants"),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, False, id="less of it"),
        pytest.param({"cpu": "500m"}, {"cpu": "900m"}, False, id="more of it, but not enough"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "memory": "16Gi"}, False, id="more of something else"),
        pytest.param({"cpu": "1", "pods": 5}, {"cpu": "1", "pods": 6}, True, id="room for more pods"),
    ],
)
def test_a_node_wakes_pods_that_would_fit_it_empty(
    before: dict[str, Any] | None, after: dict[str, Any], wakes: bool
) -> None:
    old = None if before is None else make_node(allocatable=before)
    assert AFTER_NODE(WAITING, old, make_node(allocatable=after)) is wakes


def test_resources_that_the_filter_ignores_are_not_ignored_here() -> None:
    pod = make_pod(requests={GPU: 1})
    assert not AFTER_NODE(pod, None, make_node())
    assert AFTER_NODE(pod, None, make_node(allocatable={GPU: 1}))
    assert AFTER_NODE(pod, make_node(allocatable={GPU: 1}), make_node(allocatable={GPU: 2}))


def test_a_pod_that_asks_for_nothing_waits_for_room_for_more_pods() -> None:
    pod = make_pod()
    assert AFTER_NODE(pod, None, make_node())
    assert not AFTER_NODE(pod, make_node(cpu=1), make_node(cpu=2))
    assert AFTER_NODE(pod, make_node(pods=1), make_node(pods=2))


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
