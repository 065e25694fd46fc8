"""What a timer of the scheduler hears, and that being timed changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podium.framework import Code, Cycle, Status
from podium.framework.events import Event, Hint
from podium.framework.queued import QueuedPod
from podium.framework.status import code_of
from podium.framework.timer import Step
from tests.podium.engine.schedulers import World
from tests.podium.engine.test_binding import Hold, held
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

SMALL = {"cpu": 1}
FIT, PREEMPTION = "NodeResourcesFit", "DefaultPreemption"


class Diary:
    """A timer, and that of its one profile, that writes down what it hears."""

    def __init__(self, sampled: bool = False) -> None:
        self.sampled = sampled
        self.attempts: list[str] = []
        self.points: list[tuple[str, str]] = []
        self.plugins: list[tuple[str, str, str]] = []
        self.evaluations: list[tuple[str, frozenset[str]]] = []
        self.entries: list[tuple[str, str]] = []
        self.events: list[tuple[str, ...]] = []
        self.waits: list[tuple[str, float]] = []
        self.preemptions: list[Any] = []
        self.hints: list[tuple[str, str, bool]] = []
        self._heard: list[str] = []

    def for_profile(self, scheduler_name: str) -> Diary:
        assert scheduler_name == "default-scheduler"
        return self

    def time(self, step: Step, code_of: Callable[[Any], Code], run: Callable[..., Any], *args: Any) -> Any:
        code = Code.ERROR
        try:
            answer = run(*args)
            code = code_of(answer)
            return answer
        finally:
            self.points.append((step, code.name))

    def time_decision(
        self, step: Step, code_of: Callable[[Any], Code], cycle: Cycle, run: Callable[..., Any], *args: Any
    ) -> Any:
        skipped = cycle.skipped_filters if "Filter" in step else cycle.skipped_scores
        try:
            answer = self.time(step, code_of, run, *args)
            skipped = cycle.skipped_filters if "Filter" in step else cycle.skipped_scores
            return answer
        finally:
            self.evaluations.append((step, frozenset(skipped)))

    time_cached = time_decision

    async def time_binding(
        self, step: Step, code_of: Callable[[Any], Code], run: Callable[..., Awaitable[Any]], *args: Any
    ) -> Any:
        code = Code.ERROR
        try:
            answer = await run(*args)
            code = code_of(answer)
            return answer
        finally:
            self.points.append((step, code.name))

    def timed_plugin(self, step: Step, plugin: str, method: Callable[..., Any]) -> Callable[..., Any]:
        return method

    def time_node_hint(self, run: Callable[..., str], *args: Any) -> str:
        return run(*args)

    def time_store(self, run: Callable[..., None], *args: Any) -> None:
        run(*args)

    def timed_effect(self, step: Step, plugin: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            answer = method(*args)
            self.plugins.append((plugin, step, code_of(answer).name))
            return answer

        return timed

    def time_attempt(self, run: Callable[..., None], queued: QueuedPod, by: Any) -> None:
        self.attempts.append(f"{queued.pod.name} began")
        run(queued, by)
        self.attempts.append(f"{queued.pod.name} paused")

    def decided(self, queued: QueuedPod) -> None:
        self.attempts.append(f"{queued.pod.name} decided")

    def scheduled(self, queued: QueuedPod) -> None:
        self.attempts.append(f"{queued.pod.name} scheduled")

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        self.attempts.append(f"{queued.pod.name} {'rejected' if rejected else 'error'}")

    def time_intake(self, run: Callable[..., None], change: Any) -> None:
        run(change)
        if self._heard:
            self.events.append(tuple(self._heard))
            self._heard.clear()

    def event(self, event: Event) -> None:
        self._heard.append(event.label)

    def entered(self, queue: str, event: str, members: int = 0) -> None:
        self.entries.append((queue, event))

    stayed = entered

    def waited(self, code: Code, seconds: float) -> None:
        self.waits.append((code.name, seconds))

    def preemption_attempted(self) -> None:
        self.preemptions.append("attempt")

    def preempting(self, victims: int) -> Callable[[str | None], None]:
        self.preemptions.append(victims)
        return self.preemptions.append

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint:
        def ask(pod: Any, before: Any, after: Any) -> bool:
            answer = hint is None or hint(pod, before, after)
            self.hints.append((plugin, event, answer))
            return answer

        return ask


def timed(*plugins: Any, sampled: bool = False, cpu: int = 4, **options: Any) -> tuple[World, Diary]:
    diary = Diary(sampled)
    world = World(*plugins, nodes=[make_node("n1", cpu=cpu), make_node("n2", cpu=cpu)], timer=diary, **options)
    diary.events.clear()
    return world, diary


def test_every_extension_point_of_an_attempt_is_timed_in_the_order_it_runs() -> None:
    world, diary = timed(FIT)
    world.attempt(make_pod(requests=SMALL))
    assert diary.attempts == ["p1 began", "p1 decided", "p1 scheduled", "p1 paused"]
    assert [point for point, code in diary.points if code == "SUCCESS"] == [
        "PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PreBind", "Bind", "PostBind",
    ]  # fmt: skip
    assert ("PreBindPreFlight", "SKIP") in diary.points


def test_of_a_pod_decided_by_the_answer_cache_filter_and_score_are_timed() -> None:
    world, diary = timed(FIT)
    world.attempt(make_pod("p1", requests=SMALL), make_pod("p2", requests=SMALL), make_pod("p3", requests=SMALL))
    diary.points.clear()
    diary.evaluations.clear()
    world.clock.advance(1)  # the batch of the pods before it has expired
    world.attempt(make_pod("p4", requests=SMALL))
    assert [point for point, _code in diary.points][1:4] == ["Filter", "Score", "Reserve"]
    assert [point for point, _skipped in diary.evaluations] == ["Filter", "Score"]


def test_skipped_plugins_are_not_counted_as_evaluated() -> None:
    world, diary = timed("NodePorts", FIT, "NodeAffinity")
    world.attempt(make_pod(requests=SMALL))
    points = dict(diary.evaluations)
    assert list(points) == ["PreFilter", "Filter", "PreScore", "Score"]
    assert points["PreFilter"] == points["Filter"] == {"NodePorts", "NodeAffinity"}
    assert points["PreScore"] == points["Score"] == {"NodeAffinity"}


@pytest.mark.parametrize(
    ("answers", "point", "code", "outcome"),
    [
        ({"pre_filter": Status.unresolvable("no")}, "PreFilter", "UNRESOLVABLE", "rejected"),
        ({"pre_filter": Status.error("broken")}, "PreFilter", "ERROR", "error"),
        ({"filter_node": Status.unschedulable("no")}, "Filter", "SUCCESS", "rejected"),
        ({"filter_node": Status.error("broken")}, "Filter", "ERROR", "error"),
        ({"pre_score": Status.error("broken"), "score_node": 1}, "PreScore", "ERROR", "error"),
        ({"score_node": -1}, "Score", "ERROR", "error"),
        ({"reserve": Status.unschedulable("no")}, "Reserve", "UNSCHEDULABLE", "rejected"),
        ({"reserve": "nonsense"}, "Reserve", "ERROR", "error"),
        ({"permit": Status.unschedulable("no")}, "Permit", "UNSCHEDULABLE", "rejected"),
        ({"permit": "nonsense"}, "Permit", "ERROR", "error"),
        ({"pre_bind_preflight": "nonsense", "pre_bind": None}, "PreBindPreFlight", "ERROR", "error"),
        ({"pre_bind": Status.error("broken")}, "PreBind", "ERROR", "error"),
        ({"bind": Status.error("broken")}, "Bind", "ERROR", "error"),
        ({"bind": "nonsense"}, "Bind", "ERROR", "error"),
    ],
)
def test_a_failure_is_timed_under_its_status(answers: dict[str, Any], point: str, code: str, outcome: str) -> None:
    world, diary = timed(answering("X", **answers))
    world.attempt(make_pod())
    assert (point, code) in diary.points
    assert f"p1 {outcome}" in diary.attempts
    undone = point in ("Reserve", "Permit", "PreBindPreFlight", "PreBind", "Bind")
    assert (("Unreserve", "SUCCESS") in diary.points) == undone


def test_a_sampled_attempt_has_its_binding_plugins_timed_one_by_one() -> None:
    world, diary = timed(FIT, sampled=True)
    world.attempt(make_pod())
    assert diary.plugins == [("DefaultBinder", "Bind", "SUCCESS")]
    diary.plugins.clear()
    diary.sampled = False
    world.attempt(make_pod("p2"))
    assert diary.plugins == []


def test_a_wait_at_permit_is_told_in_the_time_of_the_scheduler() -> None:
    world, diary = timed(Hold, FIT)
    world.attempt(held("let", "30"), held("late", "10"))
    world.clock.advance(7)
    waiting = next(each for each in world.scheduler.waiting if each.pod.name == "let")
    waiting.allow("Hold")
    world.clock.advance(3)
    world.scheduler.tick()
    assert diary.waits == [("SUCCESS", 7.0), ("UNSCHEDULABLE", 10.0)]
    assert [line for line in diary.attempts if "let" in line][-1] == "let scheduled"


def test_preemption_is_told_with_its_victims_and_its_end() -> None:
    world, diary = timed(FIT, PREEMPTION, cpu=1)
    world.slow_evictions = True
    world.attempt(make_pod("low1", requests=SMALL), make_pod("low2", requests=SMALL))
    world.attempt(make_pod("high", requests=SMALL, priority=10))
    assert diary.preemptions == ["attempt", 1]
    world.evictions[0]("the server is away")
    assert diary.preemptions == ["attempt", 1, "the server is away"]


def test_entries_into_the_queue_events_and_hints_are_told() -> None:
    world, diary = timed(FIT, cpu=1)
    world.attempt(make_pod(requests={"cpu": 3}))
    assert diary.entries == [("active", "UnscheduledPodAdd"), ("unschedulable", "ScheduleAttemptFailure")]
    world.add(make_node("n3", cpu=2), make_node("n4", cpu=8))
    assert diary.events == [("UnscheduledPodAdd",), ("NodeAdd",), ("NodeAdd",)]
    assert diary.hints == [(FIT, "NodeAdd", False), (FIT, "NodeAdd", True)]
    assert diary.entries[2:] == [("backoff", "NodeAdd")]


def test_a_bound_pod_is_one_that_left_the_queue_and_one_that_came() -> None:
    world, diary = timed(FIT)
    pod = make_pod()
    world.add(pod)
    diary.events.clear()
    world.add(make_pod(spec={"nodeName": "n1"}))
    assert diary.events == [("UnscheduledPodDelete", "AssignedPodAdd")]


def test_decisions_are_the_same_with_and_without_a_timer() -> None:
    def run(**options: Any) -> list[tuple[str, str]]:
        world = World(FIT, "NodeResourcesBalancedAllocation", PREEMPTION, **options)
        world.add(*(make_node(f"n{number}", cpu=2 + number % 3) for number in range(7)))
        for number in range(30):
            world.attempt(make_pod(f"p{number}", requests={"cpu": 1 + number % 2}, priority=number % 4))
        return world.bound

    assert run() == run(timer=Diary()) == run(timer=Diary(sampled=True))
