"""What wakes the pods of a plugin that names no events follows from what its answers depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework import DependsOn, Interest, NodePart, Plugin, Status
from podium.framework.declarations import derived_interests
from podium.kube import PriorityClass, StorageClass
from podium.plugins import load_registry
from podium.testing import TrialCluster, node, pod
from tools.kit.builders import build, make_cluster, make_plugin

WIDGETS = "widgets.example.com"


def rejecting(declared: DependsOn, **rest: Any) -> type[Plugin]:
    return type("Rejects", (Plugin,), {"depends_on": declared, "filter_node": lambda *_args: False, **rest})


def relabelled_node(cluster: TrialCluster) -> None:
    cluster.add([node("n1", labels={"quiet": "true"})])


def new_pod(cluster: TrialCluster) -> None:
    cluster.add([pod("other", on="n1")])


def gone_pod(cluster: TrialCluster) -> None:
    cluster.delete("there")


def changed_self(cluster: TrialCluster) -> None:
    waiting = pod("waits")
    cluster.add([replace(waiting, metadata=replace(waiting.metadata, annotations={"a": "b"}, resource_version="2"))])


def storage_class(cluster: TrialCluster) -> None:
    cluster.add([build(StorageClass, {"metadata": {"name": "fast"}, "provisioner": "disk"})])


def priority_class(cluster: TrialCluster) -> None:
    cluster.add([build(PriorityClass, {"metadata": {"name": "high"}, "value": 9})])


def widget(cluster: TrialCluster) -> None:
    cluster.set_custom(WIDGETS, "default/w", {"metadata": {"name": "w"}})


CHANGES = (relabelled_node, changed_self, new_pod, gone_pod, storage_class, priority_class, widget)
POD_OR_NODE = {relabelled_node, changed_self}


@pytest.mark.parametrize(
    ("plugin", "waking"),
    [
        (rejecting(DependsOn(NodePart.OBJECT, kinds=())), POD_OR_NODE),
        (rejecting(DependsOn(NodePart.OBJECT)), {*POD_OR_NODE, storage_class}),
        (rejecting(DependsOn(NodePart.OBJECT, kinds=(PriorityClass,))), {*POD_OR_NODE, priority_class}),
        (rejecting(DependsOn(NodePart.OBJECT, kinds=()), resources=(f"{WIDGETS}/v1",)), {*POD_OR_NODE, widget}),
        (rejecting(DependsOn(NodePart.TOTALS, kinds=())), {*POD_OR_NODE, new_pod, gone_pod}),
        (rejecting(DependsOn(NodePart.PODS, kinds=())), {*POD_OR_NODE, new_pod, gone_pod}),
        (rejecting(DependsOn(kinds=())), set(CHANGES) - {priority_class, widget}),
        (
            rejecting(DependsOn(NodePart.OBJECT, kinds=()), answer_key=lambda *_: ()),
            set(CHANGES) - {priority_class, widget},
        ),
        (
            rejecting(DependsOn(NodePart.OBJECT, kinds=()), permit=lambda *_: None),
            set(CHANGES) - {priority_class, widget},
        ),
    ],
)
@pytest.mark.parametrize("change", CHANGES)
def test_a_pod_is_woken_by_changes_of_what_the_answers_depend_on_and_by_no_others(
    plugin: type[Plugin], waking: set[Callable[[TrialCluster], None]], change: Callable[[TrialCluster], None]
) -> None:
    cluster = TrialCluster(plugin, objects=[node("n1"), pod("there", on="n1")])
    assert not cluster.place(pod("waits")).bound
    change(cluster)
    tried = {outcome.pod for outcome in cluster.advance(60)}
    assert ("default/waits" in tried) == (change in waking)


def test_interests_of_its_own_stay() -> None:
    own: list[Interest] = []
    plugin = rejecting(DependsOn(NodePart.PODS), interests=lambda _self: own)
    cluster = TrialCluster(plugin, objects=[node("n1"), pod("there", on="n1")])
    cluster.place(pod("waits"))
    gone_pod(cluster)
    assert cluster.advance(60) == []


def test_a_plugin_that_only_scores_rejects_nothing() -> None:
    scores = type("Scores", (Plugin,), {"depends_on": DependsOn(NodePart.OBJECT), "score_node": lambda *_args: 1})
    assert derived_interests(make_plugin(scores, make_cluster([]))) is None


def test_a_rejection_at_pre_filter_counts_too() -> None:
    early = {"depends_on": DependsOn(NodePart.OBJECT, kinds=()), "pre_filter": lambda *_: Status.unschedulable("no")}
    assert derived_interests(make_plugin(type("Early", (Plugin,), early), make_cluster([]))) is not None


def test_what_wakes_the_pods_of_our_own_plugins_is_not_derived() -> None:
    ours = load_registry().values()
    filters = [each for each in ours if each.points & {"preFilter", "filter"} and each.interests is Plugin.interests]
    assert [each.name for each in filters if derived_interests(make_plugin(each, make_cluster([]))) is not None] == []
