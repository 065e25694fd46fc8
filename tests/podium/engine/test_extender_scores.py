"""Extenders that score: what their points count, who wins a tie, and what plugins see after whole nodes came back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from podium.framework.extender import Extender, ExtenderError, Filtered, HostScores
from tests.podium.engine.in_process import InProcess, Names, favouring, keeping
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2"), make_node("n3")]


def scoring(**scores: int) -> Any:
    """A plugin that gives these scores, in the order of the nodes."""
    given = list(scores.values())
    return answering("Points", score=given)


def world(*extenders: Extender, plugins: tuple[Any, ...] = ("NodeName",), **options: Any) -> World:
    return World(*plugins, nodes=NODES, extenders=extenders, **options)


def chosen(*extenders: Extender, plugin: Any = None, **options: Any) -> str:
    here = world(*extenders, plugins=("NodeName", *([plugin] if plugin else [])), **options)
    here.attempt(make_pod())
    return here.bound[0][1]


# Points


@pytest.mark.parametrize(
    ("weight", "score", "wins"),
    [(1, 4, "n1"), (1, 6, "n2"), (2, 3, "n2"), (3, 1, "n1"), (1, 1000, "n2"), (1, -5, "n1")],
)
def test_a_point_counts_ten_times_the_extenders_weight(weight: int, score: int, wins: str) -> None:
    """n1 has 50 points from the plugin."""
    assert chosen(InProcess(scores=favouring(n2=score), weight=weight), plugin=scoring(n1=50, n2=0, n3=0)) == wins


def test_the_points_of_several_extenders_add_up() -> None:
    first, second = InProcess("a", scores=favouring(n1=9, n3=5)), InProcess("b", scores=favouring(n3=5))
    assert chosen(first, second) == "n3"


def test_a_node_named_twice_gets_both_scores_and_unknown_nodes_none() -> None:
    def twice(_names: Names) -> HostScores:
        return [("n2", 3), ("n2", 3), ("n3", 5), ("n9", 10)]

    assert chosen(InProcess(scores=twice)) == "n2"


def test_points_past_64_bits_wrap_as_in_kube_scheduler() -> None:
    assert chosen(InProcess(scores=favouring(n1=2**62, n2=1, n3=0), weight=1)) == "n2"


def test_all_extenders_are_asked_before_the_first_is_waited_for() -> None:
    log: list[tuple[str, str, Names]] = []
    world(InProcess("a", scores=favouring(), asked=log), InProcess("b", scores=favouring(), asked=log)).attempt(
        make_pod()
    )
    assert [verb for verb, _, _ in log] == ["prioritize", "prioritize", "wait", "wait"]


def test_extenders_score_what_extenders_left() -> None:
    scorer = InProcess("b", scores=favouring())
    world(InProcess("a", filters=keeping("n3", "n2")), scorer).attempt(make_pod())
    assert scorer.asked[0] == ("prioritize", "p1", ["n2", "n3"])


def test_nobody_is_asked_to_score_a_single_node() -> None:
    scorer = InProcess("b", scores=favouring())
    world(InProcess("a", filters=keeping("n3")), scorer).attempt(make_pod())
    assert scorer.asked == []


@pytest.mark.parametrize("error", [ExtenderError("code 500"), KeyError("x"), [("n3", 1.5)], [("n3", None)], None])
@pytest.mark.parametrize("ignorable", [True, False])
def test_an_extender_that_fails_to_score_is_done_without(error: Any, ignorable: bool) -> None:
    def fail(_names: Names) -> Any:
        if isinstance(error, Exception):
            raise error
        return error

    here = world(InProcess("bad", scores=fail, ignorable=ignorable), InProcess("good", scores=favouring(n2=1)))
    here.attempt(make_pod())
    assert here.bound == [("p1", "n2")]
    assert len(here.reports) == 1
    assert here.reports[0].startswith("scoring nodes for pod default/p1: extender bad gives no scores: ")


# Ties


def winners(*extenders: Extender, tries: int = 60) -> Counter[str]:
    """All nodes are looked at for every pod, so that without chance the first would win each time."""
    here = world(*extenders, plugins=("NodeName", scoring(n1=0, n2=0, n3=0)))
    for number in range(tries):
        here.attempt(make_pod(f"p{number}"))
    return Counter(node for _, node in here.scheduled_pods)


def test_chance_decides_between_the_best_that_an_extender_named() -> None:
    assert set(winners(InProcess(scores=favouring(n1=5, n2=5, n3=4)))) == {"n1", "n2"}


def test_the_same_seed_gives_the_same_nodes() -> None:
    extender = InProcess(scores=favouring(n1=5, n2=5, n3=5))
    assert winners(extender) == winners(extender)


@pytest.mark.parametrize(
    "extender", [InProcess(filters=Filtered), InProcess(binds=lambda _pod, _node: None), InProcess()]
)
def test_an_extender_that_does_not_score_makes_ties_a_matter_of_chance_all_the_same(extender: InProcess) -> None:
    assert set(winners(extender)) == {"n1", "n2", "n3"}


def test_of_equals_those_an_extender_named_go_first() -> None:
    assert set(winners(InProcess(scores=favouring(n3=0, n2=0)))) == {"n2", "n3"}


def test_without_a_word_from_extenders_the_order_of_nodes_decides() -> None:
    uninterested = InProcess(scores=favouring(), cares_for=lambda _pod: False)
    silent = InProcess(scores=favouring())
    for extender in (uninterested, silent):
        here = world(extender)
        here.scheduler.sampling.next_start = 1
        here.attempt(make_pod())
        assert here.bound == [("p1", "n2")]


# What is kept from earlier pods


def test_pods_that_extenders_care_for_are_decided_anew_each_time_and_the_others_by_memory() -> None:
    extender = InProcess(scores=favouring(n2=10), cares_for=lambda pod: pod.labels.get("for") == "extender")
    here = World("NodeResourcesFit", "NodeName", nodes=NODES, extenders=[extender])
    asked: list[str] = []
    decide = here.scheduler.answer_cache.decide

    def spy(runtime: Any, cycle: Any, sampling: Any) -> Any:
        asked.append(cycle.pod.name)
        return decide(runtime, cycle, sampling)

    here.scheduler.answer_cache.decide = spy  # type: ignore[method-assign]
    for number in range(6):
        here.attempt(make_pod(f"p{number}", labels={"for": "extender"} if number % 2 else {}, requests={"cpu": "10m"}))
    assert asked == ["p0", "p2", "p4"]
    assert [node for name, node in here.bound if name in ("p1", "p3", "p5")] == ["n2"] * 3
    assert [node for name, node in here.bound if name == "p4"] == ["n1"], "n2 holds more by now"


# Whole nodes from an extender


def whole(*kept: str) -> InProcess:
    return InProcess(filters=lambda names: Filtered([name for name in names if name in kept], bare=True))


def test_once_an_extender_gave_back_whole_nodes_scores_see_no_pods_on_them() -> None:
    """n1 is full of pods, but more than half of n2's memory is missing: only an empty n1 would be better."""
    nodes = [make_node("n1", cpu=8, memory="16Gi"), make_node("n2", cpu=4, memory="4Gi")]
    busy = make_pod("busy", node="n1", requests={"cpu": 7, "memory": "14Gi"})
    pod = make_pod(requests={"cpu": 1, "memory": "1Gi"})
    for extender, wins in ((InProcess(filters=Filtered), "n2"), (whole("n1", "n2"), "n1")):
        here = World("NodeResourcesFit", nodes=nodes, extenders=[extender])
        here.add(busy)
        here.attempt(pod)
        assert here.bound == [("p1", wins)]
        requested = here.cluster.resources.requested[0]
        assert sorted(requested.tolist()) == sorted([7000, 1000] if wins == "n2" else [8000, 0]), "all is back in place"


