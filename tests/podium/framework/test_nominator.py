"""Pods that were promised a node: who must leave room for whom, and filters that must pass with them and without."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import NodeInfo, PlacedPod
from podium.engine.decide import decide
from podium.engine.sampling import Sampling
from podium.framework import SKIP, Cycle, Plugin, PluginError, Status
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.kube import Pod
from tests.podium.framework.runtimes import cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod


def nominated(name: str, node: str, **options: Any) -> Pod:
    return make_pod(name, status={"nominatedNodeName": node}, **options)


# Who is nominated where


def test_a_pod_is_nominated_to_what_its_status_says_or_to_what_is_said() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("a", "n1"))
    nominator.nominate(nominated("b", "n1"), "n2")
    nominator.nominate(make_pod("c"))
    assert [nominator.node_of(f"default-{name}") for name in "abc"] == ["n1", "n2", None]
    assert sorted(nominator.nodes()) == ["n1", "n2"]
    assert [pod.name for pod in nominator.on("n1")] == ["a"]


def test_the_last_word_counts_and_an_empty_one_takes_it_back() -> None:
    nominator = Nominator()
    pod = nominated("a", "n1")
    nominator.nominate(pod)
    nominator.nominate(pod, "n2")
    assert (nominator.nodes(), nominator.on("n1")) == (["n2"], [])
    nominator.nominate(pod, "")
    assert (nominator.nodes(), nominator.node_of(pod.uid)) == ([], None)
    nominator.remove(pod.uid)


def test_room_is_left_for_others_of_at_least_the_same_priority() -> None:
    nominator = Nominator()
    for name, priority in (("low", 1), ("same", 5), ("high", 9)):
        nominator.nominate(nominated(name, "n1", priority=priority))
    nominator.nominate(nominated("elsewhere", "n2", priority=9))
    assert [pod.name for pod in nominator.rivals(make_pod("p", priority=5), "n1")] == ["same", "high"]
    assert nominator.rivals(make_pod("same", priority=5), "n1") == [nominator.on("n1")[2]], "never for itself"
    assert nominator.rivals(make_pod("p", priority=10), "n1") == []


def test_changes_tell_which_nodes_to_look_at_again() -> None:
    nominator = Nominator()
    cursor = nominator.changes.cursor()
    cursor.read()
    pod = nominated("a", "n1")
    nominator.nominate(pod)
    nominator.nominate(pod, "n2")
    nominator.remove("nobody")
    assert cursor.read() == ["n1", "n1", "n2"]


# Two passes


class Company(Plugin):
    """Counts the pods there would be on each node, in its notes and on the node; by annotation the pod wants at least
    or at most so many."""

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if "skip" in cycle.pod.annotations:
            return SKIP
        cycle.data["Company"] = Notes(len(cycle.cluster.pods))
        return None

    def add_pod(self, cycle: Cycle, _placed: PlacedPod) -> Status | None:
        cycle.data["Company"].pods += 1
        return Status.error("crowded out") if "fails" in cycle.pod.annotations else None

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        wanted, pods = cycle.pod.annotations, cycle.data["Company"].pods
        assert pods == len(cycle.cluster.pods_on[node.row]), "notes and node tell the same"
        if not int(wanted.get("least", 0)) <= pods <= int(wanted.get("most", 9)):
            return f"{pods} pods there"
        return None


class Notes:
    def __init__(self, pods: int) -> None:
        self.pods = pods

    def clone(self) -> Notes:
        return Notes(self.pods)


def company(*rivals: Pod) -> ProfileRuntime:
    """One empty node with these pods nominated to it."""
    runtime = make_runtime(make_cluster([make_node("n1")]), Company)
    for rival in rivals:
        runtime.handle.nominator.nominate(rival)
    return runtime


def verdicts(runtime: ProfileRuntime, **wanted: str) -> list[str | None]:
    """What the one node's filters say, asked about the node alone and in a whole decision."""
    pod = make_pod("p", priority=5, metadata={"annotations": wanted})
    cycle = cycle_of(runtime, pod)
    runtime.run_pre_filter(cycle)
    alone = runtime.run_filters_with_nominated(cycle, 0)
    decision = decide(runtime, cycle_of(runtime, pod), Sampling())
    said = None if decision.row is not None else decision.search.statuses().get(0).message
    assert len(runtime.handle.cluster.pods_on[0]) == 0, "all is as it was"
    return [None if alone is None else alone.message, said]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({"most": "0"}, "1 pods there", id="must fit with them"),
        pytest.param({"least": "1"}, "0 pods there", id="must fit without them"),
        pytest.param({"least": "2"}, "1 pods there", id="what fails with them is what is said"),
        pytest.param({}, None, id="both times"),
    ],
)
def test_a_node_must_pass_with_the_nominated_pods_and_without(wanted: dict[str, str], expected: str | None) -> None:
    assert verdicts(company(nominated("rival", "n1", priority=5)), **wanted) == [expected, expected]


