"""Template: every node passes, with one point."""

import pytest
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

from podium.cluster import NodeInfo, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle, PluginError
from podium_plugins.template import Template, TemplateArgs
from tests.podium.framework.runtimes import make_runtime


def test_every_node_passes_and_gets_one_point() -> None:
    cluster = make_cluster([make_node("a"), make_node("b")])
    runtime = make_runtime(cluster, "Template")
    plugin = make_plugin(Template, cluster)
    cycle = Cycle(make_pod(), cluster)
    assert {"filter", "score"} <= set(runtime.plugins["Template"].points)
    for row in range(2):
        info = info_of(cycle, row)
        assert plugin.filter_node(cycle, info) is None
        assert plugin.score_node(cycle, info) == 10


def info_of(cycle: Cycle, row: int) -> NodeInfo:
    return Nodes(cycle.cluster).info(row)


def test_points_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster([make_node("a")])
    cycle = Cycle(make_pod(), cluster)
    monkeypatch.setenv("TEMPLATE_POINTS", "7")
    assert make_plugin(Template, cluster).score_node(cycle, info_of(cycle, 0)) == 70
    assert make_plugin(Template, cluster, points=0).score_node(cycle, info_of(cycle, 0)) == 0
    monkeypatch.setenv("TEMPLATE_POINTS", "11")
    with pytest.raises(PluginError, match="TEMPLATE_POINTS: Invalid value: 11: must be from 0 to 10"):
        make_plugin(Template, cluster)


def test_points_have_limits() -> None:
    (error,) = TemplateArgs(points=-1).validate(FieldPath())
    assert str(error) == "points: Invalid value: -1: must be from 0 to 10"
