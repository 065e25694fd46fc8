"""What is written into a PodGroup's status, and what is not."""

from __future__ import annotations

from typing import Any

from podium.client.informers import watched_kinds
from podium.kube import Condition, PodGroup
from podium.kube.meta import format_time
from podium.run.pod_status import group_status_patch
from tools.kit.pod_group_worlds import GANGS, PodGroupWorld, pod_group

NOW, EARLIER = 1_790_000_000.0, "2026-01-01T00:00:00Z"
OTHER = {"type": "Other", "status": "True", "reason": "r", "message": "m", "observedGeneration": 0}


def condition(status: str, reason: str, message: str = "") -> Condition:
    return Condition(type="PodGroupScheduled", status=status, reason=reason, message=message)


def plain(status: str, reason: str, message: str = "", time: str = EARLIER) -> dict[str, Any]:
    known = {"status": status, "reason": reason, "message": message, "lastTransitionTime": time}
    return {"type": "PodGroupScheduled", "observedGeneration": 0, **known}


UNFIT = condition("False", "Unschedulable", "no room")


def test_a_first_condition_stands_beside_the_others_with_the_time_of_the_change() -> None:
    patch = group_status_patch(pod_group(conditions=[OTHER]), UNFIT, NOW)
    assert patch == {"conditions": [OTHER, plain("False", "Unschedulable", "no room", format_time(NOW))]}


def test_the_same_condition_is_not_written_again() -> None:
    assert group_status_patch(pod_group(conditions=[plain("False", "Unschedulable", "no room")]), UNFIT, NOW) is None


def test_another_message_keeps_the_time_of_the_change() -> None:
    group = pod_group(conditions=[plain("False", "Unschedulable", "other")])
    assert group_status_patch(group, UNFIT, NOW) == {"conditions": [plain("False", "Unschedulable", "no room")]}


def test_a_group_that_was_scheduled_stays_so() -> None:
    assert group_status_patch(pod_group(conditions=[plain("True", "Scheduled")]), UNFIT, NOW) is None


def test_pod_groups_are_watched_only_while_the_gate_is_on() -> None:
    def watches(gates: Any) -> bool:
        world = PodGroupWorld(gates=gates)
        return PodGroup in {each.type for each in watched_kinds(world.scheduler.profiles.values())}

    assert (watches(frozenset()), watches(GANGS)) == (False, True)
