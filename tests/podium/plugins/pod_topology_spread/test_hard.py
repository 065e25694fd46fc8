"""Which nodes DoNotSchedule constraints leave."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Nodes
from podium.framework import SKIP, Code, Cycle, Status
from podium.kube import Node, Pod
from podium.plugins.pod_topology_spread import PodTopologySpread
from tests.podium.plugins.ask import refusals, refused
from tests.podium.plugins.pod_topology_spread.pieces import HOSTNAME, ZONE, Data, hard, host, soft, spreading, web, webs
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

UNEVEN = (Code.UNSCHEDULABLE, ("node(s) didn't match pod topology spread constraints",))
NO_LABEL = (Code.UNRESOLVABLE, ("node(s) didn't match pod topology spread constraints (missing required label)",))
NODES = [host("n1", "z1"), host("n2", "z2"), host("n3", "z3")]


def judged(pod: Pod, placed: list[Pod], nodes: list[Node] = NODES, **args: Any) -> dict[str, Any]:
    cluster = make_cluster(nodes, placed)
    return refused(refusals(make_plugin(PodTopologySpread, cluster, **args), pod, cluster))


def test_only_domains_within_the_skew_of_the_emptiest_are_allowed() -> None:
    assert judged(spreading(hard()), webs(n1=2, n2=1)) == {"n1": UNEVEN, "n2": UNEVEN}
    assert judged(spreading(hard(max_skew=2)), webs(n1=2, n2=1)) == {"n1": UNEVEN}


def test_a_pod_that_does_not_match_its_own_selector_adds_nothing_to_the_skew() -> None:
    other = make_pod(labels={"app": "other"}, spec={"topologySpreadConstraints": [hard()]})
    assert judged(other, webs(n1=2, n2=1)) == {"n1": UNEVEN}


@pytest.mark.parametrize(("min_domains", "refused_nodes"), [(None, set()), (3, set()), (4, {"n1", "n2", "n3"})])
def test_with_too_few_domains_the_emptiest_counts_as_empty(min_domains: int | None, refused_nodes: set[str]) -> None:
    more: Data = {} if min_domains is None else {"minDomains": min_domains}
    assert judged(spreading(hard(**more)), webs(n1=2, n2=2, n3=2)).keys() == refused_nodes


def test_a_node_without_the_key_is_refused_for_good_and_counts_for_nothing() -> None:
    assert judged(spreading(hard()), webs(n1=1, bare=5), [host("n1", "z1"), host("bare")]) == {"bare": NO_LABEL}


def test_nodes_must_have_the_keys_of_all_hard_constraints_to_count() -> None:
    nodes = [host("n1", "z1"), host("n2", "z2"), make_node("odd", labels={ZONE: "z3"})]
    pod = spreading(hard(), hard(HOSTNAME, max_skew=5))
    assert judged(pod, webs(n1=1, n2=1), nodes) == {"odd": NO_LABEL}


def test_the_first_constraint_that_fails_gives_the_reason() -> None:
    nodes = [make_node("n1", labels={ZONE: "z1"}), host("n2", "z2"), host("n3", "z3")]
    placed = webs(n2=1)
    assert judged(spreading(hard(), hard(HOSTNAME)), placed, nodes) == {"n1": NO_LABEL, "n2": UNEVEN}
    several = [hard(), hard("rack")]
    assert judged(spreading(*several), placed, nodes) == dict.fromkeys(("n1", "n2", "n3"), NO_LABEL)


def test_an_uneven_domain_is_the_reason_where_that_constraint_comes_before_the_missing_key() -> None:
    nodes = [host("n1", "z1"), make_node("odd", labels={ZONE: "z1"}), host("n2", "z2")]
    by_zone, by_host = hard(), hard(HOSTNAME, max_skew=5)
    assert judged(spreading(by_zone, by_host), webs(n1=1), nodes) == {"n1": UNEVEN, "odd": UNEVEN}
    assert judged(spreading(by_host, by_zone), webs(n1=1), nodes) == {"n1": UNEVEN, "odd": NO_LABEL}


def test_an_empty_label_is_a_domain_of_its_own() -> None:
    nodes = [make_node("n1", labels={ZONE: ""}), host("n2", "z2")]
    assert judged(spreading(hard()), webs(n1=1), nodes) == {"n1": UNEVEN}


def test_two_constraints_on_one_key_are_judged_separately() -> None:
    everything: Data = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    pod = spreading(hard(), hard(max_skew=2, selector=everything))
    assert judged(pod, [make_pod("db", labels={"app": "db"}, node="n1"), web("web", "n1")]) == {"n1": UNEVEN}


@pytest.mark.parametrize(
    ("selector", "counted"),
    [(None, False), ({}, False), ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True)],
)
def test_empty_and_absent_selectors_count_no_pod(selector: Data | None, counted: bool) -> None:
    assert bool(judged(spreading(hard(selector=selector)), webs(n1=2))) == counted


def test_an_empty_selector_still_matches_the_pod_itself() -> None:
    no_skew = hard(selector={}, max_skew=0)
    assert judged(spreading(no_skew), []).keys() == {"n1", "n2", "n3"}
    assert judged(spreading(hard(selector=None, max_skew=0)), []) == {}


def test_terminating_pods_and_pods_of_other_namespaces_do_not_count() -> None:
    placed = [
        web("leaving", "n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        web("elsewhere", "n1", namespace="blue"),
    ]
    assert judged(spreading(hard()), placed) == {}


def test_pods_on_nodes_that_are_gone_or_unknown_count_for_nothing() -> None:
    cluster = make_cluster([*NODES, host("gone", "z1")], [*webs(gone=3), web("lost", "nowhere")])
    cluster.remove_node("gone")
    plugin = make_plugin(PodTopologySpread, cluster)
    assert refused(refusals(plugin, spreading(hard()), cluster)) == {}
    cluster.set_pod(web("lost too", "not there either"))  # one row more, and no label changed
    assert refused(refusals(plugin, spreading(hard()), cluster)) == {}


@pytest.mark.parametrize(("policy", "refused_nodes"), [(None, {"n1"}), ("Honor", {"n1"}), ("Ignore", {"n1", "n2"})])
def test_nodes_the_pod_cannot_use_count_only_where_the_affinity_policy_says_so(
    policy: str | None, refused_nodes: set[str]
) -> None:
    more: Data = {} if policy is None else {"nodeAffinityPolicy": policy}
    nodes = [host("n1", "z1", labels={"disk": "ssd"}), host("n2", "z2", labels={"disk": "ssd"}), host("n3", "z3")]
    pod = spreading(hard(**more), spec={"nodeSelector": {"disk": "ssd"}})
    assert judged(pod, webs(n1=2, n2=1), nodes).keys() == refused_nodes


@pytest.mark.parametrize(("policy", "uneven"), [(None, True), ("Honor", False), ("Ignore", True)])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_tainted_nodes_are_left_out_only_where_the_taints_policy_says_so(
    policy: str | None, uneven: bool, effect: str
) -> None:
    more: Data = {} if policy is None else {"nodeTaintsPolicy": policy}
    nodes = [host("n1", "z1"), host("n2", "z2", taints=[{"key": "t", "effect": effect}])]
    assert ("n1" in judged(spreading(hard(**more)), webs(n1=1), nodes)) == uneven
    tolerating = spreading(hard(**more), spec={"tolerations": [{"key": "t", "operator": "Exists"}]})
    assert "n1" in judged(tolerating, webs(n1=1), nodes)


def test_taints_that_come_and_go_change_which_nodes_are_left_out() -> None:
    cluster = make_cluster([host("n1", "z1"), host("n2", "z2")], webs(n1=1))
    plugin = make_plugin(PodTopologySpread, cluster)
    pod = spreading(hard(nodeTaintsPolicy="Honor"))
    assert refused(refusals(plugin, pod, cluster)) == {"n1": UNEVEN}
    cluster.set_node(host("n2", "z2", taints=[{"key": "t", "effect": "NoSchedule"}]))
    assert refused(refusals(plugin, pod, cluster)) == {}
    cluster.set_node(host("n2", "z2"))
    assert refused(refusals(plugin, pod, cluster)) == {"n1": UNEVEN}


def test_a_taint_that_only_discourages_leaves_no_node_out() -> None:
    nodes = [host("n1", "z1"), host("n2", "z2", taints=[{"key": "t", "effect": "PreferNoSchedule"}])]
    assert judged(spreading(hard(nodeTaintsPolicy="Honor")), webs(n1=1), nodes) == {"n1": UNEVEN}


def test_a_label_named_in_match_label_keys_is_asked_for_with_the_pods_own_value() -> None:
    placed = [make_pod("old", labels={"app": "web", "version": "1"}, node="n1")]
    more: Data = {"matchLabelKeys": ["version", "absent"]}
    assert judged(spreading(hard(**more), labels={"version": "2"}), placed) == {}
    assert judged(spreading(hard(**more), labels={"version": "1"}), placed).keys() == {"n1"}
    assert judged(spreading(hard(**more)), placed).keys() == {"n1"}
    same_version = hard(selector={}, **more)  # no longer empty once the key is asked for
    assert judged(spreading(same_version, labels={"version": "1"}), placed).keys() == {"n1"}


def test_a_pod_without_hard_constraints_is_skipped() -> None:
    cluster = make_cluster(NODES)
    plugin = make_plugin(PodTopologySpread, cluster)
    assert plugin.pre_filter(Cycle(make_pod(), cluster)) == SKIP
    assert plugin.pre_filter(Cycle(spreading(soft()), cluster)) == SKIP


def test_a_selector_that_cannot_be_parsed_fails_the_cycle() -> None:
    broken: Data = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    cluster = make_cluster(NODES)
    plugin = make_plugin(PodTopologySpread, cluster)
    cycle = Cycle(spreading(hard(selector=broken)), cluster)
    assert plugin.pre_filter(cycle) == Status.error(
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Near" is not a valid label selector operator'
    )
    assert plugin.pre_score(cycle, Nodes(cluster)) == SKIP


def trial(pod: Pod, placed: list[Pod], coming: list[Pod], going: list[Pod]) -> set[str]:
    """The nodes refused after pods came to, and went from, their nodes in a dry run."""
    cluster = make_cluster(NODES, placed)
    plugin = make_plugin(PodTopologySpread, cluster)
    cycle = Cycle(pod, cluster)
    assert plugin.pre_filter(cycle) is None
    copy = cycle.clone()
    for other in coming:
        plugin.add_pod(copy, cluster.stand_in(other, cluster.row_of[other.node_name]))
    for other in going:
        plugin.remove_pod(copy, cluster.stand_in(other, cluster.row_of[other.node_name]))
    verdict = plugin.filter(copy, Nodes(cluster))
    return set() if verdict is None else {NODES[row].name for row in verdict.codes.nonzero()[0]}


def test_pods_that_come_and_go_in_a_dry_run_move_the_counts() -> None:
    pod = spreading(hard())
    assert trial(pod, webs(n1=1, n2=1), [], []) == {"n1", "n2"}
    assert trial(pod, webs(n1=1, n2=1), [web("new", "n3")], []) == set()
    assert trial(pod, webs(n1=1, n2=1), [], webs(n1=1)) == {"n2"}
    assert trial(pod, webs(n1=1, n2=1), [web("away", "n3", namespace="blue")], []) == {"n1", "n2"}


def test_a_dry_run_leaves_the_notes_it_copied_alone() -> None:
    cluster = make_cluster(NODES, webs(n1=1, n2=1))
    plugin = make_plugin(PodTopologySpread, cluster)
    cycle = Cycle(spreading(hard()), cluster)
    assert plugin.pre_filter(cycle) is None
    plugin.add_pod(cycle.clone(), cluster.stand_in(web("new", "n3"), cluster.row_of["n3"]))
    verdict = plugin.filter(cycle, Nodes(cluster))
    assert verdict is not None
    assert verdict.codes.astype(bool).tolist() == [True, True, False]


def test_in_a_dry_run_terminating_pods_count_although_they_were_not_counted_before() -> None:
    leaving = web("leaving", "n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert trial(spreading(hard()), [leaving], [], []) == set()
    # n1 falls to -1, so the others are one too many
    assert trial(spreading(hard()), [leaving], [], [leaving]) == {"n2", "n3"}


def test_in_a_dry_run_the_pods_of_an_empty_selector_count() -> None:
    assert trial(spreading(hard(selector={})), webs(n1=3), [], []) == set()
    assert trial(spreading(hard(selector={})), webs(n1=3), [web("new", "n1")], []) == {"n1"}
