"""Prints what a benchmark found, for people and for programs, and what has changed since an earlier run.

A run saved with --json is what --compare reads. Runs are compared workload by workload, where both have it at the same
size. A ratio says new : old; green is better, red is worse, and a difference within the noise has no colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, TypeVar

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from podium.kube.documents import FILE, DocumentError, read_json
from tools.bench.cost import Cost
from tools.bench.e2e import Figures, RaceComparison
from tools.bench.embedded import EmbeddedFigures
from tools.bench.extender import ExtenderFigures
from tools.bench.growth import Growth
from tools.bench.runner import Measurement
from tools.bench.simulation import SimulationCost

T = TypeVar("T")

NOISE = 0.05
"""Two runs of the same program differ by about so much."""


class SavedRun(msgspec.Struct, frozen=True):
    """The measurements of a run."""

    workloads: list[Measurement]


class SavedGrowth(msgspec.Struct, frozen=True):
    workloads: list[Growth]


class NotARunError(Exception):
    """The file to compare with is not what a benchmark wrote."""


class RunChange(msgspec.Struct, frozen=True):
    """One number, before and now."""

    workload: str
    nodes: int
    what: str
    before: float
    now: float
    ratio: float


HIGHER_IS_BETTER = {"pods_per_s"}
EXTENDERS = {
    "alone": "kube-scheduler alone",
    "nothing": "with an extender that does nothing",
    "agents": "with safe and congestion, an entry each",
    "joined": "with safe+congestion, one entry",
}


def load_run(text: str, source: str) -> SavedRun:
    return _load(text, source, SavedRun, "podium bench scheduler-perf --json")


def load_growth(text: str, source: str) -> SavedGrowth:
    return _load(text, source, SavedGrowth, "podium bench growth --json")


def _load(text: str, source: str, kind: type[T], command: str) -> T:
    try:
        return msgspec.convert(read_json(text, bounds=FILE), kind)
    except (DocumentError, msgspec.ValidationError) as error:
        raise NotARunError(f"{source}: not a saved run ({error}); save one with {command} > FILE") from None


def compare_runs(before: SavedRun, now: SavedRun) -> list[RunChange]:
    """What every workload measured in both runs, at the same size."""
    known = {(each.workload, each.nodes, each.pods): each for each in before.workloads}
    changes = []
    for each in now.workloads:
        old = known.get((each.workload, each.nodes, each.pods))
        if old is not None:
            changes += [
                _change(each.workload, each.nodes, what, getattr(old, what), getattr(each, what))
                for what in ("pods_per_s", "p50_us", "p99_us", "peak_mb")
            ]
    return changes


def compare_growth(before: SavedGrowth, now: SavedGrowth) -> list[RunChange]:
    known = {(each.workload, point.nodes): point for each in before.workloads for point in each.points}
    return [
        _change(each.workload, point.nodes, "us_per_pod", old.us_per_pod, point.us_per_pod)
        for each in now.workloads
        for point in each.points
        if (old := known.get((each.workload, point.nodes))) is not None
    ]


def _change(workload: str, nodes: int, what: str, before: float, now: float) -> RunChange:
    return RunChange(workload, nodes, what, before, now, round(now / before, 3) if before else 0.0)


def to_json(workloads: Sequence[msgspec.Struct], changes: Sequence[RunChange] | None) -> str:
    data: dict[str, Any] = {"workloads": workloads}
    if changes is not None:
        data["changes"] = changes
    return msgspec.json.format(msgspec.json.encode(data)).decode()


def run_table(measurements: Sequence[Measurement]) -> Table:
    """The CI floor is kube-scheduler 1.37's; pods are followed by how many were scheduled where not all were."""
    table = _table("workload", "nodes", "scored", "pods", "pods/s", "CI floor", "ratio", "p50 µs", "p99 µs", "peak MB")
    for each in measurements:
        short = each.scheduled < each.pods
        table.add_row(
            Text(each.workload),
            f"{each.nodes:,}",
            f"{each.nodes_scored:,}",
            Text(f"{each.scheduled:,} of {each.pods:,}", style="red") if short else f"{each.pods:,}",
            Text(f"{each.pods_per_s:,.0f}", style="bold"),
            "" if each.threshold is None else f"{each.threshold:,.0f}",
            "" if each.ratio is None else f"{each.ratio:,.1f}×",
            f"{each.p50_us:,.0f}",
            f"{each.p99_us:,.0f}",
            f"{each.peak_mb:,.0f}",
        )
    return table


def simulation_table(costs: Sequence[SimulationCost]) -> Table:
    table = _table("scenario", "profile", "seed", "placed", "seconds", "CPU s", "placements/s", "peak MB")
    for each in costs:
        table.add_row(
            Text(each.scenario),
            Text(each.profile),
            str(each.seed),
            f"{each.placed:,}",
            f"{each.seconds:,.1f}",
            f"{each.cpu_s:,.1f}",
            Text(f"{each.placements_per_s:,.0f}", style="bold"),
            f"{each.peak_mb:,.0f}",
        )
    return table


def growth_table(growths: Sequence[Growth]) -> Table:
    sizes = sorted({point.nodes for growth in growths for point in growth.points})
    table = _table("workload", *(f"{size:,} nodes" for size in sizes), "exponent")
    for growth in growths:
        costs = {point.nodes: f"{point.us_per_pod:,.1f} µs" for point in growth.points}
        table.add_row(Text(growth.workload), *(costs.get(size, "") for size in sizes), f"{growth.exponent:.2f}")
    return table


