"""Runs a scenario with each of its profiles and seeds, in this process or in several.

Results are in the order of profiles and seeds, whatever finished first, and each run depends on nothing but the
scenario, its profile and its seed: so they are the same with any number of workers. An interrupt ends the sweep and
leaves what is finished.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from podium.config import Registry
from podium.config.seeds import parse_seeds
from podium.plugins import load_registry
from podium_lab.simulator.faults import check_faults
from podium_lab.simulator.nodes import gpu_capacity, scenario_nodes
from podium_lab.simulator.profiles import configuration, profile_oddities
from podium_lab.simulator.qos_page import SimulatedQosPage
from podium_lab.simulator.ray_engine import perform_on_ray
from podium_lab.simulator.reading import LoadedScenario, Source, read_scenario
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.rules import check
from podium_lab.simulator.run import Progress, RunResult, SimulatedRun
from podium_lab.simulator.scenario import Contender, Scenario, ScenarioError
from podium_lab.simulator.workload import arrivals, file_oddities, workloads

Engine = Literal["local", "ray"]


class Job(NamedTuple):
    """One run to do."""

    number: int
    contender: Contender
    seed: int


class Plan(NamedTuple):
    """All runs of a sweep."""

    loaded: LoadedScenario
    jobs: list[Job]
    plugins: tuple[str, ...]
    oddities: tuple[str, ...] = ()
    """What the reader should know of input that can be used though something about it is odd."""


Finished = Callable[[int, RunResult], None]
"""Called with the number of finished runs and the last of them."""


def simulate(
    scenario: str | Path | Scenario | LoadedScenario,
    *,
    profiles: Sequence[str] | None = None,
    seeds: int | str | Sequence[int] | None = None,
    workers: int = 1,
    engine: Engine = "local",
    data: str | Path | None = None,
    sets: Sequence[str] = (),
    plugins: Sequence[str] = (),
    finished: Finished = lambda _number, _run: None,
    progress: Progress = lambda _arrived: None,
) -> SimulationResults:
    """Simulates a scenario: a file, or one that was made in Python.

    `sets` are `key=value` texts that override values of a file; `plugins` are `module:Class` texts; the engine "ray"
    runs on many machines. Raises ScenarioError for what is wrong with the input.
    """
    planned = plan(load(scenario, data, sets), profiles, seeds, plugins)
    return complete(planned, workers, engine, finished=finished, progress=progress)


def complete(
    planned: Plan,
    workers: int,
    engine: Engine = "local",
    *,
    finished: Finished = lambda _number, _run: None,
    progress: Progress = lambda _arrived: None,
    page: SimulatedQosPage | None = None,
) -> SimulationResults:
    """Does all runs, or those that finish before an interrupt. The page shows runs that are done in this process."""
    runs: dict[int, RunResult] = {}
    try:
        running = perform_on_ray(planned) if engine == "ray" else perform(planned, workers, progress, page)
        for number, run in running:
            runs[number] = run
            finished(len(runs), run)
    except KeyboardInterrupt:
        pass
    scenario, source = planned.loaded.scenario, planned.loaded.source
    file = source.file if planned.loaded.positions else ""
    return SimulationResults(scenario, [runs[number] for number in sorted(runs)], len(planned.jobs), file)


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


def perform(
    planned: Plan,
    workers: int,
    progress: Progress = lambda _arrived: None,
    page: SimulatedQosPage | None = None,
) -> Iterator[tuple[int, RunResult]]:
    """The numbers and results of all runs, as they finish."""
    if workers == 1 or len(planned.jobs) == 1:
        registry = load_registry(planned.plugins)
        for job in planned.jobs:
            yield job.number, run_job(planned.loaded, job, registry, progress, page)
        return
    context = multiprocessing.get_context("forkserver")
    number = min(workers, len(planned.jobs))
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(number, mp_context=context, initializer=_leave_signals_to_the_parent) as pool:
        running = [pool.submit(run_alone, planned.loaded, job, planned.plugins) for job in planned.jobs]
        try:
            for done in as_completed(running):
                yield done.result()
        except BaseException:  # an interrupt, or a mistake in the input: nothing else is waited for
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def run_job(
    loaded: LoadedScenario,
    job: Job,
    registry: Registry,
    progress: Progress = lambda _arrived: None,
    page: SimulatedQosPage | None = None,
) -> RunResult:
    """One run from its beginning."""
    config = configuration(loaded, job.contender, registry)
    return SimulatedRun(loaded, job.contender.name, job.seed, config, registry).run(progress, page)


def run_alone(loaded: LoadedScenario, job: Job, plugins: tuple[str, ...]) -> tuple[int, RunResult]:
    """The same in a process of its own."""
    registry = _registries.get(plugins)
    if registry is None:
        registry = _registries[plugins] = load_registry(plugins)
    return job.number, run_job(loaded, job, registry)


_registries: dict[tuple[str, ...], Registry] = {}
"""Plugins are loaded once for each worker."""


def _leave_signals_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what was imported stays: no need to look through it at every collection


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
