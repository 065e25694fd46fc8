"""Shows what a scheduler runs with and which pods wait for it: the pages behind `podium explain` and `podium queue`.

    /configz   the configuration in force; beside it, under `podium`, what no KubeSchedulerConfiguration says
    /queuez    the pods that wait, in the order in which they will be tried

Both are plain values, made on the scheduler's own loop. A queue may be long, so no more pods are shown than were asked
for; the counts are of all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from podium import packages
from podium.config import to_dict
from podium.config.secrets import without_secrets
from podium.engine.queue.sub_queues import ACTIVE, BACKOFF
from podium.engine.scheduler import Scheduler
from podium.framework import Plugin
from podium.framework.events import Action, Interest, labels
from podium.framework.queued import QueuedPod
from podium.framework.waiting import WaitingPod
from podium.run.process import SchedulerProcess
from podium.serving.event_recorder import waiting_on_permit
from podium.serving.event_sender import micro_time

USUAL, MOST = 500, 10_000
"""Pods that are shown where no number is asked for, and at most."""
GATED, PERMIT = "gated", "permit"


class QueueQuestion(NamedTuple):
    """What of the queue is asked for."""

    namespace: str = ""
    """Empty: all of them."""
    limit: int = USUAL


def read_question(query: Mapping[str, str]) -> QueueQuestion:
    """The parameters `namespace` and `limit`; a limit that is no number is as if it was not there."""
    limit = query.get("limit", "")
    shown = min(int(limit), MOST) if limit.isdecimal() and len(limit) < 10 else USUAL
    return QueueQuestion(query.get("namespace", ""), shown)


def configuration_page(process: SchedulerProcess, *, explains: bool = False) -> dict[str, Any]:
    """The configuration without secrets, as kube-scheduler's /configz has it, and what Podium adds; `explains` says
    whether pods are explained at /explainz."""
    config = process.config
    plugins = {
        name: _file_of(type(plugin))
        for runtime in process.live.engine.profiles.values()
        for name, plugin in runtime.plugins.items()
        if name not in packages.plugins()
    }
    ours = {
        "version": packages.version(),
        "leads": process.leads(),
        "kubernetesVersion": str(config.rules),
        "featureGates": sorted(config.gates),
        "plugins": plugins,
        "explains": explains,
    }
    return {"componentconfig": without_secrets(to_dict(config)), "podium": ours}


def _file_of(plugin: type[Plugin]) -> str:
    file = getattr(sys.modules.get(plugin.__module__), "__file__", None)
    return str(Path(file).absolute()) if file else plugin.__module__


def queue_page(process: SchedulerProcess, question: QueueQuestion) -> dict[str, Any]:
    """The pods that wait for this process."""
    return queue_of(process.live.engine, process.clock.now(), question, leads=process.leads())


def queue_of(engine: Scheduler, now: float, question: QueueQuestion, *, leads: bool) -> dict[str, Any]:
    """The pods that wait: those to be tried in their order, those held at Permit, then those that wait for events."""
    counts = engine.queue.pending()._asdict() | {PERMIT: len(engine.waiting)}
    return {
        "time": micro_time(now),
        "leads": leads,
        "state": {"kubernetesVersion": str(engine.rules)},
        "schedulers": list(engine.profiles),
        "counts": counts,
        "pods": list(islice(_pods(engine, question.namespace), question.limit)),
    }


def _pods(engine: Scheduler, namespace: str) -> Iterator[dict[str, Any]]:
    queue, events = engine.queue, _EventTexts()
    waiting: dict[str, list[QueuedPod]] = {}
    for queued in queue:
        waiting.setdefault(queued.queue, []).append(queued)
    backing_off = sorted(waiting.pop(BACKOFF, ()), key=lambda each: queue.next_try(each) or math.inf)  # stable
    ordered = [*waiting.pop(ACTIVE, ()), *backing_off]
    for position, queued in enumerate(ordered, 1):
        if namespace in ("", queued.pod.namespace):
            yield _queued(engine, queued, position, events)
    for held in engine.waiting:
        if not held.settled and namespace in ("", held.pod.namespace):
            yield _held(held)
    others = [queued for parked in waiting.values() for queued in parked]
    for queued in sorted(others, key=lambda each: (each.gated, each.initial_attempt or each.timestamp, each.sequence)):
        if namespace in ("", queued.pod.namespace):
            yield _queued(engine, queued, None, events)


def _queued(engine: Scheduler, queued: QueuedPod, position: int | None, events: _EventTexts) -> dict[str, Any]:
    next_try = engine.queue.next_try(queued)
    return {
        "position": position,
        **_named(queued.pod.key, queued.pod.spec.scheduler_name, queued.pod.priority),
        "queue": GATED if queued.gated else queued.queue,
        "attempts": queued.attempts,
        "since": micro_time(queued.initial_attempt or queued.timestamp),
        "nextTry": None if next_try is None else micro_time(next_try),
        "waitsFor": [
            {"plugin": plugin, "events": events.of(interests)}
            for plugin, interests in engine.queue.waits_for(queued).items()
        ],
        "message": None,
    }


def _held(held: WaitingPod) -> dict[str, Any]:
    pod = held.pod
    return {
        "position": None,
        **_named(pod.key, pod.spec.scheduler_name, pod.priority),
        "queue": PERMIT,
        "attempts": None,
        "since": micro_time(held.since),
        "nextTry": micro_time(held.deadline),
        "waitsFor": [{"plugin": plugin, "events": []} for plugin in sorted(held.pending)],
        "message": waiting_on_permit(held).note,
    }


def _named(key: str, scheduler: str, priority: int) -> dict[str, Any]:
    return {"pod": key, "scheduler": scheduler, "priority": priority}


class _EventTexts:
    """What plugins wait for, put together once for each: many pods wait for the same."""

    def __init__(self) -> None:
        self._known: dict[int, list[str]] = {}

    def of(self, interests: Sequence[Interest]) -> list[str]:
        """Each kind with what has to happen to it: "Node: Add, UpdateNodeTaint"."""
        known = self._known.get(id(interests))
        if known is None:
            by_kind: dict[str, Action] = {}
            for each in interests:
                by_kind[each.resource] = by_kind.get(each.resource, Action(0)) | each.action
            known = [f"{kind}: {', '.join(labels(action))}" for kind, action in sorted(by_kind.items())]
            self._known[id(interests)] = known
        return known