def change_table(changes: Sequence[RunChange]) -> Table:
    table = _table("workload", "nodes", "what", "before", "now", "ratio")
    for each in changes:
        table.add_row(
            Text(each.workload),
            f"{each.nodes:,}",
            each.what,
            f"{each.before:,.1f}",
            f"{each.now:,.1f}",
            Text(f"{each.ratio:.2f}×", style=_style(each)),
        )
    return table


def cost_table(found: Cost) -> Table:
    """Medians, and in brackets the least and the most of all rounds."""
    table = _table("plugin", "workload", "nodes", "p50 µs without", "with", "ratio", "bare", "ratio to bare")
    rounds = found.rounds
    table.add_row(
        found.plugin,
        Text(found.workload),
        f"{found.nodes:,}",
        _with_range(found.without_us, [each.without_us for each in rounds], ".1f"),
        _with_range(found.with_us, [each.with_us for each in rounds], ".1f"),
        Text(_with_range(found.ratio, [each.ratio for each in rounds], ".2f"), style="bold"),
        _with_range(found.bare_us, [each.bare_us for each in rounds], ".1f"),
        _with_range(found.ratio_to_bare, [each.ratio_to_bare for each in rounds], ".2f"),
    )
    return table


def comparison_table(found: RaceComparison) -> Table:
    """Medians, and in brackets the least and the most of all races."""
    table = _table("scheduler", "pods/s", "CPU s per 1,000 pods", "peak MB", "Events")
    for name, figures in (("kube-scheduler", found.kube_scheduler), ("Podium", found.podium)):
        races = [race for race in found.rounds if race.scheduler == name.replace("-", "_").lower()]
        table.add_row(
            name,
            _with_range(figures.pods_per_s, [race.pods_per_s for race in races], ",.0f"),
            _with_range(figures.cpu_s_per_1000, [race.cpu_s_per_1000 for race in races], ".2f"),
            _with_range(figures.peak_mb, [race.peak_mb for race in races], ",.0f"),
            _with_range(median(race.events for race in races), [race.events for race in races], ",.0f"),
        )
    peak_ratio = found.podium.peak_mb / found.kube_scheduler.peak_mb
    ratios = (found.ratio, found.cpu_ratio, peak_ratio)
    table.add_row("Podium : kube-scheduler", *(Text(f"{ratio:.2f}×", style="bold") for ratio in ratios))
    return table


def embedded_table(found: EmbeddedFigures) -> Table:
    """One line for each thing that was measured."""
    table = _table("what", "value")
    megabytes = 1e6
    for what, value in (
        ("nodes, pods", f"{found.nodes:,}, {found.pods:,}"),
        ("creates/s", f"{found.creates_per_second:,.0f}"),
        ("server CPU per create", f"{found.create_cpu_us:,.0f} µs"),
        ("binds/s", f"{found.binds_per_second:,.0f}"),
        ("server CPU per bind", f"{found.bind_cpu_us:,.0f} µs"),
        ("memory (RSS)", f"{found.resident_bytes / megabytes:,.0f} MB"),
        ("list of all pods", f"{found.list_seconds:.2f} s, {found.list_bytes / megabytes:,.0f} MB"),
        (f"watch events/s, {found.watchers} watchers", f"{found.watch_events_per_second:,.0f}"),
        ("server CPU per watch event", f"{found.watch_cpu_us:,.0f} µs"),
    ):
        table.add_row(what, value)
    return table


def embedded_json(found: EmbeddedFigures) -> str:
    return msgspec.json.format(msgspec.json.encode(found)).decode()


def extender_tables(found: ExtenderFigures) -> list[Table]:
    """What every contestant did, how long calls took, and how all nodes in full were answered."""
    races = _table("scheduler", "pods/s", "CPU s per 1,000 pods", "to alone")
    for name in ("alone", "nothing", "agents", "joined"):
        figures: Figures = getattr(found, name)
        ran = [race for race in found.rounds if race.scheduler == name]
        races.add_row(
            EXTENDERS[name],
            _with_range(figures.pods_per_s, [race.pods_per_s for race in ran], ",.0f"),
            _with_range(figures.cpu_s_per_1000, [race.cpu_s_per_1000 for race in ran], ".2f"),
            Text(f"{figures.pods_per_s / found.alone.pods_per_s:.2f}×", style="bold"),
        )
    calls = _table("what", "calls", "p50 ms", "p99 ms")
    for call in found.calls:
        calls.add_row(f"{call.agent} {call.verb}", f"{call.count:,}", f"{call.p50_ms:.3f}", f"{call.p99_ms:.3f}")
    whole = _table("what", "MB", "first filter s", "filter s", "prioritize s", "peak MB")
    full = found.in_full
    times = (full.first_filter_s, full.filter_s, full.prioritize_s)
    shown = (f"{seconds:.2f}" for seconds in times)
    whole.add_row(f"{full.nodes:,} nodes in full", f"{full.megabytes:,.0f}", *shown, f"{full.peak_mb:,.0f}")
    return [races, calls, whole]


def comparison_json(found: RaceComparison | ExtenderFigures | Cost) -> str:
    return msgspec.json.format(msgspec.json.encode(found)).decode()


def _with_range(middle: float, values: Sequence[float], form: str) -> str:
    shown, least, most = (format(value, form) for value in (middle, min(values), max(values)))
    return shown if least == most else f"{shown} ({least}–{most})"


def _style(change: RunChange) -> str:
    if abs(change.ratio - 1) <= NOISE:
        return ""
    better = (change.ratio > 1) == (change.what in HIGHER_IS_BETTER)
    return "green" if better else "red"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        if column in ("plugin", "workload", "what", "scheduler"):
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    return table
