"""What is written to extenders and how their replies are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.framework.extender import ChosenVictims, ExtenderError, Filtered, Victims
from podium.run.extender_messages import (
    ObjectTexts,
    binding_args,
    binding_result,
    chosen_victims,
    extender_args,
    filter_result,
    host_scores,
    preemption_args,
)
from tools.kit.builders import make_node, make_pod

POD = make_pod(requests={"cpu": "1"})


def texts(pod: dict[str, Any] | None = None, node: dict[str, Any] | None = None) -> ObjectTexts:
    """Objects as the server sent them."""
    return ObjectTexts(
        lambda _key: None if pod is None else json.dumps(pod).encode(),
        lambda _name: None if node is None else json.dumps(node).encode(),
    )


# Objects


def test_a_pod_is_sent_as_the_server_wrote_it_but_for_kind_version_and_managed_fields() -> None:
    written = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p1", "uid": POD.uid, "managedFields": [{"manager": "kubectl"}], "labels": None},
        "spec": {"unknown": {"to": ["us"]}},
        "status": {},
    }
    assert json.loads(texts(pod=written).pod(POD)) == {
        "metadata": {"name": "p1", "uid": POD.uid, "labels": None},
        "spec": {"unknown": {"to": ["us"]}},
        "status": {},
    }


def test_a_node_keeps_its_managed_fields_as_in_kube_scheduler() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1", "managedFields": [{}]}, "spec": {"x": 1}}
    sent = json.loads(texts(node=node).node(make_node()))
    assert sent == {"metadata": {"name": "n1", "managedFields": [{}]}, "spec": {"x": 1}}


@pytest.mark.parametrize("kept", [None, {"metadata": {"uid": "another"}}, {}])
def test_without_the_pods_own_text_what_scheduling_reads_is_sent(kept: dict[str, Any] | None) -> None:
    sent = json.loads(texts(pod=kept).pod(POD))
    assert sent["metadata"]["uid"] == POD.uid
    assert sent["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_without_the_nodes_own_text_what_scheduling_reads_is_sent() -> None:
    sent = json.loads(texts().node(make_node("n1", labels={"a": "b"})))
    assert (sent["metadata"]["labels"], sent["status"]["allocatable"]["cpu"]) == ({"a": "b"}, 4)


@pytest.mark.parametrize("kept", [None, {"metadata": {"uid": POD.uid}, "spec": {"priority": 1}}])
def test_a_victim_the_server_has_not_bound_yet_is_sent_with_its_node(kept: dict[str, Any] | None) -> None:
    assert json.loads(texts(pod=kept).pod(POD, "n1"))["spec"]["nodeName"] == "n1"


def test_a_victim_keeps_the_node_the_server_knows() -> None:
    kept = {"metadata": {"uid": POD.uid}, "spec": {"nodeName": "n2"}}
    assert json.loads(texts(pod=kept).pod(POD, "n1"))["spec"] == {"nodeName": "n2"}


# Requests


def test_whole_nodes_or_their_names_are_sent_and_null_for_the_others() -> None:
    assert json.loads(extender_args(b"{}", nodes=[b'{"a":1}', b"{}"])) == {
        "Pod": {},
        "Nodes": {"metadata": {}, "items": [{"a": 1}, {}]},
        "NodeNames": None,
    }
    assert json.loads(extender_args(b"{}", names=['n"1', "n2"])) == {
        "Pod": {},
        "Nodes": None,
        "NodeNames": ['n"1', "n2"],
    }


def test_victims_are_sent_whole_or_by_uid() -> None:
    victims = {'n"1': Victims([make_pod("a"), make_pod("b")], 2), "n2": Victims([make_pod("c")], 0)}
    assert json.loads(preemption_args(b"{}", victims, None)) == {
        "Pod": {},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            'n"1': {"Pods": [{"UID": "default-a"}, {"UID": "default-b"}], "NumPDBViolations": 2},
            "n2": {"Pods": [{"UID": "default-c"}], "NumPDBViolations": 0},
        },
    }
    whole = json.loads(preemption_args(b"{}", victims, texts().pod))
    assert whole["NodeNameToMetaVictims"] is None
    assert [pod["spec"]["nodeName"] for pod in whole["NodeNameToVictims"]['n"1']["Pods"]] == ['n"1', 'n"1']


def test_a_binding_names_pod_and_node() -> None:
    sent = json.loads(binding_args(make_pod("p", namespace="ns"), "n1"))
    assert sent == {"PodName": "p", "PodNamespace": "ns", "PodUID": "ns-p", "Node": "n1"}


# Replies


def body(data: Any) -> bytes:
    return data if isinstance(data, bytes) else json.dumps(data).encode()


NODES = {"items": [{"metadata": {"name": "n1"}, "spec": {"x": [1]}}, {"metadata": {"name": "n2"}}]}


@pytest.mark.parametrize(
    ("by_name", "reply", "result"),
    [
        (True, {"NodeNames": ["n1"]}, Filtered(["n1"])),
        (True, {"nodenames": ["n1"], "FAILEDNODES": {"N2": "no"}}, Filtered(["n1"], {"N2": "no"})),
        (True, {"NodeNames": ["n1"], "Nodes": NODES, "more": {}}, Filtered(["n1"])),
        (True, {"NodeNames": None, "Nodes": NODES}, Filtered(["n1", "n2"], bare=True)),
        (False, {"NodeNames": ["n1"], "Nodes": NODES}, Filtered(["n1", "n2"], bare=True)),
        (False, {"NodeNames": ["n1"]}, Filtered([], bare=True)),
        (True, {"NodeNames": []}, Filtered([])),
        (True, {}, Filtered([], bare=True)),
        (True, b"null", Filtered([], bare=True)),
        (False, {"Nodes": {"ITEMS": [{"Metadata": {"NAME": "n1"}}, {}, None]}}, Filtered(["n1", "", ""], bare=True)),
        (False, {"Nodes": {"items": None}}, Filtered([], bare=True)),
        (
            True,
            {"NodeNames": [], "FailedNodes": {"a": "x", "b": None}, "FailedAndUnresolvableNodes": {"c": "y"}},
            Filtered([], {"a": "x", "b": ""}, {"c": "y"}),
        ),
        (True, {"NodeNames": ["n1", None], "FailedNodes": None, "Error": None}, Filtered(["n1", ""])),
        (True, b' {"NodeNames":["n1"]} {"NodeNames":[]} trailing', Filtered(["n1"])),
        (True, b'{"NodeNames":["n1"],"nodeNames":["n2"]}', Filtered(["n2"])),
        (True, b'{"NodeNames":["n\xff"]} trailing', Filtered(["n�"])),
    ],
)
def test_a_filter_result_is_read_as_go_reads_it(by_name: bool, reply: Any, result: Filtered) -> None:
    assert filter_result(body(reply), by_name=by_name) == result


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({"Error": "out of order", "NodeNames": ["n1"]}, "out of order"),
        (b"", "EOF"),
        (b"  \n", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'{"NodeNames":["n1"', "unexpected EOF"),
        (b"[" * 100_000, "exceeded max depth"),
        (b'{"Nodes":' + b'{"items":' * 50_000, "exceeded max depth"),
        ([], "the reply is not what was asked for: Expected `object | null`, got `array`"),
        ("n1", "the reply is not what was asked for: Expected `object | null`, got `str`"),
        ({"NodeNames": "n1"}, "the reply is not what was asked for: Expected `array | null`, got `str`"),
        ({"NodeNames": [1]}, "the reply is not what was asked for: Expected `str | null`, got `int` - at `$[0]`"),
        (
            {"FailedNodes": {"a": 1}},
            "the reply is not what was asked for: Expected `str | null`, got `int` - at `$[...]`",
        ),
        (b'{"NodeNames":[x]}', "the reply is not JSON: JSON is malformed: invalid character (byte 14)"),
    ],
)
def test_a_filter_result_that_is_none_is_said_to_be(reply: Any, told: str) -> None:
    with pytest.raises(ExtenderError) as failed:
        filter_result(body(reply), by_name=True)
    assert str(failed.value) == told


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ([{"Host": "n1", "Score": 7}, {"host": "n2", "SCORE": -3}], [("n1", 7), ("n2", -3)]),
        ([{"Host": "n1"}, {"Score": 1}, None], [("n1", 0), ("", 1), ("", 0)]),
        (b"null", []),
        ([], []),
        ([{"Host": "n1", "Score": 2**63 - 1}], [("n1", 2**63 - 1)]),
    ],
)
def test_scores_are_read_as_go_reads_them(reply: Any, scores: Any) -> None:
    assert host_scores(body(reply)) == scores


@pytest.mark.parametrize("score", [1.5, 7.0, "7", 2**63, [1]])
def test_a_score_that_is_no_whole_number_of_64_bits_spoils_them_all(score: Any) -> None:
    with pytest.raises(ExtenderError):
        host_scores(body([{"Host": "n1", "Score": 1}, {"Host": "n2", "Score": score}]))


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        (
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "a"}, {"uid": "b"}], "NumPDBViolations": 2}}},
            {"n1": ChosenVictims(["a", "b"], 2)},
        ),
        (
            {"nodeNameToMetaVictims": {"n1": None, "n2": {"Pods": None}}},
            {"n1": ChosenVictims([]), "n2": ChosenVictims([])},
        ),
        ({"NodeNameToVictims": {"n1": {"Pods": []}}}, {}),
        (b"null", {}),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [None]}}}, {"n1": ChosenVictims([""])}),
    ],
)
def test_chosen_victims_are_read_as_go_reads_them(reply: Any, chosen: Any) -> None:
    assert chosen_victims(body(reply)) == chosen


@pytest.mark.parametrize("reply", [{}, {"Error": ""}, b"null", {"error": None}])
def test_a_binding_without_an_error_is_done(reply: Any) -> None:
    binding_result(body(reply))


def test_a_binding_that_failed_says_why() -> None:
    with pytest.raises(ExtenderError, match=r"^taken$"):
        binding_result(body({"error": "taken"}))
