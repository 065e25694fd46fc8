from podium.framework import Action, Code, Resource
from podium.plugins.node_name import NodeName
from tests.podium.plugins.ask import events_of, refusals, refused
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

REASON = "node(s) didn't match the requested node name"
CLUSTER = make_cluster([make_node("a"), make_node("b"), make_node("c")])
PLUGIN = make_plugin(NodeName, CLUSTER)


def test_a_pod_that_names_no_node_fits_all() -> None:
    assert refused(refusals(PLUGIN, make_pod(), CLUSTER)) == {}


def test_a_pod_that_names_a_node_fits_only_that() -> None:
    expected = (Code.UNRESOLVABLE, (REASON,))
    assert refused(refusals(PLUGIN, make_pod(node="b"), CLUSTER)) == {"a": expected, "c": expected}


def test_a_pod_that_names_an_unknown_node_fits_none() -> None:
    assert len(refused(refusals(PLUGIN, make_pod(node="z"), CLUSTER))) == 3


def test_every_new_node_wakes_the_pod() -> None:
    assert events_of(PLUGIN) == [(Resource.NODE, Action.ADD)]
