"""Plugins that look beyond a row, prepare, normalise, restrict nodes, change their mind or fail, behind the extender.

Every question is asked of three pods alike, so that answers which may be kept are kept by the last one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from podium.cluster import NodeInfo, Nodes
from podium.extender.service import MOST_NODES
from podium.framework import SKIP, Cycle, DependsOn, NodePart, Normalizer, Plugin, Scores, Status, Verdict
from podium.kube import Pod
from podium.serving.log import LOG, TRACE
from tests.podium.extender.questions import Obj, World, args, as_object, decoded, node
from tools.kit.builders import make_pod

NAMES = ["n1", "n2", "n3", "n4"]
NODES = [node(name, {"number": name[1:]}) for name in NAMES]


def number_of(info: NodeInfo) -> int:
    return int(info.annotations["number"])


def pods_alike() -> list[Pod]:
    return [make_pod(f"pod-{number}", requests={"cpu": "500m"}) for number in range(3)]


def points(world: World, names: list[str] = NAMES) -> dict[str, int]:
    *_, last = [world.points("/prioritize", pod, names=names) for pod in pods_alike()]
    return last


def refused(world: World, names: list[str] = NAMES) -> dict[str, str]:
    *_, last = [world.ask("/filter", args(pod, names=names)) for pod in pods_alike()]
    assert last["Error"] == ""
    return {**last["FailedNodes"], **last["FailedAndUnresolvableNodes"]}


class Share(Plugin):
    """A share of the highest score among the nodes that are asked about."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    normalizer = Normalizer.DEFAULT

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 10 * number_of(node)


class Lowest(Plugin):
    """The same by a method of its own."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return number_of(node)

    def normalize(self, cycle: Cycle, nodes: Nodes, scores: Scores) -> Scores:
        return np.where(scores == scores.min(), 100, 0)


class Prepares(Plugin):
    """Scores by how many nodes it was prepared for."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        cycle.data[self.name] = len(nodes)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 10 * int(cycle.data[self.name])


class Crowd(Plugin):
    """Looks at all nodes of the cluster."""

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 10 * len(cycle.cluster.pods)


@pytest.mark.parametrize(
    ("plugin", "of_all", "of_two"),
    [
        (Share, [3, 5, 8, 10], [5, 10]),
        (Lowest, [10, 0, 0, 0], [10, 0]),
        (Prepares, [4, 4, 4, 4], [2, 2]),
    ],
)
def test_scores_are_about_the_nodes_of_the_question(plugin: type[Plugin], of_all: list[int], of_two: list[int]) -> None:
    world = World(plugin.name, nodes=NODES, extra=[plugin])
    assert list(points(world).values()) == of_all
    assert list(points(world, ["n2", "n4"]).values()) == of_two


def test_who_looks_beyond_a_node_is_asked_every_time() -> None:
    world = World("Crowd", nodes=NODES, extra=[Crowd])
    assert set(points(world).values()) == {0}
    world.engine.intake.set(make_pod("there", node="n3"))
    assert points(world, ["n1"]) == {"n1": 1}


class Moody(Plugin):
    """Scores by a mood of its own; `mark` is what it says of when that changes."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    mark: Hashable = 0
    mood = 0

    def answer_key(self, pod: Pod) -> Hashable:
        return self.mark

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return self.mood

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        return f"mood {self.mood}" if self.mood else None


@pytest.mark.parametrize("mark", [1, None])
def test_who_changes_his_mind_says_so_by_his_mark(mark: Hashable) -> None:
    world = World("Moody", nodes=NODES, extra=[Moody])
    moody: Any = world.plugins["Moody"]
    if mark is None:
        moody.mark = None
    assert (points(world)["n1"], refused(world)) == (0, {})
    moody.mood, moody.mark = 50, mark
    assert (points(world)["n1"], refused(world, ["n1"])) == (5, {"n1": "mood 50"})


class Restricts(Plugin):
    """Only some nodes come into question, as PreFilter says."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def pre_filter(self, cycle: Cycle) -> set[str]:
        return {"n1", "n3"}

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> None:
        return None


