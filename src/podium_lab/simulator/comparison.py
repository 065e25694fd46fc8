"""Compares profiles seed by seed: each figure's difference between two profiles, with a 95 % interval.

A seed gives all profiles the same pods at the same times, so what a difference varies by is what the profiles make of
them, and not the pods. That is why the interval of a difference may be narrow where those of both means overlap.
Differences are taken of the figures of all pods, and of waits and waiting pods of each class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from podium_lab.simulator.figures import SUMMED_UP
from podium_lab.simulator.results import SimulationResults, write_rows
from podium_lab.simulator.run import RunResult
from podium_lab.simulator.summary import (
    MOST_CLASSES,
    Estimate,
    class_tables,
    estimate,
    percents,
    shown,
    summarise,
    values_of,
)

SAME = frozenset(("time_s", "arrived", "arrived_pct"))
"""Figures that are no profile's doing."""
DIFFERENCE_COLUMNS = (
    "profile",
    "against",
    "figure",
    "at",
    "by",
    "class",
    "mean",
    "margin",
    "smallest",
    "largest",
    "seeds",
    "clear",
)
OF_CLASSES = ("wait_mean_s", "wait_p95_s", "pending")


class Compared(NamedTuple):
    """What is compared: a figure, at a percent of demand where there are several, of one class or of all pods."""

    figure: str
    at: int | None = None
    by: str = ""
    name: str = ""


class Difference(NamedTuple):
    """What a profile has more than another, paired by seed."""

    measured: Compared
    profile: str
    against: str
    of_seeds: dict[int, float]
    estimate: Estimate

    @property
    def clear(self) -> bool:
        """Whether the 95 % interval leaves out 0."""
        return abs(self.estimate.mean) > self.estimate.margin  # no number is more than NaN, the margin of one seed

    def to_data(self) -> dict[str, Any]:
        found, (figure, at, by, name) = self.estimate, self.measured
        margin = None if math.isnan(found.margin) else round(found.margin, 6)
        ends = (round(each(self.of_seeds.values()), 6) for each in (min, max))
        names = self.profile, self.against, figure, at, by or None, name or None
        values = *names, round(found.mean, 6), margin, *ends, found.seeds, self.clear
        return dict(zip(DIFFERENCE_COLUMNS, values, strict=True))


def compare(results: SimulationResults) -> list[Difference]:
    """Every profile against each that stands before it."""
    values = {(run.profile, run.seed): _values(run, results) for run in results.runs}
    return [
        found for against, profile in combinations(results.profiles, 2) for found in _pair(values, profile, against)
    ]


def _pair(values: dict[tuple[str, int], dict[Compared, float]], profile: str, against: str) -> Iterator[Difference]:
    paired: dict[Compared, dict[int, float]] = {}
    for (name, seed), mine in values.items():
        theirs = values.get((against, seed), {}) if name == profile else {}
        for measured in mine.keys() & theirs.keys():
            paired.setdefault(measured, {})[seed] = mine[measured] - theirs[measured]
    order = {measured: i for run in values.values() for i, measured in enumerate(run)}
    for measured in sorted(paired, key=lambda each: order[each]):
        of_seeds = dict(sorted(paired[measured].items()))
        yield Difference(measured, profile, against, of_seeds, estimate(list(of_seeds.values())))


def _values(run: RunResult, results: SimulationResults) -> dict[Compared, float]:
    """Everything that is known of a run and may differ between profiles."""
    found: dict[Compared, float] = {}
    for at in percents(results.scenario):
        values = values_of(run, at)
        found |= {Compared(name, at): values[name] for name in SUMMED_UP if name not in SAME}
    for of in run.classes:
        found |= {Compared(name, None, of.by, of.name): of.figures[name] for name in OF_CLASSES}
    return {measured: value for measured, value in found.items() if not math.isnan(value)}


def shown_differences(
    results: SimulationResults, differences: Sequence[Difference]
) -> dict[Compared, dict[str, Difference]]:
    """What to show: by figure and profile how each differs from the first profile, as far as any does.

    With one seed there is nothing to show: a difference without an interval says nothing.
    """
    first = results.profiles[:1]
    figures = [Compared(name, at) for name in shown(results, summarise(results)) for at in percents(results.scenario)]
    figures += [
        Compared(figure, None, by, name)
        for by, classes in class_tables(results).items()
        for name in list(classes)[:MOST_CLASSES]
        for figure in OF_CLASSES
    ]
    found: dict[Compared, dict[str, Difference]] = {each: {} for each in figures}
    for each in differences:
        if each.measured in found and [each.against] == first and each.estimate.seeds > 1:
            found[each.measured][each.profile] = each
    return {
        measured: profiles
        for measured, profiles in found.items()
        if any(value for each in profiles.values() for value in each.of_seeds.values())
    }


def detailed_rows(results: SimulationResults, differences: Sequence[Difference]) -> Iterator[dict[str, Any]]:
    """The rows of the results; the last of each run says what became of each class, and how the run differs from
    those of other profiles with the same seed."""
    rows = results.rows()
    for run in results.runs:
        of_run = [next(rows) for _ in run.table]
        for last in of_run[-1:]:
            last["classes"] = [each.to_data() for each in run.classes]
            last["differences"] = [
                {"difference": round(each.of_seeds[run.seed], 6), **each.to_data()}
                for each in differences
                if each.profile == run.profile and run.seed in each.of_seeds
            ]
        yield from of_run


def write_differences(differences: Sequence[Difference], path: Path) -> Path:
    """differences.csv: a row for each pair of profiles and each figure."""
    rows = [["" if value is None else value for value in each.to_data().values()] for each in differences]
    return write_rows(path, DIFFERENCE_COLUMNS, rows)
