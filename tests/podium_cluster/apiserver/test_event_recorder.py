"""Events of the controllers: counted, combined, limited, and forgotten after an hour."""

import asyncio
from typing import Any

from podium_cluster.apiserver.event_recorder import ComponentEventRecorder
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster

Object = dict[str, Any]


def about(name: str) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata}


def told(cluster: Embedded, name: str) -> list[tuple[str, int]]:
    found = [event for event in cluster.list("Event") if event["involvedObject"]["name"] == name]
    return [(event["message"], event["count"]) for event in found]


def test_the_same_words_are_counted() -> None:
    async def story(cluster: Embedded) -> None:
        recorder = ComponentEventRecorder(cluster.api, cluster.clock, "tester")
        for _ in range(3):
            recorder.normal(about("a"), "Done", "it is done")
            await asyncio.sleep(2)
        assert told(cluster, "a") == [("it is done", 3)]
        event = next(event for event in cluster.list("Event") if event["involvedObject"]["name"] == "a")
        assert event["source"] == {"component": "tester"}
        assert event["firstTimestamp"] < event["lastTimestamp"]

    in_embedded_cluster(story)


def test_many_different_words_for_one_reason_are_combined() -> None:
    async def story(cluster: Embedded) -> None:
        recorder = ComponentEventRecorder(cluster.api, cluster.clock, "tester")
        for number in range(15):
            recorder.normal(about("a"), "Created", f"created {number}")
        assert told(cluster, "a")[:9] == [(f"created {number}", 1) for number in range(9)]
        assert told(cluster, "a")[9:] == [("(combined from similar events): created 14", 6)]

    in_embedded_cluster(story)


def test_an_object_may_have_25_writes_and_then_one_every_five_minutes() -> None:
    async def story(cluster: Embedded) -> None:
        recorder = ComponentEventRecorder(cluster.api, cluster.clock, "tester")
        for _ in range(40):
            recorder.normal(about("a"), "Done", "again")
        recorder.normal(about("b"), "Done", "again")
        assert told(cluster, "a") == [("again", 25)]
        assert told(cluster, "b") == [("again", 1)]
        await asyncio.sleep(301)
        for _ in range(5):
            recorder.normal(about("a"), "Done", "again")
        assert told(cluster, "a") == [("again", 26)]

    in_embedded_cluster(story)


def test_events_go_an_hour_after_they_were_last_written() -> None:
    async def story(cluster: Embedded) -> None:
        recorder = ComponentEventRecorder(cluster.api, cluster.clock, "tester")
        recorder.normal(about("a"), "Done", "once")
        recorder.normal(about("b"), "Done", "twice")
        await asyncio.sleep(1800)
        recorder.normal(about("b"), "Done", "twice")
        await asyncio.sleep(1900)
        assert (told(cluster, "a"), told(cluster, "b")) == ([], [("twice", 2)])
        await asyncio.sleep(1800)
        assert told(cluster, "b") == []

    in_embedded_cluster(story)
