"""Draws plots as SVG text: lines with a band, dots with intervals, and bars.

Colours are variables of the style sheet, one per profile, so that a plot is right in light and dark. Each mark has a
title, which browsers show when the mouse is on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 12, 34
COLOURS = 8
EDGE = 30
"""Half the width of the longest number on an axis."""
DASHES = ("", *(f' stroke-dasharray="{dash}"' for dash in ("9 6", "3 5", "14 4 3 4")))
"""Of the lines of profiles: where two are equal, the one below shows between the dashes of the other."""

Scale = Callable[[float], float]


class Line(NamedTuple):
    """A profile's course: means, and the interval around each."""

    name: str
    colour: int
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


class Dot(NamedTuple):
    """A profile's mean with its interval."""

    name: str
    colour: int
    mean: float
    margin: float


def colour(number: int) -> str:
    return f"var(--s{number % COLOURS})"


def line_chart(lines: Sequence[Line], x_label: str, unit: str, *, log: bool = False, zero: bool = True) -> str:
    """Lines over a common axis. `log`: x is logarithmic; `zero`: y begins at 0."""
    xs = [x for line in lines for x in line.xs]
    ys = [y for line in lines for y in (*line.low, *line.high) if math.isfinite(y)]
    if not xs or not ys:
        return ""
    x_of, x_ticks = _log_axis(min(xs), max(xs)) if log else _axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    low, high = (min(0.0, *ys) if zero else min(ys)), max(ys)
    y_of, y_ticks = _axis(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP, count=5)
    parts = [_grid(y_of, y_ticks, unit), _x_axis(x_of, x_ticks, x_label)]
    for line in lines:
        points = [(x_of(x), y_of(y)) for x, y in zip(line.xs, line.ys, strict=True) if math.isfinite(y)]
        upper = [(x_of(x), y_of(y)) for x, y in zip(line.xs, line.high, strict=True) if math.isfinite(y)]
        lower = [(x_of(x), y_of(y)) for x, y in zip(line.xs, line.low, strict=True) if math.isfinite(y)]
        paint, dashes = colour(line.colour), DASHES[line.colour % len(DASHES)]
        parts.append(f'<polygon points="{_points([*upper, *reversed(lower)])}" fill="{paint}" opacity="0.18"/>')
        parts.append(
            f'<polyline points="{_points(points)}" fill="none" stroke="{paint}" stroke-width="2"'
            f' stroke-linejoin="round"{dashes}><title>{escape(line.name)}</title></polyline>'
        )
    return _svg(parts, HEIGHT)


def dot_chart(dots: Sequence[Dot], unit: str) -> str:
    """One line per profile: a dot at the mean, a bar over its interval. The axis begins where the values do."""
    ends = [end for dot in dots for end in (dot.mean - _finite(dot.margin), dot.mean + _finite(dot.margin))]
    low, high = min(ends), max(ends)
    pad = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    left, step = 190, 26
    height = TOP + step * len(dots) + BOTTOM
    x_of, ticks = _axis(low - pad, high + pad, left, WIDTH - RIGHT, count=4)
    parts = [
        f'<line class="grid" x1="{x_of(tick):.1f}" x2="{x_of(tick):.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>'
        f'<text x="{x_of(tick):.1f}" y="{height - 10}" text-anchor="{_anchor(x_of(tick))}">{_number(tick)}{unit}</text>'
        for tick in ticks
    ]
    for i, dot in enumerate(dots):
        y = TOP + step * (i + 0.5)
        paint, margin = colour(dot.colour), _finite(dot.margin)
        title = f"{dot.name}: {_number(dot.mean)}{unit}" + (f" ± {_number(margin)}" if margin else "")
        name = escape(_short(dot.name, 27))
        parts.append(
            f'<text class="name" x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
            f'<line x1="{x_of(dot.mean - margin):.1f}" x2="{x_of(dot.mean + margin):.1f}" y1="{y}" y2="{y}"'
            f' stroke="{paint}" stroke-width="4" opacity="0.5" stroke-linecap="round"/>'
            f'<circle cx="{x_of(dot.mean):.1f}" cy="{y}" r="5" fill="{paint}"><title>{escape(title)}</title></circle>'
        )
    return _svg(parts, height)


def bar_chart(groups: Sequence[tuple[str, Sequence[Dot]]], unit: str) -> str:
    """Groups of horizontal bars, one bar per profile in each."""
    highest = max((dot.mean for _, dots in groups for dot in dots), default=0.0)
    if not highest:
        return ""
    bar, gap, head = 14, 12, 18
    height = TOP + sum(head + bar * len(dots) + gap for _, dots in groups) + BOTTOM
    x_of, ticks = _axis(0.0, highest, 12, WIDTH - 70, count=4)
    parts = [
        f'<line class="grid" x1="{x_of(tick):.1f}" x2="{x_of(tick):.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>'
        f'<text x="{x_of(tick):.1f}" y="{height - 10}" text-anchor="middle">{_number(tick)}</text>'
        for tick in ticks
    ]
    y = float(TOP)
    for name, dots in groups:
        parts.append(f'<text class="name" x="12" y="{y + 12:.1f}">{escape(_short(name, 70))}</text>')
        y += head
        for dot in dots:
            title = f"{dot.name}, {name}: {_number(dot.mean)}{unit}"
            width = max(1.0, x_of(dot.mean) - x_of(0))
            parts.append(
                f'<rect x="{x_of(0):.1f}" y="{y:.1f}" width="{width:.1f}" height="{bar - 3}"'
                f' rx="2" fill="{colour(dot.colour)}"><title>{escape(title)}</title></rect>'
                f'<text x="{x_of(dot.mean) + 5:.1f}" y="{y + 10:.1f}">{_number(dot.mean)}</text>'
            )
            y += bar
        y += gap
    return _svg(parts, height)


# Axes


def _axis(low: float, high: float, start: float, end: float, count: int = 6) -> tuple[Scale, list[float]]:
    """A linear scale from values to places, and round values to mark."""
    if high <= low:
        high = low + 1
    step = _round_step((high - low) / count)
    ticks = [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return (lambda value: start + (value - low) / (high - low) * (end - start)), ticks


def _log_axis(low: float, high: float) -> tuple[Scale, list[float]]:
    low, high = max(low, 1e-3), max(high, 1e-2)
    first, last = math.log10(low), math.log10(high)
    ticks = [10.0**i for i in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)]
    width = last - first or 1.0
    return (lambda value: LEFT + (math.log10(max(value, low)) - first) / width * (WIDTH - LEFT - RIGHT)), ticks


def _round_step(step: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= step * 0.999)


def _grid(y_of: Scale, ticks: Sequence[float], unit: str) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{_number(tick)}{unit}</text>'
        for tick in ticks
    )


def _x_axis(x_of: Scale, ticks: Sequence[float], label: str) -> str:
    labels = [
        f'<text x="{x_of(tick):.1f}" y="{HEIGHT - 16}" text-anchor="{_anchor(x_of(tick))}">{_number(tick)}</text>'
        for tick in ticks
    ]
    return "".join(labels) + f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 2}" text-anchor="end">{escape(label)}</text>'


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _svg(parts: Sequence[str], height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'


def _number(value: float) -> str:
    """
    >>> [_number(each) for each in (0.25, 3.0, 1500.0, 12_500_000.0)]
    ['0.25', '3', '1,500', '12.5M']
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.3g}"


def _anchor(x: float) -> str:
    """Where a text at x hangs, so that it stays in the frame."""
    return "end" if x > WIDTH - EDGE else "middle"


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
