"""Writes the tables of the report: the summary, how profiles differ, and the figures of each class of pods."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from podium_lab.simulator.comparison import compare, shown_differences
from podium_lab.simulator.report.figure_texts import class_cells, difference, measured_words, number, words
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.summary import CLASSES_SHOWN, MOST_CLASSES, SummaryRow, class_tables

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
