"""Reads virtual machines of the Azure 2017 trace, as one CSV or as the four upstream files; each becomes a pod.

A lifetime is known to lie in a bin, a moment of arrival within five minutes: both are drawn, the moment once per batch.
AzureMachines that were still running at the trace's end run for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kube.meta import Amount
from podium_lab.simulator.csv_rows import CsvRow, read_rows
from podium_lab.simulator.distributions import generator
from podium_lab.simulator.pods import FOREVER, PodArrival, PodTemplate, plain_spec
from podium_lab.simulator.scenario import AzurePods, ScenarioError

COLUMNS = ("arrival_s", "batch", "cpu_milli", "memory_mib", "min_life_s", "max_life_s", "still_running")
SIZES, LIFETIMES, FLAVOURS, INTERVALS = "v1.dev.txt", "v1.dev.c2100000.txt", "flav_map.txt", "v1.interval_map.txt"
STEP = 300.0
BATCH_END = "|"
TOGETHER = 4096

Floats = NDArray[np.float64]
Wholes = NDArray[np.int64]


class AzureMachines(NamedTuple):
    """All machines of a trace, in columns: 40 bytes each."""

    at: Floats
    batch: Wholes
    shape: Wholes
    shortest: Floats
    longest: Floats
    shapes: list[tuple[int, int]]
    """CPU in thousandths and memory in MiB."""


def arrivals(given: AzurePods, path: Path, seed: int) -> Iterator[PodArrival]:
    """The machines as they arrive."""
    machines = read_csv(path) if given.file is not None else read_folder(path)
    templates = [_template(*shape) for shape in machines.shapes]
    at = machines.at
    if given.spread:
        moments = generator(seed, "arrivals").uniform(0.0, STEP, int(machines.batch.max(initial=0)) + 1)
        at = np.maximum(at - moments[machines.batch], 0.0)
    lifetimes = _lifetimes(given, machines, seed)
    order = np.argsort(at, kind="stable")
    for first in range(0, len(at), TOGETHER):
        part = order[first : first + TOGETHER]
        columns = [each[part].tolist() for each in (at, machines.shape, lifetimes)]
        for index, moment, shape, lifetime in zip(part.tolist(), *columns, strict=True):
            yield PodArrival(moment, f"vm-{index}", templates[shape], lifetime)


def _lifetimes(given: AzurePods, machines: AzureMachines, seed: int) -> Floats:
    ends = np.isfinite(machines.longest)
    longest = np.where(ends, machines.longest, machines.shortest)
    drawn: float | Floats = {"min": 0.0, "max": 1.0}.get(given.lifetime, -1.0)
    if given.lifetime == "uniform":
        drawn = generator(seed, "lifetimes").uniform(0.0, 1.0, len(machines.at))
    return np.where(ends, machines.shortest + drawn * (longest - machines.shortest), FOREVER)


def _template(cpu: int, memory: int) -> PodTemplate:
    requests: dict[str, Amount] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return PodTemplate(plain_spec(requests, requests))


class _Columns:
    """AzureMachines while they are read."""

    def __init__(self) -> None:
        self.shapes: dict[tuple[int, int], int] = {}
        self.rows: list[tuple[float, int, int, float, float]] = []

    def add(self, at: float, batch: int, size: tuple[int, int], life: tuple[float, float]) -> None:
        shape = self.shapes.setdefault(size, len(self.shapes))
        self.rows.append((at, batch, shape, *life))

    def machines(self) -> AzureMachines:
        table = np.array(self.rows, dtype=np.float64).reshape(-1, 5).T.copy()
        batch, shape = table[1:3].astype(np.int64)
        return AzureMachines(table[0], batch, shape, table[3], table[4], list(self.shapes))


@lru_cache(maxsize=2)
def read_csv(path: Path) -> AzureMachines:
    """The machines of one CSV file."""
    found = _Columns()
    batches: dict[str, int] = {}

    def machine(row: CsvRow) -> None:
        batch = batches.setdefault(row.required("batch"), len(batches))
        size = row.whole("cpu_milli"), row.whole("memory_mib")
        shortest, longest = row.number("min_life_s"), row.number("max_life_s")
        if longest < shortest:
            raise row.error("max_life_s", f"at least min_life_s, {shortest:g}")
        if row.one_of("still_running", ("0", "1")) == "1":
            longest = FOREVER
        found.add(row.number("arrival_s"), batch, size, (shortest, longest))

    read_rows(path, machine, required=COLUMNS)
    if not found.rows:
        raise ScenarioError(f"{path}:1: expected at least one machine below the first line")
    return found.machines()


@lru_cache(maxsize=2)
def read_folder(folder: Path) -> AzureMachines:
    """The machines of the upstream files: a line is `stamp a,a,|,b,|`, letters are sizes and `|` ends a batch; the
    lifetimes stand in a second file at the same positions, `U<bin>` where the machine ended and `C<bin>` where not."""
    sizes_file, lives_file = folder / SIZES, folder / LIFETIMES
    sizes = {letter: _size(flavour, folder / FLAVOURS, line) for line, flavour, letter in _pairs(folder / FLAVOURS)}
    bins = _bins(folder / INTERVALS)
    found, batch, start = _Columns(), 0, None
    lines = zip_longest(_lines(sizes_file), _lines(lives_file), fillvalue="")
    for number, (letters, lives) in enumerate(lines, start=1):
        stamp, machines = _stamped(letters, sizes_file, number)
        other, lifetimes = _stamped(lives, lives_file, number)
        if stamp != other or len(machines) != len(lifetimes):
            raise ScenarioError(
                f"{lives_file}:{number}: column 1: expected {len(machines)} entries stamped {stamp:.0f}, as {SIZES}"
                f" has, got {len(lifetimes)} stamped {other:.0f}"
            )
        start = stamp if start is None else start
        for position, (letter, life) in enumerate(zip(machines, lifetimes, strict=True), start=1):
            if letter == BATCH_END == life:
                batch += 1
                continue
            if letter not in sizes:
                raise _entry(sizes_file, number, position, "the letter of a size", letter)
            known = bins.get(life[1:]) if life[:1] in ("U", "C") else None
            if known is None:
                raise _entry(lives_file, number, position, "U or C and the number of a bin", life)
            found.add(stamp - start, batch, sizes[letter], (known[0], known[1] if life[0] == "U" else FOREVER))
    return found.machines()


def _entry(path: Path, line: int, position: int, expected: str, got: str) -> ScenarioError:
    return ScenarioError(f'{path}:{line}: column {position + 1}: expected {expected}, got "{got[:20]}"')


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            first, _, second = line.strip().partition(" ")
            if not second:
                raise ScenarioError(f'{path}:{number}: column 1: expected two words, got "{line[:40]}"')
            yield number, first, second.strip()


def _size(flavour: str, path: Path, line: int) -> tuple[int, int]:
    cores, _, gigabytes = flavour.partition(",")
    try:
        return round(1000 * float(cores)), round(1024 * float(gigabytes))
    except ValueError:
        raise ScenarioError(f'{path}:{line}: column 1: expected cores,GB, got "{flavour[:40]}"') from None


def _bins(path: Path) -> dict[str, tuple[float, float]]:
    """The shortest and the longest lifetime of each bin."""
    bins: dict[str, tuple[float, float]] = {}
    for line, seconds, name in _pairs(path):
        try:
            length = float(seconds)
        except ValueError:
            raise ScenarioError(f'{path}:{line}: column 1: expected seconds, got "{seconds[:40]}"') from None
        shortest, longest = bins.get(name, (length, length))
        bins[name] = min(shortest, length), max(longest, length)
    return bins


def _stamped(line: str, path: Path, number: int) -> tuple[float, list[str]]:
    stamp, _, rest = line.partition(" ")
    try:
        return float(stamp), [entry for entry in rest.split(",") if entry]
    except ValueError:
        raise ScenarioError(f'{path}:{number}: column 1: expected a time stamp, got "{stamp[:40]}"') from None
