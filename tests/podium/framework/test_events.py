"""Which events a registration covers, and what events are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework.events import (
    EVERYTHING,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    Event,
    Interest,
    Resource,
    wildcard,
)

SINGLE = list(Action)
"""The actions that are one bit each."""


def test_the_numbers_are_kube_schedulers() -> None:
    assert [action.value for action in SINGLE] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    assert (int(Action.UPDATE), int(Action.ALL)) == (8188, 8191)
    assert sum(SINGLE[2:]) == Action.UPDATE


@pytest.mark.parametrize(
    ("registered", "happened", "covered"),
    [
        pytest.param((Resource.NODE, Action.ADD), (Resource.NODE, Action.ADD), True, id="the same"),
        pytest.param((Resource.NODE, Action.ADD), (Resource.NODE, Action.DELETE), False, id="another action"),
        pytest.param((Resource.NODE, Action.ADD), (Resource.PV, Action.ADD), False, id="another resource"),
        pytest.param(
            (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            (Resource.NODE, Action.UPDATE_NODE_LABEL),
            True,
            id="one of several",
        ),
        pytest.param((Resource.PVC, Action.ALL), (Resource.PVC, Action.UPDATE), True, id="a part of all"),
        pytest.param((Resource.PVC, Action.UPDATE), (Resource.PVC, Action.UPDATE), True, id="a general update"),
        pytest.param(
            (Resource.POD, Action.UPDATE_POD_LABEL),
            (Resource.UNSCHEDULED_POD, Action.UPDATE),
            False,
            id="a general update is more than was asked for",
        ),
        pytest.param(
            (Resource.POD, Action.UPDATE), (Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL), True, id="any update"
        ),
        pytest.param(
            (Resource.POD, Action.DELETE | Action.UPDATE_POD_GENERATED_CLAIM),
            (Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL),
            False,
            id="smaller, but another",
        ),
        pytest.param((Resource.POD, Action.DELETE), (Resource.ASSIGNED_POD, Action.DELETE), True, id="placed pods"),
        pytest.param((Resource.POD, Action.ADD), (Resource.UNSCHEDULED_POD, Action.ADD), True, id="waiting pods"),
        pytest.param((Resource.ASSIGNED_POD, Action.ADD), (Resource.POD, Action.ADD), False, id="but not back"),
        pytest.param((Resource.ANY, Action.ADD), (Resource.NODE, Action.ADD), True, id="any resource"),
        pytest.param((Resource.ANY, Action.ADD), (Resource.NODE, Action.DELETE), False, id="but not any action"),
        pytest.param((Resource.ANY, Action.ALL), (Resource.SERVICE, Action.DELETE), True, id="everything"),
        pytest.param(("widgets.example.com", Action.ALL), ("widgets.example.com", Action.ADD), True, id="custom"),
        pytest.param((Resource.NODE, Action.ALL), (Resource.ANY, Action.ALL), False, id="a wildcard concerns no one"),
    ],
)
def test_what_a_registration_covers(
    registered: tuple[str, Action], happened: tuple[str, Action], covered: bool
) -> None:
    assert Event(*registered).covers(Event(*happened)) is covered


@given(st.integers(1, 8191), st.sampled_from(SINGLE))
def test_a_single_change_is_covered_if_its_bit_is_registered(registered: int, happened: Action) -> None:
    """The comparison of numbers only matters to events that are several changes at once."""
    expected = bool(registered & happened)
    assert Event(Resource.NODE, Action(registered)).covers(Event(Resource.NODE, happened)) is expected


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (Event(Resource.NODE, Action.ADD), "NodeAdd"),
        (Event(Resource.ASSIGNED_POD, Action.DELETE), "AssignedPodDelete"),
        (Event(Resource.UNSCHEDULED_POD, Action.UPDATE), "UnscheduledPodUpdate"),
        (Event(Resource.CSI_NODE, Action.ADD), "storage.k8s.io/CSINodeAdd"),
        (Event(Resource.NODE, Action.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (
            Event(Resource.ASSIGNED_POD, Action.UPDATE_POD_GATES_ELIMINATED),
            "AssignedPodUpdatePodSchedulingGatesEliminated",
        ),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (FORCE_ACTIVATE, "ForceActivate"),
        (wildcard("Whim"), "Whim"),
    ],
)
def test_what_events_are_called(event: Event, label: str) -> None:
    assert event.label == label


def test_only_everything_is_a_wildcard() -> None:
    assert [event.wildcard for event in (EVERYTHING, FORCE_ACTIVATE, Event(Resource.ANY, Action.ADD))] == [
        True,
        True,
        False,
    ]


def test_an_interest_is_in_an_event() -> None:
    assert Interest(Resource.NODE, Action.ADD).event == Event(Resource.NODE, Action.ADD)
