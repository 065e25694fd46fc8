"""Prints what a simulation found: the summary, the figures of each class of pods, and how profiles differ."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from podium.cli.console import console, echo, print_table, table

if TYPE_CHECKING:
    from rich.table import Table

    from podium_lab.simulator.comparison import Difference
    from podium_lab.simulator.results import SimulationResults


def print_results(results: "SimulationResults", differences: "Sequence[Difference]") -> None:
    """Every table that has something to say."""
    out = console()
    print_table(out, _summary(results), turn=True)
    for rows in _classes(results):
        echo()
        print_table(out, rows)
    compared = _differences(results, differences)
    if compared is not None:
        echo()
        print_table(out, compared)
        echo("Paired by seed; * where the 95 % interval of the differences (±) leaves out 0.")


def _summary(results: "SimulationResults") -> "Table":
    from podium_lab.simulator.report.tables import number, words
    from podium_lab.simulator.summary import shown, summarise

    rows = summarise(results)
    figures = shown(results, rows)
    lines = table()
    lines.add_column("profile", no_wrap=True)
    for name in figures:
        lines.add_column(words(name), justify="right")
    for row in rows:
        profile = row.profile if row.at is None else f"{row.profile}, {row.at} % arrived"
        lines.add_row(profile, *(number(row.figures.get(name)) for name in figures))
    return lines


def _classes(results: "SimulationResults") -> "Iterator[Table]":
    from podium_lab.simulator.report.tables import class_cells, words
    from podium_lab.simulator.summary import CLASSES_SHOWN, MOST_CLASSES, class_tables

    for by, classes in class_tables(results).items():
        lines = table(f"By {by}")
        for heading in (by.removeprefix("label "), "profile"):
            lines.add_column(heading, no_wrap=True)
        for figure in CLASSES_SHOWN:
            lines.add_column(words(figure), justify="right")
        for name, profiles in list(classes.items())[:MOST_CLASSES]:
            for profile, figures in profiles.items():
                lines.add_row(name, profile, *class_cells(figures))
        if len(classes) > MOST_CLASSES:
            lines.add_row(f"… {len(classes) - MOST_CLASSES} more in classes.csv", "")
        yield lines


def _differences(results: "SimulationResults", differences: "Sequence[Difference]") -> "Table | None":
    """What each profile has more than the first one."""
    from podium_lab.simulator.comparison import shown_differences
    from podium_lab.simulator.report.tables import difference, measured_words

    found = shown_differences(results, differences)
    if not found:
        return None
    first, *others = results.profiles
    lines = table(f"More than {first}")
    lines.add_column("", no_wrap=True)
    for profile in others:
        lines.add_column(profile, justify="right")
    for measured, of_profiles in found.items():
        lines.add_row(measured_words(measured), *(difference(of_profiles.get(profile)) for profile in others))
    return lines