def test_whole_nodes_hold_no_images() -> None:
    nodes = [make_node("n1", images={"app:latest": 900 << 20}), make_node("n2")]
    pod = make_pod(requests={"cpu": 1})
    tie_breaker = InProcess("b", scores=favouring(n2=1))
    for extender, wins in ((InProcess(filters=Filtered), "n1"), (whole("n1", "n2"), "n2")):
        here = World("ImageLocality", "NodeName", nodes=nodes, extenders=[extender, tie_breaker])
        here.attempt(pod)
        assert here.bound == [("p1", wins)]


@pytest.mark.parametrize(
    ("topology_key", "wins"), [("kubernetes.io/hostname", "full"), ("zone", "empty")], ids=["host", "zone"]
)
def test_pods_of_whole_nodes_do_not_count_per_host_but_per_zone(topology_key: str, wins: str) -> None:
    nodes = [
        make_node("full", labels={"kubernetes.io/hostname": "full", "zone": "a"}),
        make_node("empty", labels={"kubernetes.io/hostname": "empty", "zone": "b"}),
    ]
    labels = {"app": "web"}
    constraint = {
        "topologyKey": topology_key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    tie_breaker = InProcess("b", scores=favouring(full=1))
    here = World("PodTopologySpread", nodes=nodes, extenders=[whole("full", "empty"), tie_breaker])
    here.add(*(make_pod(f"other{number}", node="full", labels=labels) for number in range(3)))
    here.attempt(make_pod(labels=labels, spec={"topologySpreadConstraints": [constraint]}))
    assert here.bound == [("p1", wins)]


def test_nodes_stay_bare_for_scores_whatever_later_extenders_answer() -> None:
    nodes = [make_node("n1", cpu=8, memory="16Gi"), make_node("n2", cpu=4, memory="4Gi")]
    busy = make_pod("busy", node="n1", requests={"cpu": 7, "memory": "14Gi"})
    names_only = InProcess("b", filters=Filtered)
    here = World("NodeResourcesFit", nodes=nodes, extenders=[whole("n1", "n2"), names_only])
    here.add(busy)
    here.attempt(make_pod(requests={"cpu": 1, "memory": "1Gi"}))
    assert here.bound == [("p1", "n1")]
