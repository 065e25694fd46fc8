"""Keeps a copy of one collection of the API server up to date: list, watch from there, carry on whatever happens.

A watch goes on from the last version seen, which moves with every event and every bookmark, so that a cut connection
costs nothing but the connection. Only when the server no longer remembers that version (410), or when watches from it
bring nothing again and again, is the collection listed again, and only the differences are delivered.

What ends a watch decides how the next begins: one that brought something, or stood for a second, is followed at once;
all else waits, for as long as the server says or else longer each time, and is a `problem` until a watch is well again.
A watch that is silent for longer than two bookmarks take is cut: its connection may be gone without anybody saying so.
What was missed by then is listed, not watched: decisions made while minutes of history arrive one by one would be
decisions about a cluster of the past.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import msgspec

from podium.client.api_errors import AccessError, ApiError, ClientError, TimedOut, Unreachable
from podium.client.client import SILENT_WATCH, Client
from podium.client.listing import list_all
from podium.client.problem_reports import ProblemReports, SharedOutage
from podium.client.reading import (
    ADDED,
    BOOKMARK,
    DELETED,
    LONGEST_LINE,
    MODIFIED,
    BrokenStream,
    FoundObject,
    LineSplitter,
    Reader,
)
from podium.client.replica import BATCH, Replica
from podium.client.resource import ApiResource

T = TypeVar("T")

_log = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)
"""How long a watch may last, at random between these: servers spread their load by that, as client-go does."""

STANDING = 1.0
"""Seconds for which a watch that says nothing has to stand to count as one that works."""

UNSERVED = 30.0
"""Seconds until an optional kind that the server does not serve is looked for again."""

FRUITLESS = 3
"""Watches in a row that came to nothing, after which their version is doubted: a restored etcd has gone back."""

NAMED = 10
"""Objects of one list that are reported by name when they cannot be read; the others are counted."""


class WatchOptions(NamedTuple):
    """How one collection is watched."""

    keep_raw: bool = False
    """Whether the JSON of each object is kept beside it."""
    outage: SharedOutage | None = None
    """Shared by collections whose trouble is reported once."""
    backoff: Backoff | None = None
    idle: float = SILENT_WATCH
    longest_line: int = LONGEST_LINE


USUAL = WatchOptions()


class Reflector(Generic[T]):
    """`store`: the objects by "namespace/name" or "name". `run` it as a task; `synced` is set after the first list.

    on_set and on_delete are called for each change once, after the store has it; an object that was deleted and
    created again is a delete and a set. `raw` has the JSON of each object if `keep_raw`. `problem` keeps it from
    listing or watching now, in one sentence, or None; it is reported, and so are single objects that cannot be used.
    """

    def __init__(
        self,
        client: Client,
        resource: ApiResource[T],
        *,
        on_set: Callable[[T], None],
        on_delete: Callable[[T], None],
        report: Callable[[str], None],
        rng: random.Random,
        options: WatchOptions = USUAL,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.lists = 0
        """How often the whole collection has been listed."""
        self.watches = 0
        """How many watches have been begun: one, and another for each that ended."""
        self._client = client
        self._rng = rng
        self._reader = Reader(resource, keep_raw=options.keep_raw)
        self._replica = Replica(
            self._reader.identify, on_set=on_set, on_delete=on_delete, failed=self._report_failed_callback
        )
        self._reports = ProblemReports(report)
        self._outage = options.outage
        self._backoff = options.backoff or Backoff(rng)
        self._idle = options.idle
        self._longest_line = options.longest_line
        self._version = ""  # where the next watch begins; empty when the collection has to be listed first
        self.refused = False
        """Whether the server last said that it has no such kind, or does not show it; more than a fault that passes."""
        self._looked_elsewhere = False  # whether the kind was just looked for in another version
        self._well = False  # whether this watch brought something new, or has stood for a while
        self._fruitless = 0

    @property
    def store(self) -> dict[str, T]:
        return self._replica.store

    @property
    def raw(self) -> dict[str, bytes]:
        return self._replica.raw

    @property
    def problem(self) -> str | None:
        return self._reports.problem

    def learn(self, data: bytes) -> T | None:
        """Take over one object (its JSON) that another request brought, if it is newer; gives the object."""
        found = self._reader.object(msgspec.Raw(data))
        if found.object is not None:
            self._replica.set(found)
        return found.object

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            pause = await self._round()
            if pause > 0:
                await asyncio.sleep(pause)

    async def _round(self) -> float:
        """A list if one is needed, and a watch until it ends; the seconds to wait before the next round."""
        listing = not self._version
        self._well = False
        try:
            if listing:
                await self._list()
            await self._watch()
        except ApiError as error:
            return self._after_refusal(error, listing)
        except Unreachable as error:
            return self._after_break(error)
        except (ClientError, AccessError) as error:
            return self._after_failure(str(error))
        except Exception as error:  # even a mistake of ours must not leave a scheduler blind without a word
            _log.exception("a reflector failed")
            return self._after_failure(f"{type(error).__name__}: {error}")
        return 0.0

    async def _list(self) -> None:
        objects, version = await list_all(self._client, self.resource, self._reader)
        unreadable = [found for found in objects if found.problem]
        for found in unreadable[:NAMED]:
            self._report_unreadable(found)
        if len(unreadable) > NAMED:
            self._reports.mention(f"{len(unreadable) - NAMED} more {self.resource.name} cannot be read")
        await self._replica.replace(objects, version)
        self.lists += 1
        self._version = version
        self.refused = False
        self.synced.set()

    async def _watch(self) -> None:
        params = {
            **self.resource.params,
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._rng.randint(*WATCH_SECONDS)),
        }
        lines = LineSplitter(self._longest_line)
        taken = 0
        self.watches += 1
        async with self._client.stream(self.resource.path, params, idle=self._idle) as chunks:
            standing = asyncio.get_running_loop().call_later(STANDING, self._is_well)
            try:
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        self._take(line)
                        taken += 1
                        if taken % BATCH == 0:
                            await asyncio.sleep(0)
            finally:
                standing.cancel()
        if not self._well:
            raise BrokenStream("the server ends the watch as soon as it has begun")

    def _take(self, line: bytes) -> None:
        kind, found = self._reader.event(line)
        if found.problem:
            self._report_unreadable(found)
        if kind in (ADDED, MODIFIED):
            self._replica.set(found)
        elif kind == DELETED:
            self._replica.delete(found)
        elif kind != BOOKMARK:
            self._reports.mention(f'{self.resource.name}: the watch sent an event of the unknown type "{kind}"')
            return
        self._move_to(found.identity.version)

    def _move_to(self, version: str) -> None:
        known = self._version
        if version in ("", known) or (version.isdecimal() and known.isdecimal() and int(version) < int(known)):
            return
        self._version = version
        self._fruitless = 0
        if not self._well:
            self._is_well()

    def _is_well(self) -> None:
        self._well = True
        if self._outage is not None:
            self._outage.end(self.resource.name)
        self._reports.end(f"{self.resource.name} can be listed and watched again")

    # How to go on: each gives the seconds to wait.

    def _after_refusal(self, error: ApiError, listing: bool) -> float:
        self.refused = error.final
        if error.not_found and listing:
            self._looked_elsewhere = bool(self.resource.older) and not self._looked_elsewhere
            if self._looked_elsewhere:
                self.resource = self.resource.elsewhere
                return 0.0
            if self.resource.optional:
                self.synced.set()
                return UNSERVED
        if error.gone and self._version:
            self._version = ""
            if self._well or not listing:
                return 0.0
            return self._wait_after_problem("the server forgets every version before it can be watched")
        if error.retry_after is None and (self._well or error.status >= 500):
            return self._after_failure(_reason(error, self.resource))
        return self._wait_after_problem(_reason(error, self.resource), error.retry_after)

    def _after_break(self, error: Unreachable) -> float:
        if not self._well:
            return self._wait_after_problem(str(error), unreachable=True)
        if isinstance(error, TimedOut):
            self._version = ""
        return 0.0

    def _after_failure(self, reason: str) -> float:
        if self._well:
            self._reports.mention(f"{self.resource.name}: {reason}; the watch begins again")
            return 0.0
        self._doubt_version()
        return self._wait_after_problem(reason)

    def _doubt_version(self) -> None:
        self._fruitless += 1
        if self._fruitless >= FRUITLESS:
            self._fruitless = 0
            self._version = ""

    def _wait_after_problem(self, reason: str, retry_after: float | None = None, *, unreachable: bool = False) -> float:
        doing = "watched" if self._version else "listed"
        problem = f"{self.resource.name} cannot be {doing}: {reason}"
        if self._outage is not None and unreachable:
            self._reports.note(problem)
            self._outage.begin(self.resource.name, reason)
        else:
            self._reports.begin(problem)
        return retry_after or self._backoff.delay(asyncio.get_running_loop().time())

    # Reports about single objects.

    def _report_unreadable(self, found: FoundObject[T]) -> None:
        self._reports.mention(f'{self.resource.name} "{found.identity.key}" cannot be read: {found.problem}')

    def _report_failed_callback(self, key: str, error: Exception) -> None:
        problem = f"{type(error).__name__}: {error}"
        self._reports.mention(f'{self.resource.name} "{key}" could not be taken over: {problem}', topic=problem)


def _reason(error: ApiError, resource: ApiResource[T]) -> str:
    if error.forbidden:
        return f"{error}; the role of this user needs the rule {resource.rule}"
    if error.unauthorized:
        return f"{error} (401 Unauthorized); have the credentials expired?"
    if error.not_found:
        return f"the API server has no {resource.plural} in {resource.group_version}"
    return f"{error} ({error.status} {error.reason})".replace(" )", ")")


class Backoff:
    """The waits of one client of one server.

    Decides how long to wait before a server that does not answer is asked again, as client-go's reflector does.

    The n-th wait in a row is first × 2ⁿ, at most `longest`, stretched by up to as much again at random, so that
    clients which lost the server together do not come back together. Without a wait for `healthy` seconds the next
    one starts over.
    """

    def __init__(
        self, rng: random.Random, *, first: float = 0.8, longest: float = 30.0, healthy: float = 120.0
    ) -> None:
        self._rng = rng
        self._first = first
        self._longest = longest
        self._healthy = healthy
        self._next = first
        self._last_wait = float("-inf")

    def delay(self, now: float) -> float:
        """Seconds to wait from `now` on; `now` is any clock that goes forward, always the same one."""
        if now - self._last_wait > self._healthy:
            self._next = self._first
        self._last_wait = now
        delay = self._next
        self._next = min(self._next * 2, self._longest)
        return delay * (1 + self._rng.random())
