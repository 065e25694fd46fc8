"""Requests to an extender that answers, and to one that does not, or not as it should."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from podium.framework.extender import ExtenderError
from podium.run.extender_client.calls import ExtenderConnections
from tests.podium.run.extender_client.extender_server import (
    ExtenderServer,
    Misdeed,
    Reply,
    drip,
    drip_body,
    hang,
    hang_up,
    write,
)

PATIENCE = 0.3
"""Seconds to wait for an answer that will not come."""


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
    monkeypatch.setattr("podium.run.extender_client.calls.MOST_VALUES", 1000)
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
