"""What is written into a pod's status, and what is not written because it stands there already."""

from typing import Any

import pytest

from podium.framework import Nomination
from podium.kube.meta import format_time
from podium.run.pod_status import status_patch
from tools.kit.builders import make_pod

NOW = 1_790_000_000.0
REFUSED = ("False", "Unschedulable", "0/1 nodes are available")


def condition(status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": "PodScheduled", "status": status, "reason": reason, "message": message}


def test_a_first_refusal_is_written_with_the_time_of_the_change() -> None:
    patch = status_patch(make_pod(), REFUSED, None, NOW)
    assert patch == {"conditions": [{**condition(*REFUSED), "lastTransitionTime": format_time(NOW)}]}


def test_the_same_refusal_is_not_written_again() -> None:
    pod = make_pod(status={"conditions": [condition(*REFUSED)]})
    assert status_patch(pod, REFUSED, None, NOW) == {}


def test_a_refusal_for_another_reason_keeps_the_time_of_the_change() -> None:
    pod = make_pod(status={"conditions": [condition("False", "Unschedulable", "another")]})
    assert status_patch(pod, REFUSED, None, NOW) == {"conditions": [condition(*REFUSED)]}


def test_the_generation_that_was_looked_at_is_noted() -> None:
    patch = status_patch(make_pod(metadata={"generation": 3}), REFUSED, None, NOW)
    assert patch["conditions"][0]["observedGeneration"] == 3


@pytest.mark.parametrize(
    ("before", "nomination", "patch"),
    [
        ("", None, {}),
        ("n1", None, {}),
        ("n1", Nomination("n1"), {}),
        ("", Nomination(""), {}),
        ("", Nomination("n1"), {"nominatedNodeName": "n1"}),
        ("n1", Nomination("n2"), {"nominatedNodeName": "n2"}),
        ("n1", Nomination(""), {"nominatedNodeName": None}),
    ],
)
def test_a_nomination_is_written_where_it_differs(
    before: str, nomination: Nomination | None, patch: dict[str, Any]
) -> None:
    assert status_patch(make_pod(status={"nominatedNodeName": before}), None, nomination, NOW) == patch
