"""What tells kept answers of a plugin apart from those that no longer hold."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from podium.cluster import Cluster, NodeInfo
from podium.framework import Cycle, Plugin, Scope
from podium.framework.watermarks import watermark_of
from podium.kube import Pod
from podium.plugins import load_registry
from tools.kit.builders import make_handle, make_plugin, make_pod
from tools.kit.storage import pod_using

CLAIMS = ("default/data",)


def plugin_with(watermark: Hashable = "none", **attributes: Any) -> type[Plugin]:
    def filter_node(_self: Plugin, _cycle: Cycle, _node: NodeInfo) -> None:
        return None

    methods: dict[str, Any] = {"filter_node": filter_node, **attributes}
    if watermark != "none":
        methods["watermark"] = lambda _self, _pod: watermark
    return type("Any", (Plugin,), methods)


def mark(plugin: type[Plugin], pod: Pod) -> Hashable:
    cluster = Cluster()
    marker = watermark_of(plugin(None, make_handle(cluster)))
    return "no marker" if marker is None else marker(Cycle(pod, cluster))


@pytest.mark.parametrize(
    ("plugin", "without_claims", "with_claims"),
    [
        (plugin_with(), None, None),
        (plugin_with(filter_scope=Scope.NODE), (), CLAIMS),
        (plugin_with(filter_scope=Scope.NODE, sees_claims=False), "no marker", "no marker"),
        (plugin_with((7,)), (7,), ((7,), CLAIMS)),
        (plugin_with((7,), filter_scope=Scope.NODE), (7,), ((7,), CLAIMS)),
        (plugin_with(()), (), ((), CLAIMS)),
        (plugin_with(None, filter_scope=Scope.NODE), None, None),
        (plugin_with((7,), sees_claims=False), (7,), (7,)),
        (plugin_with(sees_claims=False), None, None),
    ],
)
def test_the_claims_are_part_of_the_mark_unless_a_plugin_says_that_it_does_not_see_them(
    plugin: type[Plugin], without_claims: Hashable, with_claims: Hashable
) -> None:
    assert mark(plugin, make_pod()) == without_claims
    assert mark(plugin, pod_using("data")) == with_claims


def test_only_the_points_a_plugin_has_count() -> None:
    """A plugin that only scores may leave the scope of its filter as it is."""

    class Likes(Plugin):
        score_scope = Scope.NODE
        sees_claims = False

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            return 1

    assert watermark_of(make_plugin(Likes, Cluster())) is None


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
    assert not plugin.sees_claims
