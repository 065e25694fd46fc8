"""Configured extenders, called over HTTP by the engine: what they see, and what comes of what they answer.

Requests to an extender that answers, and to one that does not, or not as it should.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podium.config import load_config
from podium.config.durations import Duration
from podium.config.types import ExtenderConfig
from podium.framework.extender import ExtenderError
from podium.kube import Pod
from podium.plugins import load_registry
from podium.run.extender_messages import ObjectTexts
from podium.run.http_extender import ExtenderConnections, HttpExtender, build_extenders
from tests.podium.engine.schedulers import World
from tests.podium.run.extender_server import ExtenderServer, Misdeed, Reply, drip, drip_body, hang, hang_up, write
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2"), make_node("n3")]
TEXTS = ObjectTexts(lambda _key: None, lambda _name: None)
PATIENCE = 0.3
"""Seconds to wait for an answer that will not come."""


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


def ask(calls: ExtenderConnections, verb: str = "filter", *, repeatable: bool = True) -> bytes:
    return calls.begin(verb, b"{}", repeatable=repeatable).reply()


def asked(answer: Any, *, prefix: str = "", timeout: float = 5.0, **options: Any) -> bytes | str:
    """The reply to one request, or what was wrong with it, with URL for the server's own."""
    with ExtenderServer(filter=lambda _body: answer) as server:
        calls = ExtenderConnections(server.url + prefix, timeout, None, **options)
        try:
            return ask(calls)
        except ExtenderError as error:
            return str(error).replace(server.url, "URL")
        finally:
            calls.close()


@pytest.mark.parametrize("prefix", ["", "/", "/a/b", "/a/b//", "/a?x=1"])
def test_the_verb_is_appended_to_the_prefix_as_text(prefix: str) -> None:
    verb = "filter"
    with ExtenderServer(filter=lambda _body: {}) as server:
        calls = ExtenderConnections(server.url + prefix, 5.0, None)
        assert ask(calls, verb) == b"{}"
        calls.close()
    [seen] = server.seen
    assert (seen.method, seen.path) == ("POST", f"{prefix.rstrip('/')}/{verb}")
    assert (seen.headers["Content-Type"], seen.headers["Host"]) == (
        "application/json",
        server.url.removeprefix("http://"),
    )


def test_a_name_and_password_in_the_url_are_sent_as_such() -> None:
    with ExtenderServer(filter=lambda _body: {}) as server:
        calls = ExtenderConnections(server.url.replace("://", "://me:p%40ss@"), 5.0, None)
        ask(calls)
        calls.close()
    assert server.seen[0].headers["Authorization"] == "Basic bWU6cEBzcw=="
    assert "@" not in server.seen[0].headers["Host"]


def test_connections_are_kept_open() -> None:
    with ExtenderServer(filter=lambda _body: {}) as server:
        calls = ExtenderConnections(server.url, 5.0, None)
        for _ in range(3):
            ask(calls)
        calls.close()
        ask(calls)
        calls.close()
    first, *others, last = [each.connection for each in server.seen]
    assert others == [first, first]
    assert last != first


def test_several_requests_may_be_under_way() -> None:
    """The second is answered first."""
    with ExtenderServer(filter=lambda _body: {"verb": "filter"}, other=lambda _body: {"verb": "other"}) as server:
        calls = ExtenderConnections(server.url, 5.0, None)
        first, second = calls.begin("filter", b"{}"), calls.begin("other", b"{}")
        assert (second.reply(), first.reply()) == (b'{"verb": "other"}', b'{"verb": "filter"}')
        calls.close()


