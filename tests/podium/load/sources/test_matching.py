"""Which node a series belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.load.series import NodeMatch
from podium.load.sources.matching import NodeIndex, matcher, without_port
from tests.podium.load.sources.stand_in import node

NODES = NodeIndex(
    [
        node("node-a", "10.0.0.1", "node-a.example.com"),
        node("node-b", "10.0.0.2", "fd00::2"),
        node("twin-1", "10.9.9.9"),
        node("twin-2", "10.9.9.9", "10.0.0.4"),
        node("10.0.0.1", "10.0.0.5"),  # a node may be called like another's address: names go first
        node("Mixed", "10.0.0.6", "Host.Example.COM"),
    ]
)


@pytest.mark.parametrize(
    ("labels", "match", "expected"),
    [
        ({"namespace": "default", "pod": "web"}, NodeMatch(by="pod"), "node-a"),
        ({"namespace": "other", "pod": "web"}, NodeMatch(by="pod"), None),
        ({"pod": "web", "node": "node-a"}, NodeMatch(by="pod"), None),
        ({"namespace": "default", "pod": "lost"}, NodeMatch(by="pod"), None),
        ({"namespace": "default", "name": "web"}, NodeMatch(by="pod", label="name"), "node-a"),
        ({"namespace": "default", "id": "/x/web"}, NodeMatch(by="pod", label="id", regex=".*/(.*)"), "node-a"),
    ],
)
def test_what_is_measured_of_a_pod_belongs_to_its_node(
    labels: dict[str, str], match: NodeMatch, expected: str | None
) -> None:
    nodes = NodeIndex([node("node-a")], {"default/web": "node-a", "default/lost": "gone"})
    assert matcher(match, nodes)(labels) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"node": "node-a"}, "node-a"),
        ({"kubernetes_node": "node-b"}, "node-b"),
        ({"nodename": "node-b"}, "node-b"),
        ({"instance": "node-a"}, "node-a"),
        ({"instance": "node-a:9100"}, "node-a"),
        ({"instance": "10.0.0.2:9100"}, "node-b"),
        ({"instance": "10.0.0.2"}, "node-b"),
        ({"instance": "[fd00::2]:9100"}, "node-b"),
        ({"instance": "fd00::2"}, "node-b"),
        ({"instance": "FD00::2"}, "node-b"),
        ({"instance": "node-a.example.com:9100"}, "node-a"),
        ({"instance": "host.example.com:1"}, "Mixed"),
        ({"instance": "10.0.0.1:9100"}, "10.0.0.1"),
        ({"node": "of-no-use", "instance": "10.0.0.2:9100"}, "node-b"),
        ({"node": "node-a", "instance": "10.0.0.2:8080"}, "node-a"),
        ({"instance": "10.9.9.9:9100"}, None),
        ({"instance": "10.0.0.4:9100"}, "twin-2"),
        ({"host": "node-a"}, None),
        ({"node": ""}, None),
        ({}, None),
    ],
)
def test_the_usual_labels_lead_to_a_node_by_name_and_by_address(labels: dict[str, str], expected: str | None) -> None:
    assert matcher(NodeMatch(), NODES)(labels) == expected


@pytest.mark.parametrize(
    ("match", "labels", "expected"),
    [
        (NodeMatch(label="host"), {"host": "node-a"}, "node-a"),
        (NodeMatch(label="host"), {"node": "node-a"}, None),
        (NodeMatch(label="instance", by="name"), {"instance": "10.0.0.2:9100"}, None),
        (NodeMatch(label="instance", by="name"), {"instance": "node-b:9100"}, "node-b"),
        (NodeMatch(label="instance", by="address"), {"instance": "node-a"}, None),
        (NodeMatch(label="instance", by="address"), {"instance": "10.0.0.1:9100"}, "node-a"),
        (NodeMatch(label="i", regex=r"(.*)\.internal:\d+"), {"i": "node-a.internal:1"}, "node-a"),
        (NodeMatch(label="i", regex=r"(.*)\.internal"), {"i": "node-a.internal:1"}, None),
        (NodeMatch(label="i", regex=r"x(.)", replacement="node-$1"), {"i": "xb"}, "node-b"),
        (NodeMatch(label="i", regex=r"x(?P<l>.)", replacement="node-${l}"), {"i": "xb"}, "node-b"),
        (NodeMatch(label="i", regex=r"x(.)", replacement="node-${1}:9100"), {"i": "xb"}, "node-b"),
        (NodeMatch(label="i", regex=r"x(y)?", replacement="${1}node-a"), {"i": "x"}, "node-a"),
        (NodeMatch(label="i", regex=r"x", replacement="node-a"), {}, None),
    ],
)
def test_a_configured_label_and_relabelling(match: NodeMatch, labels: dict[str, str], expected: str | None) -> None:
    assert matcher(match, NODES)(labels) == expected


names = st.from_regex(r"[a-z]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
addresses = st.ip_addresses().map(str)


@given(st.dictionaries(names, st.lists(addresses, max_size=3), min_size=1), st.integers(1, 65535), st.data())
def test_a_node_is_found_by_its_name_and_by_each_address_of_its_own_whatever_the_port(
    cluster: dict[str, list[str]], port: int, data: st.DataObject
) -> None:
    index = NodeIndex(node(name, *each) for name, each in cluster.items())
    find = matcher(NodeMatch(label="l"), index)
    name = data.draw(st.sampled_from(sorted(cluster)))
    assert find({"l": name}) == find({"l": f"{name}:{port}"}) == name
    for address in cluster[name]:
        owners = {other for other, each in cluster.items() if address in each}
        written = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        assert find({"l": address}) == find({"l": written}) == (name if owners == {name} else None)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("10.0.0.7:9100", "10.0.0.7"),
        ("10.0.0.7", "10.0.0.7"),
        ("node-a:http", "node-a:http"),
        ("[fd00::7]:9100", "fd00::7"),
        ("[fd00::7]", "fd00::7"),
        ("fd00::7", "fd00::7"),
    ],
)
def test_a_port_is_taken_off_where_there_is_one(text: str, host: str) -> None:
    assert without_port(text) == host


@given(st.text())
def test_no_text_confuses_the_search_for_a_port(text: str) -> None:
    assert without_port(text) in text
    assert matcher(NodeMatch(label="l", regex="(.*)"), NODES)({"l": text}) in (None, *NODES.nodes)
