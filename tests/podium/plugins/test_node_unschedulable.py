import pytest

from podium.framework import Action, Code, Resource
from podium.plugins.node_unschedulable import NodeUnschedulable
from tests.podium.plugins.ask import events_of, hint_of, refusals, refused
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

CLUSTER = make_cluster([make_node("open"), make_node("cordoned", unschedulable=True), make_node("also-open")])
PLUGIN = make_plugin(NodeUnschedulable, CLUSTER)
KEY = "node.kubernetes.io/unschedulable"


def tolerating(**toleration: str) -> dict[str, object]:
    return {"tolerations": [toleration]}


def test_a_cordoned_node_refuses_pods() -> None:
    found = refused(refusals(PLUGIN, make_pod(), CLUSTER))
    assert found == {"cordoned": (Code.UNRESOLVABLE, ("node(s) were unschedulable",))}


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        ({"key": KEY, "operator": "Exists"}, True),
        ({"key": KEY, "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": KEY, "operator": "Equal", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": KEY, "operator": "Equal", "value": "true"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerating_the_taint_of_cordoned_nodes_gets_past_it(toleration: dict[str, str], passes: bool) -> None:
    found = refused(refusals(PLUGIN, make_pod(spec=tolerating(**toleration)), CLUSTER))
    assert (found == {}) is passes


def test_without_cordoned_nodes_nothing_is_refused() -> None:
    cluster = make_cluster([make_node()])
    assert refused(refusals(make_plugin(NodeUnschedulable, cluster), make_pod(), cluster)) == {}


def test_events() -> None:
    assert events_of(PLUGIN) == [
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        (Resource.POD, Action.UPDATE_POD_TOLERATION),
    ]


def test_a_node_that_opens_wakes_the_pod() -> None:
    hint = hint_of(PLUGIN, Resource.NODE)
    pod, opened, closed = make_pod(), make_node(), make_node(unschedulable=True)
    assert hint(pod, None, opened)
    assert hint(pod, closed, opened)
    assert not hint(pod, None, closed)
    assert not hint(pod, opened, opened)
    assert not hint(pod, opened, closed)


def test_the_pods_own_new_toleration_wakes_it_if_it_is_the_right_one() -> None:
    hint = hint_of(PLUGIN, Resource.POD)
    pod = make_pod("mine")
    right = make_pod("mine", spec=tolerating(key=KEY, operator="Exists"))
    assert hint(pod, pod, right)
    assert not hint(pod, pod, make_pod("mine", spec=tolerating(key="x", operator="Exists")))
    assert not hint(make_pod("other"), pod, right)
