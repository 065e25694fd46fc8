"""Says what each name of the API answers.

GET  snapshot[?at=TIME]        all nodes as columns, now or at a time of the past
GET  queue, groups, qos, policy, differences, configuration
GET  timeline[?from=&to=&step=]
GET  pods/NAMESPACE/NAME, pods/NAMESPACE/NAME/explain, nodes/NAME
GET  search?q=TEXT
POST whatif, capacity          what `podium whatif` and `podium capacity` answer
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Concatenate, Final, ParamSpec, TypeVar

import msgspec

from podium.engine.explain import UnknownProfileError
from podium.kube import Pod
from podium.run.dashboard import NoSchedulerError, SchedulerView
from podium.serving.event_sender import micro_time
from podium_dashboard.access import RefusedError, Viewer
from podium_dashboard.configuration import configuration_answer
from podium_dashboard.explaining import Known, LastingCluster, known_of, shown_to
from podium_dashboard.feed import Feed, entries_for
from podium_dashboard.groups import groups_answer
from podium_dashboard.nodes import node_details
from podium_dashboard.pods import SHOWN, groups_of, pod_details, waiting_pods
from podium_dashboard.policies import differences_answer, policy_answer, qos_answer
from podium_dashboard.questions import capacity_answer, read_question, whatif_answer
from podium_dashboard.records import (
    DashboardState,
    ExplainAnswer,
    NameMatch,
    PodEntry,
    QueueAnswer,
    SearchAnswer,
    Snapshot,
    TimelineAnswer,
    TimelinePoint,
)

MOST_POINTS: Final = 1_200
MOST_MARKS: Final = 500
MOST_WAITING: Final = 10_000
KEPT_FOR: Final = 300.0
"""Seconds that the cluster for explanations is kept after the last question."""
P = ParamSpec("P")
T = TypeVar("T")


class ApiAnswers:
    """The answers about what one feed follows."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._asking = asyncio.Semaphore(2)
        self._explaining = asyncio.Lock()
        self._trial = LastingCluster()
        self._preparing: asyncio.Task[None] | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    async def namespaces(self) -> set[str]:
        """Those that have pods, or are known by name."""
        return await self._look(_namespaces)

    async def show(self, name: str, query: Mapping[str, str], viewer: Viewer) -> msgspec.Struct | bytes:
        """The answer to a GET; raises RefusedError."""
        await self._feed.fresh()
        state = self._feed.state(viewer)
        match name.split("/"):
            case ["snapshot"]:
                return self._snapshot(query, viewer)
            case ["queue"]:
                return await self._queue(query, viewer)
            case ["groups"]:
                return await self._look(groups_answer(state, viewer))
            case ["qos"]:
                return await self._look(qos_answer(state, viewer))
            case ["policy"]:
                return await self._look(policy_answer(state))
            case ["differences"]:
                return await self._look(differences_answer(state, viewer))
            case ["configuration"]:
                return await self._look(configuration_answer(state))
            case ["timeline"]:
                return await self._timeline(query, viewer)
            case ["search"]:
                return await self._look(search_answer(query.get("q", ""), viewer))
            case ["nodes", node]:
                return _found(await self._look(node_details(node, state, viewer)), f"there is no node {node}")
            case ["pods", namespace, pod]:
                found = await self._look(pod_details(namespace, pod, state, viewer))
                return _found(found, f"there is no pod {namespace}/{pod} that waits or runs")
            case ["pods", namespace, pod, "explain"]:
                return await self._explain(namespace, pod, viewer)
        raise RefusedError(404, f"the API has no {name[:100]!r}")

    async def ask(self, name: str, body: bytes, viewer: Viewer) -> msgspec.Struct | bytes:
        """The answer to a POST; raises RefusedError."""
        judge = {"whatif": whatif_answer, "capacity": capacity_answer}.get(name)
        if judge is None:
            raise RefusedError(404, f"the API has no {name[:100]!r} to ask")
        if not viewer.everything:
            raise RefusedError(403, "what-if moves pods of all namespaces, and you may not see all of them")
        question = read_question(body)
        await self._feed.ready()
        async with self._asking:
            known = await self._look(known_of)
            answer = await asyncio.to_thread(judge, known, question, self._feed.source.kind)
        return msgspec.json.encode(answer)

    async def _look(self, take: Callable[[SchedulerView], T]) -> T:
        return await self._feed.source.look(take)

    def _snapshot(self, query: Mapping[str, str], viewer: Viewer) -> Snapshot:
        at = time_in(query, "at")
        found = self._feed.snapshot(viewer, at)
        if found is None:
            begins = self._feed.ring.begins
            raise RefusedError(404, f"nothing is remembered before {micro_time(begins or 0.0)}")
        return found

    async def _queue(self, query: Mapping[str, str], viewer: Viewer) -> QueueAnswer:
        limit = query.get("limit", "")
        shown = min(int(limit), MOST_WAITING) if limit.isdecimal() and len(limit) < 10 else SHOWN
        waiting = await self._look(waiting_pods(viewer, MOST_WAITING))
        assert self._feed.reading is not None
        return QueueAnswer(
            state=self._feed.state(viewer),
            counts=self._feed.reading.counts,
            groups=groups_of(waiting.rows),
            pods=waiting.rows[:shown],
            hidden=waiting.hidden,
        )

    async def _explain(self, namespace: str, name: str, viewer: Viewer) -> ExplainAnswer | bytes:
        if not viewer.sees(namespace):
            raise RefusedError(404, f"there is no pod {namespace}/{name} that waits or runs")
        async with self._explaining:
            known: Known = await self._look(known_of)
            pod = _found(known.pod(f"{namespace}/{name}"), f"there is no pod {namespace}/{name} that waits or runs")
            try:
                return await self._in_trial(_explain_answer, known, pod, viewer, self._feed.state(viewer))
            except UnknownProfileError as error:
                raise RefusedError(404, str(error)) from None

    def prepare(self) -> None:
        """Begin to build the cluster that pods are explained in: a viewer begins to look."""
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        with contextlib.suppress(NoSchedulerError):
            await self._feed.ready()
            async with self._explaining:
                await self._in_trial(LastingCluster.take_in, await self._look(known_of))

    async def stop(self) -> None:
        """Give up what was begun."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)

    async def _in_trial(self, do: Callable[Concatenate[LastingCluster, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Do something with the trial cluster, in a thread; it is given up when nothing is asked for a while."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(KEPT_FOR, self._forget)
        return await asyncio.to_thread(do, self._trial, *args, **named)

    def _forget(self) -> None:
        self._trial = LastingCluster()

    async def _timeline(self, query: Mapping[str, str], viewer: Viewer) -> TimelineAnswer:
        ring = self._feed.ring
        begins, ends = ring.begins or 0.0, ring.ends or 0.0
        begin, end = time_in(query, "from") or begins, time_in(query, "to") or ends
        points = list(ring.points(begin, end))
        step = max(1, len(points) // MOST_POINTS)

        def marks(view: SchedulerView) -> list[PodEntry]:
            history = () if view.history is None else view.history
            wanted = [each for each in history if each.kind in ("failed", "nominated") and begin <= each.time <= end]
            return entries_for(wanted[-MOST_MARKS:], viewer)

        return TimelineAnswer(
            state=self._feed.state(viewer),
            begins=micro_time(begins),
            ends=micro_time(ends),
            bytes_used=ring.bytes_used,
            bytes_allowed=ring.most_bytes,
            points=[
                TimelinePoint(
                    time=micro_time(point.time),
                    waiting=sum(msgspec.structs.astuple(point.counts)),
                    placed=point.placed,
                    bound=point.bound,
                    failed=point.failed,
                )
                for point in points[::step]
            ],
            marks=await self._look(marks),
        )


def _explain_answer(trial: LastingCluster, known: Known, pod: Pod, viewer: Viewer, state: DashboardState) -> bytes:
    explanation = shown_to(viewer, trial.explained(known, pod))
    return msgspec.json.encode(
        {
            "schema": "podium.dashboard.explain/1",
            "state": state,
            "explanation": explanation.to_data(),
            "outcome": explanation.outcome.name,
        }
    )


def time_in(query: Mapping[str, str], name: str) -> float | None:
    """A time of a query, in RFC 3339; raises RefusedError."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise RefusedError(400, f"{name}={text[:60]}: write a time like 2026-11-17T09:30:00Z") from None
    if found.tzinfo is None:
        raise RefusedError(400, f"{name}={text[:60]}: add the time zone, such as Z")
    return found.timestamp()


