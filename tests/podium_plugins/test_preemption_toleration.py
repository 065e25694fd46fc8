"""PreemptionToleration: who is spared, for how long, and what happens with classes that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from podium.client import WATCHED
from podium.client.informers import watched_kinds
from podium.config.field import FieldPath
from podium.kube import Pod, PriorityClass
from podium.kube.meta import format_time
from podium_plugins.preemption_toleration import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
    ClassToleration,
    PreemptionTolerationArgs,
    read_toleration,
    spared_until,
)
from tests.podium.engine.schedulers import World
from tools.kit.builders import build, make_node, make_pod

NOW = 1_000_000.0
"""The time at which the clock of a `World` stands."""


def make_class(name: str = "patient", value: int = 8000, minimum: Any = 10000, seconds: Any = 3600) -> PriorityClass:
    annotations = {MINIMUM_PREEMPTABLE_PRIORITY: minimum, TOLERATION_SECONDS: seconds}
    written = {key: str(value) for key, value in annotations.items() if value is not None}
    return build(PriorityClass, {"metadata": {"name": name, "annotations": written}, "value": value})


def victim(minutes: float | None = 30, *, class_name: str = "patient", priority: int = 8000, **rest: Any) -> Pod:
    """A pod that was scheduled so many minutes ago."""
    conditions = []
    if minutes is not None:
        at = format_time(NOW - 60 * minutes)
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    return make_pod(
        "victim",
        node="n1",
        priority=priority,
        requests={"cpu": 4},
        spec={"priorityClassName": class_name},
        status={"conditions": conditions},
        **rest,
    )


def preemptor(priority: int = 9000, **spec: Any) -> Pod:
    return make_pod("preemptor", priority=priority, requests={"cpu": 4}, spec=spec)


EXEMPTIONS: list[tuple[str, PriorityClass, Pod, Pod, bool]] = [
    ("scheduled 30 minutes ago", make_class(), victim(30), preemptor(9000), True),
    ("scheduled 61 minutes ago", make_class(), victim(61), preemptor(9000), False),
    ("exactly as long ago as is tolerated", make_class(), victim(60), preemptor(9000), False),
    ("a preemptor of the minimum", make_class(), victim(30), preemptor(10000), False),
    ("a preemptor just below it", make_class(), victim(30), preemptor(9999), True),
    ("without annotations", make_class(minimum=None, seconds=None), victim(0), preemptor(8001), False),
    ("with the time alone", make_class(minimum=None), victim(0), preemptor(8001), False),
    ("with the minimum alone", make_class(seconds=None), victim(0), preemptor(9000), False),
    ("for ever", make_class(seconds=-1), victim(10**5), preemptor(9999), True),
    ("not scheduled, as far as its status says", make_class(), victim(None), preemptor(9000), True),
    ("for a preemptor that never preempts", make_class(), victim(61), preemptor(9000, preemptionPolicy="Never"), True),
]


@pytest.mark.parametrize(
    ("of_class", "pod", "by", "spared"), [case[1:] for case in EXEMPTIONS], ids=[case[0] for case in EXEMPTIONS]
)
def test_who_is_spared(of_class: PriorityClass, pod: Pod, by: Pod, spared: bool) -> None:
    toleration = read_toleration(of_class)
    assert isinstance(toleration, ClassToleration)
    assert (spared_until(toleration, pod, by) > NOW) is spared
    if by.spec.preemption_policy != "Never":
        found = world(of_class, pod)
        found.attempt(by)
        assert found.evicted == ([] if spared else ["victim"])


def world(*items: Any, **options: Any) -> World:
    found = World("NodeResourcesFit", "PreemptionToleration", nodes=[make_node("n1", cpu=4)], **options)
    found.add(*items)
    return found


def test_a_pod_is_spared_for_its_time_and_evicted_after_it() -> None:
    found = world(make_class(), victim(30))
    found.attempt(preemptor())
    assert found.evicted == []
    assert found.message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    found.pass_time(60 * 29)
    found.try_next()
    assert found.evicted == []
    found.pass_time(59)
    assert found.scheduler.schedule_one() is None
    assert found.scheduler.next_timer() == NOW + 60 * 30
    found.pass_time(1)
    found.try_next()
    assert found.evicted == ["victim"]
    found.delete(victim())
    found.try_next()
    assert found.bound == [("preemptor", "n1")]


def test_the_preemptor_is_woken_when_the_first_toleration_ends_and_by_none_that_lasts_forever() -> None:
    patient, endless = make_class("patient"), make_class("endless", seconds=-1)
    pods = [
        make_pod(
            name,
            node=node,
            priority=8000,
            requests={"cpu": 4},
            spec={"priorityClassName": of_class},
            status={"conditions": [_scheduled(minutes)]},
        )
        for name, node, of_class, minutes in (
            ("late", "n1", "patient", 10),
            ("soon", "n2", "patient", 50),
            ("never", "n3", "endless", 500),
        )
    ]
    found = world(patient, endless, *(make_node(name, cpu=4) for name in ("n2", "n3")), *pods)
    found.attempt(preemptor())
    assert found.evicted == []
    assert found.scheduler.queue._wake_times.first() == NOW + 60 * 10
    found.pass_time(60 * 10)
    found.try_next()
    assert found.evicted == ["soon"]


def test_a_preemptor_that_only_endless_tolerations_stop_waits_for_events() -> None:
    found = world(make_class(seconds=-1), victim())
    found.attempt(preemptor())
    assert found.scheduler.queue._wake_times.first() is None


def _scheduled(minutes: float) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(NOW - 60 * minutes)}


def test_a_pod_without_a_class_tolerates_nothing() -> None:
    found = world(victim(class_name=""))
    found.attempt(preemptor())
    assert found.evicted == ["victim"]


def test_a_class_that_is_not_there_fails_the_node_and_says_so() -> None:
    found = world(victim())
    found.attempt(preemptor())
    assert found.evicted == []
    assert 'preemption: priorityclass.scheduling.k8s.io "patient" not found' in found.message


@pytest.mark.parametrize(
    ("minimum", "seconds", "bad"),
    [("many", "60", "many"), ("9000", "1h", "1h"), (str(2**31), "60", str(2**31)), ("9000", str(2**63), str(2**63))],
)
def test_an_annotation_that_cannot_be_read_is_reported_and_spares_none(minimum: str, seconds: str, bad: str) -> None:
    found = world(make_class(minimum=minimum, seconds=seconds), victim(0))
    found.attempt(preemptor(8500))
    assert found.evicted == ["victim"]
    assert len(found.reports) == 1
    assert found.reports[0].startswith("PriorityClass patient: annotation ")
    assert f'"{bad}" is no whole number' in found.reports[0]


def test_a_pod_that_never_preempts_says_so() -> None:
    found = world(make_class(), victim())
    found.attempt(preemptor(preemptionPolicy="Never"))
    assert found.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        ({"min_candidate_nodes_percentage": 101}, ["not in valid range [0, 100]"]),
        ({"min_candidate_nodes_absolute": -1}, ["not in valid range [0, inf)"]),
        (
            {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 0},
            [
                "cannot be zero at the same time as minCandidateNodesAbsolute",
                "cannot be zero at the same time as minCandidateNodesPercentage",
            ],
        ),
    ],
)
def test_arguments_out_of_range(args: dict[str, int], errors: list[str]) -> None:
    found = [error.body for error in PreemptionTolerationArgs(**args).validate(FieldPath())]
    assert [any(text.endswith(error) for text in found) for error in errors] == [True] * len(errors)


def test_a_scheduler_watches_priority_classes_only_where_a_plugin_looks_at_them() -> None:
    plain, tolerant = World("NodeResourcesFit", "DefaultPreemption"), world()
    watched = [[each.type for each in watched_kinds(found.scheduler.profiles.values())] for found in (plain, tolerant)]
    assert PriorityClass not in watched[0]
    assert set(watched[1]) == {*watched[0], PriorityClass}
    assert set(watched[0]) >= {each.type for each in WATCHED}
