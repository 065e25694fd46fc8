"""Writes figures for people: their names in words, means with their margins, and differences."""

from __future__ import annotations

import math
from collections.abc import Mapping

from podium_lab.simulator.comparison import Compared, Difference
from podium_lab.simulator.summary import CLASSES_SHOWN, Estimate


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


def measured_words(measured: Compared) -> str:
    """
    >>> measured_words(Compared("wait_mean_s", None, "label app", "web")), measured_words(Compared("placed", 50))
    ('wait mean, s: app web', 'placed, at 50 % arrived')
    """
    text = words(measured.figure)
    if measured.by:
        return f"{text}: {measured.by.removeprefix('label ')} {measured.name}"
    return text if measured.at is None else f"{text}, at {measured.at} % arrived"


def number(value: Estimate | None) -> str:
    """A mean with its margin, in as many digits as make sense."""
    return "–" if value is None else _with_margin(value, "")


def plain_number(value: Estimate | None) -> str:
    """A mean alone."""
    return "–" if value is None else f"{value.mean:,.{0 if abs(value.mean) >= 1000 else 2}f}"


def difference(found: Difference | None) -> str:
    """A mean difference with its sign and margin, marked where the interval leaves out 0."""
    return "–" if found is None else f"{'* ' if found.clear else ''}{_with_margin(found.estimate, '+')}"


def _with_margin(value: Estimate, sign: str) -> str:
    digits = 0 if abs(value.mean) >= 1000 else 2
    margin = "" if math.isnan(value.margin) else f" ± {value.margin:,.{digits}f}"
    return f"{value.mean:{sign},.{digits}f}{margin}"


def class_cells(figures: Mapping[str, Estimate]) -> list[str]:
    """The figures of a class that are shown: numbers of pods without their margins, waits with them."""
    written = (number if name.endswith("_s") else plain_number for name in CLASSES_SHOWN)
    return [write(figures.get(name)) for write, name in zip(written, CLASSES_SHOWN, strict=True)]
