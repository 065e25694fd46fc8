"""Which nodes required terms leave, of the incoming pod and of placed ones."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Nodes
from podium.framework import SKIP, Code, Cycle, Status
from podium.kube import Namespace, Pod
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.inter_pod_affinity.incoming import incoming_terms
from tests.podium.plugins.ask import refusals, refused
from tests.podium.plugins.inter_pod_affinity.terms import ZONE, Data, affinity, app_pod, term
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

AFFINITY = (Code.UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY = (Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
EXISTING = (Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",))

NODES = [
    make_node("a1", labels={ZONE: "a", "rack": "1"}),
    make_node("a2", labels={ZONE: "a"}),
    make_node("b1", labels={ZONE: "b", "rack": "1"}),
    make_node("bare"),
]


def judged(pod: Pod, placed: list[Pod], namespaces: dict[str, dict[str, str]] | None = None) -> dict[str, Any]:
    objects = [
        build(Namespace, {"metadata": {"name": name, "labels": labels}}) for name, labels in (namespaces or {}).items()
    ]
    cluster = make_cluster(NODES, placed, objects)
    return refused(refusals(make_plugin(InterPodAffinity, cluster), pod, cluster))


def test_a_pod_goes_where_a_pod_it_needs_is_in_the_same_domain() -> None:
    pod = make_pod(spec=affinity(required=[term()]))
    assert judged(pod, [app_pod("db", "db", "a1")]) == {"b1": AFFINITY, "bare": AFFINITY}


def test_one_pod_must_match_all_affinity_terms_at_once() -> None:
    both = affinity(required=[term(), term(selector={"matchLabels": {"tier": "x"}})])
    apart = [app_pod("db", "db", "a1"), make_pod("x", labels={"tier": "x"}, node="a1")]
    together = [make_pod("db-x", labels={"app": "db", "tier": "x"}, node="b1")]
    assert judged(make_pod(spec=both), apart).keys() == {"a1", "a2", "b1", "bare"}
    assert judged(make_pod(spec=both), together).keys() == {"a1", "a2", "bare"}


def test_the_first_of_a_series_may_go_anywhere_its_topology_keys_exist() -> None:
    pod = make_pod(labels={"app": "db"}, spec=affinity(required=[term(), term("rack")]))
    assert judged(pod, []) == {"a2": AFFINITY, "bare": AFFINITY}


def test_a_pod_that_matches_itself_is_not_the_first_once_another_one_matches_anywhere() -> None:
    pod = make_pod(labels={"app": "db"}, spec=affinity(required=[term("rack")]))
    assert judged(pod, [app_pod("db", "db", "a1")]).keys() == {"a2", "bare"}
    assert judged(
        make_pod(labels={"app": "db"}, spec=affinity(required=[term()])), [app_pod("db", "db", "b1")]
    ).keys() == {
        "a1",
        "a2",
        "bare",
    }


def test_a_matching_pod_on_a_node_without_the_key_does_not_end_the_exception_for_the_first() -> None:
    pod = make_pod(labels={"app": "db"}, spec=affinity(required=[term()]))
    assert judged(pod, [app_pod("db", "db", "bare")]) == {"bare": AFFINITY}


def test_a_pod_that_does_not_match_itself_waits_for_a_match() -> None:
    assert judged(make_pod(spec=affinity(required=[term()])), []).keys() == {"a1", "a2", "b1", "bare"}


def test_a_pod_keeps_away_from_domains_with_pods_it_shuns_and_needs_no_key_for_that() -> None:
    pod = make_pod(spec=affinity(anti=[term(), term("rack", app="web")]))
    placed = [app_pod("db", "db", "a2"), app_pod("web", "web", "bare")]
    assert judged(pod, placed) == {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}


def test_placed_pods_keep_others_away_from_their_domain() -> None:
    loner = make_pod("loner", node="b1", spec=affinity(anti=[term(app="web")]))
    assert judged(app_pod("web", "web"), [loner]) == {"b1": EXISTING}
    assert judged(app_pod("db", "db"), [loner]) == {}


def test_the_first_reason_in_order_is_given() -> None:
    shunning = app_pod("shunning", "db", "a1", spec=affinity(anti=[term(app="web")]))
    here = app_pod("here", "friend", "a1")
    placed = [shunning, here]
    spec = affinity(required=[term(app="friend")], anti=[term(app="db")])
    assert judged(app_pod("web", "web", spec=spec), placed) == {
        "a1": ANTI_AFFINITY,
        "a2": ANTI_AFFINITY,
        "b1": AFFINITY,
        "bare": AFFINITY,
    }


def test_terminating_pods_count() -> None:
    leaving = app_pod("db", "db", "a1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert judged(make_pod(spec=affinity(anti=[term()])), [leaving]).keys() == {"a1", "a2"}


def test_pods_on_nodes_that_are_gone_count_for_nothing() -> None:
    cluster = make_cluster([*NODES, make_node("gone", labels={ZONE: "b"})], [app_pod("db", "db", "gone")])
    cluster.remove_node("gone")
    pod = make_pod(spec=affinity(anti=[term()]))
    assert refused(refusals(make_plugin(InterPodAffinity, cluster), pod, cluster)) == {}


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        ({}, {"default"}),
        ({"namespaces": ["blue"]}, {"blue"}),
        ({"namespaceSelector": {}}, {"default", "blue", "green", "unknown"}),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"blue"}),
        ({"namespaces": ["green"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, {"blue", "green"}),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}},
            {"default", "green"},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
            {"blue", "green"},
        ),
    ],
)
def test_which_namespaces_a_term_of_the_incoming_pod_reaches(scope: Data, reached: set[str]) -> None:
    labels = {"default": {}, "blue": {"team": "x"}, "green": {"team": "y"}}
    pod = make_pod(spec=affinity(anti=[term(**scope)]))
    for namespace in ("default", "blue", "green", "unknown"):
        placed = app_pod("db", "db", "a1", namespace=namespace)
        assert bool(judged(pod, [placed], labels)) == (namespace in reached), namespace


def test_before_1_37_a_selector_that_a_namespace_without_labels_satisfies_reaches_all() -> None:
    excluding = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
    pod = make_pod(spec=affinity(anti=[term(namespaceSelector=excluding)]))
    (avoided,) = make_cluster([]).facts.of(pod).terms
    namespaces = [build(Namespace, {"metadata": {"name": "blue", "labels": {"team": "x"}}})]
    ((_key, query),) = incoming_terms((avoided,), namespaces, unlabelled=True).anti_affinity
    assert query.terms[0].namespaces is None
    ((_key, query),) = incoming_terms((avoided,), namespaces).anti_affinity
    assert query.terms[0].namespaces == frozenset()


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        ({}, {"blue"}),
        ({"namespaceSelector": {}}, {"default", "blue", "green", "unknown"}),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"blue"}),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}},
            {"default", "green", "unknown"},
        ),
    ],
)
def test_which_namespaces_a_term_of_a_placed_pod_reaches(scope: Data, reached: set[str]) -> None:
    labels = {"default": {}, "blue": {"team": "x"}, "green": {"team": "y"}}
    loner = make_pod("loner", namespace="blue", node="a1", spec=affinity(anti=[term(app="web", **scope)]))
    for namespace in ("default", "blue", "green", "unknown"):
        pod = app_pod("web", "web", namespace=namespace)
        assert bool(judged(pod, [loner], labels)) == (namespace in reached), namespace


def test_a_namespace_that_gets_the_label_later_is_reached_from_then_on() -> None:
    cluster = make_cluster(NODES, [app_pod("db", "db", "a1", namespace="blue")])
    plugin = make_plugin(InterPodAffinity, cluster)
    pod = make_pod(spec=affinity(anti=[term(namespaceSelector={"matchLabels": {"team": "x"}})]))
    assert refused(refusals(plugin, pod, cluster)) == {}
    mark = plugin.answer_key(pod)
    cluster.objects.namespaces.set("blue", build(Namespace, {"metadata": {"name": "blue", "labels": {"team": "x"}}}))
    assert refused(refusals(plugin, pod, cluster)).keys() == {"a1", "a2"}
    assert plugin.answer_key(pod) != mark


@pytest.mark.parametrize(("selector", "matches"), [(None, False), ({}, True), ({"matchLabels": {"app": "db"}}, True)])
def test_an_absent_label_selector_matches_no_pod_and_an_empty_one_all(selector: Data | None, matches: bool) -> None:
    shunned = term(app=None, selector=selector)
    assert bool(judged(make_pod(spec=affinity(anti=[shunned])), [app_pod("db", "db", "a1")])) == matches


@pytest.mark.parametrize(
    "placed",
    [
        [],
        [app_pod("db", "db", "a1")],
        [make_pod("loner", node="a1", spec=affinity(anti=[term(app="other")]))],
        [make_pod("loner", node="bare", spec=affinity(anti=[term(app="web")]))],
        [make_pod("fan", node="a1", spec=affinity(required=[term(app="web")], preferred=[]))],
    ],
    ids=["no pods", "pods without terms", "terms about others", "no node with the key", "affinity of others"],
)
def test_a_pod_that_nothing_required_speaks_of_is_skipped(placed: list[Pod]) -> None:
    cluster = make_cluster(NODES, placed)
    assert make_plugin(InterPodAffinity, cluster).pre_filter(Cycle(app_pod("web", "web"), cluster)) == SKIP


def test_terms_that_cannot_be_parsed_turn_the_pod_away() -> None:
    broken = term(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]})
    cluster = make_cluster(NODES)
    plugin = make_plugin(InterPodAffinity, cluster)
    cycle = Cycle(make_pod(spec=affinity(anti=[broken], required=[broken])), cluster)
    wrong = '"Near" is not a valid label selector operator'
    text = f"[requiredAffinityTerms: {wrong}, requiredAntiAffinityTerms: {wrong}]"
    assert plugin.pre_filter(cycle) == Status.unresolvable(f"parsing pod: {text}")


def test_terms_of_a_placed_pod_that_cannot_be_parsed_do_not_spoil_its_others() -> None:
    broken = term(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]})
    loner = make_pod("loner", node="b1", spec=affinity(required=[broken], anti=[term(app="web")]))
    assert judged(app_pod("web", "web"), [loner]) == {"b1": EXISTING}


def test_a_pod_that_brings_a_term_about_a_new_key_is_counted() -> None:
    loner = make_pod("loner", node="a1", spec=affinity(anti=[term(app="web")]))
    cluster = make_cluster(NODES, [loner])
    plugin = make_plugin(InterPodAffinity, cluster)
    cycle = Cycle(app_pod("web", "web"), cluster)
    assert plugin.pre_filter(cycle) is None
    newcomer = make_pod("newcomer", spec=affinity(anti=[term("rack", app="web")]))
    plugin.add_pod(cycle, cluster.stand_in(newcomer, cluster.row_of["b1"]))
    plugin.remove_pod(cycle, cluster.pods[loner.uid])
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert verdict is not None
    assert verdict.codes.astype(bool).tolist() == [True, False, True, False]


def test_pods_that_no_term_concerns_keep_their_answer_key() -> None:
    cluster = make_cluster(NODES)
    plugin = make_plugin(InterPodAffinity, cluster)
    pod = app_pod("web", "web")
    mark = plugin.answer_key(pod)
    cluster.set_pod(make_pod("loner", node="a1", spec=affinity(anti=[term(app="db")])))
    cluster.set_pod(app_pod("other", "web", "b1"))
    assert plugin.answer_key(pod) == mark
    cluster.set_pod(
        make_pod("fan", node="a1", spec=affinity(preferred=[{"weight": 1, "podAffinityTerm": term(app="web")}]))
    )
    assert plugin.answer_key(pod) != mark


def test_a_term_that_goes_and_comes_back_moves_the_answer_key() -> None:
    spec = affinity(anti=[term(app="web")])
    loners = [make_pod(f"loner-{node}", node=node, spec=spec) for node in ("a1", "b1")]
    cluster = make_cluster(NODES, loners)
    plugin = make_plugin(InterPodAffinity, cluster)
    mark = plugin.answer_key(app_pod("web", "web"))
    for loner in loners:
        cluster.remove_pod(loner.uid)
    cluster.set_pod(loners[0])
    assert plugin.answer_key(app_pod("web", "web")) != mark
