"""Runs a scenario with each of its profiles and seeds: every run is a unit, and units run on any engine.

Results are in the order of profiles and seeds, whatever finished first, and each run depends on nothing but the
scenario, its profile and its seed: so they are the same on any engine, with any number of workers. An interrupt ends
the sweep and leaves what is finished.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from podium.config.seeds import parse_seeds
from podium.plugins import load_registry
from podium_lab.simulator.faults import check_faults
from podium_lab.simulator.nodes import gpu_capacity, scenario_nodes
from podium_lab.simulator.profiles import configuration, profile_oddities
from podium_lab.simulator.qos_figures import SimulatedQosPage
from podium_lab.simulator.reading import LoadedScenario, Source, read_scenario
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.rules import check
from podium_lab.simulator.run import Progress, RunResult, SimulatedRun
from podium_lab.simulator.scenario import Scenario, ScenarioError
from podium_lab.simulator.simulation_units import Job, StoredRuns, encode_run, run_in, run_of, units_of
from podium_lab.simulator.workload import arrivals, file_oddities, workloads
from podium_lab.units.estimate import UnitEstimate, estimate_units
from podium_lab.units.run import EngineOptions, OnNotice, Tally, UnitRunner, check_options
from podium_lab.units.store import UnitStore, open_store
from podium_lab.units.unit import Unit


class Plan(NamedTuple):
    """All runs of a sweep."""

    loaded: LoadedScenario
    jobs: list[Job]
    plugins: tuple[str, ...]
    oddities: tuple[str, ...] = ()
    """What the reader should know of input that can be used though something about it is odd."""


Finished = Callable[[int, RunResult], None]
"""Called with the number of finished runs and the last of them."""
OnUnit = Callable[[Tally, Unit | None], None]
"""Called when the sweep begins, and with each unit that is finished."""


def simulate(
    scenario: str | Path | Scenario | LoadedScenario,
    *,
    profiles: Sequence[str] | None = None,
    seeds: int | str | Sequence[int] | None = None,
    workers: int = 1,
    engine: str = "local",
    store: str | Path | None = None,
    data: str | Path | None = None,
    sets: Sequence[str] = (),
    plugins: Sequence[str] = (),
    finished: Finished | None = None,
    progress: Progress = lambda _arrived: None,
) -> SimulationResults:
    """Simulates a scenario: a file, or one that was made in Python.

    `sets` are `key=value` texts that override values of a file; `plugins` are `module:Class` texts. A `store` keeps
    what is finished, so that the same call goes on where an earlier one stopped. Raises ScenarioError for what is wrong
    with the input.
    """
    planned = plan(load(scenario, data, sets), profiles, seeds, plugins)
    options = EngineOptions(engine=engine, workers=workers)
    return complete(planned, options, None if store is None else str(store), finished=finished, progress=progress)


def complete(
    planned: Plan,
    options: EngineOptions,
    store: str | None = None,
    *,
    finished: Finished | None = None,
    on_unit: OnUnit = lambda _tally, _unit: None,
    on_notice: OnNotice = lambda _sentence: None,
    progress: Progress = lambda _arrived: None,
    page: SimulatedQosPage | None = None,
    command: str = "",
) -> SimulationResults:
    """Does all runs of a part, or those that finish before an interrupt. The page shows runs of this process."""
    check_options(options, store)
    folder = None if store is not None else tempfile.mkdtemp(prefix="podium-results-")
    unit_store = open_store(store or str(folder))
    try:
        units = units_of(planned.loaded, planned.jobs, planned.plugins, unit_store)

        def tell(tally: Tally, unit: Unit | None) -> None:
            on_unit(tally, unit)
            if unit is not None and finished is not None:
                finished(tally.done + tally.skipped, _run(unit_store, unit))

        try:
            with UnitRunner(unit_store, options, on_notice) as runner:
                inputs = runner.inputs
                runner.run(
                    units,
                    verify=lambda unit, payload: run_in(payload, unit),
                    here=lambda unit: encode_run(run_of(unit, inputs, progress, page)),
                    on_unit=tell,
                    command=command,
                )
        except KeyboardInterrupt:
            pass
        present = unit_store.present()
        runs = StoredRuns(unit_store, [unit for unit in units if unit.key in present])
    except BaseException:  # also an interrupt: what was for this call alone goes
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(runs, shutil.rmtree, folder, ignore_errors=True)
    scenario, source = planned.loaded.scenario, planned.loaded.source
    file = source.file if planned.loaded.positions else ""
    return SimulationResults(scenario, runs, len(planned.jobs), file)


def estimate(planned: Plan, options: EngineOptions, store: str | None) -> UnitEstimate:
    """What all runs will take, from two that are done here."""
    with tempfile.TemporaryDirectory(prefix="podium-results-") as folder:
        unit_store = open_store(store or folder)
        units = units_of(planned.loaded, planned.jobs, planned.plugins, unit_store)
        return estimate_units(units, unit_store, options.workers, options.part)


def _run(store: UnitStore, unit: Unit) -> RunResult:
    payload = store.result(unit)
    assert payload is not None, "it was on_notice to be finished"
    return run_in(payload, unit)


def load(
    scenario: str | Path | Scenario | LoadedScenario, data: str | Path | None = None, sets: Sequence[str] = ()
) -> LoadedScenario:
    """A scenario with its place, wherever it comes from."""
    if isinstance(scenario, LoadedScenario):
        return scenario
    folder = None if data is None else str(data)
    if isinstance(scenario, Scenario):
        mistakes = [f"{each.path}: {each.message}" for each in check(scenario)]
        if mistakes:
            raise ScenarioError(mistakes)
        return LoadedScenario(scenario, Source("scenario", tuple(filter(None, (folder, ".")))), {})
    return read_scenario(str(scenario), data=folder, sets=sets)


def plan(
    loaded: LoadedScenario,
    profiles: Sequence[str] | None,
    seeds: int | str | Sequence[int] | None,
    plugins: Sequence[str] = (),
) -> Plan:
    """The runs to do. Every profile is built once, so that what is wrong with one shows before the first run."""
    scenario = loaded.scenario
    by_name = {each.name: each for each in scenario.profiles}
    chosen = list(by_name) if profiles is None else list(dict.fromkeys(profiles))
    for name in chosen:
        if name not in by_name:
            raise ScenarioError(f'there is no profile "{name}"; choose from {", ".join(by_name)}')
    given = scenario.seeds if seeds is None else seeds
    try:
        numbers = parse_seeds(given if isinstance(given, (int, str)) else list(given))
    except ValueError as error:
        raise ScenarioError(f"seeds: {error}") from None
    registry = load_registry(plugins)
    for name in chosen:
        configuration(loaded, by_name[name], registry)
    nodes = scenario_nodes(loaded)
    check_faults(loaded, nodes)
    odd = [each for name in chosen for each in profile_oddities(loaded, by_name[name], registry, len(nodes))]
    pairs = [(by_name[name], seed) for name in chosen for seed in numbers]
    jobs = [Job(number, contender, seed) for number, (contender, seed) in enumerate(pairs)]
    return Plan(loaded, jobs, tuple(plugins), (*file_oddities(loaded), *odd))


def has_promises(loaded: LoadedScenario) -> bool:
    """Whether controllers of the workload are promised anything."""
    return any(each.broker is not None for each in workloads(loaded.scenario, loaded.source))


MOST = 1_000_000
"""Pods that are counted."""


def check_files(planned: Plan) -> tuple[str, int]:
    """Check a scenario without running it: schedulers get their clusters, every file is read, the first pods are made.

    How many pods the first run has, in words, and how many nodes there are; raises what a run would raise.
    """
    loaded, registry = planned.loaded, load_registry(planned.plugins)
    nodes = []
    for contender in {job.contender.name: job.contender for job in planned.jobs}.values():
        config = configuration(loaded, contender, registry)
        nodes = SimulatedRun(loaded, contender.name, planned.jobs[0].seed, config, registry).set_up()
    pods = sum(1 for _ in islice(arrivals(loaded, planned.jobs[0].seed, gpu_capacity(nodes)), MOST))
    return f"{pods:,} pods" if pods < MOST else f"more than {MOST:,} pods", len(nodes)
