"""How many points preferred terms give, and how points become scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Nodes
from podium.framework import SKIP, Cycle, Status
from podium.kube import Pod
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.inter_pod_affinity.preferred import spread_out
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.inter_pod_affinity.oracle import normalized
from tests.podium.plugins.inter_pod_affinity.terms import ZONE, affinity, app_pod, term, weighted
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

NODES = [make_node(f"n{number}", labels={ZONE: f"z{number}"}) for number in range(1, 5)]


def points(pod: Pod, placed: list[Pod], **args: Any) -> list[int]:
    cluster = make_cluster(NODES, placed)
    return list(raw_scores(make_plugin(InterPodAffinity, cluster, **args), pod, cluster).values())


def test_preferred_terms_of_both_sides_and_required_affinity_of_placed_pods_add_up() -> None:
    pod = app_pod("web", "web", spec=affinity(preferred=[weighted(10, term())]))
    placed = [
        app_pod("db1", "db", "n1"),
        app_pod("db2", "db", "n2"),
        app_pod("db3", "db", "n2"),
        make_pod("grumpy", node="n1", spec=affinity(disliked=[weighted(5, term(app="web"))])),
        make_pod("needy", node="n3", spec=affinity(required=[term(app="web")])),
    ]
    assert points(pod, placed) == [5, 20, 1, 0]
    assert spread_out(np.array([5, 20, 1, 0])).tolist() == [25, 100, 5, 0]


def test_a_disliked_pod_takes_points_from_its_domain() -> None:
    pod = make_pod(spec=affinity(disliked=[weighted(7, term())]))
    assert points(pod, [app_pod("db", "db", "n3")]) == [0, 0, -7, 0]


@pytest.mark.parametrize(("weight", "expected"), [(1, [1, 0, 0, 0]), (50, [50, 0, 0, 0])])
def test_required_affinity_of_placed_pods_is_worth_the_hard_weight(weight: int, expected: list[int]) -> None:
    needy = make_pod("needy", node="n1", spec=affinity(required=[term(app="web")]))
    assert points(app_pod("web", "web"), [needy], hardPodAffinityWeight=weight) == expected


def test_terminating_pods_count() -> None:
    leaving = app_pod("db", "db", "n2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert points(make_pod(spec=affinity(preferred=[weighted(3, term())])), [leaving]) == [0, 3, 0, 0]


NEEDY = make_pod("needy", node="n1", spec=affinity(required=[term(app="web")]))
FAN = make_pod("fan", node="n1", spec=affinity(preferred=[weighted(3, term(app="web"))]))
WISH = affinity(preferred=[weighted(3, term())])


@pytest.mark.parametrize(
    ("spec", "placed", "args"),
    [
        ({}, [], {}),
        ({}, [app_pod("db", "db", "n1")], {}),
        (WISH, [app_pod("other", "other", "n1")], {}),
        (affinity(preferred=[weighted(3, term("rack"))]), [app_pod("db", "db", "n1")], {}),
        ({}, [NEEDY], {"hardPodAffinityWeight": 0}),
        ({}, [FAN], {"ignorePreferredTermsOfExistingPods": True}),
        ({}, [make_pod("loner", node="n1", spec=affinity(anti=[term(app="web")]))], {}),
    ],
    ids=["no pods", "no terms", "no match", "no such key", "worth nothing", "told to ignore", "anti-affinity"],
)
def test_scoring_is_skipped_when_nobody_has_a_say(spec: Any, placed: list[Pod], args: Any) -> None:
    cluster = make_cluster(NODES, placed)
    plugin = make_plugin(InterPodAffinity, cluster, **args)
    assert plugin.pre_score(Cycle(app_pod("web", "web", spec=spec), cluster), Nodes(cluster)) == SKIP


def test_placed_pods_are_not_ignored_once_the_pod_has_preferred_terms_of_its_own() -> None:
    pod = app_pod("web", "web", spec=WISH)
    assert points(pod, [FAN], ignorePreferredTermsOfExistingPods=True) == [3, 0, 0, 0]


def test_opinions_that_cancel_out_still_count_as_scored() -> None:
    pod = app_pod("web", "web", spec=affinity(preferred=[weighted(3, term())], disliked=[weighted(3, term())]))
    assert points(pod, [app_pod("db", "db", "n1")]) == [0, 0, 0, 0]


def test_terms_that_cannot_be_parsed_fail_the_cycle() -> None:
    broken = weighted(1, term(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]}))
    cluster = make_cluster(NODES)
    cycle = Cycle(make_pod(spec=affinity(preferred=[broken])), cluster)
    assert make_plugin(InterPodAffinity, cluster).pre_score(cycle, Nodes(cluster)) == Status.error(
        'failed to parse pod: preferredAffinityTerms: "Near" is not a valid label selector operator'
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([10, 0, -5], [100, 33, 0]),
        ([0, 29, 100], [0, 28, 100]),  # 100 · 0.29 is 28.999…
        ([4, 4], [0, 0]),
        ([-3], [0]),
        ([], []),
    ],
)
def test_points_are_spread_over_0_to_100(raw: list[int], expected: list[int]) -> None:
    assert spread_out(np.array(raw, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1))
def test_spreading_divides_before_it_multiplies(raw: list[int]) -> None:
    wanted = normalized({str(number): score for number, score in enumerate(raw)})
    assert spread_out(np.array(raw, dtype=np.int64)).tolist() == list(wanted.values())
