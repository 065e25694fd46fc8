"""Configured extenders, called over HTTP by the engine: what they see, and what comes of what they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from podium.config import load_config
from podium.config.durations import Duration
from podium.config.types import ExtenderConfig
from podium.framework.extender import ExtenderError
from podium.kube import Pod
from podium.plugins import load_registry
from podium.run.extender_client.http_extender import HttpExtender, build_extenders
from podium.run.extender_client.messages import ObjectTexts
from tests.podium.engine.schedulers import World
from tests.podium.run.extender_client.extender_server import ExtenderServer, Misdeed, Reply, drip, hang, hang_up, write
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2"), make_node("n3")]
TEXTS = ObjectTexts(lambda _key: None, lambda _name: None)


def configured(*extenders: dict[str, Any], **raw: Any) -> list[HttpExtender]:
    data = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    config = load_config(json.dumps(data), "scheduler.yaml", load_registry()).config
    return build_extenders(config, raw.get("raw_pod", lambda _key: None), raw.get("raw_node", lambda _name: None))


@pytest.fixture
def server() -> Iterator[ExtenderServer]:
    with ExtenderServer() as server:
        yield server


def settings(server: ExtenderServer, **more: Any) -> dict[str, Any]:
    return {"urlPrefix": server.url, "nodeCacheCapable": True, **more}


def world(*extenders: HttpExtender) -> World:
    return World("NodeResourcesFit", "DefaultPreemption", nodes=NODES, extenders=extenders)


def decided(extender: HttpExtender, pod: Pod | None = None) -> World:
    here = world(extender)
    here.attempt(pod or make_pod())
    extender.close()
    return here


# The configuration


def test_extenders_that_must_answer_are_called_before_those_that_may_be_ignored() -> None:
    extenders = configured(
        {"urlPrefix": "http://a", "ignorable": True},
        {"urlPrefix": "http://b"},
        {"urlPrefix": "http://c", "ignorable": True},
        {"urlPrefix": "http://d", "filterVerb": "f", "prioritizeVerb": "p", "weight": 3},
    )
    assert [extender.name for extender in extenders] == ["http://b", "http://d", "http://a", "http://c"]
    filtering = extenders[1]
    assert (filtering.is_filter, filtering.is_prioritizer, filtering.weight) == (True, True, 3)
    assert (filtering.is_binder, filtering.supports_preemption, filtering.ignorable) == (False, False, False)
    [other] = configured({"urlPrefix": "http://a", "bindVerb": "b", "preemptVerb": "p", "ignorable": True})
    assert (other.is_binder, other.supports_preemption, other.ignorable, other.is_filter) == (True, True, True, False)


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": resources}


@pytest.mark.parametrize(
    ("spec", "interested"),
    [
        ({"containers": [container(requests={"example.com/gpu": 1})]}, True),
        ({"containers": [container(limits={"example.com/gpu": 0})]}, True),
        ({"containers": [container(requests={"cpu": 1}, limits={"example.com/fpga": 1})]}, False),
        ({"containers": [container(), container(requests={"example.com/gpu": 1})]}, True),
        ({"containers": [], "initContainers": [container(requests={"example.com/gpu": 1})]}, True),
        ({"containers": [container()], "overhead": {"example.com/gpu": 1}}, False),
    ],
)
def test_an_extender_cares_for_pods_that_name_a_resource_it_manages(spec: dict[str, Any], interested: bool) -> None:
    pod = make_pod(spec=spec)
    [extender] = configured({"urlPrefix": "http://a", "managedResources": [{"name": "example.com/gpu"}]})
    assert extender.is_interested(pod) == interested
    [anything] = configured({"urlPrefix": "http://a"})
    assert anything.is_interested(pod)


# Filter and prioritize


def test_names_are_sent_to_an_extender_that_knows_the_nodes(server: ExtenderServer) -> None:
    server.answers = {
        "filter": lambda body: {"NodeNames": [name for name in body["NodeNames"] if name != "n1"]},
        "prioritize": lambda _body: [{"Host": "n2", "Score": 1}, {"Host": "n3", "Score": 2}],
    }
    [extender] = configured(settings(server, filterVerb="filter", prioritizeVerb="prioritize", weight=1))
    assert decided(extender).bound == [("p1", "n3")]
    assert [(each.verb, each.body["NodeNames"], each.body["Nodes"]) for each in server.seen] == [
        ("filter", ["n1", "n2", "n3"], None),
        ("prioritize", ["n2", "n3"], None),
    ]


def test_whole_objects_are_sent_to_one_that_does_not(server: ExtenderServer) -> None:
    raw_pod = {"kind": "Pod", "metadata": {"name": "p1", "uid": "default-p1"}, "spec": {"more": 1}}
    raw_node = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"more": 2}}
    server.answers = {
        "filter": lambda body: {"Nodes": body["Nodes"]},
        "prioritize": lambda _body: [{"Host": "n2", "Score": 9}],
    }
    [extender] = configured(
        settings(server, filterVerb="filter", prioritizeVerb="prioritize", weight=1, nodeCacheCapable=False),
        raw_pod=lambda key: json.dumps(raw_pod).encode() if key == "default/p1" else None,
        raw_node=lambda name: json.dumps(raw_node).encode() if name == "n1" else None,
    )
    assert decided(extender).bound == [("p1", "n2")]
    for body in (*server.of("filter"), *server.of("prioritize")):
        assert body["Pod"] == {"metadata": raw_pod["metadata"], "spec": {"more": 1}}
        assert body["NodeNames"] is None
        assert body["Nodes"]["items"][0] == {"metadata": {"name": "n1"}, "status": {"more": 2}}
        assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Reply(500), "failed filter with extender at URL {url}/filter, code 500"),
        ({"Error": "no licence"}, "no licence"),
        (
            Misdeed(hang),
            'Post "{url}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
        ),
        (
            Misdeed(drip),
            'Post "{url}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
        ),
        (Misdeed(hang_up), 'Post "{url}/filter": EOF'),
        (
            Misdeed(write(b"hello")),
            'Post "{url}/filter": net/http: HTTP/1.x transport connection broken: malformed HTTP response "hello"',
        ),
        (Reply(body=b"<html>"), "invalid character '<' looking for beginning of value"),
        (
            {"NodeNames": ["n9"]},
            'extender "{url}" claims a filtered node "n9" which is not found in the input node list',
        ),
        (Reply(body=b" " * 2000), "the reply of extender at URL {url}/filter is larger than 1000 bytes"),
    ],
    ids=["code", "Error", "hang", "drip", "hang up", "no HTTP", "no JSON", "wrong node", "huge"],
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_filter_that_misbehaves_fails_the_pod_or_is_skipped(
    server: ExtenderServer, answer: Any, told: str, ignorable: bool
) -> None:
    server.answers = {"filter": lambda _body: answer}
    config = ExtenderConfig(
        url_prefix=server.url,
        filter_verb="filter",
        http_timeout=Duration.parse("300ms"),
        node_cache_capable=True,
        ignorable=ignorable,
    )
    here = decided(HttpExtender(config, TEXTS, largest_reply=1000))
    told = told.replace("{url}", server.url)
    if ignorable:
        assert (len(here.bound), here.failures) == (1, [])
        assert here.reports[0].endswith(f"is skipped: {told}")
    else:
        assert [(failure.reason, failure.message) for failure in here.failures] == [("SchedulerError", told)]


def test_both_of_two_prioritizers_work_at_the_same_time() -> None:
    """Each answers only when the other has been asked."""
    with ExtenderServer() as first, ExtenderServer() as second:
        first.answers = {"p": lambda _body: _when_asked(first, second)}
        second.answers = {"p": lambda _body: _when_asked(second, first)}
        extenders = configured(
            settings(first, prioritizeVerb="p", weight=1), settings(second, prioritizeVerb="p", weight=1)
        )
        here = world(*extenders)
        here.attempt(make_pod())
        for extender in extenders:
            extender.close()
        assert (here.bound, here.reports) == ([("p1", "n2")], [])


def _when_asked(own: ExtenderServer, other: ExtenderServer) -> Any:
    own.released.set()
    if not other.released.wait(4.0):
        return Reply(500)
    return [{"Host": "n2", "Score": 5}]


# Bind


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, ""),
        ({"Error": "taken"}, "taken"),
        (Reply(409), "failed bind with extender at URL {url}/bind, code 409"),
        (Misdeed(hang_up), 'Post "{url}/bind": EOF'),
    ],
)
def test_binding_is_asked_for_by_name_and_waited_for_beside_other_work(
    server: ExtenderServer, answer: Any, told: str
) -> None:
    server.answers = {"bind": lambda _body: answer}
    [extender] = configured(settings(server, bindVerb="bind"))

    async def main() -> str:
        try:
            await extender.bind(make_pod(namespace="ns"), "n1")
        except ExtenderError as error:
            return str(error)
        finally:
            extender.close()
        return ""

    assert asyncio.run(main()) == told.replace("{url}", server.url)
    assert server.of("bind") == [{"PodName": "p1", "PodNamespace": "ns", "PodUID": "ns-p1", "Node": "n1"}]


def test_a_guard_may_stop_a_binding_at_the_last_moment(server: ExtenderServer) -> None:
    def refuse() -> None:
        raise RuntimeError("not leading")

    config = ExtenderConfig(url_prefix=server.url, bind_verb="bind")
    with pytest.raises(RuntimeError, match="not leading"):
        asyncio.run(HttpExtender(config, TEXTS, guard=refuse).bind(make_pod(), "n1"))
    assert server.seen == []


def test_who_only_looks_on_has_nothing_bound(server: ExtenderServer) -> None:
    config = ExtenderConfig(url_prefix=server.url, bind_verb="bind")
    here = world(HttpExtender(config, TEXTS, may_bind=False))
    here.attempt(make_pod())
    assert (len(here.bound), server.seen) == (1, [])


def test_many_pods_may_be_bound_at_once(server: ExtenderServer) -> None:
    server.answers = {"bind": lambda _body: {}}
    [extender] = configured(settings(server, bindVerb="bind"))

    async def main() -> None:
        await asyncio.gather(*(extender.bind(make_pod(f"p{number}"), "n1") for number in range(40)))
        extender.close()

    asyncio.run(main())
    assert sorted(body["PodName"] for body in server.of("bind")) == sorted(f"p{number}" for number in range(40))


# Preempt


@pytest.mark.parametrize("by_uid", [True, False])
def test_victims_are_sent_and_chosen(server: ExtenderServer, by_uid: bool) -> None:
    server.answers = {
        "preempt": lambda _body: {
            "NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "default-v2"}], "NumPDBViolations": 0}}
        }
    }
    [extender] = configured(settings(server, preemptVerb="preempt", nodeCacheCapable=by_uid))
    here = world(extender)
    here.add(*(make_pod(f"v{number}", node=f"n{number}", requests={"cpu": 4}) for number in (1, 2, 3)))
    here.attempt(make_pod(priority=1, requests={"cpu": 4}))
    extender.close()
    assert here.evicted == ["v2"]
    [body] = server.of("preempt")
    assert body["Pod"]["metadata"]["name"] == "p1"
    sent, other = body["NodeNameToVictims"], body["NodeNameToMetaVictims"]
    if by_uid:
        sent, other = other, sent
        assert sent["n1"] == {"Pods": [{"UID": "default-v1"}], "NumPDBViolations": 0}
    else:
        assert sent["n1"]["Pods"][0]["spec"]["nodeName"] == "n1"
    assert (sorted(sent), other) == (["n1", "n2", "n3"], None)
