"""Watches: from any revision, exactly the history; in any order of reading and writing."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.messages import ApiRequest
from podium_cluster.apiserver.store.object_store import ObjectStore
from podium_cluster.apiserver.store.selection import ALL, selection
from podium_cluster.apiserver.store.watcher import INITIAL_EVENTS_END, Watcher, WatchRequest
from tools.kit.effort import examples

CONFIG_MAP = built_in("v1", "ConfigMap")

Event = tuple[str, str, str]


def write(store: ObjectStore, name: str, value: str | None, namespace: str = "default") -> None:
    """Set the label `v` of the object, or remove it."""
    if value is not None:
        store.put(CONFIG_MAP, {"metadata": {"name": name, "namespace": namespace, "labels": {"v": value}}})
    elif store.get(CONFIG_MAP, namespace, name) is not None:
        store.remove(CONFIG_MAP, namespace, name)


def events(watcher: Watcher) -> list[dict[str, Any]]:
    """Everything the watcher has to tell now."""
    lines = b""
    while data := watcher.events():
        lines += data
    return [msgspec.json.decode(line) for line in lines.splitlines()]


def told(watcher: Watcher) -> list[Event]:
    return [
        (event["type"], event["object"]["metadata"]["name"], event["object"]["metadata"]["labels"]["v"])
        for event in events(watcher)
    ]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abc"), st.sampled_from(["1", "2", None])),
        st.tuples(st.just("read"), st.integers(0, 3), st.none()),
        st.tuples(st.just("watch"), st.integers(0, 40), st.sampled_from(["", "v=1", "v!=2"])),
    ),
    max_size=60,
)


State = dict[str, tuple[str, int]]
"""What is stored at one moment: name → label and revision."""


@settings(max_examples=examples(200))
@given(STEPS)
def test_any_interleaving_yields_the_history_from_where_the_watch_began(steps: list[tuple[str, Any, Any]]) -> None:
    store = ObjectStore()
    states: dict[int, State] = {store.revision: {}}
    watchers: list[tuple[Watcher, int, str, list[Event]]] = []
    for action, first, second in steps:
        if action == "write":
            write(store, first, second)
            items = store.items(CONFIG_MAP)
            states[store.revision] = {item.name: (item.labels["v"], item.revision) for item in items}
        elif action == "watch":
            start = min(1 + first, store.revision)
            chosen = selection(CONFIG_MAP, second) if second else ALL
            watchers.append((Watcher(store, WatchRequest(CONFIG_MAP, "", chosen, start)), start, second, []))
        elif watchers:
            watcher, _, _, seen = watchers[first % len(watchers)]
            seen.extend(told(watcher))
    for watcher, start, chosen_text, seen in watchers:
        assert seen + told(watcher) == expected(states, start, chosen_text)


def expected(states: dict[int, State], start: int, chosen: str) -> list[Event]:
    """The events between the states, by comparing what matches in one with what matches in the next."""
    keep = {"": ("1", "2"), "v=1": ("1",), "v!=2": ("1",)}[chosen]
    found: list[Event] = []
    for before, after in pairwise(sorted(states)):
        if after <= start:
            continue
        old, new = (
            {name: state for name, state in states[moment].items() if state[0] in keep} for moment in (before, after)
        )
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                found.append(("DELETED", name, old[name][0]))
            elif name not in old:
                found.append(("ADDED", name, new[name][0]))
            elif old[name] != new[name]:
                found.append(("MODIFIED", name, new[name][0]))
    return found


def test_leaving_a_selection_is_a_deletion_of_what_was_there_at_the_new_revision() -> None:
    store = ObjectStore()
    write(store, "a", "1")
    watcher = Watcher(store, WatchRequest(CONFIG_MAP, "", selection(CONFIG_MAP, "v=1"), store.revision))
    write(store, "a", "2")
    [event] = events(watcher)
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["labels"] == {"v": "1"}
    assert event["object"]["metadata"]["resourceVersion"] == str(store.revision)


def test_a_watch_of_one_namespace_hears_nothing_of_others() -> None:
    store = ObjectStore()
    watcher = Watcher(store, WatchRequest(CONFIG_MAP, "one", ALL, store.revision))
    write(store, "a", "1", "two")
    write(store, "b", "1", "one")
    assert told(watcher) == [("ADDED", "b", "1")]


def test_a_watcher_that_fell_behind_is_told_410_and_ends() -> None:
    store = ObjectStore(history=8)
    watcher = Watcher(store, WatchRequest(CONFIG_MAP, "", ALL, store.revision))
    for number in range(50):
        write(store, "a", str(number))
    [event] = events(watcher)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert watcher.ended


def test_initial_events_end_with_a_bookmark_of_the_moment_they_are_of() -> None:
    store = ObjectStore()
    for name in "ab":
        write(store, name, "1")
    request = WatchRequest(CONFIG_MAP, "", ALL, store.revision, initial=True, marks_initial_end=True, bookmarks=True)
    watcher = Watcher(store, request)
    listed_at = store.revision
    write(store, "c", "1")
    found = events(watcher)
    assert [event["type"] for event in found] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    assert found[2]["object"]["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
    assert found[2]["object"]["metadata"]["resourceVersion"] == str(listed_at)


def test_a_bookmark_of_a_watch_with_nothing_left_to_tell_is_as_new_as_the_store() -> None:
    store = ObjectStore()
    watcher = Watcher(store, WatchRequest(CONFIG_MAP, "", ALL, store.revision, bookmarks=True))
    store.put(POD, {"metadata": {"name": "p", "namespace": "default"}})
    told_now = msgspec.json.decode(watcher.bookmark())
    assert told_now["object"]["metadata"]["resourceVersion"] == str(store.revision)
    write(store, "a", "1")
    told_now = msgspec.json.decode(watcher.bookmark())
    assert told_now["object"]["metadata"]["resourceVersion"] != str(store.revision)


def test_waiting_ends_with_a_write_or_with_its_time() -> None:
    async def main() -> None:
        store = ObjectStore()
        watcher = Watcher(store, WatchRequest(CONFIG_MAP, "", ALL, store.revision))
        await watcher.wait(0.01)
        assert watcher.events() == b""
        waiting = asyncio.create_task(watcher.wait(None))
        await asyncio.sleep(0)
        write(store, "a", "1")
        await waiting
        assert told(watcher) == [("ADDED", "a", "1")]
        waiting = asyncio.create_task(watcher.wait(None))
        await asyncio.sleep(0)
        watcher.close()
        await waiting

    asyncio.run(main())


def watch(api: EmbeddedApi, query: str) -> WatchRequest | tuple[int, str]:
    found = RequestHandler(api).handle(ApiRequest("GET", f"/api/v1/configmaps?watch=true&{query}"))
    if isinstance(found, WatchRequest):
        return found
    status = msgspec.json.decode(found.body)
    return found.status, status["message"]


def test_where_a_watch_begins() -> None:
    api = EmbeddedApi(clock=ManualClock(0.0), rng=random.Random(1))
    now = api.store.revision
    for query, initial, revision in (
        ("", True, now),
        ("resourceVersion=0", True, now),
        ("resourceVersion=5", False, 5),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", True, now),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", False, now),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=3", True, 3),
    ):
        found = watch(api, query)
        assert isinstance(found, WatchRequest)
        assert (found.initial, found.revision) == (initial, revision), query


def test_watches_that_make_no_sense_are_refused() -> None:
    api = EmbeddedApi(clock=ManualClock(0.0), rng=random.Random(1))
    invalid = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
    for query, refusal in (
        (
            "sendInitialEvents=true",
            (422, invalid + "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ),
        (
            "resourceVersionMatch=NotOlderThan",
            (422, invalid + "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
        ),
    ):
        assert watch(api, query) == refusal
