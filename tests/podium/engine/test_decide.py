"""One decision: the search in visiting order, the nominated node, what is scored, and what fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import NodeInfo, Nodes
from podium.engine.decide import NodeSearch, decide, find_feasible
from podium.engine.sampling import Sampling
from podium.framework import Cycle, Plugin, PluginError, Scores, Status, Verdict
from podium.framework.answers import NodeFailedError
from podium.framework.profile import ProfileRuntime
from podium.kube import Pod
from podium.testing.memory_writer import MemoryWriter
from tests.podium.framework.runtimes import answering, cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod

CLOSED = Status.unschedulable("closed")
GONE = Status.unresolvable("gone")


class Doors(Plugin):
    """Lets a pod through where the node's label says so, and fails where it says "broken"."""

    def filter(self, _cycle: Cycle, nodes: Nodes) -> Verdict:
        door = [nodes.info(index).labels.get("door", "") for index in range(len(nodes))]
        said = (None, CLOSED, GONE, Status.error("no handle"))
        codes = np.array([("open", "closed", "gone", "broken").index(each or "open") for each in door])
        return Verdict(codes, lambda code: said[code] or CLOSED, fails="broken" in door)


class Handles(Plugin):
    """Fails where the node's label says "broken", and names the node."""

    def filter_node(self, _cycle: Cycle, node: NodeInfo) -> Status | None:
        if node.labels["door"] == "broken":
            raise NodeFailedError(f"{node.name} has no handle")
        return None


class Flat(Plugin):
    """Likes all nodes alike, and counts how often it was asked."""

    asked = 0

    def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
        type(self).asked += 1
        return np.zeros(len(nodes), dtype=np.int64)


class OnlyListed(Plugin):
    """Names the nodes that the pod's annotation names."""

    def pre_filter(self, cycle: Cycle) -> frozenset[str] | None:
        listed = cycle.pod.annotations.get("nodes")
        return None if listed is None else frozenset(listed.split())


@dataclass
class AtMost(Sampling):
    """A search that stops early in small clusters, too."""

    enough: int = 1

    def limit(self, nodes: int, _profile_percentage: int | None, *, as_kube_scheduler: bool = False) -> int:
        return min(nodes, self.enough)


def doors(*states: str, plugins: tuple[Any, ...] = (Doors, Flat)) -> ProfileRuntime:
    """Nodes n0, n1, … with doors in these states."""
    nodes = [make_node(f"n{number}", labels={"door": state}) for number, state in enumerate(states)]
    return make_runtime(make_cluster(nodes), *plugins)


def names(runtime: ProfileRuntime, search: NodeSearch) -> list[str]:
    return [runtime.handle.cluster.names[row] for row in search.feasible.tolist()]


def refused(runtime: ProfileRuntime, search: NodeSearch) -> dict[str, Status]:
    """The nodes of which something was said."""
    found = {row: status for status, rows in search.statuses().groups() for row in rows.tolist()}
    return {runtime.handle.cluster.names[row]: status for row, status in found.items()}


def nominated(node_name: str, name: str = "p") -> Pod:
    return make_pod(name, status={"nominatedNodeName": node_name})


# The search


class Walk:
    """The search as a walk from node to node: stops at the first feasible node it has no more use for."""

    def __init__(self, states: list[str]) -> None:
        self.states = states
        self.next_start = 0

    def search(self, enough: int) -> tuple[list[str], set[str]]:
        count = len(self.states)
        feasible: list[str] = []
        refused: set[str] = set()
        for step in range(count):
            number = (self.next_start + step) % count
            if self.states[number] != "open":
                refused.add(f"n{number}")
            elif len(feasible) == enough:
                break
            else:
                feasible.append(f"n{number}")
        self.next_start = (self.next_start + len(feasible) + len(refused)) % count
        return feasible, refused


