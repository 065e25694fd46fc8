"""The reflector against a server that does everything wrong that servers and networks do."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from aiohttp import web

from podium.client import ApiResource, Reflector
from tests.podium.client.followers import Follower, make_reflector, running, until
from tests.podium.client.misbehaving import (
    NODES,
    Answer,
    Misbehaving,
    bookmark,
    line,
    listed,
    misbehaving,
    node,
    refused,
    sent,
    status,
)

Test = Callable[[Misbehaving, Reflector[Any], Follower], Awaitable[None]]


def played(
    test: Test,
    *,
    lists: Sequence[Answer] = (listed(version=1),),
    watches: Sequence[Answer] = (),
    resource: ApiResource[Any] = NODES,
    **options: Any,
) -> None:
    """Runs the test while a reflector reads from a server with these answers."""

    async def main() -> None:
        async with misbehaving(lists, watches) as (server, client):
            reflector, follower = make_reflector(client, resource, **options)
            async with running(reflector):
                await test(server, reflector, follower)

    asyncio.run(main())


def test_a_watch_goes_on_from_the_version_of_the_list_and_asks_for_bookmarks() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.asked) == 2)
        asked = server.asked[1].params
        assert asked["resourceVersion"] == "7"
        assert asked["allowWatchBookmarks"] == "true"
        assert 300 <= int(asked["timeoutSeconds"]) <= 600
        assert follower.steps == ["set a"]

    played(test, lists=[listed(node("a", 5), version=7)])


def test_a_watch_that_ends_goes_on_at_once_from_the_last_event_or_bookmark() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.watched_from) == 4)
        assert server.watched_from == ["1", "2", "9", "11"]
        assert server.times_listed == 1
        assert follower.steps == ["set a", "delete a"]
        assert follower.reports == []

    watches = [
        sent(line("ADDED", node("a", 2))),
        sent(bookmark(9)),
        sent(bookmark(8), line("DELETED", node("a", 11)), bookmark(10), then="break"),
    ]
    played(test, watches=watches, first=1000.0)


@pytest.mark.parametrize(
    "expired",
    [
        refused(410, "Expired", "too old resource version"),
        sent(line("ERROR", status(410, "Gone"))),
        sent(line("ERROR", {"kind": "Status", "reason": "Expired"})),
        sent(line("ADDED", node("x", 11)), line("DELETED", node("x", 12)), line("ERROR", status(410, "Expired"))),
    ],
    ids=["status", "event", "event without a code", "event after others"],
)
def test_a_version_that_the_server_forgot_is_listed_anew_and_only_differences_are_told(expired: Answer) -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.watched_from) == 3)
        steps = [step for step in follower.steps[4:] if not step.endswith(" x")]
        assert steps == ["set changed", "delete anew", "set anew", "set new", "delete gone"]
        assert server.watched_from == ["9", "10", "20"]
        assert set(reflector.store) == set(follower.copy) == {"same", "changed", "anew", "new"}
        assert follower.copy["anew"].uid == "other"
        assert follower.reports == []

    before = listed(node("same", 1), node("changed", 2), node("anew", 3), node("gone", 4), version=9)
    after = listed(node("same", 1), node("changed", 12), node("anew", 13, "other"), node("new", 14), version=20)
    played(test, lists=[before, after], watches=[sent(bookmark(10)), expired], first=1000.0)


def test_a_server_that_forgets_every_version_is_not_listed_without_pause() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.problem is not None)
        assert reflector.problem == "nodes cannot be listed: the server forgets every version before it can be watched"
        await asyncio.sleep(0.05)
        assert server.times_listed == 1

    played(test, watches=[refused(410, "Expired")] * 3, first=1000.0)


@pytest.mark.parametrize(
    "end",
    [
        [line("ERROR", status(500, "InternalError", "etcd has no leader"))],
        [b'{"type": "ADDED", "object": garbage}\n', line("ADDED", node("b", 3))],
        [b"<html>\n"],
        [b'{"type": "ADDED"}\n'],
        [b"[" * 100_000 + b"\n"],
    ],
    ids=["error event", "broken JSON", "HTML", "no object", "endless nesting"],
)
def test_errors_and_garbage_in_a_watch_begin_it_again_from_the_last_good_event(end: list[bytes]) -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.watched_from) == 2)
        assert server.watched_from == ["1", "2"]
        assert server.times_listed == 1
        assert follower.steps == ["set a"]
        assert len(follower.reports) == 1
        assert follower.reports[0].endswith("; the watch begins again")

    played(test, watches=[sent(line("ADDED", node("a", 2)), *end, then="hold")], first=1000.0)


def test_a_line_that_is_not_whole_when_the_stream_breaks_is_dropped() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.watched_from) == 2)
        assert server.watched_from[1] == "2"
        assert follower.steps == ["set a"]

    half = line("ADDED", node("b", 3))[:-20]
    played(test, watches=[sent(line("ADDED", node("a", 2)), half, then="break")], first=1000.0)


def test_a_line_over_many_chunks_and_many_lines_in_one() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(follower.steps) == 201)
        assert follower.steps == ["set long", *(f"set n{number}" for number in range(200))]
        assert len(reflector.store["long"].labels["long"]) == 10_000

    long = line("ADDED", node("long", 2, labels={"long": "x" * 10_000}))
    many = b"\n".join(line("ADDED", node(f"n{number}", 10 + number)) for number in range(200))
    played(test, watches=[sent(*(long[at : at + 100] for at in range(0, len(long), 100)), many, then="hold")])


def test_a_line_longer_than_any_object_can_be_is_a_trouble_that_says_so() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.problem is not None)
        assert reflector.problem == "nodes cannot be watched: the server sent a line of more than 5000 bytes"
        await until(lambda: reflector.problem is None)
        assert follower.steps == ["set a"]
        assert follower.reports[-1] == "nodes can be listed and watched again"

    watches = [sent(*[b"x" * 1000] * 6, then="hold"), sent(line("ADDED", node("a", 2)), then="hold")]
    played(test, watches=watches, longest_line=5000)


def test_a_silent_watch_is_cut_and_what_was_missed_is_listed() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: follower.steps == ["set a", "set b"])
        assert server.watched_from[0] == "1"
        assert server.times_listed >= 2

    lists = [listed(version=1), listed(node("a", 2), node("b", 3), version=3)]
    played(test, lists=lists, watches=[sent(line("ADDED", node("a", 2)), then="hold")], idle=0.05, first=1000.0)


def test_a_version_from_which_watches_stay_silent_is_not_believed() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: server.times_listed == 2)
        assert server.watched_from[0] == "1000"
        await until(lambda: follower.steps == ["set a", "set a"])  # the etcd behind it was restored from a backup

    lists = [listed(node("a", 1000), version=1000), listed(node("a", 5), version=10)]
    played(test, lists=lists, idle=1.1, first=1000.0)


def test_too_large_a_version_is_tried_again_and_then_listed() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: server.times_listed == 2)
        assert server.watched_from[:3] == ["1"] * 3

    causes = {"details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}}
    too_large = sent(line("ERROR", status(504, "Timeout", "Too large resource version: 1, current: 0", **causes)))
    played(test, watches=[too_large] * 3)


@pytest.mark.parametrize("busy", ["list", "watch", "event"])
def test_a_server_that_names_a_time_to_wait_is_left_alone_for_so_long(busy: str) -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        what = "list" if busy == "list" else "watch"
        await until(lambda: sum(each.what == what for each in server.asked) == 2)
        first, second = (each.time for each in server.asked if each.what == what)
        assert second - first >= 1.0

    too_many = refused(429, "TooManyRequests", retry_after=1)
    if busy == "list":
        played(test, lists=[too_many, listed(version=1)])
    elif busy == "watch":
        played(test, watches=[too_many])
    else:
        event = status(429, "TooManyRequests", details={"retryAfterSeconds": 1})
        played(test, watches=[sent(line("ERROR", event))])


def test_a_watch_that_ends_at_once_again_and_again_is_a_trouble() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.problem is not None)
        assert reflector.problem == "nodes cannot be watched: the server ends the watch as soon as it has begun"
        await until(lambda: reflector.problem is None)

    played(test, watches=[sent(), sent()])


UNREADABLE = {"metadata": {"name": "bad", "uid": "u", "resourceVersion": "3", "labels": {"a": 1}}}


def test_an_object_that_cannot_be_read_is_named_and_skipped_in_a_watch() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(follower.steps) == 2)
        assert follower.steps == ["set a", "set b"]
        assert follower.reports == [
            'nodes "bad" cannot be read: $.metadata.labels["a"]: expected text, got a whole number',
            'nodes "" cannot be read: it has no name',
            'nodes: the watch sent an event of the unknown type "SURPRISE"',
        ]
        assert reflector.problem is None

    pieces = [
        line("ADDED", node("a", 2)),
        line("ADDED", UNREADABLE),
        line("MODIFIED", UNREADABLE),
        line("ADDED", {"metadata": {}}),
        line("SURPRISE", node("c", 5)),
        line("ADDED", node("b", 6)),
    ]
    played(test, watches=[sent(*pieces, then="hold")])


def test_of_many_objects_that_cannot_be_read_the_first_are_named_and_the_others_counted() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(reflector.synced.is_set)
        assert [report.split('"')[1] for report in follower.reports[:10]] == [f"n{number}" for number in range(10)]
        assert follower.reports[10:] == ["990 more nodes cannot be read"]
        assert follower.steps == ["set good"]

    bad = [node(f"n{number}", 1, labels={"a": 1}) for number in range(1000)]
    played(test, lists=[listed(*bad, node("good", 1), version=1)])


def test_an_object_that_cannot_be_read_any_more_stays_as_it_was_until_it_goes() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.watched_from) == 2)
        assert follower.steps == ["set bad"]
        assert reflector.store["bad"].metadata.resource_version == "1"
        await until(lambda: len(follower.steps) == 2)
        assert follower.steps == ["set bad", "delete bad"]

    async def later(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return await sent(line("DELETED", UNREADABLE | {"spec": 7}), then="hold")(request)

    lists = [listed(node("bad", 1, "u"), version=1), listed(UNREADABLE, version=10)]
    played(test, lists=lists, watches=[refused(410, "Expired"), later])


def test_objects_with_nulls_are_read_as_go_would() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(follower.steps) == 2)
        assert follower.reports == []

    nulls = {"labels": None, "ownerReferences": None}
    lists = [listed(node("a", 1, **nulls), version=1)]
    played(test, lists=lists, watches=[sent(line("ADDED", node("b", 2, **nulls)), then="hold")])


def test_a_callback_that_fails_is_reported_and_the_watch_goes_on() -> None:
    seen: list[str] = []

    def fails(obj: Any) -> None:
        seen.append(obj.name)
        raise ValueError("it was not me")

    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(seen) == 4)
        assert seen == ["a", "b", "c", "a"]
        assert set(reflector.store) == {"b", "c"}
        assert follower.reports == ['nodes "a" could not be taken over: ValueError: it was not me']
        assert reflector.problem is None

    pieces = [line("ADDED", node("b", 2)), line("ADDED", node("c", 3)), line("DELETED", node("a", 4))]
    lists = [listed(node("a", 1), version=1)]
    played(test, lists=lists, watches=[sent(*pieces, then="hold")], on_set=fails, on_delete=fails)


def test_a_list_of_several_pages_goes_on_from_the_version_of_the_first() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.asked) == 3)
        assert [each.params.get("continue") for each in server.asked] == [None, "token", None]
        assert [each.params.get("limit") for each in server.asked] == ["500", "500", None]
        assert server.watched_from == ["4"]
        assert follower.steps == ["set a", "set b"]

    played(test, lists=[listed(node("a", 1), version=4, more="token"), listed(node("b", 2), version=4)])


def test_a_list_whose_version_expires_between_two_pages_is_asked_for_in_one_piece() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(server.asked) == 4)
        assert server.asked[2].params == {}
        assert server.watched_from == ["9"]
        assert follower.steps == ["set b", "set c"]

    whole = listed(node("b", 2), node("c", 8), version=9)
    lists = [listed(node("a", 1), version=4, more="token"), refused(410, "Expired"), whole]
    played(test, lists=lists, first=1000.0)


TROUBLES: dict[str, tuple[Answer, str]] = {
    "forbidden": (
        refused(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes"'),
        'nodes is forbidden: User "u" cannot list resource "nodes"; the role of this user needs the rule '
        'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]',
    ),
    "unauthorized": (refused(401, "Unauthorized", "Unauthorized"), "(401 Unauthorized); have the credentials expired?"),
    "unknown": (refused(404, "NotFound"), "nodes cannot be listed: the API server has no nodes in v1"),
    "failing": (refused(500, "InternalError", "no leader"), "nodes cannot be listed: no leader (500 InternalError)"),
}


@pytest.mark.parametrize(("answer", "sentence"), TROUBLES.values(), ids=TROUBLES)
def test_what_keeps_it_from_listing_is_said_in_one_sentence(answer: Answer, sentence: str) -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.problem is not None)
        assert reflector.problem is not None
        assert sentence in reflector.problem
        assert not reflector.synced.is_set()
        await until(lambda: reflector.problem is None)
        assert reflector.synced.is_set()
        assert len(follower.reports) == 2
        assert sentence in follower.reports[0]
        assert follower.reports[1] == "nodes can be listed and watched again"

    played(test, lists=[answer] * 5 + [listed(version=1)])


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"metadata": {}}', b"[]", b'{"items": 3}', b""])
def test_something_else_than_a_list_is_a_trouble(body: bytes) -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.problem is not None)
        assert reflector.problem is not None
        assert reflector.problem.startswith("nodes cannot be listed: the server sent ")
        await until(reflector.synced.is_set)

    played(test, lists=[page, listed(version=1)])


def test_a_trouble_is_told_when_it_begins_changes_and_ends_and_not_each_time() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: reflector.synced.is_set() and reflector.problem is None)
        assert follower.reports == [
            "nodes cannot be listed: no leader (500 InternalError)",
            "nodes cannot be listed: the API server has no nodes in v1",
            "nodes can be listed and watched again",
        ]

    failing, unknown = refused(500, "InternalError", "no leader"), refused(404, "NotFound")
    played(test, lists=[*[failing] * 4, *[unknown] * 4, listed(version=1)], watches=[sent(bookmark(2), then="hold")])


def test_a_collection_without_a_type_is_kept_as_dictionaries_and_the_json_on_request() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: len(follower.steps) == 3)
        assert follower.steps == ["set a", "set ns/b", "delete a"]
        assert reflector.store == {"ns/b": node("b", 2, namespace="ns")}
        assert {key: msgspec.json.decode(raw) for key, raw in reflector.raw.items()} == reflector.store
        assert follower.reports == ['nodes "" cannot be read: it has no name']

    watches = [
        sent(
            line("ADDED", node("b", 2, namespace="ns")),
            line("ADDED", {"metadata": "?"}),
            line("DELETED", node("a", 3)),
            then="hold",
        )
    ]
    untyped: ApiResource[dict[str, Any]] = ApiResource(NODES.path)
    played(test, lists=[listed(node("a", 1), version=1)], watches=watches, resource=untyped, keep_raw=True)


def test_others_get_their_turn_while_thousands_of_events_arrive_at_once() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        before, most = 0, 0
        while before < 10_000:
            await asyncio.sleep(0)
            most = max(most, len(follower.steps) - before)
            before = len(follower.steps)
        assert most <= 100

    objects = [node(f"n{number}", 1) for number in range(5000)]
    events = b"".join(line("MODIFIED", node(f"n{number}", 10 + number)) for number in range(5000))
    played(test, lists=[listed(*objects, version=1)], watches=[sent(events, then="hold")])


def test_whoever_cancels_it_ends_it_and_it_can_be_run_again() -> None:
    async def main() -> None:
        async with misbehaving([listed(node("a", 1), version=1)]) as (server, client):
            reflector, follower = make_reflector(client, NODES)
            for times in (1, 2):
                async with running(reflector):
                    await until(lambda times=times: len(server.watched_from) == times)  # type: ignore[misc]
            assert follower.steps == ["set a"]
            assert server.times_listed == 1

    asyncio.run(main())


def test_an_optional_kind_that_is_not_served_counts_as_listed_and_is_no_problem() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await asyncio.wait_for(reflector.synced.wait(), 5)
        assert reflector.problem is None
        assert follower.steps == []

    played(test, lists=[refused(404, "NotFound")], resource=replace(NODES, optional=True))


def test_a_kind_that_is_not_served_is_looked_for_in_its_older_version() -> None:
    async def test(server: Misbehaving, reflector: Reflector[Any], follower: Follower) -> None:
        await until(lambda: follower.steps == ["set a"])
        assert reflector.resource.path == NODES.path
        assert reflector.problem is None

    newer = replace(NODES, older=NODES.path)
    played(test, lists=[refused(404, "NotFound"), listed(node("a", 5), version=7)], resource=newer)
