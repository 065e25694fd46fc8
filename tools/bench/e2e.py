"""Races Podium and kube-scheduler on the same real API server, one after the other, several times.

Each race starts with all pods created and no scheduler running. Then one is started, and the API server's own log
says when each pod was bound. What counts:

    pods/s           (pods − 1) ÷ (time of the last binding − time of the first), as the API server answered them
    CPU per 1,000    user + system time of the scheduler's processes from the first look at which a pod was bound until
                     the scheduler, the API server and etcd have come to rest (so late Events count), per 1,000 pods
                     bound since that look
    peak             the most memory its processes held (VmHWM), up to that rest

Starting and listing count for neither of the first two: a scheduler starts once and binds for months. A race in which
a pod stays unbound is an error. Between races all pods and Events go, and the API server and etcd come to rest. The
figures of a scheduler are the medians of its races.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import msgspec

from podium.framework.clock import SystemClock
from tools.bench.binding_log import BindingLog
from tools.bench.templates import NODE, POD
from tools.bench.usage import cpu_seconds, peak_bytes
from tools.testbed import Component, ComponentFailed, ControlPlane

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"

GLANCE = 0.2
"""Seconds between two looks at the log."""

PATIENCE = 120.0
"""Seconds without a binding after which a race is given up."""

REST = 0.05
"""A process that uses less than this share of a core for a second is at rest."""

UNLIMITED = {"clientConnection": {"qps": 1_000_000, "burst": 1_000_000}}
"""The configuration of both: the defaults, but no limit on requests."""


class RaceError(Exception):
    """A scheduler did not bind all pods."""


class Race(msgspec.Struct, frozen=True):
    """What one scheduler did once."""

    scheduler: str
    pods_per_s: float
    cpu_s_per_1000: float
    peak_mb: float
    seconds: float
    """From the first binding to the last."""
    settled_s: float
    """From the first binding until all was written and everybody at rest, to about a second."""
    ready_s: float
    """From the start of the process until it said it was ready."""
    cpu_s_total: float
    """With the start, and until it came to rest."""
    events: int
    """How many Events it wrote about the pods."""


class Figures(msgspec.Struct, frozen=True):
    pods_per_s: float
    cpu_s_per_1000: float
    peak_mb: float


class RaceComparison(msgspec.Struct, frozen=True):
    kube_scheduler: Figures
    podium: Figures
    ratio: float
    """Podium's pods/s : kube-scheduler's."""
    cpu_ratio: float
    """Podium's CPU per pod : kube-scheduler's."""
    nodes: int
    pods: int
    rounds: list[Race]


class _Rest(msgspec.Struct):
    remaining: int = msgspec.field(default=0, name="remainingItemCount")


class _List(msgspec.Struct):
    metadata: _Rest
    items: list[msgspec.Raw]


def run_e2e(nodes: int, pods: int, rounds: int, on_phase: Callable[[str, bool], None]) -> RaceComparison:
    """Start the test bed and let both race `rounds` times; `on_phase(text, done)` hears what happens and of every race
    that ended."""
    on_phase("starting the API server", False)
    try:
        with ControlPlane(audit=True) as plane:
            starts: Mapping[str, Callable[[], Component]] = {
                "kube_scheduler": lambda: plane.start_scheduler(UNLIMITED, verbosity=0),
                "podium": lambda: plane.start_podium(UNLIMITED),
            }
            return compare(plane, starts, nodes, pods, rounds, on_phase)
    except ComponentFailed as failed:
        raise RaceError(str(failed)) from None


def compare(
    plane: ControlPlane,
    starts: Mapping[str, Callable[[], Component]],
    nodes: int,
    pods: int,
    rounds: int,
    on_phase: Callable[[str, bool], None],
) -> RaceComparison:
    """The races on a control plane that is there already; `starts` starts a scheduler by its name."""
    create_nodes(plane, [NODE.text(index, nodes) for index in range(nodes)], on_phase)
    races = run_races(plane, starts, pods, rounds, on_phase)
    theirs, ours = (medians_of(races, name) for name in starts)
    return RaceComparison(
        kube_scheduler=theirs,
        podium=ours,
        ratio=ratio_of(ours.pods_per_s, theirs.pods_per_s),
        cpu_ratio=ratio_of(ours.cpu_s_per_1000, theirs.cpu_s_per_1000),
        nodes=nodes,
        pods=pods,
        rounds=races,
    )


def create_nodes(plane: ControlPlane, texts: list[bytes], on_phase: Callable[[str, bool], None]) -> None:
    on_phase(f"creating {len(texts):,} nodes", False)
    _create(plane, "/api/v1/nodes", texts)


def run_races(
    plane: ControlPlane,
    starts: Mapping[str, Callable[[], Component]],
    pods: int,
    rounds: int,
    on_phase: Callable[[str, bool], None],
) -> list[Race]:
    """Every scheduler in turn, `rounds` times."""
    races = []
    for number in range(1, rounds + 1):
        for name, start in starts.items():
            races.append(_race(plane, name, start, pods, partial(_say, on_phase, f"round {number} of {rounds}")))
            on_phase(f"{name}: {races[-1].pods_per_s:,.0f} pods/s", True)
    return races


def _race(
    plane: ControlPlane, name: str, start: Callable[[], Component], pods: int, say: Callable[[str], None]
) -> Race:
    say(f"{name}: creating {pods:,} pods")
    _create(plane, PODS, [POD.text(index, pods, NAMESPACE) for index in range(pods)])
    _let_rest(plane.pids)
    log = BindingLog(plane.audit_log)
    say(f"{name}: starting")
    began = time.monotonic()
    scheduler = start()
    try:
        ready_s = time.monotonic() - began
        race = _observe(
            scheduler, plane.pids, log, name, pods, ready_s, lambda count: say(f"{name}: {count:,} of {pods:,} bound")
        )
    finally:
        scheduler.stop(grace=30.0)
    unbound = _count(plane, PODS, fieldSelector="spec.nodeName=")
    if unbound:
        raise RaceError(f"{name} left {unbound:,} of {pods:,} pods unbound")
    race = msgspec.structs.replace(race, events=_count(plane, EVENTS))
    say(f"{name}: deleting the pods")
    _delete(plane, PODS)
    _delete(plane, EVENTS)
    return race


def _observe(
    scheduler: Component,
    everybody: list[int],
    log: BindingLog,
    name: str,
    pods: int,
    ready_s: float,
    say: Callable[[int], None],
) -> Race:
    count, progressed = 0, time.monotonic()
    first_count, first_cpu = 0, cpu_seconds(scheduler.pid)
    while count < pods:
        time.sleep(GLANCE)
        if not scheduler.running:
            raise RaceError(f"{name} ended in the middle of a race:\n{scheduler.log_tail()}")
        before, count = count, log.count()
        if count > before:
            progressed = time.monotonic()
            say(count)
            if not first_count and count < pods:
                first_count, first_cpu = count, cpu_seconds(scheduler.pid)
        elif time.monotonic() - progressed > PATIENCE:
            raise RaceError(f"{name} bound {count:,} of {pods:,} pods and then none for {PATIENCE:.0f} s")
    _let_rest(everybody)  # late Events may cost their writer so little that only the API server shows them
    rested, total = SystemClock().now(), cpu_seconds(scheduler.pid)
    bound = sorted(log.bound().values())
    if len(bound) != pods:
        raise RaceError(f"{name} bound {len(bound):,} different pods in {log.count():,} bindings, instead of {pods:,}")
    seconds = bound[-1] - bound[0]
    return Race(
        scheduler=name,
        pods_per_s=round((pods - 1) / seconds, 1),
        cpu_s_per_1000=round((total - first_cpu) / (pods - first_count) * 1000, 4),
        peak_mb=round(peak_bytes(scheduler.pid) / 2**20, 1),
        seconds=round(seconds, 3),
        settled_s=round(rested - 1.0 - bound[0], 1),
        ready_s=round(ready_s, 3),
        cpu_s_total=round(total, 2),
        events=0,
    )


def _say(on_phase: Callable[[str, bool], None], where: str, text: str) -> None:
    on_phase(f"{where}: {text}", False)


def medians_of(races: list[Race], scheduler: str) -> Figures:
    races = [race for race in races if race.scheduler == scheduler]
    return Figures(
        pods_per_s=median(race.pods_per_s for race in races),
        cpu_s_per_1000=median(race.cpu_s_per_1000 for race in races),
        peak_mb=median(race.peak_mb for race in races),
    )


def ratio_of(ours: float, theirs: float) -> float:
    return round(ours / theirs, 3) if theirs else 0.0  # a handful of pods may cost less than the clock can count


def _let_rest(pids: list[int]) -> None:
    """Wait until the processes have next to nothing to do, at most a minute."""
    deadline = time.monotonic() + 60
    used = [cpu_seconds(pid) for pid in pids]
    while time.monotonic() < deadline:
        time.sleep(1.0)
        before, used = used, [cpu_seconds(pid) for pid in pids]
        if all(now - then < REST for then, now in zip(before, used, strict=True)):
            return


def _create(plane: ControlPlane, path: str, texts: list[bytes]) -> None:
    def post(text: Any) -> Any:
        return plane.client.request("POST", path, msgspec.Raw(text))

    plane.client.for_each(post, texts)  # type: ignore[arg-type]


def _delete(plane: ControlPlane, path: str) -> None:
    while _count(plane, path):
        plane.client.request("DELETE", path, {"gracePeriodSeconds": 0})


def _count(plane: ControlPlane, path: str, **selectors: str) -> int:
    """How many objects there are; with a selector the server does not count them, so they are all asked for."""
    query = selectors or {"limit": "1"}
    answer = msgspec.json.decode(plane.client.request("GET", path, query=query), type=_List)
    return len(answer.items) + answer.metadata.remaining
