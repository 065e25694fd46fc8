from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.plugins.pod_topology_spread import PodTopologySpreadArgs

ZONE = "topology.kubernetes.io/zone"


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