@given(
    st.lists(st.sampled_from(["open", "open", "closed", "gone"]), min_size=1, max_size=12),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_searching_all_nodes_at_once_finds_what_a_walk_finds(states: list[str], limits: list[int]) -> None:
    runtime, walk, sampling = doors(*states), Walk(states), AtMost()
    for enough in limits:
        sampling.enough = enough
        search = find_feasible(runtime, cycle_of(runtime, make_pod()), sampling)
        feasible, turned_away = walk.search(enough)
        assert names(runtime, search) == feasible
        assert refused(runtime, search).keys() == turned_away
        assert sampling.next_start == walk.next_start


def test_a_share_of_a_large_cluster_is_looked_at_and_the_next_search_goes_on_behind_it() -> None:
    runtime = doors(*["closed", "open"] * 125)
    sampling = Sampling(percentage=1)
    first = find_feasible(runtime, cycle_of(runtime, make_pod()), sampling)
    assert names(runtime, first) == [f"n{number}" for number in range(1, 200, 2)]
    assert (len(refused(runtime, first)), sampling.next_start) == (101, 201)
    second = find_feasible(runtime, cycle_of(runtime, make_pod()), sampling)
    assert names(runtime, second)[:27] == [f"n{number}" for number in (*range(201, 250, 2), 1, 3)]
    assert sampling.next_start == 151


def test_named_nodes_are_the_only_ones_looked_at_and_count_as_seen() -> None:
    runtime = doors("open", "open", "closed", "open", plugins=(OnlyListed, Doors, Flat))
    sampling = Sampling()
    pod = make_pod(metadata={"annotations": {"nodes": "n3 n2 unknown"}})
    search = find_feasible(runtime, cycle_of(runtime, pod), sampling)
    assert names(runtime, search) == ["n3"]
    assert refused(runtime, search) == {"n2": CLOSED.by("Doors")}
    assert search.statuses().absent == Status.unresolvable("node(s) didn't satisfy plugin(s) [OnlyListed]")
    assert sampling.next_start == 2


def test_when_no_named_node_exists_all_others_are_refused_by_who_named_them() -> None:
    runtime = doors("open", "open", plugins=(OnlyListed, Doors, Flat))
    pod = make_pod(metadata={"annotations": {"nodes": "unknown"}})
    decision = decide(runtime, cycle_of(runtime, pod), Sampling())
    assert decision.row is None
    diagnosis = decision.search.diagnosis()
    assert diagnosis.message == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [OnlyListed]."
    assert diagnosis.unschedulable_plugins == {"OnlyListed"}


def test_without_filters_the_first_nodes_are_taken_and_the_next_search_goes_on_behind_them() -> None:
    runtime = doors("closed", "closed", "closed", plugins=(Flat,))
    sampling = AtMost(enough=2)
    found = [names(runtime, find_feasible(runtime, cycle_of(runtime, make_pod()), sampling)) for _ in range(2)]
    assert found == [["n0", "n1"], ["n2", "n0"]]
    assert sampling.next_start == 1


def test_without_scores_the_first_feasible_node_is_enough() -> None:
    runtime = doors("closed", "open", "open", "open", plugins=(Doors,))
    sampling = Sampling()
    chosen = [decide(runtime, cycle_of(runtime, make_pod()), sampling).row for _ in range(4)]
    assert chosen == [1, 2, 3, 1]


def test_equal_scores_are_decided_by_where_the_search_started() -> None:
    runtime = doors("open", "open", "open")
    rows = [decide(runtime, cycle_of(runtime, make_pod()), Sampling(next_start=start)).row for start in range(4)]
    assert rows == [0, 1, 2, 0]


# The nominated node


def test_the_nominated_node_is_tried_first_and_taken_unscored() -> None:
    runtime = doors("open", "open", "open")
    Flat.asked, sampling = 0, Sampling(next_start=1)
    decision = decide(runtime, cycle_of(runtime, nominated("n2")), sampling)
    assert (decision.row, decision.scores, Flat.asked) == (2, None, 0)
    assert sampling.next_start == 1


def test_the_nominated_node_need_not_be_among_those_named() -> None:
    runtime = doors("open", "open", plugins=(OnlyListed, Doors, Flat))
    pod = make_pod(metadata={"annotations": {"nodes": "n0"}}, status={"nominatedNodeName": "n1"})
    assert decide(runtime, cycle_of(runtime, pod), Sampling()).row == 1


def test_a_nominated_node_that_went_away_is_passed_over() -> None:
    runtime = doors("closed", "open")
    assert decide(runtime, cycle_of(runtime, nominated("n7")), Sampling()).row == 1


def test_a_nominated_node_that_fails_is_seen_even_where_the_search_does_not_get_to_it() -> None:
    runtime = doors("open", "open", "open", "closed")
    sampling = AtMost(enough=1)
    search = find_feasible(runtime, cycle_of(runtime, nominated("n3")), sampling)
    assert names(runtime, search) == ["n0"]
    assert refused(runtime, search) == {"n3": CLOSED.by("Doors")}
    assert sampling.next_start == 2, "n0 and n3 were seen"


def test_a_nominated_node_that_fails_counts_once_when_the_search_meets_it() -> None:
    runtime = doors("closed", "open", "open")
    sampling = AtMost(enough=1)
    find_feasible(runtime, cycle_of(runtime, nominated("n0")), sampling)
    assert sampling.next_start == 2


def test_an_error_on_the_nominated_node_is_only_reported() -> None:
    nodes = [make_node("n0"), make_node("n1", labels={"door": "broken"})]
    cluster = make_cluster(nodes)
    runtime = make_runtime(cluster, OnlyListed, Doors, Flat)
    reports: list[str] = []
    runtime.handle.report = reports.append
    pod = make_pod(metadata={"annotations": {"nodes": "n0"}}, status={"nominatedNodeName": "n1"})
    assert decide(runtime, cycle_of(runtime, pod), Sampling()).row == 0
    assert reports == ['pod default/p1 on its nominated node: running "Doors" filter plugin: no handle']


# What is scored, and what fails


def test_a_single_feasible_node_is_taken_unscored() -> None:
    runtime = doors("closed", "open")
    Flat.asked = 0
    decision = decide(runtime, cycle_of(runtime, make_pod()), Sampling())
    assert (decision.row, decision.scores, Flat.asked) == (1, None, 0)


def test_an_error_on_a_node_that_is_looked_at_fails_the_decision_and_the_start_still_moves() -> None:
    runtime = doors("open", "broken", "open", "open")
    sampling = AtMost(enough=2)
    with pytest.raises(PluginError, match=r'^running "Doors" filter plugin: no handle$'):
        decide(runtime, cycle_of(runtime, make_pod()), sampling)
    assert sampling.next_start == 3


@pytest.mark.parametrize(("start", "heard"), [(0, "n1"), (2, "n3"), (4, "n1")])
def test_of_several_errors_the_one_on_the_first_node_that_is_visited_is_heard(start: int, heard: str) -> None:
    runtime = doors("open", "broken", "open", "broken", "open", plugins=(Handles, Flat))
    with pytest.raises(PluginError, match=f"{heard} has no handle"):
        decide(runtime, cycle_of(runtime, make_pod()), Sampling(next_start=start))


@pytest.mark.parametrize(("start", "heard"), [(0, "n1"), (2, "n3"), (4, "n1")])
def test_an_error_on_a_node_with_nominated_pods_has_no_precedence(start: int, heard: str) -> None:
    runtime = doors("open", "broken", "open", "broken", "open", plugins=(Handles, Flat))
    runtime.handle.nominator.nominate(nominated("n3", "rival"))
    with pytest.raises(PluginError, match=f"{heard} has no handle"):
        decide(runtime, cycle_of(runtime, make_pod()), Sampling(next_start=start))


def test_an_error_on_a_node_that_the_search_does_not_reach_is_none() -> None:
    runtime = doors("open", "open", "broken")
    assert names(runtime, find_feasible(runtime, cycle_of(runtime, make_pod()), AtMost(enough=1))) == ["n0"]


def test_an_error_with_nominated_pods_that_the_search_does_not_reach_is_none() -> None:
    runtime = doors("open", "open", "broken")
    runtime.handle.nominator.nominate(nominated("n2", "rival"))
    assert names(runtime, find_feasible(runtime, cycle_of(runtime, make_pod()), AtMost(enough=1))) == ["n0"]


def test_an_error_behind_another_plugins_refusal_is_none() -> None:
    class NotTheBroken(Plugin):
        def filter_node(self, _cycle: Cycle, node: NodeInfo) -> bool:
            return node.labels["door"] != "broken"

    runtime = doors("open", "broken", plugins=(NotTheBroken, Doors, Flat))
    assert decide(runtime, cycle_of(runtime, make_pod()), Sampling()).row == 0


def test_nothing_is_written_by_deciding() -> None:
    runtime = doors("open", "closed")
    decide(runtime, cycle_of(runtime, make_pod()), Sampling())
    writer = runtime.handle.writer
    assert isinstance(writer, MemoryWriter)
    assert (writer.placements, writer.victims, len(runtime.handle.cluster.pods)) == ([], [], 0)


def test_pre_filter_ends_the_search_without_moving_the_start() -> None:
    runtime = doors("open", plugins=(answering("No", pre_filter=Status.unschedulable("not today")), Doors, Flat))
    sampling = Sampling(next_start=3)
    decision = decide(runtime, cycle_of(runtime, make_pod()), sampling)
    assert decision.row is None
    assert decision.search.diagnosis().message == "0/1 nodes are available: not today."
    assert sampling.next_start == 3
