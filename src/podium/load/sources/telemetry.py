"""Keeps measured load fresh for a running scheduler: asks every source at an interval, in the background.

A source is asked at once and then every `refreshInterval` (give or take a tenth, so that replicas do not ask in step),
for everything that is followed of it. What it answers is the whole truth: a node it leaves out has no value any more.
When it does not answer, or its answer is of no use, the values stay until they are older than `maxAge`; then they are
given up, and plugins do what they do about nodes of which nothing is known. One line in the log says when that begins,
and one when it is over.

Nothing here runs inside a scheduling cycle, and nothing holds the event loop for more than a few milliseconds: answers
are read in slices. Time is the loop's and the clock's, chance the generator's, so it runs in virtual time as well.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Hashable, Iterable, Mapping

from podium.framework.clock import Clock
from podium.kube import Node
from podium.kube.printable import printable, shortened
from podium.load.readings import Readings
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.kubernetes import Annotations, ApiReader, MetricsServer
from podium.load.sources.load_watcher import LoadWatcher
from podium.load.sources.matching import NodeIndex
from podium.load.sources.prometheus import SHOWN, Prometheus
from podium.load.sources.sample import Measured, SeriesFetcher, SourceError, in_slices

JITTER = 0.1
"""The share of the interval by which a refresh may come sooner or later."""
_log = logging.getLogger(__name__)


class Followed:
    """One series with its readings, and how its refreshes went."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.readings = Readings()
        self.refreshes = 0
        self.failures = 0
        self.last = Measured(0.0)
        """What the last refresh that went well brought."""

    def take(self, measured: Measured, problem: str | None) -> None:
        self.refreshes += 1
        self.failures += problem is not None
        self.last = measured
        self.readings.write(measured.values, measured.measured_at, measured.times)
        self.readings.problem = problem

    def fail(self, problem: str) -> None:
        self.refreshes += 1
        self.failures += 1
        self.readings.problem = problem


class Telemetry:
    """The load source of a live scheduler: plugins `follow`, and `run` keeps what they follow fresh.

    `nodes` gives the nodes that series are matched to, `pods` the node of each pod ("namespace/name"), for series that
    speak of pods; `api` is the Kubernetes client for metrics-server.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        nodes: Callable[[], Iterable[Node]],
        pods: Callable[[], Mapping[str, str]] = dict,
        api: ApiReader | None = None,
        report: Callable[[str], None] = _log.warning,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._nodes = nodes
        self._pods = pods
        self._api = api
        self._report = report
        self._groups: dict[SourceSettings, _Group] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def follow(self, series: Hashable) -> Readings:
        """The readings of a `Series` from now on: the same object for equal series."""
        if not isinstance(series, Series):
            raise TypeError(f"{series!r} cannot be followed: write a podium.load.series.Series")
        group = self._groups.get(series.source)
        if group is None:
            group = self._groups[series.source] = _Group(series.source, self._api)
            if self._tasks is not None:
                self._tasks.create_task(self._keep_fresh(group))
        return group.follow(series).readings

    @property
    def followed(self) -> list[Followed]:
        """Everything that is followed, source by source."""
        return [each for group in self._groups.values() for each in group.followed.values()]

    @property
    def problems(self) -> Mapping[Series, str]:
        """What is wrong with which series at the moment."""
        return {each.series: each.readings.problem for each in self.followed if each.readings.problem is not None}

    async def run(self) -> None:
        """Keep everything fresh, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for group in self._groups.values():
                    tasks.create_task(self._keep_fresh(group))
                await asyncio.Event().wait()  # a source may be added at any time
        finally:
            self._tasks = None
            await self.close()

    async def refresh(self) -> None:
        """Ask every source once."""
        await asyncio.gather(*map(self._refresh, self._groups.values()))

    async def first_refresh(self, seconds: float) -> None:
        """Wait until every source was asked once, but no longer than this; `run` asks them."""
        waits = [asyncio.ensure_future(group.refreshed.wait()) for group in self._groups.values()]
        if waits:
            _done, pending = await asyncio.wait(waits, timeout=seconds)
            for wait in pending:
                wait.cancel()

    async def close(self) -> None:
        for group in self._groups.values():
            await group.source.close()

    async def _keep_fresh(self, group: _Group) -> None:
        loop = asyncio.get_running_loop()
        interval = group.settings.refresh_interval.seconds
        while True:
            due = loop.time() + interval * self._rng.uniform(1 - JITTER, 1 + JITTER)
            await self._refresh(group)
            while (left := due - loop.time()) > 0:
                expiry = group.expiry(self._clock.now())
                await asyncio.sleep(left if expiry is None else min(left, expiry))
                group.give_up(self._clock.now())
            await asyncio.sleep(0)  # also where a refresh takes longer than the interval, others get their turn

    async def _refresh(self, group: _Group) -> None:
        before = group.problems()
        try:
            await group.refresh(await self._index(group), self._clock.now())
        except SourceError as error:
            group.fail(str(error))
        except Exception as error:  # even a mistake of ours must not end the refreshing
            _log.exception("refreshing the load of %s failed", group.settings)
            group.fail(f"internal error: {type(error).__name__}: {error}")
        group.give_up(self._clock.now())
        group.refreshed.set()
        self._report_changes(group, before, group.problems())

    async def _index(self, group: _Group) -> NodeIndex:
        of_pods = any(series.match.by == "pod" for series in group.followed)
        index = NodeIndex(pods=self._pods() if of_pods else None)
        async for part in in_slices(list(self._nodes())):
            for node in part:
                index.add(node)
        return index

    def _report_changes(self, group: _Group, before: dict[Series, str], after: dict[Series, str]) -> None:
        """One line for all series that began to fail for the same reason, one when none fails any more."""
        began: dict[str, list[str]] = {}
        for series, problem in after.items():
            if series not in before:
                began.setdefault(problem, []).append(series.query)
        for problem, queries in began.items():
            until = f"values are kept until they are {group.settings.max_age} old"
            self._report(f"measured load: {problem}; {until} (followed: {', '.join(map(_short, queries))})")
        if before and not after:
            self._report(f"measured load: {group.settings} answers again")


