"""From a place in memory to a bound pod: the wait at Permit, PreBind, Bind, PostBind, and undoing what failed."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from podium.engine.binding import run_at_once
from podium.framework import SKIP, Action, Code, Cycle, Interest, Plugin, PluginError, Resource, Status, Wait
from tests.podium.engine.schedulers import CLEARED, Launched, World, on
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1", cpu=4)]
LARGE = {"cpu": 3}


def log_of(*names: str, **answers: Any) -> tuple[list[str], list[type[Plugin]]]:
    """Plugins that note which of their methods are called; `answers` by "name_method"."""
    log: list[str] = []

    def method(name: str, point: str) -> Any:
        def respond(_self: Plugin, *_args: Any) -> Any:
            log.append(f"{name}.{point}")
            return answers.get(f"{name}_{point}")

        return respond

    points = ("reserve", "unreserve", "pre_bind_preflight", "pre_bind", "bind", "post_bind")
    return log, [type(name, (Plugin,), {point: method(name, point) for point in points}) for name in names]


class Hold(Plugin):
    """Holds pods for as long as their annotation says; only new nodes could change its mind."""

    def interests(self) -> list[Interest]:
        return [Interest(Resource.NODE, Action.ADD)]

    def permit(self, cycle: Cycle, _node_name: str) -> Wait | None:
        seconds = cycle.pod.annotations.get(self.name)
        return None if seconds is None else Wait(float(seconds))


class HoldToo(Hold):
    pass


def held(name: str = "p1", seconds: str = "30", **more: str) -> Any:
    return make_pod(name, requests=LARGE, metadata={"annotations": {"Hold": seconds, **more}})


# The wait at Permit


def test_a_held_pod_keeps_its_place_and_is_bound_when_let_go() -> None:
    world = World(Hold, "NodeResourcesFit", nodes=NODES)
    world.attempt(held(), make_pod("other", requests=LARGE))
    assert (world.bound, world.node_of("p1"), world.failures[0].key) == ([], "n1", "default/other")
    assert "default-p1" in world.queue.in_flight
    waiting = world.scheduler.waiting.get("default-p1")
    assert waiting is not None
    waiting.allow("Hold")
    assert (world.bound, world.nothing_left_of()) == ([("p1", "n1")], False)
    assert (len(world.scheduler.waiting), len(world.queue.in_flight)) == (0, 0)


def test_every_plugin_that_holds_must_let_go() -> None:
    world = World(Hold, HoldToo, nodes=NODES)
    world.attempt(held(HoldToo="60"))
    waiting = world.scheduler.waiting.get("default-p1")
    assert waiting is not None
    waiting.allow("HoldToo")
    assert world.bound == []
    waiting.allow("Hold")
    assert world.bound == [("p1", "n1")]


@pytest.mark.parametrize("how", ["rejected", "timed out"])
def test_a_pod_turned_away_while_held_is_unschedulable_and_waits_for_that_plugin(how: str) -> None:
    world = World(Hold, HoldToo, nodes=NODES)
    world.attempt(held(HoldToo="600"))
    if how == "rejected":
        waiting = world.scheduler.waiting.get("default-p1")
        assert waiting is not None
        waiting.reject("Hold", "no quota")
        reason = "no quota"
    else:
        world.pass_time(29)
        assert world.failures == []
        world.pass_time(1)
        reason = "rejected due to timeout after waiting 30s at plugin Hold"
    assert world.failures == [("default/p1", "Unschedulable", f"0/1 nodes are available: 1 {reason}.", CLEARED)]
    assert world.nothing_left_of()
    queued = world.queued()
    assert (queued.queue, queued.unschedulable_plugins, queued.pending_plugins) == ("unschedulable", {"Hold"}, set())


def test_the_room_of_a_pod_turned_away_is_for_others_not_for_itself() -> None:
    class HoldAny(Hold):
        def interests(self) -> list[Interest]:
            return [Interest(Resource.POD, Action.DELETE)]

    world = World(HoldAny, "NodeResourcesFit", nodes=NODES)
    world.attempt(make_pod(requests=LARGE, metadata={"annotations": {"HoldAny": "30"}}))
    world.attempt(make_pod("other", requests=LARGE))
    assert world.place("other") == "unschedulable"
    world.pass_time(30)
    assert (world.place("p1"), world.place("other")) == ("unschedulable", "active")


def test_what_happened_while_a_pod_was_held_may_bring_it_straight_back() -> None:
    world = World(Hold, nodes=NODES)
    world.attempt(held())
    world.add(make_node("n2"))
    world.pass_time(30)
    assert world.place("p1") == "backoff"


# PreBind


def test_only_plugins_with_something_to_prepare_are_asked_to_and_in_order() -> None:
    log, plugins = log_of("A", "B", "C", B_pre_bind_preflight=SKIP, C_bind=SKIP, A_bind=SKIP)
    world = World(*plugins, nodes=NODES)
    world.attempt(make_pod())
    assert log == [
        *("A.reserve", "B.reserve", "C.reserve"),
        *("A.pre_bind_preflight", "B.pre_bind_preflight", "C.pre_bind_preflight"),
        *("A.pre_bind", "C.pre_bind"),
        *("A.bind", "B.bind"),
        *("A.post_bind", "B.post_bind", "C.post_bind"),
    ]
    assert world.scheduled_pods == [("p1", "n1")]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (Status.error("broken"), 'running PreBindPreFlight "A": broken'),
        (
            Status.unschedulable("full"),
            'running PreBindPreFlight "A": it must give None, SKIP or an error, got UNSCHEDULABLE: full',
        ),
    ],
)
def test_a_preflight_that_neither_goes_nor_skips_fails_the_binding(status: Status, message: str) -> None:
    log, plugins = log_of("A", "B", A_pre_bind_preflight=status)
    world = World(*plugins, nodes=NODES)
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "SchedulerError", message, CLEARED)]
    assert log == ["A.reserve", "B.reserve", "A.pre_bind_preflight", "B.unreserve", "A.unreserve"]


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
@pytest.mark.parametrize(
    "status",
    [Status.unschedulable("full"), Status.unresolvable("gone"), Status.pending("soon"), Status.error("broken")],
)
def test_a_failed_binding_is_undone_and_the_pod_tried_again_after_a_while(point: str, status: Status) -> None:
    """A rejection this late is told as one, but there is no plugin to wait for: only time brings the pod back."""
    log, plugins = log_of("A", "B", **{f"A_{point}": status})
    world = World(*plugins, nodes=NODES)
    world.attempt(make_pod())
    title = "PreBind" if point == "pre_bind" else "Bind"
    expected = (
        ("Unschedulable", status.message)
        if status.rejected
        else ("SchedulerError", f'running {title} plugin "A": broken')
    )
    assert world.failures == [("default/p1", *expected, CLEARED)]
    assert log[-2:] == ["B.unreserve", "A.unreserve"]
    assert "B.bind" not in log
    assert (world.bound, world.nothing_left_of()) == ([], True)
    queued = world.queued()
    assert (queued.queue, queued.unschedulable_plugins, queued.consecutive_errors) == ("backoff", set(), 1)


def test_a_binding_that_failed_gives_its_room_to_pods_that_wait_for_it() -> None:
    launched = Launched()
    world = World("NodeResourcesFit", nodes=NODES, launch=launched)
    world.attempt(make_pod(requests=LARGE), make_pod("other", requests=LARGE))
    assert world.place("other") == "unschedulable"
    world.bind_answer = Status.error("the API server said no")
    launched.finish()
    assert (world.place("p1"), world.place("other")) == ("backoff", "backoff")
    assert world.message == 'running Bind plugin "DefaultBinder": the API server said no'


def test_a_pod_that_is_bound_although_binding_failed_stays_where_it_is() -> None:
    """The API server bound it, but the answer got lost."""
    launched = Launched()
    world = World("NodeResourcesFit", nodes=NODES, launch=launched)
    world.attempt(make_pod(requests=LARGE), make_pod("other", requests=LARGE))
    world.add(on(make_pod(requests=LARGE), "n1"))
    world.bind_answer = Status.error("timeout")
    launched.finish()
    assert (world.node_of("p1"), world.place("p1"), world.place("other")) == ("n1", "", "unschedulable")
    assert world.message == 'running Bind plugin "DefaultBinder": timeout'


# Bind and PostBind


def test_the_first_bind_plugin_that_does_not_skip_binds() -> None:
    log, plugins = log_of("A", "B", "C", A_bind=SKIP)
    World(*plugins, nodes=NODES).attempt(make_pod())
    assert [each for each in log if each.endswith(".bind")] == ["A.bind", "B.bind"]


def test_a_pod_that_no_plugin_would_bind_is_tried_again() -> None:
    world = World(answering("A", bind=SKIP), nodes=NODES)
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "SchedulerError", "no bind plugin would bind pod default/p1", CLEARED)]
    assert world.place("p1") == "backoff"


def test_post_bind_comes_when_the_pod_is_bound_and_what_it_raises_is_only_reported() -> None:
    log, plugins = log_of("A")
    world = World(answering("Bad", post_bind=KeyError("x")), *plugins, nodes=NODES)
    world.attempt(make_pod())
    assert (log[-1], world.scheduled_pods, world.failures) == ("A.post_bind", [("p1", "n1")], [])
    (report,) = world.reports
    assert report.startswith("plugin \"Bad\" failed at PostBind for pod default/p1 on node n1: KeyError: 'x'")


@pytest.mark.parametrize("point", ["pre_bind_preflight", "pre_bind", "bind"])
@pytest.mark.parametrize("answer", [True, "bound", 0])
def test_nonsense_fails_the_binding_by_name(point: str, answer: Any) -> None:
    answers = {"pre_bind": None, "bind": None, point: answer}
    world = World(answering("A", **answers), nodes=NODES)
    world.attempt(make_pod())
    assert "running " in world.message
    assert world.message.endswith(f", got {answer!r} ({type(answer).__name__})")
    assert '"A": it must give None' in world.message
    assert (world.scheduled_pods, world.nothing_left_of()) == ([], True)


# Answers that take time


class Later:
    """Something to wait for that somebody else settles."""

    def __await__(self) -> Generator[None, Status | None, Status | None]:
        return (yield)


class Slow(Plugin):
    """Prepares and binds only when the world outside answers."""

    async def pre_bind(self, _cycle: Cycle, _node_name: str) -> Status | None:
        return await Later()

    async def bind(self, _cycle: Cycle, _node_name: str) -> Status | None:
        return await Later()


class Loop:
    """The smallest driver that can wait: it keeps what waits, and hands in answers."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        self.work.append(work)
        work.send(None)

    def answer(self, status: Status | None) -> None:
        try:
            self.work[0].send(status)
        except StopIteration:
            del self.work[0]


