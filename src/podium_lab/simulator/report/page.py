"""Puts the report together: what was simulated, the summary, and the plots that have something to show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from podium.packages import version
from podium_lab.simulator.figures import COLUMNS
from podium_lab.simulator.pod_classes import BINS, bin_ends
from podium_lab.simulator.report.plots import Dot, Line, bar_chart, colour, dot_chart, line_chart
from podium_lab.simulator.report.tables import class_sections, difference_tables, summary_table, words
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.run import RunResult
from podium_lab.simulator.scenario import as_written
from podium_lab.simulator.summary import SummaryRow, estimate, shown, summarise

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
MOST_NOTES = 20
WAITS_FROM = 1.0
"""Seconds: shorter waits look the same, where there are long ones."""


def write_report(results: SimulationResults, path: Path, command: str = "") -> Path:
    """Writes the page; `command` is what makes the same results again."""
    path.write_text(render(results, command), encoding="utf-8")
    return path


def render(results: SimulationResults, command: str = "") -> str:
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
            summary_table(rows, figures),
            *difference_tables(results),
            *class_sections(results),
            *_section("Profiles compared", _comparisons(results, rows, figures)),
            *_section("Over time" if not _by_demand(results) else "As demand arrives", _courses(results)),
            *_section("Waiting", _waits(results)),
            *_section("Pods without a node", _unplaced(results)),
            _notes(results),
            _origin(results, command),
            "</body></html>",
        ]
    )


def _by_demand(results: SimulationResults) -> bool:
    return results.scenario.checkpoints.arrived_pct is not None


def _what_ran(results: SimulationResults) -> str:
    seeds = list(dict.fromkeys(run.seed for run in results.runs))
    number_of = f"{len(results.profiles)} profile{'s' * (len(results.profiles) != 1)}"
    text = f"{number_of}, {_seeds(seeds)}; Podium {version()}"
    if results.file:
        text = f"{results.file}: {text}"
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
    """The mean of a figure over all seeds. A run that is over counts on with its last value, so that what only grows
    in each run only grows here, too."""
    runs = [_known(run, x_name, name) for run in results.runs if run.profile == profile]
    runs = [points for points in runs if points]
    xs = sorted({x for points in runs for x in list(points)[: -1 if x_name == "time_s" and len(points) > 2 else None]})
    xs = xs[:: max(1, len(xs) // MOST_POINTS)]
    courses = [_carried_on(points, xs) for points in runs]
    at_x = [[y for y in ys if not math.isnan(y)] for ys in zip(*courses, strict=True)]
    xs, at_x = [x for x, ys in zip(xs, at_x, strict=True) if ys], [ys for ys in at_x if ys]
    return Line(
        profile,
        number_,
        [x / length for x in xs],
        [sum(ys) / len(ys) for ys in at_x],
        [min(ys) for ys in at_x],
        [max(ys) for ys in at_x],
    )


def _known(run: RunResult, x_name: str, name: str) -> dict[float, float]:
    """The values of a figure in one run. The last row by time is its end, at a moment that other seeds do not share."""
    points = run.table[:, [COLUMNS.index(x_name), COLUMNS.index(name)]].tolist()
    return {x: y for x, y in points if not math.isnan(y)}


def _carried_on(points: dict[float, float], xs: Sequence[float]) -> list[float]:
    """The value at each x, or the last before it; NaN before the first."""
    known, found, i, y = sorted(points.items()), [], 0, math.nan
    for x in xs:
        while i < len(known) and known[i][0] <= x:
            y = known[i][1]
            i += 1
        found.append(y)
    return found


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
        first = int(np.searchsorted(ends, WAITS_FROM)) if ends[last] > 10 * WAITS_FROM else 0
        chosen = [first, *range(first + 1, min(BINS, last + 2), 8), min(BINS - 1, last + 1)]
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
            "Pods placed within",
            line_chart(lines, "seconds of waiting", "%", log=True, zero=False),
            "share of placed pods",
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
    seeds: dict[tuple[str, str], list[int]] = {}
    for run in results.runs:
        for note in run.notes:
            seeds.setdefault((run.profile, note), []).append(run.seed)
    if not seeds:
        return ""
    notes = [f"{profile}: {note} ({_seeds(of)})" for (profile, note), of in seeds.items()]
    more = [f"and {len(notes) - MOST_NOTES} more"] if len(notes) > MOST_NOTES else []
    items = "".join(f"<li>{escape(note)}</li>" for note in [*notes[:MOST_NOTES], *more])
    return f"<h2>Notes</h2><ul>{items}</ul>"


def _seeds(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:12])) + (" …" if len(numbers) > 12 else "")
    return f"seed {shown}" if len(numbers) == 1 else f"seeds {shown}"


def _origin(results: SimulationResults, command: str) -> str:
    """What makes the same results again: the version, the command, and the scenario as it ran."""
    import yaml

    written = yaml.safe_dump(as_written(results.scenario), sort_keys=False, allow_unicode=True, width=100)
    command_text = f"<pre>{escape(command)}</pre>" if command else ""
    name = f" <code>{escape(results.file)}</code>" if results.file else ""
    return (
        f"<h2>Where this comes from</h2><p>Podium {escape(version())}, scenario{name}.</p>{command_text}"
        f"<details><summary>The scenario, as it ran</summary><pre>{escape(written)}</pre></details>"
    )


LIGHT = ("#2a78d6", "#eb6834", "#1baf7a", "#4a3aa7", "#eda100", "#e87ba4", "#008300", "#e34948")
DARK = ("#3987e5", "#d95926", "#199e70", "#9085e9", "#c98500", "#d55181", "#3fa34d", "#e66767")
"""The colours of profiles, in their order; different also to people who do not see all colours."""


def _variables(colours: tuple[str, ...], **others: str) -> str:
    series = [f"--s{i}: {colour};" for i, colour in enumerate(colours)]
    return " ".join([*series, *(f"--{name}: {value};" for name, value in others.items())])


_LIGHT = _variables(LIGHT, page="#fcfcfb", ink="#1a1a19", soft="#5c5b57", line="#dddcd8", box="#f3f2ef")
_DARK = _variables(DARK, page="#1a1a19", ink="#f1f0ec", soft="#a9a8a2", line="#3d3c39", box="#262624")

SHEET = f"""
:root {{ {_LIGHT} color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
body {{ margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; }}
p {{ color: var(--soft); margin: .25rem 0 .75rem; max-width: 50rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }}
th, td {{ padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }}
.text {{ text-align: left; }}
th {{ color: var(--soft); font-weight: 600; }}
.scroll {{ overflow-x: auto; }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.25rem; }}
figure {{ margin: 0; background: var(--box); border-radius: 8px; padding: .8rem 1rem; }}
figcaption {{ font-weight: 600; font-size: 14px; }}
figcaption small {{ display: block; font-weight: 400; color: var(--soft); }}
svg {{ width: 100%; height: auto; display: block; }}
svg text {{ fill: var(--soft); font: 12px system-ui, sans-serif; }}
svg .grid {{ stroke: var(--line); stroke-width: 1; }}
svg .name {{ fill: var(--ink); }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .5rem 0 1rem; font-size: 14px; }}
.legend i {{ display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .35rem; }}
pre {{ overflow-x: auto; background: var(--box); border-radius: 8px; padding: .8rem 1rem; font-size: 13px; }}
@media (max-width: 30rem) {{ .plots {{ grid-template-columns: 1fr; }} }}
"""