class Odd(Plugin):
    """Its filter depends on what PreFilter noted of the pod."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    wants = 1

    def pre_filter(self, cycle: Cycle) -> Status | None:
        cycle.data[self.name] = self.wants
        return None if self.wants else SKIP

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> bool:
        return number_of(node) == int(cycle.data[self.name])


def test_nodes_that_pre_filter_leaves_out_are_refused() -> None:
    world = World("Restricts", nodes=NODES, extra=[Restricts])
    assert set(refused(world)) == {"n2", "n4"}
    assert preempted(world, {name: [] for name in NAMES}) == {"n1", "n3"}


def test_pre_filter_is_asked_about_every_pod() -> None:
    world = World("Odd", nodes=NODES, extra=[Odd])
    assert set(refused(world)) == {"n2", "n3", "n4"}
    odd: Any = world.plugins["Odd"]
    odd.wants = 4
    assert set(refused(world)) == {"n1", "n2", "n3"}


class Grumbles(Plugin):
    """Gives each node a reason of its own, by its annotation, and fails about some."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | str | None:
        said = node.annotations.get("said", "")
        return Status.error("no idea") if said == "fail" else said or None


def test_reasons_stay_with_their_nodes_when_some_are_asked_about_again() -> None:
    world = World("Grumbles", nodes=NODES, extra=[Grumbles])
    assert refused(world) == {}
    for name, said in (("n4", "late"), ("n2", "early"), ("n4", "early"), ("n1", "late"), ("n2", "")):
        world.engine.intake.set(as_object(node(name, {"said": said})))
        expected = {each.name: each.annotations["said"] for each in _nodes(world) if each.annotations.get("said")}
        assert refused(world) == expected


class GrumblesAtOnce(Grumbles):
    """The same about all nodes at once."""

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict:
        said = nodes.annotations("said")
        codes = np.array([0 if not each else 1 if each == "fail" else 2 for each in said], dtype=np.int64)
        statuses = {1: Status.error("no idea"), 2: Status.unschedulable("no")}
        return Verdict(codes, statuses.__getitem__, fails=1 in codes)


@pytest.mark.parametrize("plugin", [Grumbles, GrumblesAtOnce])
def test_a_plugin_that_fails_about_a_node_fails_only_those_who_ask_about_it(plugin: type[Plugin]) -> None:
    world = World(plugin.name, nodes=NODES, extra=[plugin])
    assert refused(world) == {}
    world.engine.intake.set(as_object(node("n2", {"said": "fail"})))
    world.engine.intake.set(as_object(node("n3", {"said": "no"})))
    assert refused(world, ["n1", "n3"]) == {"n3": "no"}
    for pod in pods_alike():
        answer = world.ask("/filter", args(pod, names=NAMES))
        assert answer["Error"] == f'running "{plugin.name}" filter plugin: no idea'
        assert answer["NodeNames"] is None


def _nodes(world: World) -> list[Any]:
    return [each for each in world.cluster.nodes if each is not None]


# Preempt


def preempted(world: World, victims: dict[str, list[str]], pod: Pod | None = None) -> set[str]:
    """The nodes that are left of the candidates."""
    given = {name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for name, uids in victims.items()}
    asked: Obj = {"Pod": json.loads(args(pod or make_pod()))["Pod"], "NodeNameToMetaVictims": given}
    return set(world.ask("/preempt", json.dumps(asked).encode())["NodeNameToMetaVictims"])


