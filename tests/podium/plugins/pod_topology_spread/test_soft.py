"""How ScheduleAnyway constraints score nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Nodes
from podium.framework import SKIP, Cycle, Status
from podium.kube import Node, Pod, Service
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.pod_topology_spread.soft import natural_logarithm, rounded
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.pod_topology_spread.pieces import HOSTNAME, ZONE, Data, hard, host, soft, spreading, web, webs
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

NODES = [host("n1", "z1"), host("n2", "z2")]
SERVICE = build(Service, {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}})


def scored(
    pod: Pod,
    nodes: list[Node],
    placed: Iterable[Pod],
    feasible: list[str] | None = None,
    objects: Any = (),
    **args: Any,
) -> tuple[list[int], list[int]]:
    """Raw and normalised scores of the feasible nodes (all, unless named)."""
    cluster = make_cluster(nodes, placed, objects)
    plugin = make_plugin(PodTopologySpread, cluster, **args)
    if feasible is None:
        raw_scores(plugin, pod, cluster)  # the same on every choice of rows
    chosen = Nodes(cluster, np.array([cluster.row_of[name] for name in feasible or [node.name for node in nodes]]))
    cycle = Cycle(pod, cluster)
    assert plugin.pre_score(cycle, chosen) is None
    raw = plugin.score(cycle, chosen)
    return raw.tolist(), plugin.normalize(cycle, chosen, raw).tolist()


def test_fewer_pods_in_the_zone_score_higher() -> None:
    assert scored(spreading(soft()), NODES, webs(n1=3, n2=1)) == ([4, 1], [25, 100])


def test_the_system_spreads_pods_of_a_service_over_nodes_and_zones() -> None:
    pod = make_pod(labels={"app": "web"})
    assert scored(pod, NODES, webs(n1=1), objects=[SERVICE]) == ([9, 6], [66, 100])


def test_without_pods_all_nodes_score_100_whatever_the_skew() -> None:
    assert scored(spreading(soft()), NODES, []) == ([0, 0], [100, 100])
    assert scored(spreading(soft(max_skew=4)), NODES, []) == ([3, 3], [100, 100])


def test_domains_come_from_feasible_nodes_and_counts_from_all() -> None:
    nodes = [*NODES, host("n3", "z3"), host("n4", "z1")]
    # ln(2 + 2) for the two feasible zones; the pods of n4 count for z1 though n4 is not feasible
    assert scored(spreading(soft()), nodes, webs(n4=5, n2=1), ["n1", "n2"]) == ([7, 1], [14, 100])


def test_the_hostname_counts_the_nodes_own_pods_and_every_feasible_node_as_a_domain() -> None:
    nodes = [host("n1"), host("n2"), make_node("twin", labels={HOSTNAME: "n1"})]
    # ln(3 + 2) · 2 and · 1: the twin has the hostname of n1 but not its pods
    assert scored(spreading(soft(HOSTNAME)), nodes, webs(n1=2, n2=1))[0] == [3, 2, 0]


def test_the_hostname_counts_pods_whatever_the_policies_say() -> None:
    pod = spreading(soft(HOSTNAME), soft(), spec={"nodeSelector": {"disk": "ssd"}})
    # neither node may be used: the zones count nothing, the nodes themselves do
    assert scored(pod, NODES, webs(n1=2))[0] == [3, 0]


def test_nodes_without_all_keys_get_nothing_and_do_not_count() -> None:
    nodes = [*NODES, host("bare")]
    assert scored(spreading(soft(), soft(HOSTNAME)), nodes, webs(n1=1, bare=3)) == ([3, 0, 0], [0, 100, 0])


def test_when_every_node_lacks_a_key_all_get_nothing() -> None:
    assert scored(spreading(soft("rack")), NODES, []) == ([0, 0], [0, 0])


def test_the_systems_defaults_are_content_with_the_keys_a_node_has() -> None:
    nodes = [*NODES, host("bare")]
    pod = make_pod(labels={"app": "web"})
    # hostname: ln(3 + 2) each; zone: z1, z2 and "none" are 3 domains, so ln(3 + 2) too
    assert scored(pod, nodes, webs(n1=1, bare=1), objects=[SERVICE])[0] == [9, 6, 4]


def test_under_the_systems_defaults_nodes_without_a_zone_share_a_domain_with_nodes_of_an_empty_zone() -> None:
    nodes = [host("n1", ""), host("bare")]
    pod = make_pod(labels={"app": "web"})
    # n1: ln(2 + 2) · 0 + 2 + ln(1 + 2) · 3 + 4, for the pods of the node without the label
    assert scored(pod, nodes, webs(bare=3), objects=[SERVICE])[0] == [9, 6]


def test_the_domain_of_nodes_without_a_zone_does_not_hold_nodes_that_are_gone() -> None:
    cluster = make_cluster([host("n1", ""), host("n2", "z2"), host("gone")], webs(gone=3), [SERVICE])
    cluster.remove_node("gone")
    assert raw_scores(make_plugin(PodTopologySpread, cluster), make_pod(labels={"app": "web"}), cluster)["n1"] == 6


def test_listed_defaults_ask_for_all_keys() -> None:
    constraint = {"topologyKey": ZONE, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}
    args: Data = {"defaultingType": "List", "defaultConstraints": [constraint]}
    found = scored(make_pod(labels={"app": "web"}), [*NODES, host("bare")], webs(n1=1), objects=[SERVICE], **args)
    assert found == ([2, 1, 0], [50, 100, 0])


def test_empty_selectors_and_terminating_pods_count_nothing() -> None:
    leaving = web("leaving", "n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert scored(spreading(soft()), NODES, [leaving])[0] == [0, 0]
    assert scored(spreading(soft(selector={})), NODES, webs(n1=2))[0] == [0, 0]


def test_a_pod_without_soft_constraints_is_skipped() -> None:
    cluster = make_cluster(NODES)
    plugin = make_plugin(PodTopologySpread, cluster)
    assert plugin.pre_score(Cycle(make_pod(), cluster), Nodes(cluster)) == SKIP
    assert plugin.pre_score(Cycle(spreading(hard()), cluster), Nodes(cluster)) == SKIP


def test_a_selector_that_cannot_be_parsed_fails_the_cycle() -> None:
    broken: Data = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    cluster = make_cluster(NODES)
    cycle = Cycle(spreading(soft(selector=broken)), cluster)
    assert make_plugin(PodTopologySpread, cluster).pre_score(cycle, Nodes(cluster)) == Status.error(
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
        '"Near" is not a valid label selector operator'
    )


@given(st.lists(st.floats(0, 2**40) | st.integers(0, 2**40).map(lambda number: number + 0.5)))
def test_rounding_is_to_the_nearest_with_halves_up(numbers: list[float]) -> None:
    numbers = [*numbers, 0.5, math.nextafter(0.5, 0.0)]
    expected = [int(Fraction(number) + Fraction(1, 2)) for number in numbers]
    assert rounded(np.array(numbers)).tolist() == expected


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (2, "0x1.62e42fefa39efp-1"),
        (3, "0x1.193ea7aad030ap+0"),
        (14, "0x1.51cca16d7bba8p+1"),
        (45, "0x1.e740b76a3c9a4p+1"),
        (48, "0x1.ef8383c50bb74p+1"),
        (74, "0x1.1375cd6fcab1cp+2"),
        (176, "0x1.4ae935b3cb89ep+2"),
        (5002, "0x1.10901f6dc84b9p+3"),
        (23155, "0x1.4199525624d1cp+3"),
    ],
)
def test_logarithms_are_kube_schedulers_to_the_last_bit(number: int, bits: str) -> None:
    """Most of these differ in the last bit from what the C library says."""
    assert natural_logarithm(float(number)).hex() == bits


@given(st.integers(1, 10**6))
def test_logarithms_are_right(number: int) -> None:
    assert abs(natural_logarithm(float(number)) - float(np.log(number))) <= 2e-15 * max(1.0, float(np.log(number)))
