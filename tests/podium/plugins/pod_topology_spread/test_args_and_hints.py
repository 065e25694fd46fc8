"""Which events wake a pod that PodTopologySpread refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.framework import Action, Resource
from podium.kube import Node, Pod
from podium.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from tests.podium.plugins.ask import events_of, hint_of
from tests.podium.plugins.pod_topology_spread.pieces import HOSTNAME, Data, hard, host, soft, spreading, web
from tools.kit.builders import make_cluster, make_plugin, make_pod

PLUGIN = make_plugin(PodTopologySpread, make_cluster([]))
AFTER_POD = hint_of(PLUGIN, Resource.POD)
AFTER_NODE = hint_of(PLUGIN, Resource.NODE)

WAITING = spreading(hard(), name="waiting")
HEEDING = spreading(hard(nodeTaintsPolicy="Honor"), name="waiting")
SOFT = spreading(soft(), name="waiting")
BROKEN = spreading(hard(selector={"matchExpressions": [{"key": "app", "operator": "?"}]}), name="waiting")

WEB, OTHER = web("other", "n1"), make_pod("other", labels={"app": "other"}, node="n1")
PENDING = web("other", "")
NOMINATED = web("other", "", status={"nominatedNodeName": "n1"})
ELSEWHERE = web("other", "n1", namespace="blue")
TOLERATING: Data = {"tolerations": [{"operator": "Exists"}]}
ZONE = "topology.kubernetes.io/zone"


def test_it_listens_to_pods_and_nodes() -> None:
    assert events_of(PLUGIN) == [
        (Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE),
        (Resource.NODE, Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT),
    ]


@pytest.mark.parametrize(
    ("pod", "before", "after", "wakes"),
    [
        (WAITING, None, WEB, True),
        (WAITING, None, OTHER, False),
        (WAITING, None, PENDING, False),
        (WAITING, None, NOMINATED, True),
        (WAITING, None, ELSEWHERE, False),
        (WAITING, WEB, None, True),
        (WAITING, OTHER, None, False),
        (WAITING, WEB, OTHER, True),
        (WAITING, OTHER, WEB, True),
        (WAITING, WEB, web("other", "n1", priority=1), False),
        (WAITING, PENDING, WEB, False),
        (WAITING, WAITING, make_pod("waiting", labels={"app": "other"}), True),
        (HEEDING, HEEDING, spreading(name="waiting", spec=TOLERATING), True),
        (WAITING, WAITING, spreading(name="waiting", spec=TOLERATING), False),
        (HEEDING, WEB, web("other", "n1", spec=TOLERATING), False),
        (SOFT, None, WEB, False),
        (BROKEN, None, WEB, True),
        (BROKEN, None, ELSEWHERE, False),
    ],
)
def test_pods_that_change_a_count_wake(pod: Pod, before: Pod | None, after: Pod | None, wakes: bool) -> None:
    assert AFTER_POD(pod, before, after) is wakes


TAINTED = host("n1", "z1", taints=[{"key": "t", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        (None, host("n1", "z1"), True),
        (None, host("n1"), False),
        (host("n1", "z1"), None, True),
        (host("n1"), None, False),
        (host("n1"), host("n1", "z1"), True),
        (host("n1", "z1"), host("n1"), True),
        (host("n1", "z1"), host("n1", "z2"), True),
        (host("n1", "z1"), host("n1", "z1", labels={"x": "y"}), False),
        (host("n1", "z1"), TAINTED, True),
        (host("n1"), host("n1", taints=[{"key": "t", "effect": "NoSchedule"}]), False),
    ],
)
def test_nodes_with_all_keys_wake_when_they_come_go_or_move(
    before: Node | None, after: Node | None, wakes: bool
) -> None:
    pod = spreading(hard(), hard(HOSTNAME), name="waiting")
    assert AFTER_NODE(pod, before, after) is wakes


def test_any_node_wakes_a_pod_whose_constraints_cannot_be_read() -> None:
    assert AFTER_NODE(BROKEN, None, host("n1")) is True


def constraint(**changes: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", **changes}


def complaints(*constraints: dict[str, Any], defaulting: str = "List") -> list[str]:
    args = {"defaultingType": defaulting, "defaultConstraints": list(constraints)}
    return [str(error) for error in msgspec.convert(args, PodTopologySpreadArgs).validate(FieldPath())]


def test_the_system_spreads_over_nodes_then_zones_unless_told_otherwise() -> None:
    found = [(each.topology_key, each.max_skew, each.when_unsatisfiable) for each in PodTopologySpreadArgs().defaults]
    assert found == [("kubernetes.io/hostname", 3, "ScheduleAnyway"), (ZONE, 5, "ScheduleAnyway")]


@pytest.mark.parametrize("defaulting", ["", "System"])
def test_an_empty_type_means_the_systems(defaulting: str) -> None:
    assert PodTopologySpreadArgs(defaulting_type=defaulting).system_defaulting
    assert complaints(defaulting=defaulting) == []


def test_a_list_replaces_the_systems_constraints() -> None:
    assert PodTopologySpreadArgs(defaulting_type="List").defaults == ()
    assert complaints(constraint(), constraint(whenUnsatisfiable="DoNotSchedule")) == []


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"maxSkew": 0}, "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"),
        ({"topologyKey": ""}, "defaultConstraints[0].topologyKey: Required value: can not be empty"),
        ({"topologyKey": "a b"}, f'defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}'),
        ({"whenUnsatisfiable": ""}, "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Never"},
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"labelSelector": {}},
            "defaultConstraints[0].labelSelector: Forbidden: "
            "constraint must not define a selector, as they deduced for each pod",
        ),
    ],
)
def test_each_field_of_a_constraint_is_checked(changes: dict[str, Any], complaint: str) -> None:
    assert complaints(constraint(**changes)) == [complaint]


def test_a_pair_of_key_and_action_may_stand_once() -> None:
    expected = f'defaultConstraints[1]: Duplicate value: "{{{ZONE}, ScheduleAnyway}}"'
    assert complaints(constraint(), constraint(maxSkew=2)) == [expected]


def test_the_system_takes_no_list() -> None:
    expected = 'defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
    assert complaints(constraint(), defaulting="System") == [expected]


def test_other_types_are_not_known() -> None:
    expected = 'defaultingType: Unsupported value: "Some": supported values: "System", "List"'
    assert complaints(constraint(), defaulting="Some") == [expected]