def test_preparing_and_binding_may_take_their_time_while_other_pods_are_tried() -> None:
    loop = Loop()
    world = World(Slow, "NodeResourcesFit", nodes=NODES, launch=loop)
    world.attempt(make_pod(requests=LARGE), make_pod("other", requests=LARGE))
    assert (world.scheduled_pods, world.place("other")) == ([], "unschedulable")
    loop.answer(None)
    loop.answer(Status(Code.SUCCESS))
    assert (world.scheduled_pods, loop.work) == ([("p1", "n1")], [])


@pytest.mark.parametrize("answers", [[Status.error("broken")], [None, Status.error("broken")]])
def test_a_late_failure_is_undone_like_any_other(answers: list[Status | None]) -> None:
    loop = Loop()
    world = World(Slow, nodes=NODES, launch=loop)
    world.attempt(make_pod())
    for answer in answers:
        loop.answer(answer)
    assert world.message == f'running {"PreBind" if len(answers) == 1 else "Bind"} plugin "Slow": broken'
    assert (world.nothing_left_of(), world.place("p1")) == (True, "backoff")


def test_where_nobody_can_wait_a_plugin_that_does_fails_by_name() -> None:
    world = World(Slow, nodes=NODES)
    world.attempt(make_pod())
    assert world.message == (
        'running PreBind plugin "Slow": this driver cannot wait: what it awaits must answer at once'
    )
    assert (world.nothing_left_of(), world.place("p1")) == (True, "backoff")


def test_work_that_will_not_end_is_the_drivers_mistake() -> None:
    async def stubborn() -> None:
        for _ in range(2):
            try:
                await Later()
            except PluginError:
                continue

    with pytest.raises(RuntimeError, match="would not end"):
        run_at_once(stubborn())
