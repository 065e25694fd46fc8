"""What tells kept answers of a plugin apart from those that no longer hold."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from podium.cluster import Cluster, NodeInfo
from podium.framework import Cycle, DependsOn, NodePart, Plugin
from podium.framework.answer_keys import AnswerKeys, dependence_of
from podium.kube import Pod, PriorityClass, StorageClass
from podium.plugins import load_registry
from tools.kit.builders import build, make_handle, make_plugin, make_pod
from tools.kit.storage import pod_using

CLAIMS = ("default/data",)


def plugin_with(
    key: Hashable = "none", *, node: NodePart = NodePart.ANYTHING, claims: bool = True, **rest: Any
) -> type[Plugin]:
    def filter_node(_self: Plugin, _cycle: Cycle, _node: NodeInfo) -> None:
        return None

    methods: dict[str, Any] = {"filter_node": filter_node, "depends_on": DependsOn(node, claims, **rest)}
    if key != "none":
        methods["answer_key"] = lambda _self, _pod: key
    return type("Any", (Plugin,), methods)


def key_of(plugin: type[Plugin], pod: Pod) -> Hashable:
    cluster = Cluster()
    key_of = dependence_of(plugin(None, make_handle(cluster))).key_of
    return "rows alone" if key_of is None else key_of(Cycle(pod, cluster))


@pytest.mark.parametrize(
    ("plugin", "without_claims", "with_claims"),
    [
        (plugin_with(), None, None),
        (plugin_with(node=NodePart.OBJECT), (), CLAIMS),
        (plugin_with(node=NodePart.OBJECT, claims=False), "rows alone", "rows alone"),
        (plugin_with((7,)), (7,), ((7,), CLAIMS)),
        (plugin_with((7,), node=NodePart.OBJECT), (7,), ((7,), CLAIMS)),
        (plugin_with(()), (), ((), CLAIMS)),
        (plugin_with(None, node=NodePart.OBJECT), None, None),
        (plugin_with((7,), claims=False), (7,), (7,)),
        (plugin_with(claims=False), None, None),
    ],
)
def test_the_claims_are_part_of_the_key_unless_a_plugin_says_that_its_answers_do_not_depend_on_them(
    plugin: type[Plugin], without_claims: Hashable, with_claims: Hashable
) -> None:
    assert key_of(plugin, make_pod()) == without_claims
    assert key_of(plugin, pod_using("data")) == with_claims


@pytest.mark.parametrize("own", [False, True])
def test_a_changed_object_of_the_kinds_makes_answers_stale_unless_the_plugin_has_a_key_of_its_own(own: bool) -> None:
    kind = plugin_with((7,) if own else "none", node=NodePart.OBJECT, claims=False, kinds=(PriorityClass,))
    cluster = Cluster()
    keys = AnswerKeys([dependence_of(kind(None, make_handle(cluster)))])
    cycle = Cycle(make_pod(), cluster)
    assert len(keys.moved(cycle)) == 1
    assert keys.moved(cycle) == []
    cluster.objects.priority_classes.set("high", build(PriorityClass, {"metadata": {"name": "high"}, "value": 9}))
    assert len(keys.moved(cycle)) == (0 if own else 1)
    cluster.objects.storage_classes.set("fast", build(StorageClass, {"metadata": {"name": "fast"}}))
    assert keys.moved(cycle) == []


def test_only_the_points_a_plugin_has_count() -> None:
    """A plugin that only scores may leave the scope of its filter as it is."""

    class Likes(Plugin):
        depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            return 1

    assert dependence_of(make_plugin(Likes, Cluster())).key_of is None


@pytest.mark.parametrize(
    "plugin",
    [
        each
        for name, each in load_registry().items()
        if each.points & {"preFilter", "filter", "preScore", "score"}
        and name != "PigeonHoling"  # it learns from each pod
    ],
    ids=lambda plugin: plugin.name,
)
def test_in_tree_plugins_share_their_answers_among_pods_with_different_claims(plugin: type[Plugin]) -> None:
    assert not plugin.depends_on.claims
