"""Puts the report together: what was simulated, the summary, and the plots that have something to show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

from podium.simulator.figures import COLUMNS
from podium.simulator.report.plots import Dot, Line, bar_chart, colour, dot_chart, line_chart
from podium.simulator.report.style import SHEET
from podium.simulator.results import SimulationResults
from podium.simulator.summary import Estimate, SummaryRow, estimate, shown, summarise
from podium.simulator.waits import BINS, bin_ends

COURSES = (
    ("gpu_allocation_pct", "GPU allocation", "%"),
    ("cpu_allocation_pct", "CPU allocation", "%"),
    ("memory_allocation_pct", "Memory allocation", "%"),
    ("cpu_utilisation_pct", "CPU utilisation, mean over nodes", "%"),
    ("cpu_utilisation_sd_pct", "CPU utilisation, deviation over nodes", "%"),
    ("network_imbalance_pct", "Network traffic, deviation over nodes by mean", "%"),
    ("overloaded_node_minutes", "Overloaded node-minutes so far", ""),
    ("gpu_fragmentation_of_total_pct", "Fragmented GPU, of all GPUs", "%"),
    ("cpu_fragmentation_pct", "Fragmented CPU, of free CPU", "%"),
    ("empty_nodes", "Nodes without pods", ""),
    ("pending", "Pods that wait", ""),
    ("running", "Pods that run", ""),
)
MOST_POINTS = 300
MOST_REASONS = 8
UNITS = {"pct": "%", "s": " s"}


def write_report(results: SimulationResults, path: Path) -> Path:
    path.write_text(render(results), encoding="utf-8")
    return path


def render(results: SimulationResults) -> str:
    """The whole page."""
    scenario = results.scenario
    title = escape(scenario.name or "Simulation")
    rows = summarise(results)
    figures = shown(results, rows)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{SHEET}</style></head><body>",
            f"<h1>{title}</h1>",
            f"<p>{escape(scenario.description)}</p>" if scenario.description else "",
            f"<p>{_what_ran(results)}</p>",
            _legend(results.profiles),
            "<h2>Summary</h2><p>Mean over seeds; ± is half the 95 % confidence interval.</p>",
            _table(rows, figures),
            *_section("Profiles compared", _comparisons(results, rows, figures)),
            *_section("Over time" if not _by_demand(results) else "As demand arrives", _courses(results)),
            *_section("Waiting", _waits(results)),
            *_section("Pods without a node", _unplaced(results)),
            _notes(results),
            "</body></html>",
        ]
    )


def _by_demand(results: SimulationResults) -> bool:
    return results.scenario.checkpoints.arrived_pct is not None


def _what_ran(results: SimulationResults) -> str:
    seeds = list(dict.fromkeys(run.seed for run in results.runs))
    text = f"{len(results.profiles)} profiles, seeds {', '.join(map(str, seeds[:12]))}{' …' if len(seeds) > 12 else ''}"
    if len(results.runs) < results.planned:
        text += f". Interrupted: {len(results.runs)} of {results.planned} runs are finished"
    return escape(f"{text}.")


def _legend(profiles: list[str]) -> str:
    items = [f'<span><i style="background:{colour(i)}"></i>{escape(name)}</span>' for i, name in enumerate(profiles)]
    return f'<div class="legend">{"".join(items)}</div>'


def _section(title: str, plots: Iterator[str]) -> Iterator[str]:
    drawn = list(plots)
    if drawn:
        yield f'<h2>{title}</h2><div class="plots">{"".join(drawn)}</div>'


def _figure(title: str, plot: str, small: str = "") -> str:
    note = f"<small>{escape(small)}</small>" if small else ""
    return f"<figure><figcaption>{escape(title)}{note}</figcaption>{plot}</figure>"


def words(figure: str) -> str:
    """
    >>> words("wait_p95_s"), words("cpu_allocation_pct")
    ('wait p95, s', 'cpu allocation, %')
    """
    name, _, unit = figure.rpartition("_")
    if unit == "pct":
        return f"{name.replace('_', ' ')}, %"
    if unit == "s":
        return f"{name.replace('_', ' ')}, s"
    return figure.replace("_", " ")


def number(value: Estimate | None) -> str:
    """A mean with its margin, in as many digits as make sense."""
    if value is None:
        return "–"
    digits = 0 if abs(value.mean) >= 1000 else 2
    margin = "" if math.isnan(value.margin) else f" ± {value.margin:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{margin}"


def _table(rows: list[SummaryRow], figures: list[str]) -> str:
    several = any(row.at is not None for row in rows)
    head = ["profile", *(["arrived"] if several else []), *map(words, figures)]
    lines = [
        [row.profile, *([f"{row.at} %"] if several else []), *(number(row.figures.get(name)) for name in figures)]
        for row in rows
    ]
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def _comparisons(results: SimulationResults, rows: list[SummaryRow], figures: list[str]) -> Iterator[str]:
    order = {name: i for i, name in enumerate(results.profiles)}
    for at in dict.fromkeys(row.at for row in rows):
        for name in figures:
            dots = [
                Dot(row.profile, order[row.profile], row.figures[name].mean, row.figures[name].margin)
                for row in rows
                if row.at == at and name in row.figures
            ]
            if len(dots) > 1:
                title = words(name) if at is None else f"{words(name)}, at {at} % arrived"
                yield _figure(title, dot_chart(dots, ""))


def _courses(results: SimulationResults) -> Iterator[str]:
    by_demand = _by_demand(results)
    x_name = "arrived_pct" if by_demand else "time_s"
    longest = max((float(run.table[-1, COLUMNS.index("time_s")]) for run in results.runs if len(run.table)), default=0)
    unit, length = ("%", 1.0) if by_demand else _time_unit(longest)
    for name, title, y_unit in COURSES:
        if name not in results.columns:
            continue
        lines = [_course(results, profile, i, x_name, name, length) for i, profile in enumerate(results.profiles)]
        lines = [line for line in lines if len(line.xs) > 1]
        if lines and any(any(line.ys) for line in lines):
            label = "arrived demand, %" if by_demand else unit
            yield _figure(title, line_chart(lines, label, y_unit), "mean over seeds, band from lowest to highest")


def _course(results: SimulationResults, profile: str, number_: int, x_name: str, name: str, length: float) -> Line:
    found: dict[float, list[float]] = defaultdict(list)
    x_column, y_column = COLUMNS.index(x_name), COLUMNS.index(name)
    for run in results.runs:
        if run.profile == profile:
            # The last row of a run by time is its end, at a moment that other seeds do not share.
            table = run.table[:-1] if x_name == "time_s" and len(run.table) > 2 else run.table
            for x, y in table[:, [x_column, y_column]].tolist():
                if not math.isnan(y):
                    found[x].append(y)
    xs = sorted(found)
    xs = xs[:: max(1, len(xs) // MOST_POINTS)]
    return Line(
        profile,
        number_,
        [x / length for x in xs],
        [sum(found[x]) / len(found[x]) for x in xs],
        [min(found[x]) for x in xs],
        [max(found[x]) for x in xs],
    )


def _time_unit(seconds: float) -> tuple[str, float]:
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 3 * length:
            return unit, length
    return "seconds", 1.0


def _waits(results: SimulationResults) -> Iterator[str]:
    """The share of pods that waited no longer than so long."""
    ends = bin_ends()
    lines = []
    for i, profile in enumerate(results.profiles):
        runs = [run.waits for run in results.runs if run.profile == profile and run.waits.sum()]
        if not runs:
            continue
        last = max(int(np.flatnonzero(each)[-1]) for each in runs)
        chosen = [0, *range(1, min(BINS, last + 2), 8), min(BINS - 1, last + 1)]
        shares = np.array([100 * np.cumsum(each)[chosen] / each.sum() for each in runs])
        xs = [max(1e-3, float(ends[each])) for each in chosen]
        lines.append(
            Line(
                profile,
                i,
                xs,
                shares.mean(axis=0).tolist(),
                shares.min(axis=0).tolist(),
                shares.max(axis=0).tolist(),
            )
        )
    if any(max(line.xs) > 1e-2 for line in lines):
        yield _figure(
            "Pods placed within", line_chart(lines, "seconds of waiting", "%", log=True), "share of placed pods"
        )


def _unplaced(results: SimulationResults) -> Iterator[str]:
    reasons: dict[str, int] = defaultdict(int)
    for run in results.runs:
        for reason, pods in run.unplaced.items():
            reasons[reason] += pods
    most = sorted(reasons, key=lambda reason: (-reasons[reason], reason))[:MOST_REASONS]
    groups = []
    for reason in most:
        dots = []
        for i, profile in enumerate(results.profiles):
            found = estimate([float(run.unplaced.get(reason, 0)) for run in results.runs if run.profile == profile])
            dots.append(Dot(profile, i, found.mean, found.margin))
        groups.append((reason, dots))
    plot = bar_chart(groups, " pods")
    if plot:
        yield _figure("Pods that never got a node, by reason", plot, "mean over seeds")


def _notes(results: SimulationResults) -> str:
    notes = dict.fromkeys(f"{run.profile}: {note}" for run in results.runs for note in run.notes)
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in list(notes)[:20])
    return f"<h2>Notes</h2><ul>{items}</ul>"
