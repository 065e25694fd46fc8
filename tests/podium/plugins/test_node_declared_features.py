from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Nodes
from podium.framework import SKIP, Action, Code, Cycle, PluginError, Resource
from podium.kube.versions import KNOWN
from podium.plugins.node_declared_features import NodeDeclaredFeatures
from tests.podium.plugins.ask import events_of, hint_of, refusals, refused
from tools.kit.builders import make_cluster, make_handle, make_node, make_plugin, make_pod

RESTART = "RestartAllContainersOnContainerExits"
USERNS = "UserNamespacesHostNetworkSupport"
RESTARTING = {"name": "r", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
HOST_NETWORK: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}

CLUSTER = make_cluster(
    [
        make_node("old"),
        make_node("restarts", features=[RESTART, "SomethingElse"]),
        make_node("userns", features=[USERNS]),
        make_node("all", features=[RESTART, USERNS]),
    ]
)
PLUGIN = make_plugin(NodeDeclaredFeatures, CLUSTER)


@pytest.mark.parametrize(
    ("spec", "passing"),
    [
        ({"containers": [RESTARTING]}, {"restarts", "all"}),
        ({"initContainers": [RESTARTING]}, {"restarts", "all"}),
        (HOST_NETWORK, {"userns", "all"}),
        ({**HOST_NETWORK, "initContainers": [RESTARTING]}, {"all"}),
    ],
)
def test_all_needed_features_must_be_declared(spec: dict[str, Any], passing: set[str]) -> None:
    found = refused(refusals(PLUGIN, make_pod(spec=spec), CLUSTER))
    expected = (Code.UNRESOLVABLE, ("node(s) didn't match Pod's required features",))
    assert found == dict.fromkeys({"old", "restarts", "userns", "all"} - passing, expected)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"hostNetwork": True},
        {"hostUsers": False},
        {"hostNetwork": True, "hostUsers": True},
        {"containers": [{"name": "r", "restartPolicyRules": [{"action": "Restart"}]}]},
    ],
)
def test_pods_that_need_no_feature_are_not_looked_at(spec: dict[str, Any]) -> None:
    assert PLUGIN.pre_filter(Cycle(make_pod(spec=spec), CLUSTER)) == SKIP


def test_filtering_without_pre_filter_is_an_error() -> None:
    message = r'^error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found$'
    with pytest.raises(PluginError, match=message):
        PLUGIN.filter(Cycle(make_pod(spec=HOST_NETWORK), CLUSTER), Nodes(CLUSTER))


def test_before_1_36_no_pod_is_looked_at_even_where_a_profile_names_the_plugin_for_filtering_alone() -> None:
    plugin = NodeDeclaredFeatures(None, make_handle(CLUSTER, KNOWN["1.35"]))
    cycle = Cycle(make_pod(spec=HOST_NETWORK), CLUSTER)
    assert plugin.filter(cycle, Nodes(CLUSTER)) is None
    assert plugin.pre_filter(cycle) == SKIP
    assert events_of(plugin) == []


def test_events() -> None:
    assert events_of(PLUGIN) == [
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE),
        (Resource.POD, Action.UPDATE),
    ]


def test_a_new_node_or_other_features_wake_the_pod() -> None:
    hint = hint_of(PLUGIN, Resource.NODE)
    plain, declaring = make_node(), make_node(features=[USERNS])
    assert hint(make_pod(), None, plain)
    assert hint(make_pod(), plain, declaring)
    assert hint(make_pod(), declaring, plain)
    assert not hint(make_pod(), declaring, declaring)


def test_the_pods_own_other_needs_wake_it() -> None:
    hint = hint_of(PLUGIN, Resource.POD)
    needing, content = make_pod("mine", spec=HOST_NETWORK), make_pod("mine")
    assert hint(needing, needing, content)
    assert not hint(needing, needing, needing)
    assert not hint(make_pod("other"), needing, content)