def test_all_rivals_count_at_once() -> None:
    runtime = company(nominated("a", "n1", priority=5), nominated("b", "n1", priority=7))
    assert verdicts(runtime, most="1") == ["2 pods there", "2 pods there"]


def test_pods_of_lower_priority_are_passed_over() -> None:
    assert verdicts(company(nominated("low", "n1", priority=4)), most="0") == [None, None]


def test_a_pod_leaves_no_room_for_itself() -> None:
    assert verdicts(company(nominated("p", "n1", priority=5)), most="0") == [None, None]


def test_a_plugin_that_skips_is_not_told_of_nominated_pods() -> None:
    assert verdicts(company(nominated("rival", "n1", priority=5)), skip="", most="0") == [None, None]


def test_what_fails_while_a_nominated_pod_is_added_fails_the_cycle_and_is_undone() -> None:
    runtime = company(nominated("rival", "n1", priority=5))
    cycle = cycle_of(runtime, make_pod("p", metadata={"annotations": {"fails": ""}}))
    runtime.run_pre_filter(cycle)
    with pytest.raises(PluginError, match=r'^running AddPod on PreFilter plugin "Company": crowded out$'):
        runtime.run_filters_with_nominated(cycle, 0)
    assert len(runtime.handle.cluster.pods_on[0]) == 0
    assert cycle.data["Company"].pods == 0


def test_nominated_pods_hold_their_requests() -> None:
    cluster = make_cluster([make_node("n1", cpu=2), make_node("n2", cpu=1)])
    runtime = make_runtime(cluster, default=True)
    runtime.handle.nominator.nominate(nominated("rival", "n1", priority=5, requests={"cpu": 2}))
    runtime.handle.nominator.nominate(nominated("elsewhere", "gone", priority=5))
    for priority, chosen in ((5, "n2"), (6, "n1")):
        pod = make_pod("p", priority=priority, requests={"cpu": 1})
        row = decide(runtime, cycle_of(runtime, pod), Sampling()).row
        assert row is not None
        assert cluster.names[row] == chosen


def test_a_nominated_pod_counts_as_a_neighbour_where_neighbours_matter() -> None:
    """Required anti-affinity sees the nominated pod in the first pass; required affinity does not get by on it."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    cluster = make_cluster([make_node("n1", labels={"kubernetes.io/hostname": "n1"})])
    runtime = make_runtime(cluster, default=True)
    runtime.handle.nominator.nominate(nominated("rival", "n1", labels={"app": "web"}))
    for kind, reason in (("podAntiAffinity", "anti-affinity rules"), ("podAffinity", "pod affinity rules")):
        affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        pod = make_pod("p", spec={"affinity": affinity})
        decision = decide(runtime, cycle_of(runtime, pod), Sampling())
        assert decision.row is None
        assert reason in decision.search.statuses().get(0).message