@pytest.mark.parametrize(
    "closing",
    [
        Reply(body=b"{}", headers={"Connection": "close"}),
        Misdeed(write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")),
    ],
    ids=["announced", "unannounced"],
)
def test_what_the_other_side_closed_is_not_used_again(closing: Any) -> None:
    with ExtenderServer(filter=lambda _body: closing) as server:
        calls = ExtenderConnections(server.url, 5.0, None)
        assert (ask(calls), ask(calls)) == (b"{}", b"{}")
        calls.close()
    assert len({each.connection for each in server.seen}) == 2


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_request_on_a_kept_connection_that_breaks_is_sent_again_only_if_it_may_be(repeatable: bool) -> None:
    with ExtenderServer(filter=lambda _body: {}) as server:
        calls = ExtenderConnections(server.url, 5.0, None)
        ask(calls)
        answers: Any = iter([Misdeed(hang_up), {}])
        server.answers["filter"] = lambda _body: next(answers)
        if repeatable:
            assert ask(calls) == b"{}"
        else:
            with pytest.raises(ExtenderError, match="EOF"):
                ask(calls, repeatable=False)
        calls.close()
    assert len(server.seen) == (3 if repeatable else 2)


def test_a_fresh_connection_that_breaks_is_not_tried_again() -> None:
    with ExtenderServer(filter=lambda _body: Misdeed(hang_up)) as server:
        calls = ExtenderConnections(server.url, 5.0, None)
        with pytest.raises(ExtenderError):
            ask(calls)
    assert len(server.seen) == 1


BROKEN = 'Post "URL/filter": net/http: HTTP/1.x transport connection broken: '
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Misdeed(write(CHUNKED)), b"[1,2]"),
        (Misdeed(write(b"HTTP/1.0 200 OK\r\n\r\n{}")), b"{}"),
        (Reply(500, b"{}"), "failed filter with extender at URL URL/filter, code 500"),
        (Reply(404), "failed filter with extender at URL URL/filter, code 404"),
        (Reply(204), "failed filter with extender at URL URL/filter, code 204"),
        (
            Reply(307, headers={"Location": "http://elsewhere/"}),
            "failed filter with extender at URL URL/filter, code 307",
        ),
        (Misdeed(hang_up), 'Post "URL/filter": EOF'),
        (Misdeed(write(b"garbage\r\n\r\n")), BROKEN + 'malformed HTTP response "garbage"'),
        (
            Misdeed(write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000)),
            BROKEN + "got more than 65536 bytes when reading header line",
        ),
        (
            Misdeed(write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000)),
            BROKEN + "got more than 100 headers",
        ),
        (Misdeed(write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")), "unexpected EOF"),
    ],
)
def test_what_an_extender_may_answer(answer: Any, told: bytes | str) -> None:
    assert asked(answer) == told


@pytest.mark.parametrize(
    ("misdeed", "told"),
    [
        (hang, 'Post "URL/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'),
        (drip, 'Post "URL/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'),
        (drip_body, "context deadline exceeded (Client.Timeout or context cancellation while reading body)"),
    ],
)
def test_the_time_limit_is_for_the_whole_exchange(misdeed: Callable[[Any], None], told: str) -> None:
    assert asked(Misdeed(misdeed), timeout=PATIENCE) == told


def test_an_extender_that_does_not_read_does_not_hold_us() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        calls = ExtenderConnections(f"http://127.0.0.1:{deaf.getsockname()[1]}", PATIENCE, None)
        with pytest.raises(ExtenderError, match="deadline exceeded"):
            calls.begin("filter", b" " * (32 << 20)).reply()


@pytest.mark.parametrize("length", [True, False], ids=["announced", "endless"])
def test_a_reply_that_is_too_large_is_not_read_to_its_end(length: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 3000000\r\n" if length else b"") + b"\r\n"
    answer = Misdeed(write(head + b" " * 3_000_000))
    assert asked(answer, largest_reply=1000) == "the reply of extender at URL URL/filter is larger than 1000 bytes"


def test_a_reply_with_too_many_values_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.run.http_extender.MOST_VALUES", 1000)
    said = "the reply of extender at URL URL/filter has more than 1000 values"
    assert asked(Reply(body=b"[" + b"1," * 2000)) == said


def test_a_reply_of_just_the_size_allowed_is_read() -> None:
    assert asked(Reply(body=b" " * 1000), largest_reply=1000) == b" " * 1000


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ExtenderError) as failed:
        ExtenderConnections(f"http://127.0.0.1:{port}", 5.0, None).begin("filter", b"{}")
    url = f"http://127.0.0.1:{port}/filter"
    assert str(failed.value) == f'Post "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("extender", 'Post "extender/filter": unsupported protocol scheme ""'),
        ("ftp://extender", 'Post "ftp://extender/filter": unsupported protocol scheme "ftp"'),
        ("http://", 'Post "http:/filter": http: no Host in request URL'),
        ("http://a:x", "Post \"http://a:x/filter\": Port could not be cast to integer value as 'x'"),
    ],
)
def test_addresses_nobody_can_be_reached_at(prefix: str, told: str) -> None:
    with pytest.raises(ExtenderError) as failed:
        ExtenderConnections(prefix, 5.0, ssl.create_default_context()).begin("filter", b"{}")
    assert str(failed.value) == told
