"""QosAware in a scheduler: who goes first, who is evicted for whom, and what a restart remembers.

Places for replicas that must run together.
"""

from __future__ import annotations

import numpy as np
import pytest

from podium.cluster import Cluster
from podium_plugins.qos_aware import retry
from podium_plugins.qos_aware.together import places
from tests.podium_plugins.qos_aware.qos_worlds import QosWorld
from tools.kit.builders import make_node, make_pod


def test_a_controller_in_debt_overtakes_and_preempts_one_with_slack() -> None:
    world = QosWorld()
    world.come("slack-1", "0.5")
    world.run(100)
    world.come("debt-1", "0.9")
    world.run()
    assert world.gone == ["slack-1"]
    world.run()
    assert world.node_of("debt-1") == "n1"


def test_a_pod_that_has_not_run_for_the_minimum_time_is_not_touched() -> None:
    world = QosWorld(args={"minimumRunningTime": "10m"})
    world.come("slack-1", "0.5")
    world.run(100)
    world.come("debt-1", "0.9")
    world.run(400)
    assert world.gone == []
    world.run(110)
    assert world.gone == ["slack-1"], "it is tried again when the minimum is over, though nothing happened"


def test_pods_of_kube_system_are_never_touched() -> None:
    world = QosWorld()
    world.add(make_node("n1", cpu=1))
    system = world.pod("dns-1", "0", namespace="kube-system")
    world.known["dns-1"] = system
    world.add(system)
    world.run(100)
    world.come("debt-1", "1")
    world.run(600)
    assert world.gone == []
    assert "default-debt-1" not in world.cluster.pods


def test_room_goes_to_the_pod_that_should_go_first_though_it_backs_off() -> None:
    world = QosWorld(args={"minimumRunningTime": "10m"})
    leaving = world.come("had-1", "0.8")
    world.run(100)
    world.come("waits-1", "0.8")
    world.run()
    world.delete(world.known[leaving.name])
    world.come("had-2", "0.8")
    world.run()
    assert world.node_of("waits-1") == "n1", "a successor does not take the place only because it was never refused"


@pytest.mark.parametrize(("other", "gone"), [("1", set()), ("0.5", {"slack-1", "other-1"})], ids=["kept", "evictable"])
def test_no_pod_is_evicted_for_replicas_that_would_not_be_complete(other: str, gone: set[str]) -> None:
    world = QosWorld(nodes=2)
    world.come("slack-1", "0.5")
    world.come("other-1", other)
    world.run(100)
    for name in ("both-1", "both-2"):
        world.come(name, "0.9", annotations={"qosMeasuring": "concurrent"})
    world.run(100)
    assert set(world.gone) == gone
    assert all((name in str(world.cluster.pods.keys())) == bool(gone) for name in ("both-1", "both-2"))


@pytest.mark.parametrize("slo", ["NaN", "7", "-1", "much", "", "inf"])
def test_a_bad_slo_counts_as_the_default_and_is_reported_once(slo: str) -> None:
    world = QosWorld()
    world.come("odd-1", slo)
    world.come("odd-2", slo)
    world.run(5)
    assert world.plugin.ledger.accounts["odd"].slo == 0.8
    assert [report for report in world.reports if "annotation slo" in report][1:] == []
    assert f'annotation slo: "{slo}" is no number from 0 to 1' in world.reports[0]


def test_all_running_pods_are_looked_at_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MOST_LOOKED_AT", 2)
    world = QosWorld(nodes=5)
    for number in range(4):
        world.come(f"firm{number}-1", "1")
    world.come("slack-1", "0.5")
    world.run(100)
    world.come("debt-1", "0.9")
    world.run(30)
    assert world.gone == ["slack-1"]


def test_places_are_counted_in_what_is_free_and_what_may_be_evicted() -> None:
    cluster = Cluster()
    for node in (make_node("n1", cpu=4), make_node("n2", cpu=4, pods=2), make_node("n3", cpu=4)):
        cluster.set_node(node)
    for name, node_name in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n3")):
        cluster.set_pod(make_pod(name, requests={"cpu": "1500m"}, node=node_name))
    placed = {each.pod.name: each for each in cluster.pods.values()}
    facts = cluster.facts.of(make_pod("new", requests={"cpu": 1, "memory": "1Gi"}))
    rows = np.array([cluster.row_of["n1"], cluster.row_of["n2"]])
    assert places(cluster, rows, facts, []) == 1 + 1, "n2 may hold one more pod, though it has room for two"
    assert places(cluster, rows, facts, [placed["a"]]) == 2 + 1
    assert places(cluster, rows, facts, [placed["a"], placed["c"], placed["d"]]) == 2 + 2, "n3 could not take the pod"
