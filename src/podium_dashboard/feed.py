"""Follows a scheduler for all viewers together: looks at it a few times a second, and remembers the past.

One look serves everybody. Without viewers it looks once a second, for the past alone. A viewer that reads too slowly
misses ticks, and fetches the whole snapshot instead: nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from podium import packages
from podium.run.dashboard import DashboardSource, NoSchedulerError
from podium.run.pod_history import HistoryEntry
from podium.serving.event_sender import micro_time
from podium.serving.log import LOG
from podium_dashboard.access import Viewer
from podium_dashboard.columns import ChangedNodes, ColumnReader, NodeColumns, Reading, flags_of, label_columns
from podium_dashboard.records import (
    DashboardState,
    NodeLabelColumn,
    PodEntry,
    QueueCounts,
    ResourceColumn,
    Snapshot,
    Tick,
)
from podium_dashboard.time_ring import PastPoint, TimeRing

PACE: Final = 0.2
"""Seconds between two looks while a viewer is connected."""
SLOW_PACE: Final = 1.0
MOST_ENTRIES: Final = 50
"""Entries in one tick; the rest is counted."""
RECENT: Final = 200
FIRST_LOOK: Final = 10.0
"""Seconds that a request waits for the first look."""


class NothingYetError(NoSchedulerError):
    """The scheduler has not been looked at yet."""


class Moment:
    """One tick, with the bytes of it for those who see everything."""

    def __init__(self, tick: Tick, entries: list[HistoryEntry]) -> None:
        self.number = tick.number
        self._tick = tick
        self._entries = entries
        self._whole: bytes | None = None

    def encoded(self, viewer: Viewer) -> bytes:
        if not viewer.everything:
            return msgspec.json.encode(msgspec.structs.replace(self._tick, **self._shown(viewer)))
        if self._whole is None:
            self._whole = msgspec.json.encode(msgspec.structs.replace(self._tick, **self._shown(viewer)))
        return self._whole

    def _shown(self, viewer: Viewer) -> dict[str, object]:
        seen = (each for each in reversed(self._entries) if viewer.sees_key(each.pod))
        newest = list(islice(seen, MOST_ENTRIES))[::-1]
        return {"entries": entries_for(newest, viewer), "more": len(self._entries) - len(newest)}


class Feed:
    """What is known of a scheduler, kept fresh while `run` runs."""

    def __init__(self, source: DashboardSource, ring: TimeRing | None = None) -> None:
        self.source = source
        self.ring = TimeRing() if ring is None else ring
        self.viewers = 0
        self.columns: NodeColumns | None = None
        self.labels: list[NodeLabelColumn] = []
        self.flags = np.zeros(0, dtype=np.int64)
        self.reading: Reading | None = None
        self.number = 0
        self.problem = ""
        """Why the scheduler cannot be looked at."""
        self._read = ColumnReader()
        self._recent: list[HistoryEntry] = []
        self._moment: Moment | None = None
        self._looked = asyncio.Event()
        self._ticked = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._unframed: set[int] = set()
        self._framed_at = 0.0

    async def run(self) -> None:
        """Look at the scheduler until cancelled."""
        while True:
            try:
                await self.look()
                self.problem = ""
            except NoSchedulerError as error:
                self.problem = str(error)
            except Exception as error:  # a mistake of ours must not end the dashboard: the next look may go well
                LOG.exception("the dashboard could not read the scheduler")
                self.problem = f"{type(error).__name__}: {error}"
            async with self._ticked:
                self._ticked.notify_all()
            if self.viewers:
                await asyncio.sleep(PACE)
                continue
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), SLOW_PACE)

    async def look(self) -> None:
        """Take in what changed since the last look."""
        reading = await self.source.look(self._read)
        self.number += 1
        reset = reading.columns is not None
        changed = reading.changed
        if reading.columns is not None:
            self.columns = reading.columns
            self.labels = label_columns(reading.columns.nodes)
            self.flags = np.array([flags_of(node) for node in reading.columns.nodes], dtype=np.int64)
            self.ring.add_whole(reading.now, reading.columns)
            self._unframed.clear()
        elif changed is not None and len(changed.places):
            self._take_in(changed)
        self.reading = reading
        self._recent = [*self._recent, *reading.entries][-RECENT:]
        self._remember(reading)
        self._moment = Moment(self._tick(reading, changed, reset=reset), reading.entries)
        self._looked.set()

    def _take_in(self, changed: ChangedNodes) -> None:
        assert self.columns is not None
        places = changed.places
        self.columns.requested[:, places] = changed.requested
        self.columns.pods[places] = changed.pods
        self.flags[places] = [flags_of(node) for node in changed.nodes]
        for place, node in zip(places.tolist(), changed.nodes, strict=True):
            self.columns.nodes[place] = node
        self._unframed.update(places.tolist())

    def _remember(self, reading: Reading) -> None:
        """At most once a second."""
        if self.columns is None or reading.now - self._framed_at < SLOW_PACE:
            return
        self._framed_at = reading.now
        places = np.array(sorted(self._unframed), dtype=np.intp)
        self._unframed.clear()
        frame = ChangedNodes(places, [], self.columns.requested[:, places], self.columns.pods[places])
        self.ring.add_changes(reading.now, frame, self.columns)
        self.ring.add_point(PastPoint(reading.now, reading.counts, reading.placed, reading.bound, reading.failed))

    def _tick(self, reading: Reading, changed: ChangedNodes | None, *, reset: bool) -> Tick:
        rows = [] if changed is None else changed.places.tolist()
        return Tick(
            number=self.number,
            at=micro_time(reading.now),
            reset=reset,
            counts=reading.counts,
            pods_placed=reading.placed,
            bound=reading.bound,
            failed=reading.failed,
            leads=reading.leads,
            rows=rows,
            pods=[] if changed is None else changed.pods.tolist(),
            flags=self.flags[rows].tolist(),
            requested=[] if changed is None else changed.requested.tolist(),
            entries=[],
            more=0,
        )

    async def next_moment(self, after: int) -> Moment | None:
        """The newest tick, once there is one after that number; None where the scheduler cannot be looked at."""
        async with self._ticked:
            self._hurry.set()
            await self._ticked.wait()
        return None if self.problem or self._moment is None or self._moment.number <= after else self._moment

    async def ready(self) -> None:
        """Wait for the first look; raises NoSchedulerError where it does not come."""
        try:
            await asyncio.wait_for(self._looked.wait(), FIRST_LOOK)
        except TimeoutError:
            raise NothingYetError(self.problem or "the scheduler has not been read yet: try again") from None

    async def fresh(self) -> None:
        """Look now unless a viewer watches, for whom looks are fresh; raises NoSchedulerError where that fails."""
        await self.ready()
        if not self.viewers:
            async with self._ticked:
                self._hurry.set()
                await self._ticked.wait()
        if self.problem:
            raise NoSchedulerError(self.problem)

    # Answers

    def state(self, viewer: Viewer, at: float | None = None) -> DashboardState:
        """What answers rest on."""
        reading, columns = self.reading, self.columns
        assert reading is not None
        return DashboardState(
            source=self.source.kind,
            at=micro_time(reading.now if at is None else at),
            nodes=0 if columns is None else len(columns.names),
            pods=reading.placed,
            leads=reading.leads,
            everything=viewer.everything,
            command=list(self.source.names),
            version=packages.version(),
        )

    def snapshot(self, viewer: Viewer, at: float | None = None) -> Snapshot | None:
        """All nodes now, or as they were at a time; None where nothing that old is remembered."""
        columns, reading = self.columns, self.reading
        assert columns is not None
        assert reading is not None
        flags, labels, counts = self.flags, self.labels, reading.counts
        if at is not None:
            past, point = self.ring.at(at), self.ring.point_at(at)
            if past is None:
                return None
            columns = past[1]
            flags = np.array([flags_of(node) for node in columns.nodes], dtype=np.int64)
            labels = label_columns(columns.nodes)
            counts = QueueCounts() if point is None else point.counts
        return Snapshot(
            state=self.state(viewer, at),
            number=self.number,
            names=columns.names,
            pods=columns.pods.tolist(),
            allowed_pods=columns.allowed_pods.tolist(),
            flags=flags.tolist(),
            resources=[
                ResourceColumn(name=name, allocatable=offered.tolist(), requested=requested.tolist())
                for name, offered, requested in zip(
                    columns.resources, columns.allocatable, columns.requested, strict=True
                )
            ],
            labels=labels,
            measured=columns.measured,
            counts=counts,
            recent=entries_for([each for each in self._recent if at is None or each.time <= at], viewer),
        )


def entries_for(
    entries: list[HistoryEntry], viewer: Viewer, wanted: Callable[[HistoryEntry], bool] | None = None
) -> list[PodEntry]:
    """Entries as they are shown to a viewer: none of pods it may not see, and no object of other namespaces."""
    shown = []
    for each in entries:
        if not viewer.sees_key(each.pod) or (wanted is not None and not wanted(each)):
            continue
        about = each.object
        if "/" in about and not viewer.sees_key(about):
            about = ""
        shown.append(
            PodEntry(
                number=each.number,
                time=micro_time(each.time),
                pod=each.pod,
                kind=each.kind,
                where=each.where,
                cause=each.cause,
                object=about,
                attempts=each.attempts,
            )
        )
    return shown
