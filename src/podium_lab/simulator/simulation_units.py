"""Cuts a sweep into units, one run each, and runs them.

What came of a run is MessagePack, the same bytes for the same run. `StoredRuns` reads runs from a store when they are
asked for, and keeps the last ones in a bounded part of memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
import yaml

from podium import packages
from podium.config import Registry
from podium.config.strict import decode
from podium.plugins import load_registry
from podium.plugins.plugin_source import SUFFIX, file_of, split_option
from podium_lab.simulator.figures import COLUMNS
from podium_lab.simulator.pod_classes import CLASS_FIGURES, ClassResult
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.qos_figures import SimulatedQosPage
from podium_lab.simulator.reading import LoadedScenario, Source
from podium_lab.simulator.run import Progress, RunResult, SimulatedRun
from podium_lab.simulator.scenario import Contender, Scenario
from podium_lab.simulator.scenario_files import (
    argument_files,
    folder_files,
    read_documents,
    run_scenario,
    scenario_files,
    with_paths,
)
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.store import UnitStore, result_name
from podium_lab.units.unit import DamagedError, StoreError, Unit, code_version, content_hash

SETTINGS, FILE, FOLDER, PLUGIN, ARGUMENT = "settings", "file:", "folder:", "plugin:", "argument:"
"""Names of inputs: the scenario as plain values, the files and folders it names, plugins of the command line, and files
that arguments of plugins name."""


class Job(NamedTuple):
    """One run to do."""

    number: int
    contender: Contender
    seed: int


class SimulationSettings(msgspec.Struct, frozen=True):
    """The input that says what to run."""

    scenario: dict[str, Any]
    plugins: tuple[str, ...]
    installed: tuple[str, ...]
    """Plugins of other packages that are installed, with their versions."""
    kubernetes_version: str
    """The minor by whose rules pods are placed."""


def units_of(loaded: LoadedScenario, jobs: Sequence[Job], plugins: tuple[str, ...], store: UnitStore) -> list[Unit]:
    """The unit of each run; the store gets what they read."""
    digests: dict[Path, str] = {}
    of_profile: dict[str, dict[str, str]] = {}
    for contender in {job.contender.name: job.contender for job in jobs}.values():
        files = {PLUGIN + option: file_of(option) for option in plugins}
        files |= {ARGUMENT + name: Path(name) for name in argument_files(loaded, contender)}
        for name, path in scenario_files(loaded, contender).items():
            if path.is_dir():
                files |= {f"{FOLDER}{name}/{each}": file for each, file in folder_files(path).items()}
            else:
                files[FILE + name] = path
        for path in set(files.values()) - digests.keys():
            digests[path] = store.put_input(path.read_bytes())
        settings = SimulationSettings(
            run_scenario(loaded.scenario, contender), plugins, _installed(), loaded.kubernetes_version
        )
        inputs = {name: digests[path] for name, path in files.items()}
        inputs[SETTINGS] = store.put_input(msgspec.json.encode(settings, order="deterministic"))
        of_profile[contender.name] = inputs
    version = code_version()
    return [
        Unit("simulate", job.contender.name, (job.seed, job.seed), of_profile[job.contender.name], version)
        for job in jobs
    ]


def _installed() -> tuple[str, ...]:
    points = entry_points(group=packages.PLUGINS)
    return tuple(sorted(f"{each.name}={each.value} {each.dist.version if each.dist else ''}" for each in points))


def run_unit(unit: Unit, inputs: UnitInputs) -> bytes:
    """Run one unit from its beginning."""
    return encode_run(run_of(unit, inputs))


def run_of(
    unit: Unit,
    inputs: UnitInputs,
    progress: Progress = lambda _arrived: None,
    page: SimulatedQosPage | None = None,
) -> RunResult:
    """The same, where someone watches; the page shows a run of this process."""
    loaded, registry = _loaded(inputs, tuple(sorted(unit.inputs.items())))
    (contender,) = loaded.scenario.profiles
    config = configuration(loaded, contender, registry)
    return SimulatedRun(loaded, contender.name, unit.seeds[0], config, registry).run(progress, page)


@lru_cache(maxsize=16)
def _loaded(inputs: UnitInputs, of: tuple[tuple[str, str], ...]) -> tuple[LoadedScenario, Registry]:
    """The scenario that some inputs are, and the plugins that may take part: read once in each process."""
    digests = dict(of)
    settings = msgspec.json.decode(inputs.content(digests[SETTINGS]), type=SimulationSettings)
    contender = settings.scenario["profiles"][0]
    paths = {}
    folders: dict[str, dict[str, str]] = {}
    for name, digest in of:
        if name.startswith(FILE):
            paths[name.removeprefix(FILE)] = str(inputs.path(digest, name))
        elif name.startswith(FOLDER):
            folder, _, file = name.removeprefix(FOLDER).rpartition("/")
            folders.setdefault(folder, {})[file] = digest
    paths |= {name: str(inputs.folder(files)) for name, files in folders.items()}
    arguments = _argument_paths(inputs, digests)
    if "file" in contender:
        paths[contender["file"]] = _configuration_file(inputs, paths[contender["file"]], arguments)
    elif "profile" in contender:
        contender = {**contender, "profile": with_paths(contender["profile"], arguments)}
    scenario, mistakes = decode({**settings.scenario, "profiles": [contender]}, Scenario)
    assert scenario is not None, f"it was checked before units were made of it: {mistakes}"
    options = [_plugin(option, digests[PLUGIN + option], inputs) for option in settings.plugins]
    source = Source("scenario", (), paths)
    return LoadedScenario(scenario, source, {}, settings.kubernetes_version), load_registry(options)


def _argument_paths(inputs: UnitInputs, digests: dict[str, str]) -> dict[str, str]:
    """Where files of arguments lie here; those of one folder together."""
    folders: dict[Path, dict[str, str]] = {}
    names = [name.removeprefix(ARGUMENT) for name in digests if name.startswith(ARGUMENT)]
    for name in names:
        folders.setdefault(Path(name).parent, {})[Path(name).name] = digests[ARGUMENT + name]
    return {name: str(inputs.folder(folders[Path(name).parent]) / Path(name).name) for name in names}


def _configuration_file(inputs: UnitInputs, path: str, arguments: dict[str, str]) -> str:
    """The configuration file of a profile, with the paths that files of arguments have here."""
    if not arguments:
        return path
    moved = yaml.safe_dump_all(with_paths(read_documents(Path(path)), arguments)).encode()
    copy = inputs.copies / f"{content_hash(moved)[:16]}.yaml"
    copy.write_bytes(moved)
    return str(copy)


def _plugin(option: str, digest: str, inputs: UnitInputs) -> str:
    """A plugin as it is named here: a file, or a module that is not installed here, is a copy."""
    name, attribute = split_option(option)
    if not name.endswith(SUFFIX):
        if "." in name or find_spec(name) is not None:
            return option
        name = f"{name}{SUFFIX}"
    copy = inputs.copy(digest, name)
    return f"{copy}:{attribute}" if attribute else str(copy)


def run_in(payload: bytes, unit: Unit) -> RunResult:
    """The run that a payload holds; raises DamagedError where it is another's."""
    run = decode_run(payload)
    if (run.profile, run.seed) != (unit.profile, unit.seeds[0]):
        raise DamagedError(f"holds the run of {run.profile}, seed {run.seed}")
    return run


class RunPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run's result as plain data; numbers are little-endian."""

    profile: str
    seed: int
    columns: tuple[str, ...]
    table: bytes
    """float64[checkpoints, columns]."""
    unplaced: list[tuple[str, int]]
    waits: bytes
    """int64[bins]."""
    notes: tuple[str, ...]
    classes: list[tuple[str, str]]
    class_figures: bytes
    """float64[classes, CLASS_FIGURES]."""


def encode_run(run: RunResult) -> bytes:
    figures = [[each.figures[name] for name in CLASS_FIGURES] for each in run.classes]
    return msgspec.msgpack.encode(
        RunPayload(
            run.profile,
            run.seed,
            tuple(COLUMNS),
            run.table.astype("<f8").tobytes(),
            list(run.unplaced.items()),
            run.waits.astype("<i8").tobytes(),
            run.notes,
            [(each.by, each.name) for each in run.classes],
            np.array(figures, dtype="<f8").tobytes(),
        )
    )


def decode_run(payload: bytes) -> RunResult:
    """The run; raises DamagedError where the payload is not one of this version."""
    try:
        found = _DECODER.decode(payload)
        if found.columns != tuple(COLUMNS):
            raise DamagedError("has other columns than this Podium")
        table = np.frombuffer(found.table, dtype="<f8").reshape(-1, len(COLUMNS))
        figures = np.frombuffer(found.class_figures, dtype="<f8").reshape(len(found.classes), len(CLASS_FIGURES))
        waits = np.frombuffer(found.waits, dtype="<i8")
    except (msgspec.DecodeError, ValueError):
        raise DamagedError("holds no run of a simulation") from None
    classes = tuple(
        ClassResult(by, name, dict(zip(CLASS_FIGURES, row, strict=True)))
        for (by, name), row in zip(found.classes, figures.tolist(), strict=True)
    )
    unplaced = dict(found.unplaced)
    return RunResult(found.profile, found.seed, table, unplaced, waits, found.notes, classes)


_DECODER = msgspec.msgpack.Decoder(RunPayload)


MOST_BYTES = 128 << 20
"""Bytes of runs in memory at a time, estimated from what was stored."""
OBJECTS = 4_000
"""Bytes that the objects of a run take beside its numbers."""


class StoredRuns(Sequence[RunResult]):
    """The runs of some units, in their order."""

    def __init__(self, store: UnitStore, units: Sequence[Unit]) -> None:
        self._store = store
        self._units = units
        self._cached: OrderedDict[int, tuple[RunResult, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._units)

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | Sequence[RunResult]:
        if isinstance(index, slice):
            return StoredRuns(self._store, self._units[index])
        number = range(len(self._units))[index]
        found = self._cached.get(number)
        if found is None:
            found = self._cached[number] = self._read(self._units[number])
            self._bytes += found[1]
            while self._bytes > MOST_BYTES and len(self._cached) > 1:
                self._bytes -= self._cached.popitem(last=False)[1][1]
        return found[0]

    def _read(self, unit: Unit) -> tuple[RunResult, int]:
        """A run, and about how many bytes it takes."""
        place = f"{self._store.url}/{result_name(unit.key)}"
        try:
            payload = self._store.result(unit)
            if payload is None:
                raise DamagedError("is gone")
            return run_in(payload, unit), 2 * len(payload) + OBJECTS
        except DamagedError as error:
            raise StoreError(f"{place}: {error}; start the same command again to replace it") from None
