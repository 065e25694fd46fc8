"""Wrong declarations are found out, each by the part that moves the answer; right ones are not accused."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import pytest

from podium import Cycle, DependsOn, Handle, NodeInfo, NodePart, Nodes, Plugin, Pod, Status
from podium.kube import PriorityClass, Service
from podium.load import Series, SourceSettings, follow
from podium.testing import try_declaration

OBJECT = DependsOn(NodePart.OBJECT, claims=False, kinds=())
TOTALS = DependsOn(NodePart.TOTALS, claims=False, kinds=())
PODS = DependsOn(NodePart.PODS, claims=False, kinds=())
CLAIMS = DependsOn(NodePart.OBJECT, claims=True, kinds=())
ANYTHING = DependsOn(claims=False, kinds=())
SERIES = Series(source=SourceSettings(address="http://prometheus"), query="node_load1")

Score = Callable[[Plugin, Cycle, NodeInfo], Any]


class Planted(NamedTuple):
    part: str
    declared: DependsOn
    methods: dict[str, Any]


def scores(part: str, declared: DependsOn, of: Score, **methods: Any) -> Planted:
    return Planted(
        part, declared, {"score_node": lambda self, cycle, node: int(of(self, cycle, node)) % 101, **methods}
    )


def filters(part: str, declared: DependsOn, of: Score, **methods: Any) -> Planted:
    return Planted(part, declared, {"filter_node": lambda self, cycle, node: bool(of(self, cycle, node)), **methods})


def constant(_plugin: Plugin, _pod: Pod) -> Hashable:
    return ()


def objects(plugin: Plugin) -> Any:
    return plugin.handle.cluster.objects


def version(plugin: Plugin) -> int:
    return plugin.handle.cluster.objects.services.version


def pods_of(plugin: Plugin, name: str) -> int:
    cluster = plugin.handle.cluster
    return sum(len(on) for row, on in enumerate(cluster.pods_on) if cluster.names[row] == name)


def hour(plugin: Plugin) -> int:
    return int(plugin.handle.clock.now() // 3600 % 24)


def claim(cycle: Cycle) -> str:
    return cycle.facts.claims[0] if cycle.facts.claims else ""


def all_labels(plugin: Plugin, key: str) -> int:
    return sum(key in (each.labels if each else {}) for each in plugin.handle.cluster.nodes)


def of_all(count: Callable[[Nodes], Any]) -> dict[str, Any]:
    return {"score": lambda _self, _cycle, nodes: count(nodes).astype("int64") % 101}


PLANTED = [
    # A part of the node that is not declared
    scores("totals", OBJECT, lambda _self, _cycle, node: node.requested("cpu") // 100),
    scores("totals", OBJECT, lambda _self, _cycle, node: len(node.pods)),
    scores("totals", CLAIMS, lambda _self, _cycle, node: node.requested("memory") >> 26),
    filters("totals", OBJECT, lambda _self, _cycle, node: len(node.pods) < 3),
    filters("totals", OBJECT, lambda _self, _cycle, node: node.allocatable("cpu") - node.requested("cpu") > 1000),
    filters("totals", OBJECT, lambda _self, _cycle, node: node.allowed_pods > len(node.pods) + 1),
    Planted("totals", OBJECT, of_all(lambda nodes: nodes.pod_count)),
    Planted("totals", OBJECT, of_all(lambda nodes: nodes.requested("cpu") // 100)),
    Planted("totals", OBJECT, of_all(lambda nodes: nodes.nonzero_requested("cpu") // 100)),
    Planted("totals", OBJECT, {"filter": lambda _self, _cycle, nodes: nodes.pod_count < 3}),
    scores("pods", TOTALS, lambda _self, _cycle, node: sum(each.labels.get("app") == "a" for each in node.pods)),
    scores("pods", OBJECT, lambda _self, _cycle, node: sum("tier" in each.labels for each in node.pods)),
    scores("pods", TOTALS, lambda _self, _cycle, node: sum(each.spec.priority or 0 for each in node.pods) // 10),
    filters("pods", TOTALS, lambda _self, _cycle, node: not any("tier" in each.labels for each in node.pods)),
    filters("pods", TOTALS, lambda _self, _cycle, node: all(each.namespace == "default" for each in node.pods)),
    filters("pods", OBJECT, lambda _self, _cycle, node: not any(each.annotations.get("alone") for each in node.pods)),
    # Other nodes
    scores("node object", OBJECT, lambda self, _cycle, _node: len(self.handle.cluster.order.rows)),
    scores("node object", OBJECT, lambda self, _cycle, _node: all_labels(self, "gold")),
    scores("node object", PODS, lambda self, _cycle, _node: all_labels(self, "gold")),
    filters("node object", TOTALS, lambda self, _cycle, node: all_labels(self, "gold") > 1 or "gold" in node.labels),
    scores("totals", PODS, lambda self, _cycle, _node: pods_of(self, "n0")),
    scores("totals", PODS, lambda self, _cycle, _node: len(self.handle.cluster.pods)),
    filters("totals", PODS, lambda self, _cycle, node: len(node.pods) <= len(self.handle.cluster.pods) / 3),
    Planted("node object", OBJECT, of_all(lambda nodes: nodes.allocatable("cpu") - nodes.allocatable("cpu").min())),
    Planted(
        "node object",
        OBJECT,
        {
            "pre_filter": lambda self, _cycle: None if all_labels(self, "gold") else Status.unschedulable("no gold"),
            "filter_node": lambda *_: True,
        },
    ),
    # A key that stays equal
    scores("node object", ANYTHING, lambda _self, _cycle, node: len(node.labels), answer_key=constant),
    filters("node object", ANYTHING, lambda _self, _cycle, node: "gold" in node.labels, answer_key=constant),
    scores("totals", ANYTHING, lambda _self, _cycle, node: len(node.pods), answer_key=constant),
    scores(
        "pods", ANYTHING, lambda _self, _cycle, node: sum("tier" in e.labels for e in node.pods), answer_key=constant
    ),
    scores("kinds", OBJECT, lambda self, _cycle, _node: len(objects(self).services), answer_key=constant),
    scores("clock", ANYTHING, lambda self, _cycle, _node: hour(self), answer_key=lambda self, _pod: version(self)),
    # Claims
    scores("claims", OBJECT, lambda _self, cycle, _node: sum(claim(cycle).encode())),
    filters("claims", OBJECT, lambda _self, cycle, _node: not claim(cycle).endswith(("0", "1"))),
    scores(
        "claims", PODS, lambda _self, cycle, _node: len(claim(cycle)) + sum(claim(cycle).encode()), answer_key=constant
    ),
    Planted(
        "claims",
        OBJECT,
        {
            "pre_filter": lambda _s, cycle: Status.unresolvable("odd") if sum(claim(cycle).encode()) % 2 else None,
            "filter_node": lambda *_: True,
        },
    ),
    # Kinds
    scores("kinds", OBJECT, lambda self, _cycle, _node: len(objects(self).priority_classes)),
    scores("kinds", DependsOn(NodePart.OBJECT), lambda self, _cycle, _node: len(objects(self).priority_classes)),
    scores(
        "kinds", DependsOn(NodePart.PODS, kinds=(Service,)), lambda self, _c, _n: len(objects(self).storage_classes)
    ),
    scores(
        "kinds", CLAIMS, lambda self, _cycle, _node: sum(v.spec.claim_ref is not None for v in objects(self).volumes)
    ),
    scores("kinds", OBJECT, lambda self, _cycle, _node: sum("tier" in e.labels for e in objects(self).namespaces)),
    filters("kinds", TOTALS, lambda self, _cycle, _node: len(objects(self).stateful_sets) < 2),
    filters("kinds", OBJECT, lambda self, _cycle, _node: len(objects(self).csi_drivers) < 2),
    scores(
        "kinds",
        OBJECT,
        lambda self, _cycle, _node: len(objects(self).custom_store("widgets.example.com")),
        resources=("widgets.example.com/v1",),
    ),
    scores(
        "kinds",
        OBJECT,
        lambda self, _c, _n: len((objects(self).custom_store("configmaps").get("default/x") or {}).get("data", "")),
        resources=("configmaps/v1",),
    ),
    # Clock, load, the pod itself, chance
    scores("clock", OBJECT, lambda self, _cycle, _node: hour(self)),
    filters("clock", PODS, lambda self, _cycle, _node: 6 <= hour(self) < 22),
    filters("clock", OBJECT, lambda self, _cycle, _node: self.handle.clock.now() < 1_800_000_030),
    scores("pod", OBJECT, lambda _self, cycle, _node: sum(cycle.pod.metadata.name.encode())),
    scores("pod", TOTALS, lambda _self, cycle, _node: sum(cycle.pod.uid.encode()), answer_key=constant),
    scores("chance", OBJECT, lambda self, _cycle, _node: self.handle.rng.randrange(100)),
]


def found_in(plugin: type[Plugin], part: str) -> str:
    """The finding about a part, in the first of twenty worlds that shows it."""
    for seed in range(20):
        for found in try_declaration(plugin, seeds=[seed]):
            if found.part == part:
                return str(found)
    return ""


def test_there_are_fifty() -> None:
    assert len(PLANTED) == 50


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.part)
def test_a_wrong_declaration_is_found_with_the_part_that_moves_the_answer(planted: Planted) -> None:
    plugin = type("Wrong", (Plugin,), {"depends_on": planted.declared, **planted.methods})
    assert found_in(plugin, planted.part).startswith('plugin "Wrong" declares too little: ')


RIGHT = [
    scores("", OBJECT, lambda _self, cycle, node: len(node.labels) + len(cycle.pod.labels)),
    scores("", TOTALS, lambda _self, _cycle, node: node.requested("cpu") // 100 + len(node.pods)),
    scores("", PODS, lambda _self, _cycle, node: sum("tier" in each.labels for each in node.pods)),
    scores("", CLAIMS, lambda _self, cycle, _node: sum(claim(cycle).encode())),
    scores("", DependsOn(NodePart.OBJECT, kinds=(PriorityClass,)), lambda s, _c, _n: len(objects(s).priority_classes)),
    scores("", OBJECT, lambda self, _cycle, _node: hour(self), answer_key=lambda self, _pod: hour(self)),
    scores("", OBJECT, lambda self, _cycle, _node: self.handle.rng.randrange(100), answer_key=lambda *_: None),
    scores("", DependsOn(), lambda self, _cycle, node: self.handle.rng.randrange(100) + len(node.pods)),
]


@pytest.mark.parametrize("right", RIGHT)
def test_a_right_declaration_is_not_accused(right: Planted) -> None:
    plugin = type("Right", (Plugin,), {"depends_on": right.declared, **right.methods})
    assert try_declaration(plugin, seeds=range(4)) == []


class FollowsLoad(Plugin):
    depends_on = OBJECT

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.load = follow(handle, SERIES)

    def score_node(self, _cycle: Cycle, node: NodeInfo) -> int:
        return int(self.load.of(node.name) or 0)


class FollowsLoadWithKey(FollowsLoad):
    def answer_key(self, _pod: Pod) -> Hashable:
        return self.load.generation


def test_load_that_is_measured_counts_too() -> None:
    assert "return the generation of the readings from answer_key" in found_in(FollowsLoad, "load")
    assert try_declaration(FollowsLoadWithKey, seeds=range(3)) == []
