from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Nodes
from podium.framework import Action, Code, Cycle, PluginError, Resource
from podium.plugins.taint_toleration import TaintToleration
from tests.podium.plugins.ask import events_of, hint_of, raw_scores, refusals, refused, scores
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

REASON = "node(s) had untolerated taint(s)"


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def pod_tolerating(*tolerations: dict[str, str], name: str = "p1") -> Any:
    return make_pod(name, spec={"tolerations": list(tolerations)})


CLUSTER = make_cluster(
    [
        make_node("clean"),
        make_node("dedicated", taints=[taint("dedicated", value="db")]),
        make_node("leaving", taints=[taint("gone", "NoExecute")]),
        make_node("both", taints=[taint("dedicated", value="db"), taint("gone", "NoExecute")]),
        make_node("disliked", taints=[taint("slow", "PreferNoSchedule")]),
    ]
)
PLUGIN = make_plugin(TaintToleration, CLUSTER)


@pytest.mark.parametrize(
    ("tolerations", "refusing"),
    [
        ([], {"dedicated", "leaving", "both"}),
        ([{"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}], {"leaving", "both"}),
        ([{"key": "dedicated", "value": "web"}], {"dedicated", "leaving", "both"}),
        ([{"key": "dedicated", "operator": "Exists"}], {"leaving", "both"}),
        ([{"key": "gone", "operator": "Exists", "effect": "NoSchedule"}], {"dedicated", "leaving", "both"}),
        ([{"operator": "Exists"}], set()),
        ([{"key": "dedicated", "operator": "Exists"}, {"key": "gone", "operator": "Exists"}], set()),
    ],
)
def test_taints_that_keep_pods_away_must_all_be_tolerated(
    tolerations: list[dict[str, str]], refusing: set[str]
) -> None:
    found = refused(refusals(PLUGIN, pod_tolerating(*tolerations), CLUSTER))
    assert found == dict.fromkeys(refusing, (Code.UNRESOLVABLE, (REASON,)))


def test_a_disliked_node_still_passes_the_filter() -> None:
    assert refusals(PLUGIN, make_pod(), CLUSTER)["disliked"] is None


def disliked_cluster() -> Any:
    dislikes = {"a": 0, "b": 1, "c": 3}
    nodes = [
        make_node(name, taints=[taint(f"t{i}", "PreferNoSchedule") for i in range(count)])
        for name, count in dislikes.items()
    ]
    return make_cluster(nodes)


def test_the_more_disliked_taints_the_lower_the_score() -> None:
    cluster = disliked_cluster()
    plugin = make_plugin(TaintToleration, cluster)
    assert raw_scores(plugin, make_pod(), cluster) == {"a": 0, "b": 1, "c": 3}
    assert scores(plugin, make_pod(), cluster) == {"a": 100, "b": 67, "c": 0}


def test_without_disliked_taints_every_node_scores_100() -> None:
    cluster = make_cluster([make_node("a"), make_node("b", taints=[taint("x", "NoSchedule")])])
    assert scores(make_plugin(TaintToleration, cluster), make_pod(), cluster) == {"a": 100, "b": 100}


@pytest.mark.parametrize(
    ("toleration", "raw"),
    [
        ({"operator": "Exists"}, {"a": 0, "b": 0, "c": 0}),
        ({"key": "t0", "operator": "Exists", "effect": "PreferNoSchedule"}, {"a": 0, "b": 0, "c": 2}),
        ({"key": "t0", "operator": "Exists"}, {"a": 0, "b": 0, "c": 2}),
        ({"key": "t0", "operator": "Exists", "effect": "NoSchedule"}, {"a": 0, "b": 1, "c": 3}),
    ],
)
def test_only_tolerations_for_disliking_or_for_any_effect_count(
    toleration: dict[str, str], raw: dict[str, int]
) -> None:
    cluster = disliked_cluster()
    assert raw_scores(make_plugin(TaintToleration, cluster), pod_tolerating(toleration), cluster) == raw


def test_scoring_without_pre_score_is_an_error() -> None:
    with pytest.raises(PluginError, match=r'^failed to read "PreScoreTaintToleration" from cycleState: not found$'):
        PLUGIN.score(Cycle(make_pod(), CLUSTER), Nodes(CLUSTER))


def test_vanished_nodes_do_not_disturb() -> None:
    cluster = disliked_cluster()
    cluster.remove_node("b")
    assert raw_scores(make_plugin(TaintToleration, cluster), make_pod(), cluster) == {"a": 0, "c": 3}


def test_events() -> None:
    assert events_of(PLUGIN) == [
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        (Resource.POD, Action.UPDATE_POD_TOLERATION),
    ]


def test_a_node_that_lets_the_pod_in_now_wakes_it() -> None:
    hint = hint_of(PLUGIN, Resource.NODE)
    clean, tainted, disliked = (
        make_node(),
        make_node(taints=[taint("x")]),
        make_node(taints=[taint("x", "PreferNoSchedule")]),
    )
    pod = make_pod()
    assert hint(pod, None, clean)
    assert hint(pod, None, disliked)
    assert hint(pod, tainted, clean)
    assert not hint(pod, None, tainted)
    assert not hint(pod, tainted, tainted)
    assert not hint(pod, clean, clean)
    assert not hint(pod_tolerating({"operator": "Exists"}), tainted, clean)


def test_the_pods_own_new_toleration_wakes_it() -> None:
    hint = hint_of(PLUGIN, Resource.POD)
    mine = make_pod("mine")
    assert hint(mine, mine, pod_tolerating({"key": "x"}, name="mine"))
    assert not hint(mine, make_pod("other"), pod_tolerating({"key": "x"}, name="other"))
