"""Sends events to the API server without standing in the way of anything that matters more.

A bounded queue (past its limit the *newest* is dropped and counted) and a few senders, so that at most four requests of
this kind are ever under way. While `busy()` says that binds are queued, each sender holds back for up to a second
before every event, unless the queue is half full. No two requests for one event are under way at once.

What the server cannot take now (no answer, 5xx, 429) goes to the end of the queue, at most twelve times, and the
sender rests: longer each time it happens in a row. What it refuses (4xx) is dropped. Creating an event that exists is
a success, since an answer may get lost; a patch of one that is gone creates it again.

Also defines the events.k8s.io/v1 Event as it goes over the wire: names, references, times and the API server's limits.

A name is `<object>.<nanoseconds in hex>`, as client-go writes it, and no two events of one recorder share the
nanoseconds, so that two events of one pod in one instant (which virtual time makes common) are two objects.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from podium.client import ApiError, Client, ClientError, Unreachable
from podium.client.problem_reports import ReportLimit
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.meta import Model, ObjectReference

SENDERS: Final = 4
QUEUE_LIMIT: Final = 20_000
MAX_TRIES: Final = 12
PATIENCE: Final = 1.0
"""Seconds a sender holds back for binds before it sends one event all the same."""
GLANCE: Final = 0.02
REPEAT: Final = 60.0
"""Seconds between two reports of the same."""

FORBIDDEN: Final = (
    "Podium may not write events: let its role create and patch events of the API group events.k8s.io "
    "in all namespaces, as the ClusterRole system:kube-scheduler does"
)
NOTE_LIMIT: Final = 1024  # bytes
INSTANCE_LIMIT: Final = 128
NAME_LIMIT: Final = 253
CUT: Final = " ..."

encode: Final = msgspec.json.Encoder().encode


class EventEntry:
    """An event and how often it was seen; `pending` while it waits in the queue or is being sent."""

    __slots__ = ("count", "created", "event", "finished", "key", "last_seen", "pending", "sent", "sent_at", "tries")

    def __init__(self, event: EventObject, key: tuple[str, ...] | None, now: float) -> None:
        self.event = event
        self.key = key
        self.count = 1
        self.last_seen = now
        self.finished = False  # no repetition will be counted any more
        self.pending = False
        self.created = False
        self.sent = 0  # the count the server knows
        self.sent_at = now
        self.tries = 0


class EventSender:
    """The queue and the senders of one recorder. `on_lost` is called with each event that was given up."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: random.Random,
        report: Callable[[str], None],
        busy: Callable[[], bool],
        limit: int,
        on_lost: Callable[[EventEntry], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._report = report
        self._busy = busy
        self._limit = limit
        self._on_lost = on_lost
        self._queue: asyncio.Queue[EventEntry] = asyncio.Queue()
        self._sending = 0
        self._draining = False
        self._report_limit = ReportLimit(REPEAT, clock.now)
        self._reported_forbidden = False
        self.sent = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return self._queue.qsize() + self._sending

    def enqueue(self, entry: EventEntry) -> bool:
        """False if there was no room."""
        if self._queue.qsize() >= self._limit:
            self.dropped += 1
            self._report_at_times(
                "dropped", f"events are lost ({self.dropped} so far): {self._limit} wait to be sent already"
            )
            return False
        entry.pending = True
        self._queue.put_nowait(entry)
        return True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(SENDERS):
                tasks.create_task(self._send_all())

    async def drain(self, timeout: float) -> int:
        self._draining = True
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            self._report(f"{self.waiting} events were not sent in the {timeout:g} s given for it at the end")
        finally:
            self._draining = False
        return self.waiting

    async def _send_all(self) -> None:
        failures = 0  # in a row
        while True:
            entry = await self._queue.get()
            self._sending += 1
            await self._hold_back()
            problem = await self._send(entry)
            failures = 0 if problem is None else failures + 1
            if problem is not None:
                self._report_at_times("unsent", f"events cannot be sent: {problem}")
                await asyncio.sleep(self._rest(failures))
            self._sending -= 1
            self._settle(entry, problem is None)
            self._queue.task_done()

    async def _hold_back(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        spare = self._limit // 2
        while self._busy() and self._queue.qsize() < spare and loop.time() < end and not self._draining:  # noqa: ASYNC110  four things end it
            await asyncio.sleep(GLANCE)

    def _rest(self, failures: int) -> float:
        """Half a second, doubling to 15: twelve in a row take about two minutes, as with client-go."""
        return min(15.0, 0.25 * 2.0 ** min(failures, 6)) * self._rng.uniform(1.0, 1.25)

    async def _send(self, entry: EventEntry) -> str | None:
        """Sends what is new of it; what stood in the way if it should be tried again."""
        count, seen = entry.count, entry.last_seen
        series = EventSeries(count=count, last_observed_time=micro_time(seen)) if count > 1 else None
        try:
            if series is None or not entry.created or not await self._patch(entry.event, series):
                await self._create(entry.event, series)
        except ApiError as error:
            if error.conflict:
                entry.created = True
                if series is not None:  # exists, but not with this count
                    return str(error)
            elif error.status >= 500 or error.too_many:
                return str(error)
            else:
                self._refused(entry, error)
                return None
        except Unreachable as error:
            return str(error)
        except ClientError:  # not leading any more: the leader writes events now
            self._lose(entry)
            return None
        entry.created = True
        entry.sent = count
        entry.sent_at = self._clock.now()
        self.sent += 1
        return None

    async def _create(self, event: EventObject, series: EventSeries | None) -> None:
        whole = event if series is None else msgspec.structs.replace(event, series=series)
        await self._client.post(_events_of(event), encode(whole))

    async def _patch(self, event: EventObject, series: EventSeries) -> bool:
        """False if the event has expired meanwhile, or was deleted."""
        try:
            await self._client.patch(f"{_events_of(event)}/{event.metadata.name}", encode(SeriesPatch(series=series)))
        except ApiError as error:
            if error.not_found:
                return False
            raise
        return True

    def _settle(self, entry: EventEntry, done: bool) -> None:
        """Back into the queue if it must be tried again, or if there is more to say of it by now."""
        if not done:
            entry.tries += 1
            if entry.tries < MAX_TRIES:
                self._queue.put_nowait(entry)
            else:
                self._lose(entry)
            return
        entry.tries = 0
        entry.pending = False
        if entry.count > entry.sent and (entry.sent == 1 or entry.finished):
            self.enqueue(entry)

    def _refused(self, entry: EventEntry, error: ApiError) -> None:
        self._lose(entry)
        if error.not_found or _namespace_ends(error.details):
            return  # without its namespace an event has no reader
        if not error.forbidden:
            event = entry.event
            about = f"{event.reason} of {event.regarding.namespace}/{event.regarding.name}"
            self._report_at_times("refused", f"event {about} was refused: {error}")
        elif not self._reported_forbidden:
            self._reported_forbidden = True
            self._report(f"{FORBIDDEN}; the API server says: {error}")

    def _lose(self, entry: EventEntry) -> None:
        self.dropped += 1
        entry.pending = False
        entry.sent = entry.count
        self._on_lost(entry)

    def _report_at_times(self, topic: str, sentence: str) -> None:
        if self._report_limit.due(topic):
            self._report(sentence)


def _events_of(event: EventObject) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event.metadata.namespace}/events"


def _namespace_ends(details: dict[str, Any]) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in details.get("causes") or ())


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