def _namespaces(view: SchedulerView) -> set[str]:
    cluster = view.engine.cluster
    found = {namespace.name for namespace in cluster.objects.namespaces}
    found |= {placed.pod.namespace for placed in cluster.pods.values()}
    return found | {pod.namespace for pod in cluster.objects.pending_pods}


def _found(value: T | None, sentence: str) -> T:
    if value is None:
        raise RefusedError(404, sentence)
    return value


MOST: Final = 30
LONGEST: Final = 253


def search_answer(text: str, viewer: Viewer) -> Callable[[SchedulerView], SearchAnswer]:
    """Looks for a text in names; pods that wait come first."""
    wanted = text[:LONGEST].lower()

    def take(view: SchedulerView) -> SearchAnswer:
        return SearchAnswer(matches=list(islice(_matches(view, wanted, viewer), MOST)) if wanted else [])

    return take


def _matches(view: SchedulerView, wanted: str, viewer: Viewer) -> Iterator[NameMatch]:
    cluster = view.engine.cluster
    for pod in cluster.objects.pending_pods:
        if wanted in pod.key.lower() and viewer.sees(pod.namespace):
            yield NameMatch(kind="pod", name=pod.key, detail="waits")
    for name in sorted(cluster.row_of):
        if wanted in name.lower() and cluster.nodes[cluster.row_of[name]] is not None:
            yield NameMatch(kind="node", name=name, detail="")
    for placed in cluster.pods.values():
        if wanted in placed.pod.key.lower() and viewer.sees(placed.pod.namespace):
            yield NameMatch(kind="pod", name=placed.pod.key, detail=f"on {cluster.names[placed.row]}")
