"""One pod's way from the queue to its node, and what becomes of it where that fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster import NodeInfo, Nodes
from podium.framework import (
    Action,
    Code,
    Cycle,
    Interest,
    Nomination,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
)
from podium.framework.diagnosis import Diagnosis, PostFilterResult
from tests.podium.engine.schedulers import CLEARED, Launched, World
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2")]


# Success


def test_a_pod_gets_a_node() -> None:
    world = World(default=True, nodes=NODES)
    world.attempt(make_pod())
    assert world.bound == world.scheduled_pods == [("p1", "n1")]
    assert (world.failures, world.node_of("p1"), world.cluster.pods["default-p1"].assumed) == ([], "n1", True)
    assert (len(world.queue), len(world.queue.in_flight)) == (0, 0)
    assert world.scheduler.schedule_one() is None


def test_a_pod_counts_on_its_node_before_it_is_bound() -> None:
    launched = Launched()
    world = World(default=True, nodes=[make_node("n1", cpu=1)], launch=launched)
    world.attempt(make_pod("first", requests={"cpu": 1}), make_pod("second", requests={"cpu": 1}))
    assert (world.bound, world.failures[0].key) == ([], "default/second")
    launched.finish()
    assert world.bound == [("first", "n1")]


def test_profiles_share_the_queue_and_where_the_search_goes_on() -> None:
    world = World(answering("Open", filter_node=None), nodes=NODES, profiles=("one", "two"))
    for number, profile in enumerate(("one", "two", "two")):
        world.attempt(make_pod(f"p{number}", spec={"schedulerName": profile}))
    assert world.bound == [("p0", "n1"), ("p1", "n2"), ("p2", "n1")]


# Pods that are not to be tried


def test_a_pod_of_an_unknown_profile_is_dropped() -> None:
    world = World(default=True, nodes=NODES)
    world.queue.add(make_pod(spec={"schedulerName": "stranger"}))
    world.try_next()
    assert (world.bound, world.failures, len(world.queue), len(world.queue.in_flight)) == ([], [], 0, 0)


def test_a_pod_being_deleted_is_skipped() -> None:
    world = World(default=True, nodes=NODES)
    world.attempt(make_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert world.failures == [("default/p1", "", "skip schedule deleting pod: default/p1", None)]
    assert (world.bound, len(world.queue), len(world.queue.in_flight)) == ([], 0, 0)


def test_a_pod_that_is_placed_already_is_skipped() -> None:
    launched = Launched()
    world = World(default=True, nodes=NODES, launch=launched)
    world.attempt(make_pod())
    launched.finish()
    world.queue.add(make_pod())
    world.try_next()
    assert (world.bound, world.failures, len(world.queue.in_flight)) == ([("p1", "n1")], [], 0)


# No node


def test_without_nodes_the_pod_is_unschedulable_and_tried_again_after_a_while() -> None:
    world = World(default=True)
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "Unschedulable", "no nodes available to schedule pods", CLEARED)]
    assert (world.queued().queue, world.queued().unschedulable_plugins) == ("backoff", set())


@pytest.mark.parametrize(
    ("status", "pending"),
    [(Status.unschedulable("no"), set()), (Status.unresolvable("no"), set()), (Status.pending("no"), {"X"})],
)
def test_a_refused_pod_waits_for_the_plugins_that_refused_it(status: Status, pending: set[str]) -> None:
    world = World(answering("X", filter_node=status), nodes=NODES)
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "Unschedulable", "0/2 nodes are available: 2 no.", CLEARED)]
    pod = world.queued()
    assert (pod.queue, pod.unschedulable_plugins, pod.pending_plugins) == ("unschedulable", {"X"}, pending)


@pytest.mark.parametrize(
    ("result", "message", "nomination", "remembered"),
    [
        pytest.param(PostFilterResult(None, Nomination("n2")), "", Nomination("n2"), "n2", id="room is being made"),
        pytest.param(PostFilterResult(None), "", None, "n1", id="the nomination is left alone"),
        pytest.param(
            PostFilterResult(Status.unschedulable("a", "b"), CLEARED), " a, b", CLEARED, None, id="no room, cleared"
        ),
        pytest.param(PostFilterResult(Status.error("broken")), " broken", None, "n1", id="an error"),
        pytest.param(KeyError("x"), " running PostFilter plugin \"Y\": KeyError: 'x'", None, "n1", id="raised"),
    ],
)
def test_post_filter_has_the_last_word_in_the_message_and_on_the_nomination(
    result: Any, message: str, nomination: Nomination | None, remembered: str | None
) -> None:
    world = World(answering("X", filter_node="no"), answering("Y", post_filter=result), nodes=NODES)
    world.attempt(make_pod(status={"nominatedNodeName": "n1"}))
    assert world.failures == [("default/p1", "Unschedulable", f"0/2 nodes are available: 2 no.{message}", nomination)]
    assert world.scheduler.nominator.node_of("default-p1") == remembered


def test_post_filter_is_told_of_every_node() -> None:
    seen: dict[str, Code] = {}

    class Looks(Plugin):
        def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
            seen.update({name: diagnosis.statuses.get(row).code for name, row in cycle.cluster.row_of.items()})
            return PostFilterResult(Status.unschedulable("nothing to be done"))

    class Picky(Plugin):
        def filter_node(self, _cycle: Cycle, node: NodeInfo) -> Status:
            return Status.unresolvable("never") if node.name == "n1" else Status.unschedulable("not now")

    World(Picky, Looks, nodes=NODES).attempt(make_pod())
    assert seen == {"n1": Code.UNRESOLVABLE, "n2": Code.UNSCHEDULABLE}


# Plugins that break

BROKEN = RuntimeError("oh no")


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ({"pre_filter": BROKEN}, 'running PreFilter plugin "X"'),
        ({"filter": BROKEN}, 'running "X" filter plugin'),
        ({"filter_node": BROKEN}, 'running "X" filter plugin'),
        ({"pre_score": BROKEN, "score_node": 1}, 'running PreScore plugin "X"'),
        ({"score": BROKEN}, 'running Score plugins: plugin "X" failed with'),
        ({"score_node": 1, "normalize": BROKEN}, 'running Normalize on Score plugins: plugin "X" failed with'),
        ({"reserve": BROKEN}, 'running Reserve plugin "X"'),
        ({"permit": BROKEN}, 'running Permit plugin "X"'),
        ({"pre_bind": BROKEN}, 'running PreBind plugin "X"'),
        ({"pre_bind_preflight": BROKEN, "pre_bind": None}, 'running PreBindPreFlight "X"'),
        ({"bind": BROKEN}, 'running Bind plugin "X"'),
    ],
)
def test_a_broken_plugin_fails_the_pod_by_name_and_nothing_else(answers: dict[str, Any], what: str) -> None:
    world = World(answering("X", **answers), nodes=NODES)
    world.attempt(make_pod(status={"nominatedNodeName": "gone"}))
    assert world.failures == [("default/p1", "SchedulerError", f"{what}: RuntimeError: oh no", CLEARED)]
    assert world.nothing_left_of()
    assert (world.bound, world.scheduler.nominator.nodes()) == ([], [])
    pod = world.queued()
    assert (pod.queue, pod.consecutive_errors, pod.unschedulable_plugins) == ("backoff", 1, set())


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (BROKEN, "RuntimeError: oh no"),
        ([("Node", 1)], "interests must give Interests, got tuple"),
        (7, "TypeError: 'int' object is not iterable"),
    ],
)
def test_a_plugin_that_cannot_say_what_it_waits_for_is_named_at_the_start(answer: Any, sentence: str) -> None:
    with pytest.raises(PluginError) as failure:
        World(answering("X", filter_node=None, interests=answer))
    assert str(failure.value) == f'initializing plugin "X": {sentence}'


def test_a_hint_that_breaks_wakes_the_pod_and_is_reported() -> None:
    class Jumpy(Plugin):
        def interests(self) -> list[Interest]:
            def hint(_pod: Any, _before: Any, _after: Any) -> bool:
                raise BROKEN

            return [Interest(Resource.NODE, Action.ADD, hint)]

        def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
            return False

    world = World(Jumpy, nodes=NODES)
    world.attempt(make_pod())
    world.add(make_node("n3"))
    assert world.place("p1") == "backoff"
    (report,) = world.reports
    assert report.startswith('plugin "Jumpy" failed at QueueingHint for pod default/p1: RuntimeError: oh no')


def test_answers_kept_from_pods_before_do_not_hide_that_a_plugin_breaks() -> None:
    class Tired(Plugin):
        asked = 0

        def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
            type(self).asked += 1
            return np.full(len(nodes), 101 if self.asked > 3 else 7)

    world = World(answering("Open", filter_node=None), Tired, nodes=NODES)
    world.attempt(*(make_pod(f"p{number}") for number in range(4)))
    assert [name for name, _node in world.bound] == ["p0", "p1", "p2"]
    assert world.message.startswith('applying score defaultWeights on Score plugins: plugin "Tired" returns an invalid')
