"""Which events wake a pod that InterPodAffinity refused."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.config.field import FieldPath
from podium.framework import Action, Resource
from podium.kube import Node, Pod
from podium.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.podium.plugins.ask import events_of, hint_of
from tests.podium.plugins.inter_pod_affinity.terms import ZONE, Data, affinity, app_pod, term
from tests.podium.plugins.pod_worlds import random_labels, random_pod
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

PLUGIN = make_plugin(InterPodAffinity, make_cluster([]))
AFTER_POD = hint_of(PLUGIN, Resource.POD)
AFTER_NODE = hint_of(PLUGIN, Resource.NODE)
CONCERNS = next(interest.concerns for interest in PLUGIN.interests() if interest.concerns is not None)

NEEDS_DB = make_pod("waiting", spec=affinity(required=[term()]))
SHUNS_DB = make_pod("waiting", spec=affinity(anti=[term()]))
SHUNS_DB_AND_WEB = make_pod("waiting", spec=affinity(anti=[term(), term(app="web")]))
WEB = app_pod("waiting", "web")
BROKEN_TERM = term(selector={"matchExpressions": [{"key": "a", "operator": "?"}]})
BROKEN = make_pod("waiting", spec=affinity(anti=[BROKEN_TERM]))
BROKEN_WISH = make_pod(
    "waiting",
    spec=affinity(
        required=[term()],
        preferred=[{"weight": 1, "podAffinityTerm": term(selector={"matchExpressions": [{"operator": "?"}]})}],
    ),
)

DB, CACHE = app_pod("other", "db", "n1"), app_pod("other", "cache", "n1")
DB_PENDING = app_pod("other", "db")
DB_NOMINATED = app_pod("other", "db", status={"nominatedNodeName": "n1"})
DB_ELSEWHERE = app_pod("other", "db", "n1", namespace="blue")
LONER = make_pod("other", node="n1", spec=affinity(anti=[term(app="web")]))
BROKEN_LONER = make_pod("other", node="n1", spec=affinity(anti=[BROKEN_TERM]))


def test_it_listens_to_pods_and_nodes() -> None:
    assert events_of(PLUGIN) == [
        (Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    ]


@pytest.mark.parametrize(
    ("pod", "before", "after", "wakes"),
    [
        (NEEDS_DB, None, DB, True),
        (NEEDS_DB, None, CACHE, False),
        (NEEDS_DB, None, DB_PENDING, False),
        (NEEDS_DB, None, DB_NOMINATED, True),
        (NEEDS_DB, None, DB_ELSEWHERE, False),
        (NEEDS_DB, CACHE, DB, True),
        (NEEDS_DB, DB, DB, False),
        (NEEDS_DB, DB, None, False),
        (SHUNS_DB, None, DB, False),
        (SHUNS_DB, DB, CACHE, True),
        (SHUNS_DB, CACHE, DB, False),
        (SHUNS_DB, DB, None, True),
        (SHUNS_DB, CACHE, None, False),
        (SHUNS_DB_AND_WEB, DB, None, True),  # one of the terms is enough
        (WEB, LONER, None, True),
        (WEB, DB, None, False),
        (WEB, BROKEN_LONER, None, True),
        (WEB, WEB, app_pod("waiting", "db"), True),  # its own labels changed
        (BROKEN, None, DB, True),
        (BROKEN, None, DB_PENDING, False),
        (BROKEN_WISH, None, DB, True),
        (BROKEN_WISH, None, CACHE, False),
    ],
)
def test_pods_that_begin_to_attract_or_stop_repelling_wake(
    pod: Pod, before: Pod | None, after: Pod | None, wakes: bool
) -> None:
    assert AFTER_POD(pod, before, after) is wakes
    its_own_change = before is not None and after is not None and after.uid == pod.uid
    if wakes and not its_own_change:
        waits_for, about = CONCERNS.of_pod(pod), CONCERNS.of_event(before, after)
        assert waits_for is None or about is None or set(waits_for) & set(about)


@given(st.randoms(use_true_random=False))
def test_a_pod_that_a_change_of_another_is_not_about_stays_asleep(rng: random.Random) -> None:
    waiting = build(Pod, random_pod(rng, "waiting", ""))
    other = build(Pod, random_pod(rng, "other", "n1"))
    relabelled = replace(other, metadata=replace(other.metadata, labels=random_labels(rng)))
    for before, after in ((None, other), (other, None), (other, relabelled)):
        waits_for, about = CONCERNS.of_pod(waiting), CONCERNS.of_event(before, after)
        if waits_for is not None and about is not None and set(waits_for).isdisjoint(about):
            assert not AFTER_POD(waiting, before, after)


@pytest.mark.parametrize(
    ("pod", "waits_for"),
    [
        (NEEDS_DB, {("app", "db")}),
        (SHUNS_DB, {("app", "db")}),
        (SHUNS_DB_AND_WEB, {("app", "db"), ("app", "web")}),
        (WEB, set()),
        (BROKEN, None),
    ],
)
def test_a_pod_waits_for_labels_of_others(pod: Pod, waits_for: set[tuple[str, str]] | None) -> None:
    assert CONCERNS.of_pod(pod) == waits_for


def node(labels: Data | None) -> Node | None:
    return None if labels is None else make_node("n1", labels=labels)


@pytest.mark.parametrize(
    ("pod", "before", "after", "wakes"),
    [
        (NEEDS_DB, None, {ZONE: "a"}, True),
        (NEEDS_DB, None, {}, False),
        (NEEDS_DB, {}, {ZONE: ""}, True),
        (NEEDS_DB, {ZONE: "a"}, {ZONE: "b"}, True),
        (NEEDS_DB, {ZONE: "a"}, {}, False),
        (NEEDS_DB, {ZONE: "a"}, {ZONE: "a", "x": "y"}, False),
        (SHUNS_DB, None, {}, True),
        (SHUNS_DB, {ZONE: "a"}, {}, True),
        (SHUNS_DB, {ZONE: "a"}, {ZONE: "b"}, True),
        (SHUNS_DB, {}, {ZONE: "a"}, False),
        (WEB, None, {ZONE: "a"}, False),
        (BROKEN, {}, {}, True),
    ],
)
def test_nodes_that_join_or_leave_a_domain_wake(pod: Pod, before: Data | None, after: Data, wakes: bool) -> None:
    assert AFTER_NODE(pod, node(before), node(after)) is wakes


def complaints(**args: object) -> list[str]:
    return [str(error) for error in msgspec.convert(args, InterPodAffinityArgs).validate(FieldPath(("args",)))]


def test_required_affinity_of_placed_pods_is_worth_one_point_and_wishes_count_by_default() -> None:
    args = InterPodAffinityArgs()
    assert (args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods) == (1, False)


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_weights_from_0_to_100_are_fine(weight: int) -> None:
    assert complaints(hardPodAffinityWeight=weight) == []


@pytest.mark.parametrize("weight", [-1, 101])
def test_other_weights_are_not(weight: int) -> None:
    expected = f"args.hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
    assert complaints(hardPodAffinityWeight=weight) == [expected]