def test_what_was_noted_before_filtering_forgets_the_victims() -> None:
    """Anti-affinity is counted by PreFilter: the victim has to be taken out of that, too."""
    zones = [
        {**node(name), "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}} for name in ("a", "b")
    ]
    world = World("InterPodAffinity", nodes=zones)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("a", "b"):
        world.engine.intake.set(make_pod(f"db-{name}", node=name, labels={"app": "db"}))
    pod = make_pod("new", spec={"affinity": apart, "containers": [{"name": "c"}]})
    assert preempted(world, {"a": ["default-db-a"], "b": []}, pod) == {"a"}


def test_candidates_on_nodes_that_are_gone_are_dropped() -> None:
    world = World("Moody", nodes=NODES, extra=[Moody])
    world.engine.intake.set(make_pod("there", node="n2"))  # which keeps the row
    world.engine.intake.delete(as_object(NODES[1]))
    assert preempted(world, {"n1": [], "n2": ["default-there"]}) == {"n1"}


def test_a_node_that_is_gone_is_not_known_though_pods_are_still_there() -> None:
    world = World("Moody", nodes=NODES, extra=[Moody])
    world.engine.intake.set(make_pod("there", node="n2"))
    world.engine.intake.delete(as_object(NODES[1]))
    assert refused(world) == {"n2": "the extender does not know this node (yet)"}


def test_until_the_cluster_is_known_nothing_is_said_about_candidates() -> None:
    world = World("NodeResourcesFit", nodes=NODES)
    world.shared.unready = lambda: "waiting for nodes"
    asked = {"Pod": json.loads(args(make_pod()))["Pod"], "NodeNameToMetaVictims": {"n1": {"Pods": []}}}
    reply = world.reply("/preempt", json.dumps(asked).encode())
    assert (reply.status, decoded(reply)) == (503, {"Error": "waiting for nodes"})


# Nodes in full


def test_a_given_node_counts_also_when_the_watch_has_moved_on() -> None:
    world = World("Grumbles", nodes=NODES, extra=[Grumbles])
    same = args(make_pod(), nodes=[NODES[0]])
    assert world.ask("/filter", same)["FailedNodes"] == {}  # it was found to be as watched
    world.engine.intake.set(as_object(node("n1", {"said": "by the watch"})))
    assert world.ask("/filter", same)["FailedNodes"] == {}
    assert refused(world, ["n1"]) == {"n1": "by the watch"}


# Bind


class Declines(Moody):
    def bind(self, cycle: Cycle, node_name: str) -> Status:
        return SKIP


class Binds(Moody):
    bound: tuple[str, ...] = ()

    def bind(self, cycle: Cycle, node_name: str) -> None:
        self.bound = (*self.bound, f"{cycle.pod.key} to {node_name}")


BIND = b'{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"n1"}'


def test_a_plugin_that_declines_to_bind_leaves_it_to_the_next() -> None:
    world = World("Declines", "Binds", nodes=NODES, extra=[Declines, Binds])
    assert world.ask("/scheduler/bind", BIND) == {"Error": ""}
    binds: Any = world.plugins["Binds"]
    assert binds.bound == ("default/p to n1",)


class TwoPods(Plugin):
    """At most two pods in the whole cluster."""

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> bool:
        return len(self.handle.cluster.pods) < 2


def test_a_quota_counts_pods_from_when_the_watch_shows_them() -> None:
    """kube-scheduler asks about the next pod while the last is being bound, and does not tell what it has assumed."""
    world = World("TwoPods", nodes=NODES, extra=[TwoPods])
    assert [refused(world) for _ in range(3)] == [{}] * 3, "nine pods are let through, all of them unseen"
    for number in range(2):
        world.engine.intake.set(make_pod(f"seen-{number}", node="n1"))
    assert set(refused(world)) == set(NAMES)


class SmallNumbersOnly(Plugin):
    """Takes the first two nodes, and gives a node ten times its number."""

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        return None if number_of(node) < 3 else "its number is too large"

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 10 * number_of(node)


@pytest.mark.parametrize(("level", "shown"), [(logging.DEBUG, MOST_NODES), (TRACE, MOST_NODES + 1)])
def test_the_log_has_each_node_with_its_verdict_and_its_points(
    level: int, shown: int, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"n{number}" for number in range(1, MOST_NODES + 2)]
    world = World(
        "SmallNumbersOnly", nodes=[node(name, {"number": name[1:]}) for name in names], extra=[SmallNumbersOnly]
    )
    pod = make_pod("web", namespace="shop")
    with caplog.at_level(level, LOG.name):
        world.ask("/filter", args(pod, names=names))
        world.points("/prioritize", pod, names=names[:2])
    said = [record.getMessage() for record in caplog.records]
    assert said[:3] == [
        "filter: pod shop/web: node n1 passes",
        "filter: pod shop/web: node n2 passes",
        "filter: pod shop/web: node n3 is refused: its number is too large",
    ]
    rest = ["filter: pod shop/web: and 1 more nodes, which level trace shows"] if shown < len(names) else []
    assert said[shown:] == [
        *rest,
        "prioritize: pod shop/web: node n1 gets 1 points",
        "prioritize: pod shop/web: node n2 gets 2 points",
    ]
