"""Sums up a sweep: for each profile and figure the mean over seeds, its deviation and a 95 % confidence interval.

What is counted (pods placed, waits so far) is taken at the last checkpoint, what is measured at a moment (allocation,
utilisation) as the mean over the run's checkpoints. Where checkpoints go by arrived demand, all is taken at the
percents that the scenario names, or at the last before.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_lab.simulator.figures import COLUMNS, UNPLACED
from podium_lab.simulator.qos_figures import QOS_COLUMNS
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.run import RunResult
from podium_lab.simulator.scenario import Scenario

MOMENTARY = frozenset(
    name
    for name in COLUMNS
    if (name.endswith("_pct") and name != "arrived_pct") or name in ("running", "pending", "nodes", "empty_nodes")
)
USUAL = (
    "gpu_allocation_pct",
    "gpu_fragmentation_of_total_pct",
    "placed",
    "unplaced",
    "preempted",
    "evictions",
    "wait_mean_s",
    "wait_p95_s",
    "cpu_allocation_pct",
    "cpu_fragmentation_pct",
    "cpu_utilisation_pct",
    "cpu_utilisation_sd_pct",
    "overloaded_node_minutes",
    "reward_mean",
    *QOS_COLUMNS,
)
"""Figures that a summary shows where the scenario names none, as far as they say something."""
CLASSES_SHOWN = ("arrived", "pending", "wait_mean_s", "wait_p95_s")
"""Figures of each class of pods that a summary shows."""
MOST_CLASSES = 12
"""Classes that a summary shows."""
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t for 95 %, by degrees of freedom from 1 on; beyond, the normal value is close enough."""


class Estimate(NamedTuple):
    """A figure over seeds: mean, sample deviation (NaN for one seed), and half the width of its 95 % interval."""

    mean: float
    deviation: float
    margin: float
    seeds: int


class SummaryRow(NamedTuple):
    """One line of the summary: a profile, and the percent of demand where there are several."""

    profile: str
    at: int | None
    figures: dict[str, Estimate]


def summarise(results: SimulationResults) -> list[SummaryRow]:
    """One row per profile (and percent), with every figure that any run has."""
    rows = []
    for profile in results.profiles:
        runs = [run for run in results.runs if run.profile == profile]
        for at in percents(results.scenario):
            values = [values_of(run, at) for run in runs]
            known = {name: [each[name] for each in values if not math.isnan(each[name])] for name in values[0]}
            figures = {name: estimate(found) for name, found in known.items() if found}
            rows.append(SummaryRow(profile, at, figures))
    return rows


def class_tables(results: SimulationResults) -> dict[str, dict[str, dict[str, dict[str, Estimate]]]]:
    """By what distinguishes pods ("shape", "label app"), by class and by profile: every figure over seeds.

    What tells nothing apart is left out: a priority that all pods have, or a label that is on the pods of one shape.
    """
    values: dict[str, dict[str, dict[str, dict[str, list[float]]]]] = {}
    for run in results.runs:
        for of in run.classes:
            figures = values.setdefault(of.by, {}).setdefault(of.name, {}).setdefault(run.profile, {})
            for name, value in of.figures.items():
                figures.setdefault(name, []).extend([] if math.isnan(value) else [value])
    found, seen = {}, set()
    for by, classes in values.items():
        parts = tuple(sorted(repr(profiles) for profiles in classes.values()))
        if len(classes) > 1 and parts not in seen:
            seen.add(parts)
            found[by] = {
                name: {
                    profile: {figure: estimate(numbers) for figure, numbers in figures.items() if numbers}
                    for profile, figures in profiles.items()
                }
                for name, profiles in classes.items()
            }
    return found


def shown(results: SimulationResults, rows: list[SummaryRow]) -> list[str]:
    """The figures to show: those that the scenario names, or the usual ones that are not zero everywhere."""
    if results.scenario.summary:
        return results.scenario.summary
    return [name for name in USUAL if any(name in row.figures and row.figures[name].mean for row in rows)]


def percents(scenario: Scenario) -> list[int | None]:
    if scenario.checkpoints.arrived_pct is None or not scenario.summary_at:
        return [None]
    return list(scenario.summary_at)


def values_of(run: RunResult, at: int | None) -> dict[str, float]:
    """Every figure of a run as one number."""
    table = run.table
    unplaced = float(sum(run.unplaced.values()))
    if at is not None:
        found = table[table[:, COLUMNS.index("arrived_pct")] <= at]
        line: NDArray[np.float64] = found[-1] if len(found) else np.full(len(COLUMNS), math.nan)
        return {**dict(zip(COLUMNS, line.tolist(), strict=True)), UNPLACED: unplaced}
    last = table[-1]
    with np.errstate(invalid="ignore"):
        before = table[:-1] if len(table) > 1 else table
        means = [float(np.nanmean(each)) if not np.isnan(each).all() else math.nan for each in before.T]
    named = zip(COLUMNS, means, last.tolist(), strict=True)
    return {**{name: mean if name in MOMENTARY else end for name, mean, end in named}, UNPLACED: unplaced}


def estimate(values: list[float]) -> Estimate:
    """
    >>> estimate([1.0, 2.0, 3.0]).mean, round(estimate([1.0, 2.0, 3.0]).margin, 3)
    (2.0, 2.484)
    """
    number = len(values)
    mean = sum(values) / number
    if number == 1:
        return Estimate(mean, math.nan, math.nan, 1)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (number - 1))
    t = _T[number - 2] if number - 2 < len(_T) else 1.96 + 2.4 / (number - 1)
    return Estimate(mean, deviation, t * deviation / math.sqrt(number), number)
