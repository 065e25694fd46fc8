"""Holds the results of a sweep as columns: one row per profile, seed and checkpoint.

The columns are numpy arrays, which `pandas.DataFrame(results.columns)` and `polars.DataFrame(results.columns)` take as
they are. Figures that a scenario has nothing to say of (GPUs, measured usage) have no column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium_lab.simulator.figures import COLUMNS, WHOLE_NUMBERS
from podium_lab.simulator.pod_classes import CLASS_FIGURES, bin_ends
from podium_lab.simulator.run import RunResult
from podium_lab.simulator.scenario import Scenario, ScenarioError

DIGITS = 6
"""Decimals that are written."""


class SimulationResults:
    """What came of all runs that are finished, in the order of profiles and seeds."""

    def __init__(self, scenario: Scenario, runs: Sequence[RunResult], planned: int, file: str = "") -> None:
        self.scenario = scenario
        self.file = file
        """Where the scenario stands; empty where it was made in Python."""
        self.runs = runs
        self.planned = planned
        """How many runs there should be; fewer are here when the sweep was interrupted."""

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Every figure of all runs as one array."""
        return _columns(self.runs)

    def __len__(self) -> int:
        return len(self.columns["seed"])

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    @cached_property
    def profiles(self) -> list[str]:
        """The profiles that have a finished run."""
        return list(dict.fromkeys(run.profile for run in self.runs))

    @property
    def figures(self) -> list[str]:
        return [name for name in self.columns if name not in ("profile", "seed")]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Plain values, None where a figure is not known."""
        columns = {name: _plain(values) for name, values in self.columns.items()}
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))

    # Files

    def write_csv(self, folder: Path) -> list[Path]:
        """results.csv, waits.csv (how many pods waited how long), unplaced.csv (pods without a node, by reason) and
        classes.csv (figures by shape, priority, namespace and label)."""
        ends = bin_ends()
        waits = (
            (run.profile, run.seed, f"{ends[i]:.3f}", int(run.waits[i]))
            for run in self.runs
            for i in np.flatnonzero(run.waits).tolist()
        )
        unplaced = (
            (run.profile, run.seed, reason, number) for run in self.runs for reason, number in run.unplaced.items()
        )
        classes = (
            (run.profile, run.seed, *map(_text, each.to_data().values())) for run in self.runs for each in run.classes
        )
        rows = ([_text(value) for value in row.values()] for row in self.rows())
        return [
            write_rows(folder / "results.csv", list(self.columns), rows),
            write_rows(folder / "waits.csv", ["profile", "seed", "wait_up_to_s", "pods"], waits),
            write_rows(folder / "unplaced.csv", ["profile", "seed", "reason", "pods"], unplaced),
            write_rows(folder / "classes.csv", ["profile", "seed", "by", "class", *CLASS_FIGURES], classes),
        ]

    def write_parquet(self, folder: Path) -> Path:
        """results.parquet; needs the extra podium[parquet]."""
        try:
            pyarrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise ScenarioError(
                "results.parquet: pyarrow is not installed; install podium[parquet], or take results.csv"
            ) from None
        path = folder / "results.parquet"
        names = pyarrow.array(self.columns["profile"].tolist(), type=pyarrow.string())
        parquet.write_table(pyarrow.table({**self.columns, "profile": names}), path)
        return path


def has_parquet() -> bool:
    """Whether Parquet can be written here."""
    return find_spec("pyarrow") is not None


def _columns(runs: Sequence[RunResult]) -> dict[str, NDArray[Any]]:
    lengths = [len(run.table) for run in runs]
    table = np.concatenate([run.table for run in runs]) if runs else np.zeros((0, len(COLUMNS)))
    columns: dict[str, NDArray[Any]] = {
        "profile": np.repeat(np.array([run.profile for run in runs], dtype=np.str_), lengths),
        "seed": np.repeat(np.array([run.seed for run in runs], dtype=np.int64), lengths),
    }
    for name, values in zip(COLUMNS, table.T, strict=True):
        if name in WHOLE_NUMBERS:
            columns[name] = values.astype(np.int64)
        elif not len(values) or not np.isnan(values).all():
            columns[name] = np.round(values, DIGITS)
    return columns


def _plain(values: NDArray[Any]) -> list[Any]:
    plain: list[Any] = values.tolist()
    if values.dtype.kind == "f":
        return [None if math.isnan(value) else value for value in plain]
    return plain


def _text(value: Any) -> Any:
    return "" if value is None else value


def write_rows(path: Path, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> Path:
    """A CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    return path