class _Group:
    """One source and everything that is followed of it."""

    def __init__(self, settings: SourceSettings, api: ApiReader | None) -> None:
        self.settings = settings
        self.source = _source(settings, api)
        self.followed: dict[Series, Followed] = {}
        self.refreshed = asyncio.Event()

    def follow(self, series: Series) -> Followed:
        followed = self.followed.get(series)
        if followed is None:
            followed = self.followed[series] = Followed(series)
        return followed

    async def refresh(self, nodes: NodeIndex, now: float) -> None:
        answer = await self.source.ask(list(self.followed), nodes, now)
        for series, measured in answer.items():
            followed = self.followed[series]
            if isinstance(measured, SourceError):
                followed.fail(str(measured))
            else:
                followed.take(measured, _useless(series, measured) if nodes.nodes else None)

    def fail(self, problem: str) -> None:
        for followed in self.followed.values():
            followed.fail(problem)

    def problems(self) -> dict[Series, str]:
        return {
            series: each.readings.problem for series, each in self.followed.items() if each.readings.problem is not None
        }

    def expiry(self, now: float) -> float | None:
        """Seconds until the oldest value is too old."""
        oldest = [each.readings.oldest for each in self.followed.values() if each.readings.values]
        # A moment later than exactly then: clocks and timers do not agree to the last digit.
        return max(0.0, min(oldest) + self.settings.max_age.seconds - now) + 0.001 if oldest else None

    def give_up(self, now: float) -> None:
        for each in self.followed.values():
            each.readings.give_up(now - self.settings.max_age.seconds)


def _source(settings: SourceSettings, api: ApiReader | None) -> SeriesFetcher:
    match settings.kind:
        case "prometheus":
            return Prometheus(settings)
        case "metrics-server":
            return MetricsServer(settings, api)
        case "load-watcher":
            return LoadWatcher(settings)
        case "annotations":
            return Annotations()


def _useless(series: Series, measured: Measured) -> str | None:
    """Why an answer that came in good order still says nothing about any node; for those who wrote the query."""
    if measured.values or series.source.kind != "prometheus":
        return None
    if not measured.samples:
        missing = "; ".join(f"{part.name} has none: {part.otherwise}" for part in measured.missing)
        return f"{series.source} has no series for the query" + (f", {missing}" if missing else "")
    if measured.unmatched:
        return (
            f"{series.source} answered with {measured.samples} series, but none names a node: the first has "
            f"{_labels(measured.stranger or {})}"
        )
    return f"{series.source} answered without a finite number"


def _labels(labels: Mapping[str, str]) -> str:
    """Labels as PromQL writes them; they come from outside, so they are made printable and cut."""
    shown = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    return printable(shortened(shown, SHOWN)) or "no labels"


def _short(query: str) -> str:
    return query if len(query) <= 80 else f"{query[:79]}…"
