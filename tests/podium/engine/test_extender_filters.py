"""Extenders that filter: who is asked what, what remains, and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.framework import Action, Event, Interest, Plugin, Resource
from podium.framework.extender import Extender, ExtenderError, Filtered
from podium.kube import Pod
from tests.podium.engine.in_process import InProcess, Names, favouring, keeping
from tests.podium.engine.schedulers import CLEARED, World
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2"), make_node("n3", cpu=1)]
BIG = {"cpu": 2}
NOT_HELPFUL = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


def failing(message: str) -> Callable[[Names], Any]:
    def fail(_names: Names) -> Any:
        raise ExtenderError(message)

    return fail


def world(*extenders: Extender, plugins: tuple[Any, ...] = ("NodeResourcesFit",), **options: Any) -> World:
    return World(*plugins, nodes=NODES, extenders=extenders, **options)


def test_each_filter_is_asked_about_what_plugins_and_those_before_it_left() -> None:
    first, second = InProcess("a", filters=keeping("n1", "n2")), InProcess("b", filters=keeping("n2"))
    here = world(first, second)
    here.attempt(make_pod(requests=BIG))
    assert here.bound == [("p1", "n2")]
    assert first.asked == [("filter", "p1", ["n1", "n2"])]
    assert second.asked == [("filter", "p1", ["n1", "n2"])]


def test_nobody_is_asked_when_no_node_is_left() -> None:
    first, second = InProcess("a", filters=keeping()), InProcess("b", filters=keeping("n1"))
    here = world(first, second)
    here.attempt(make_pod())
    assert (here.bound, second.asked) == ([], [])


def test_an_extender_that_does_not_care_for_the_pod_is_not_asked() -> None:
    def wants_cpu(pod: Pod) -> bool:
        return bool(pod.spec.containers[0].resources.requests)

    extender = InProcess(filters=keeping(), scores=favouring(), binds=lambda _pod, _node: None, cares_for=wants_cpu)
    here = world(extender)
    here.attempt(make_pod())
    assert (here.bound, extender.asked) == ([("p1", "n1")], [])


def test_the_nodes_left_stay_in_the_order_of_the_reply() -> None:
    first = InProcess("a", filters=lambda _names: Filtered(["n3", "n1"]))
    second = InProcess("b", filters=keeping("n1"))
    world(first, second).attempt(make_pod())
    assert second.asked[0] == ("filter", "p1", ["n3", "n1"])


# What is told of refused nodes


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Filtered([], {"n1": "no fpga", "n2": "no fpga"}), "1 Insufficient cpu, 2 no fpga."),
        (Filtered([], {"n1": "no fpga"}), "1 Insufficient cpu, 1 no fpga."),
        (Filtered([], {}, {"n1": "no fpga", "n2": "too old"}), "1 Insufficient cpu, 1 no fpga, 1 too old."),
        (Filtered([], {"n1": "full"}, {"n1": "no fpga"}), "1 Insufficient cpu, 1 no fpga."),
        (Filtered([]), "1 Insufficient cpu."),
        (Filtered([], {"n3": "not asked about it"}), "1 not asked about it."),
        (Filtered([], {"n9": "unheard of", "n8": "unheard of"}), "1 Insufficient cpu, 2 unheard of."),
        (Filtered([], {"n1": ""}), "1 , 1 Insufficient cpu."),
    ],
)
def test_what_extenders_say_of_nodes_is_counted_with_the_rest(answer: Filtered, told: str) -> None:
    here = world(InProcess(filters=lambda _names: answer), plugins=("NodeResourcesFit",))
    here.attempt(make_pod(requests=BIG))
    assert here.failures == [("default/p1", "Unschedulable", f"0/3 nodes are available: {told}", CLEARED)]


def test_extenders_are_waited_for_beside_the_plugins_that_refused() -> None:
    here = world(InProcess(filters=lambda _names: Filtered([], {"n3": "not asked about it"})))
    here.attempt(make_pod(requests=BIG))
    assert here.queued().unschedulable_plugins == {"NodeResourcesFit", "Extender"}


def test_an_extender_that_takes_no_node_away_is_not_waited_for() -> None:
    here = world(InProcess(filters=Filtered))
    here.attempt(make_pod(requests={"cpu": 64}))
    assert here.queued().unschedulable_plugins == {"NodeResourcesFit"}


@pytest.mark.parametrize(
    ("resource", "wakes"), [(Resource.NODE, True), (Resource.PVC, True), (Resource.CSI_NODE, True)]
)
def test_much_of_everything_wakes_a_pod_that_extenders_turned_away(resource: str, wakes: bool) -> None:
    class Deaf(Plugin):
        def interests(self) -> list[Interest]:
            return []

    here = World(Deaf, nodes=NODES, extenders=[InProcess(filters=keeping())])
    here.attempt(make_pod())
    assert here.place("p1") == "unschedulable"
    here.queue.on_event(Event(resource, Action.ADD), None, None)
    assert (here.place("p1") != "unschedulable") == wakes


def test_only_nodes_that_eviction_may_help_are_tried_in_preemption() -> None:
    victims = [make_pod(f"v-{node.name}", node=node.name, priority=0) for node in NODES]
    answer = Filtered([], {"n1": "busy"}, {"n2": "no fpga"})
    here = world(InProcess(filters=lambda _names: answer), plugins=("NodeResourcesFit", "DefaultPreemption"))
    here.add(*victims)
    here.attempt(make_pod(priority=10))
    # Filters let the pod on n1 with all its pods there: nobody is to be evicted, which kube-scheduler calls an error.
    assert here.message == (
        '0/3 nodes are available: 1 busy, 1 no fpga. preemption: expected at least one victim pod on node "n1"'
    )


def test_preemption_is_not_helpful_where_extenders_dropped_all_nodes_without_a_word() -> None:
    here = world(InProcess(filters=keeping()), plugins=("NodeResourcesFit", "DefaultPreemption"))
    here.attempt(make_pod(priority=10))
    assert here.message == f"0/3 nodes are available: {NOT_HELPFUL}"


# Failures


def test_a_filter_that_fails_fails_the_pod() -> None:
    here = world(InProcess(filters=failing("failed filter with extender at URL http://extender/filter, code 500")))
    here.attempt(make_pod())
    message = "failed filter with extender at URL http://extender/filter, code 500"
    assert here.failures == [("default/p1", "SchedulerError", message, CLEARED)]
    assert (here.place("p1"), here.queued().unschedulable_plugins) == ("backoff", set())


@pytest.mark.parametrize("last", [True, False])
def test_a_filter_that_may_be_ignored_is_skipped_when_it_fails(last: bool) -> None:
    broken = InProcess("broken", filters=failing("no answer"), ignorable=True)
    sound = InProcess("sound", filters=keeping("n2"))
    here = world(*([sound, broken] if last else [broken, sound]))
    here.attempt(make_pod())
    assert here.bound == [("p1", "n2")]
    assert here.reports == ["filtering nodes for pod default/p1: extender broken is skipped: no answer"]


def test_a_filter_may_only_name_nodes_it_was_asked_about() -> None:
    here = world(InProcess(filters=lambda _names: Filtered(["n1", "n3"])))
    here.attempt(make_pod(requests=BIG))
    assert here.message == (
        'extender "http://extender" claims a filtered node "n3" which is not found in the input node list'
    )


@pytest.mark.parametrize("answer", [KeyError("x"), None, 5])
def test_nonsense_fails_the_pod_by_the_extenders_name(answer: Any) -> None:
    def respond(_names: Names) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    here = world(InProcess(filters=respond))
    here.attempt(make_pod())
    assert here.message.startswith('extender "http://extender": ')
    assert here.place("p1") == "backoff"


# The nominated node


def nominated(node_name: str = "n2") -> Pod:
    return make_pod(status={"nominatedNodeName": node_name})


def test_extenders_are_asked_about_the_nominated_node_alone() -> None:
    extender = InProcess(filters=Filtered, scores=favouring(n1=10))
    here = world(extender)
    here.attempt(nominated())
    assert (here.bound, extender.asked) == ([("p1", "n2")], [("filter", "p1", ["n2"])])


def test_all_nodes_are_tried_when_an_extender_refuses_the_nominated_one() -> None:
    extender = InProcess(filters=keeping("n1", n2="worn out"))
    here = world(extender)
    here.attempt(nominated())
    assert (here.bound, [names for _, _, names in extender.asked]) == ([("p1", "n1")], [["n2"], ["n1", "n2", "n3"]])


def test_what_was_said_of_the_nominated_node_stays_said() -> None:
    answers = iter([Filtered([], {"n2": "worn out", "n3": "no", "n9": "no"}), Filtered([])])
    here = world(InProcess(filters=lambda _names: next(answers)))
    here.attempt(make_pod(requests=BIG, status={"nominatedNodeName": "n2"}))
    assert here.message == "0/3 nodes are available: 1 Insufficient cpu, 1 no, 1 worn out."


def test_an_extender_that_fails_on_the_nominated_node_is_asked_again_about_all() -> None:
    extender = InProcess(filters=lambda names: Filtered(names) if len(names) > 1 else failing("busy")(names))
    here = world(extender)
    here.attempt(nominated())
    assert (len(here.bound), len(extender.asked)) == (1, 2)
    assert here.reports == ["pod default/p1 on its nominated node: busy"]


# How far the search goes


@pytest.mark.parametrize(("parity", "interested", "seen"), [(False, True, 100), (True, True, 100), (False, False, 150)])
def test_no_more_nodes_are_sent_to_extenders_than_kube_scheduler_would_send(
    parity: bool, interested: bool, seen: int
) -> None:
    """Without extenders all nodes are looked at, unless the configuration says otherwise."""
    nodes = [make_node(f"n{number}") for number in range(150)]
    extender = InProcess(filters=Filtered, cares_for=lambda _pod: interested)
    here = World("NodeResourcesFit", nodes=nodes, extenders=[extender], parity=parity)
    here.attempt(make_pod())
    assert [len(names) for _, _, names in extender.asked] == ([seen] if interested else [])
    assert here.scheduler.sampling.next_start == seen % 150


@pytest.mark.parametrize(
    ("extender", "seen"),
    [
        (InProcess(filters=Filtered), 3),
        (InProcess(scores=favouring()), 3),
        (InProcess(scores=favouring(), cares_for=lambda _pod: False), 3),
        (InProcess(binds=lambda _pod, _node: None), 1),
    ],
)
def test_where_no_plugin_scores_the_search_goes_on_for_extenders_that_choose(extender: InProcess, seen: int) -> None:
    here = world(extender, plugins=("NodeName",))
    here.attempt(make_pod())
    assert here.scheduler.sampling.next_start == seen % 3


def test_a_node_refused_first_alone_and_found_feasible_then_counts_twice_for_where_to_go_on() -> None:
    nodes = [make_node(f"n{number}") for number in range(5)]
    answers = iter([Filtered([], {"n2": "not now"}), Filtered(["n3"])])
    here = World("NodeResourcesFit", nodes=nodes, extenders=[InProcess(filters=lambda _names: next(answers))])
    here.attempt(nominated())
    assert (here.bound, here.scheduler.sampling.next_start) == ([("p1", "n3")], 1)
