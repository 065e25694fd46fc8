"""Which pods would have to go on each node, and on which node that hurts least."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.cluster import NodeInfo
from podium.engine.decide import decide, make_room
from podium.engine.sampling import Sampling
from podium.framework import Cycle, DependsOn, NodePart, Plugin, Status
from podium.framework.profile import ProfileRuntime
from podium.kube import Pod, PodDisruptionBudget
from podium.preemption.evictions import CANDIDATES
from podium.preemption.rules import by_importance
from tests.podium.framework.runtimes import cycle_of, make_runtime
from tools.kit.builders import build, make_cluster, make_node, make_pod
from tools.kit.effort import examples

WEB = {"matchLabels": {"app": "web"}}


def running(name: str, priority: int = 0, *, node: str = "n1", cpu: int = 1, start: int | None = 0, **rest: Any) -> Pod:
    """A pod on a node since second `start`; None: not started."""
    status = {} if start is None else {"startTime": f"2026-01-01T00:00:{start:02d}Z"}
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, status=status, **rest)


def budget(
    selector: dict[str, Any] | None, allowed: int, *disrupted: str, namespace: str = "default", name: str = "b"
) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    return build(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": selector} if selector is not None else {},
            "status": status,
        },
    )


class From(random.Random):
    """Chance that starts every search at the same node."""

    offset = 0

    def randrange(self, *_limits: Any) -> int:
        return self.offset


class Trial:
    """A preemptor of priority 10 that asks for some CPUs, on nodes of 4 CPUs that are all too full for it.

    `wanted` is how many candidates are enough.
    """

    def __init__(
        self,
        pods: Iterable[Pod],
        *,
        cpu: int = 4,
        nodes: Sequence[str] = ("n1",),
        budgets: Iterable[PodDisruptionBudget] = (),
        plugins: Sequence[type[Plugin]] = (),
        filters: Sequence[str] = (),
        wanted: int = 100,
    ) -> None:
        self.cluster = make_cluster([make_node(name, cpu=4) for name in nodes], pods, budgets)
        self.runtime: ProfileRuntime = make_runtime(
            self.cluster,
            "NodeUnschedulable",
            *filters,
            "NodeResourcesFit",
            "DefaultPreemption",
            *plugins,
            args={"DefaultPreemption": {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": wanted}},
        )
        self.chance = self.runtime.handle.rng = From()
        self.preemptor = make_pod("preemptor", priority=10, requests={"cpu": cpu})

    def outcome(self) -> tuple[list[str], list[str], int, str]:
        """The best nodes (several where nothing tells them apart), the victims on the first, how many budgets that
        violates, and what is said when there is none."""
        cycle = cycle_of(self.runtime, self.preemptor)
        decision = decide(self.runtime, cycle, Sampling())
        assert decision.row is None, "the pod fits without evicting anybody"
        diagnosis = decision.search.diagnosis()
        make_room(self.runtime, cycle, diagnosis)
        best = cycle.data.get(CANDIDATES)
        if best is None:
            return [], [], 0, diagnosis.post_filter_message
        victims = [victim.name for victim in best[0].victims]
        placement = (
            f"found a potential placement for pod on node {best[0].node_name}, preempting {len(victims)} victims"
        )
        assert diagnosis.post_filter_message == f"preemption: {placement}"
        return [each.node_name for each in best], victims, best[0].harm.violations, ""

    @property
    def nodes(self) -> list[str]:
        return self.outcome()[0]

    @property
    def victims(self) -> list[str]:
        return self.outcome()[1]

    @property
    def message(self) -> str:
        return self.outcome()[3]


# Victims


@pytest.mark.parametrize(
    ("cpu", "pods", "victims"),
    [
        pytest.param(4, [("a", 1), ("b", 9), ("same", 10)], None, id="pods of the same priority stay"),
        pytest.param(2, [("a", 1), ("b", 9), ("same", 10)], ["a"], id="no more go than must"),
        pytest.param(3, [("a", 1), ("b", 9), ("same", 10)], ["b", "a"], id="the most important comes first"),
        pytest.param(2, [("a", 3), ("b", 1), ("c", 3), ("d", 2)], ["d", "b"], id="the least important go"),
        pytest.param(1, [("a", -5), ("b", -4), ("c", 0), ("d", 9)], ["a"], id="priorities may be negative"),
    ],
)
def test_who_has_to_go(cpu: int, pods: list[tuple[str, int]], victims: list[str] | None) -> None:
    trial = Trial([running(name, priority) for name, priority in pods], cpu=cpu)
    if victims is None:
        assert trial.message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    else:
        assert trial.victims == victims


def test_a_large_pod_goes_where_smaller_more_important_ones_can_stay() -> None:
    assert Trial([running("large", 1, cpu=3), running("small", 2)], cpu=3).victims == ["large"]
    assert Trial([running("large", 2, cpu=3), running("small", 1)], cpu=1).victims == ["small"]
    assert Trial([running("large", 2, cpu=3), running("small", 1)], cpu=2).victims == ["large"]


def test_of_equals_the_one_that_started_later_goes() -> None:
    pods = [running("young", start=30), running("old", start=10), running("new", start=None), running("mid", start=20)]
    assert Trial(pods, cpu=2).victims == ["young", "new"]


def test_without_anybody_to_evict_the_node_says_so() -> None:
    trial = Trial([running("same", 10, cpu=4)])
    assert trial.message == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_nodes_that_are_not_tried_could_not_be_helped() -> None:
    trial = Trial([running("a", 10, cpu=4)], nodes=["n1", "n2", "n3"])
    for name in ("n2", "n3"):
        trial.cluster.set_node(make_node(name, cpu=4, unschedulable=True))
    assert trial.message == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def test_room_is_left_for_pods_nominated_there() -> None:
    trial = Trial([running("a", 1, cpu=2), running("b", 2, cpu=2)], cpu=2)
    assert trial.victims == ["a"]
    rival = make_pod("rival", priority=10, requests={"cpu": 2}, status={"nominatedNodeName": "n1"})
    trial.runtime.handle.nominator.nominate(rival)
    assert trial.victims == ["b", "a"]
    trial.runtime.handle.nominator.remove(rival.uid)
    assert trial.victims == ["a"]


def test_a_port_that_a_victim_would_free_is_left_to_a_pod_nominated_there() -> None:
    ports = {"containers": [{"name": "c", "ports": [{"hostPort": 443, "containerPort": 443}]}]}
    trial = Trial([running("a", 1, spec=ports)], cpu=1, filters=("NodePorts",))
    trial.preemptor = make_pod("preemptor", priority=10, spec=ports)
    assert trial.victims == ["a"]
    rival = make_pod("rival", priority=10, spec=ports, status={"nominatedNodeName": "n1"})
    trial.runtime.handle.nominator.nominate(rival)
    taken = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    assert trial.message == f"preemption: {taken}"
    trial.runtime.handle.nominator.remove(rival.uid)
    assert trial.victims == ["a"]


class LooksAtPods(Plugin):
    """Says nothing, but may look at who is on a node: dry runs must then do more than count."""

    depends_on = DependsOn(node=NodePart.PODS)

    def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> None:
        return None


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.sampled_from([1, 1, 2]), st.sampled_from(["n1", "n2"])), max_size=9),
    st.lists(st.tuples(st.integers(9, 11), st.integers(1, 2), st.sampled_from(["n1", "n2"])), max_size=2),
    st.integers(2, 4),
)
def test_dry_runs_that_only_count_find_the_same_as_those_that_do_all(
    pods: list[tuple[int, int, str]], rivals: list[tuple[int, int, str]], cpu: int
) -> None:
    outcomes = []
    for plugins in ((), (LooksAtPods,)):
        full = [running(f"full-{name}", 0, node=name, cpu=4) for name in ("n1", "n2")]
        placed = [running(f"p{i}", priority, node=node, cpu=size) for i, (priority, size, node) in enumerate(pods)]
        trial = Trial([*full, *placed], cpu=cpu, nodes=["n1", "n2"], plugins=plugins)
        for number, (priority, size, node) in enumerate(rivals):
            rival = make_pod(f"rival{number}", priority=priority, requests={"cpu": size})
            trial.runtime.handle.nominator.nominate(rival, node)
        cluster = trial.cluster
        before = (cluster.resources.requested.tolist(), [list(each) for each in cluster.pods_on])
        outcomes.append(trial.outcome())
        assert (cluster.resources.requested.tolist(), [list(each) for each in cluster.pods_on]) == before
    assert outcomes[0] == outcomes[1]


def test_a_dry_run_leaves_all_as_it_was() -> None:
    pods = [running(name, number) for number, name in enumerate("abcd")]
    trial = Trial(pods, cpu=2)
    cluster = trial.cluster
    before = (cluster.pod_changes.version, list(cluster.pods_on[0]), cluster.resources.requested.tolist())
    assert trial.victims == ["b", "a"]
    after = (cluster.pod_changes.version, list(cluster.pods_on[0]), cluster.resources.requested.tolist())
    assert after == before


def test_what_is_remembered_of_a_node_is_forgotten_when_something_there_changes() -> None:
    trial = Trial([running("a", 1, cpu=2), running("b", 2, cpu=2)], cpu=2)
    assert trial.victims == trial.victims == ["a"]
    trial.cluster.set_pod(running("a", 3, cpu=2))
    assert trial.victims == ["b"]
    trial.cluster.set_node(make_node("n1", cpu=3))
    assert trial.victims == ["a", "b"]


# Budgets


@pytest.mark.parametrize(
    ("budgets", "victims"),
    [
        pytest.param([], ["two"], id="none: the least important goes"),
        pytest.param([budget(WEB, 0)], ["three"], id="a pod is spared whose budget is used up"),
        pytest.param([budget(WEB, 1)], ["two"], id="but not while there is budget"),
        pytest.param([budget(WEB, 0, "two")], ["two"], id="a pod being disrupted already uses no budget"),
        pytest.param([budget(WEB, 0, namespace="other")], ["two"], id="budgets of other namespaces do not count"),
        pytest.param([budget({}, 0)], ["two"], id="an empty selector matches nothing"),
        pytest.param([budget(None, 0)], ["two"], id="nor does none"),
        pytest.param(
            [budget({"matchExpressions": [{"key": "app", "operator": "Near"}]}, 0)], ["two"], id="nor a broken one"
        ),
        pytest.param([budget(WEB, 1), budget(WEB, 0, name="b2")], ["three"], id="each budget must allow it"),
        pytest.param([budget(WEB, 0), budget(WEB, 1, name="b2")], ["three"], id="in whatever order they come"),
    ],
)
def test_budgets_are_respected_where_that_is_possible(budgets: list[PodDisruptionBudget], victims: list[str]) -> None:
    pods = [running("two", 2, labels={"app": "web"}, cpu=2), running("three", 3, labels={"app": "db"}, cpu=2)]
    assert Trial(pods, cpu=2, budgets=budgets).victims == victims


def test_budgets_are_used_up_from_the_most_important_on_all_that_match() -> None:
    """Both budgets allow one eviction. Counting down from the most important, c uses up both, so b and a would violate
    them; those are spared first, as far as the pod still fits."""
    labels = {"app": "web", "tier": "front"}
    pods = [running(name, priority, labels=labels) for name, priority in (("a", 1), ("b", 2), ("c", 3))]
    budgets = [budget(WEB, 1), budget({"matchLabels": {"tier": "front"}}, 1, name="b2")]
    assert Trial(pods, cpu=2, budgets=budgets).outcome() == (["n1"], ["c"], 0, "")
    assert Trial(pods, cpu=4, budgets=budgets).outcome() == (["n1"], ["c", "b", "a"], 2, "")


def test_pods_without_labels_have_no_budget() -> None:
    everything = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    assert Trial([running("a", cpu=4)], budgets=[budget(everything, 0)]).outcome() == (["n1"], ["a"], 0, "")


# The node where it hurts least


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param([("w", 1, "db", 5)], [("b1", 9, "", 0), ("b2", 9, "", 0)], id="fewer budgets violated"),
        pytest.param([("w", 3, "", 5)], [("b1", 2, "", 0), ("b2", 2, "", 0)], id="lower highest priority"),
        pytest.param([("w1", 3, "", 5), ("w2", 2, "", 5)], [("b1", 3, "", 0), ("b2", 1, "", 0)], id="lower sum"),
        pytest.param([("w1", -5, "", 5), ("w2", -5, "", 5)], [("b1", -5, "", 0)], id="sums count pods as well"),
        pytest.param([("w1", 3, "", 5), ("w2", -(2**31), "", 5)], [("b1", 3, "", 0)], id="fewer pods"),
        pytest.param([("w1", 3, "", 2), ("w2", 1, "", 9)], [("b1", 3, "", 3), ("b2", 1, "", 0)], id="later start"),
        pytest.param([("w1", 3, "", 2), ("w2", 3, "", 9)], [("b1", 3, "", 3), ("b2", 3, "", 4)], id="earliest counts"),
        pytest.param([("w1", 3, "", 2)], [("b1", 3, "", None)], id="not started is latest"),
    ],
)
def test_criteria_in_their_order(worse: list[Any], better: list[Any]) -> None:
    pods = [
        running(name, priority, node=node, cpu=4 // len(group), start=start, labels={"app": app} if app else {})
        for node, group in (("worse", worse), ("better", better))
        for name, priority, app, start in group
    ]
    for nodes in (["worse", "better"], ["better", "worse"]):
        trial = Trial(pods, nodes=nodes, budgets=[budget({"matchLabels": {"app": "db"}}, 0)])
        assert trial.nodes == ["better"]


def test_nodes_that_nothing_tells_apart_are_all_named() -> None:
    nodes = ["n1", "n2", "n3"]
    pods = [running(f"p-{name}", 2 if name == "n2" else 1, node=name, cpu=4) for name in nodes]
    assert Trial(pods, nodes=nodes).nodes == ["n1", "n3"]


# How far the search goes


@pytest.mark.parametrize(
    ("states", "offset", "wanted", "chosen"),
    [
        pytest.param("ok ok ok", 0, 3, "n2", id="all are looked at where that many are wanted"),
        pytest.param("ok ok ok", 0, 2, "n1", id="enough is enough"),
        pytest.param("ok ok ok", 2, 2, "n2", id="from the offset, and round"),
        pytest.param("no ok no ok", 0, 1, "n1", id="nodes that cannot be helped do not count"),
        pytest.param("budget budget ok ok", 0, 2, "n2", id="on until one violates no budget"),
        pytest.param("ok budget budget", 1, 2, "n0", id="even all the way round"),
        pytest.param("budget budget budget", 0, 2, "n1", id="of those that violate budgets no more than wanted"),
    ],
)
def test_the_search_ends_when_enough_is_found(states: str, offset: int, wanted: int, chosen: str) -> None:
    """Each node hurts less than the one before it, so what is chosen is the last that was looked at."""
    trial = full(*states.split(), wanted=wanted)
    trial.chance.offset = offset
    assert trial.nodes == [chosen]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(["ok", "budget", "no"]), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8)), min_size=1, max_size=3),
)
def test_the_search_ends_where_a_walk_would(states: list[str], searches: list[tuple[int, int]]) -> None:
    """Searches one after the other, so that some of the answers are remembered; each from its own start."""
    trial = full(*states, wanted=1)
    plugin = trial.runtime.plugins["DefaultPreemption"]
    for start, enough in searches:
        trial.chance.offset = start % len(states)
        wanted = min(enough, len(states))
        plugin.args = replace(plugin.args, min_candidate_nodes_absolute=wanted)
        found: dict[str, list[int]] = {"ok": [], "budget": [], "no": []}
        for step in range(len(states)):
            number = (trial.chance.offset + step) % len(states)
            found[states[number]].append(number)
            if found["ok"] and len(found["ok"]) + len(found["budget"]) >= wanted:
                break
        best = max(found["ok"][:wanted], default=max(found["budget"][:wanted], default=None))
        assert trial.nodes == ([] if best is None else [f"n{best}"])


def test_where_no_candidates_are_wanted_none_are_found() -> None:
    """A share of few nodes may come to 0."""
    assert full("ok", "no", "ok", wanted=0).message == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def full(*states: str, wanted: int) -> Trial:
    """Nodes on which evicting violates no budget ("ok"), violates one ("budget"), or is not possible ("no")."""
    pods = [
        running(f"p{number}", 10 if state == "no" else 9 - number, node=f"n{number}", cpu=4, labels={"app": state})
        for number, state in enumerate(states)
    ]
    nodes = [f"n{number}" for number in range(len(states))]
    return Trial(pods, nodes=nodes, budgets=[budget({"matchLabels": {"app": "budget"}}, 0)], wanted=wanted)


# Filters that fail


class Shy(Plugin):
    """Breaks on nodes without pods, and on nodes with a pod called "odd" next to others."""

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        names = {placed.pod.name for placed in cycle.cluster.pods_on[node.row].values()}
        if not names and node.name != "n2":
            raise LookupError(f"nobody on {node.name}")
        return Status.error("an odd pod") if "odd" in names and len(names) > 1 else None


def test_an_error_on_one_node_does_not_matter_where_another_can_be_helped() -> None:
    nodes = ["n1", "n2", "n3"]
    pods = [running(f"p-{name}", node=name, cpu=4) for name in nodes]
    assert Trial(pods, nodes=nodes, plugins=[Shy]).nodes == ["n2"]


def test_errors_are_all_that_is_said_where_no_node_can_be_helped() -> None:
    nodes = ["n1", "n3", "full"]
    pods = [running(f"p-{name}", 10 if name == "full" else 0, node=name, cpu=4) for name in nodes]
    what = 'running "Shy" filter plugin: LookupError: nobody on'
    assert Trial(pods, nodes=nodes, plugins=[Shy]).message == f"preemption: [{what} n1, {what} n3]"
    assert Trial(pods[:1], plugins=[Shy]).message == f"preemption: {what} n1"


def test_a_filter_that_breaks_with_a_pod_put_back_makes_that_pod_a_victim() -> None:
    pods = [running("odd", 5), running("top", 10), running("even", 1, cpu=2)]
    assert Trial(pods, cpu=1, plugins=[Shy]).victims == ["odd"]


# Importance


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 3)), max_size=8))
def test_importance_is_priority_then_age(pods: list[tuple[int, int]]) -> None:
    cluster = make_cluster([make_node("n1")])
    placed = [
        cluster.set_pod(running(f"p{number}", priority, start=start)) for number, (priority, start) in enumerate(pods)
    ]
    ranked = [(-each.pod.priority, each.pod.status.start_time or "") for each in by_importance(placed)]
    assert ranked == sorted(ranked)


def test_pods_that_have_not_started_come_last_among_equals_and_backwards() -> None:
    """kube-scheduler takes "now" for their start, and a later "now" each time it compares two."""
    cluster = make_cluster([make_node("n1")])
    pods = [("a", 0, None), ("b", 0, 5), ("c", 0, None), ("d", 1, None), ("e", 0, None)]
    placed = [cluster.set_pod(running(name, priority, start=start)) for name, priority, start in pods]
    assert [each.pod.name for each in by_importance(placed)] == ["d", "b", "e", "c", "a"]
