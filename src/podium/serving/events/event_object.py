"""Defines the events.k8s.io/v1 Event as it goes over the wire: names, references, times and the API server's limits.

A name is `<object>.<nanoseconds in hex>`, as client-go writes it, and no two events of one recorder share the
nanoseconds, so that two events of one pod in one instant (which virtual time makes common) are two objects.
"""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Final

import msgspec

from podium.kube import Pod
from podium.kube.meta import Model, ObjectReference

NOTE_LIMIT: Final = 1024  # bytes
INSTANCE_LIMIT: Final = 128
NAME_LIMIT: Final = 253
CUT: Final = " ..."

encode: Final = msgspec.json.Encoder().encode


class EventMeta(Model, frozen=True, kw_only=True):
    name: str
    namespace: str


class EventSeries(Model, frozen=True, kw_only=True):
    count: int
    last_observed_time: str


class EventObject(Model, frozen=True, kw_only=True):
    api_version: str
    kind: str
    metadata: EventMeta
    event_time: str
    series: EventSeries | None = None
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    related: ObjectReference | None = None
    note: str
    type: str


class SeriesPatch(Model, frozen=True, kw_only=True):
    series: EventSeries


def reference(pod: Pod) -> ObjectReference:
    metadata = pod.metadata
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def event_name(regarding: str, nanoseconds: int, rng: random.Random) -> str:
    """`regarding.<hex>`, or a random one where that is longer than a name may be."""
    name = f"{regarding}.{nanoseconds:x}"
    return name if len(name) <= NAME_LIMIT else str(uuid.UUID(int=rng.getrandbits(128), version=4))


def cut_note(note: str) -> str:
    """At most 1024 bytes; what was cut ends in " ..." as kube-scheduler's does, never inside a character."""
    if len(note) * 4 <= NOTE_LIMIT:
        return note
    raw = note.encode()
    return note if len(raw) <= NOTE_LIMIT else raw[: NOTE_LIMIT - len(CUT)].decode(errors="ignore") + CUT


def micro_time(seconds: float) -> str:
    """RFC 3339 with microseconds, as the API's MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
