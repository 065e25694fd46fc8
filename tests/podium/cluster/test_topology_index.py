"""Things filed by place are found exactly where their conditions say, however they are filed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.cluster.topology_index import ANYWHERE, ReachIndex, Where, matches, where_reachable, where_selected
from podium.kube import NodeSelector
from podium.kube.selector import Requirement
from tools.kit.builders import build, make_node
from tools.kit.storage import HOSTNAME, ZONE, make_volume, node_selector

LABELS = st.fixed_dictionaries(
    {}, optional={HOSTNAME: st.sampled_from("abc"), ZONE: st.sampled_from(["z1", "z2"]), "disk": st.just("")}
)
REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, values: Requirement(key, "In", tuple(sorted(values))),
        st.sampled_from([HOSTNAME, ZONE, "disk"]),
        st.sets(st.sampled_from(["a", "b", "c", "z1", "z2", ""]), min_size=1, max_size=2),
    ),
    st.builds(lambda key: Requirement(key, "Exists"), st.sampled_from([HOSTNAME, ZONE, "disk"])),
    st.builds(lambda key: Requirement(key, "DoesNotExist"), st.sampled_from([HOSTNAME, ZONE, "disk"])),
)
WHERES = st.lists(st.lists(REQUIREMENTS, max_size=2).map(tuple), max_size=2).map(tuple)


def cluster_of(labels: list[Mapping[str, str]]) -> Cluster:
    cluster = Cluster()
    for number, each in enumerate(labels):
        cluster.set_node(make_node(f"n{number}", labels=each))
    return cluster


@given(st.lists(LABELS, min_size=1, max_size=6), st.lists(st.tuples(WHERES, st.integers(0, 3)), max_size=8), st.data())
def test_counts_equal_looking_at_every_thing_on_every_node(
    labels: list[Mapping[str, str]], things: list[tuple[Where, int]], data: st.DataObject
) -> None:
    cluster = cluster_of(labels)
    places: ReachIndex[int] = ReachIndex()
    for number, (where, size) in enumerate(things):
        places.add(f"t{number}", where, size)
    gone = data.draw(st.sets(st.integers(0, max(len(things) - 1, 0)))) if things else set()
    for number in gone:
        places.discard(f"t{number}", things[number][0])
    left = [thing for number, thing in enumerate(things) if number not in gone]
    nodes = Nodes(cluster)
    for least in (0, 2):
        expected = [sum(size >= least and matches(where, each) for where, size in left) for each in labels]
        counted = places.count(cluster.labels, None, lambda size, least=least: size >= least)  # type: ignore[misc]
        assert counted.tolist() == expected
    everything = places.count(cluster.labels, None)
    chosen = np.array(data.draw(st.permutations(range(len(labels)))))[: data.draw(st.integers(0, len(labels)))]
    assert places.count(cluster.labels, chosen.astype(np.intp)).tolist() == everything[chosen.astype(np.intp)].tolist()
    for row, each in enumerate(labels):
        assert sorted(places.at(each)) == sorted(size for where, size in left if matches(where, each))
        assert len(list(places.at(each))) == everything[row]
    assert sorted(places) == sorted(size for _where, size in left)
    assert bool(places) == bool(left)
    assert len(nodes) == len(labels)


def test_counts_follow_things_and_nodes_that_come_later() -> None:
    cluster = cluster_of([{HOSTNAME: "a"}, {}])
    places: ReachIndex[int] = ReachIndex()
    on = {host: ((Requirement(HOSTNAME, "In", (host,)),),) for host in "abc"}
    places.add("first", on["c"], 1)
    assert places.count(cluster.labels, None).tolist() == [0, 0]
    places.add("second", on["a"], 1)
    assert places.count(cluster.labels, None).tolist() == [1, 0]
    cluster.set_node(make_node("n2", labels={HOSTNAME: "c"}))
    cluster.set_node(make_node("n1", labels={HOSTNAME: "b"}))
    assert places.count(cluster.labels, None).tolist() == [1, 0, 1]
    places.add("third", on["b"], 1)
    places.discard("second", on["a"])
    assert places.count(cluster.labels, None).tolist() == [0, 1, 1]


def test_a_volume_without_affinity_is_anywhere() -> None:
    assert where_reachable(None) == ANYWHERE
    assert where_reachable(make_volume(spec={"nodeAffinity": {}}).spec.node_affinity) == ANYWHERE


def test_node_fields_are_not_looked_at() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    by_name_only = build(NodeSelector, {"nodeSelectorTerms": [{"matchFields": [field]}]})
    assert where_selected(by_name_only) == ((),)
    assert matches(where_selected(by_name_only), {})


def test_empty_and_malformed_terms_point_nowhere() -> None:
    malformed = {"matchExpressions": [{"key": ZONE, "operator": "Near", "values": ["z1"]}]}
    assert where_selected(build(NodeSelector, {"nodeSelectorTerms": [{}, malformed]})) == ()
    assert not matches((), {ZONE: "z1"})


def test_terms_are_alternatives() -> None:
    where = where_selected(build(NodeSelector, node_selector([{ZONE: ["z1"]}, {"disk": ["ssd"]}])))
    assert matches(where, {ZONE: "z1"})
    assert matches(where, {"disk": "ssd"})
    assert not matches(where, {ZONE: "z2"})
