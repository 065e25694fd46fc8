"""Writes the tables of the report: the summary, how profiles differ, and the figures of each class of pods.

Figures are for people: their names in words, means with their margins, and differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape

from podium_lab.simulator.comparison import Compared, Difference, compare, shown_differences
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.summary import CLASSES_SHOWN, MOST_CLASSES, Estimate, SummaryRow, class_tables

TEXT = ' class="text"'


def summary_table(rows: list[SummaryRow], figures: list[str]) -> str:
    """A profile in each line, or a figure where that needs less room to the side."""
    names = [row.profile if row.at is None else f"{row.profile}, {row.at} % arrived" for row in rows]
    cells = [[number(row.figures.get(name)) for name in figures] for row in rows]
    if len(figures) <= len(names):
        return table(
            ["profile", *map(words, figures)], [[name, *line] for name, line in zip(names, cells, strict=True)]
        )
    return table(["", *names], [[words(name), *(line[i] for line in cells)] for i, name in enumerate(figures)])


def table(head: list[str], lines: list[list[str]], texts: int = 1) -> str:
    """`texts`: so many columns at the left are no numbers."""
    header = "".join(f"<th{TEXT * (i < texts)}>{escape(name)}</th>" for i, name in enumerate(head))
    rows = ("".join(f"<td{TEXT * (i < texts)}>{escape(cell)}</td>" for i, cell in enumerate(line)) for line in lines)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def difference_tables(results: SimulationResults) -> Iterator[str]:
    found = shown_differences(results, compare(results))
    if not found:
        return
    first, *others = results.profiles
    yield (
        f"<h2>More than {escape(first)}</h2><p>Differences are paired: each seed gives all profiles the same pods at "
        "the same times. ± is half the 95 % interval of the differences; * marks one that leaves out 0. Of twenty "
        "figures that do not differ, one is marked by chance.</p>"
    )
    lines = [
        [measured_words(measured), *(difference(profiles.get(name)) for name in others)]
        for measured, profiles in found.items()
    ]
    yield table(["", *others], lines)


def class_sections(results: SimulationResults) -> Iterator[str]:
    for by, classes in class_tables(results).items():
        yield f"<h2>By {escape(by)}</h2><p>Pods that arrived, pods that wait at the end, and waits until placement.</p>"
        lines = [
            [name, profile, *class_cells(figures)]
            for name, profiles in list(classes.items())[:MOST_CLASSES]
            for profile, figures in profiles.items()
        ]
        yield table([by.removeprefix("label "), "profile", *map(words, CLASSES_SHOWN)], lines, texts=2)
        if len(classes) > MOST_CLASSES:
            yield f"<p>{len(classes) - MOST_CLASSES} more are in classes.csv.</p>"


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
