"""Runs many seeds, on several cores, and sums up what came of them."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from typing import Any

from podium.config.registry import Registry
from podium.plugins import load_registry
from tools.chaos.scenario import ScenarioOutcome, run_scenario
from tools.chaos.workloads import WORKLOADS

LAST_LINES = 30
"""Lines of the transcript that are shown of a seed that failed."""


class UnknownScenarioError(ValueError):
    """There is no workload of that name; the text says which there are."""


def check_workload(name: str | None) -> None:
    if name is not None and name not in WORKLOADS:
        raise UnknownScenarioError(
            f'there is no workload "{name}": choose one of {", ".join(WORKLOADS)}, or none for a mixture'
        )


class Summary:
    """The sum over all seeds so far."""

    def __init__(self) -> None:
        self.seeds = 0
        self.pods = 0
        self.bound = 0
        self.virtual_seconds = 0.0
        self.excused = 0
        self.checked: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()
        self.failed: list[ScenarioOutcome] = []

    def add(self, outcome: ScenarioOutcome) -> None:
        self.seeds += 1
        self.pods += outcome.pods
        self.bound += outcome.bound
        self.virtual_seconds += outcome.seconds
        self.excused += outcome.excused
        self.checked += outcome.checked
        self.injected += outcome.injected
        if outcome.violations:
            self.failed.append(outcome)

    def to_data(self, workload: str | None) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "pods": self.pods,
            "virtualSeconds": round(self.virtual_seconds),
            "invariants": dict(sorted(self.checked.items())),
            "faults": dict(self.injected.most_common()),
            "failures": [
                {
                    "seed": outcome.seed,
                    "reproduce": reproduce(outcome.seed, workload),
                    "violations": [
                        {"invariant": each.invariant, "at": round(each.at, 3), "what": each.what}
                        for each in outcome.violations
                    ],
                    "lastLines": outcome.transcript[-LAST_LINES:],
                }
                for outcome in self.failed
            ],
        }


def reproduce(seed: int, workload: str | None) -> str:
    return f"podium chaos --seeds {seed}{f' --workload {workload}' if workload else ''} -v"


def run_seeds(
    seeds: Iterable[int], workload: str | None, workers: int, *, full: bool = False
) -> Iterator[ScenarioOutcome]:
    """Outcomes as they come, in no order with several workers; transcripts of failures, or of all where `full`."""
    if workers == 1:
        registry = load_registry()
        for seed in seeds:
            yield _one(seed, workload, registry, full)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_signals_to_the_parent) as pool:
        waiting = iter(seeds)
        running = {pool.submit(_in_worker, seed, workload, full) for seed in islice(waiting, 2 * workers)}
        try:
            while running:
                done = next(as_completed(running))
                running.discard(done)
                running |= {pool.submit(_in_worker, seed, workload, full) for seed in islice(waiting, 1)}
                yield done.result()
        finally:
            for each in running:
                each.cancel()


_registry: Registry | None = None


def _in_worker(seed: int, workload: str | None, full: bool) -> ScenarioOutcome:
    global _registry  # noqa: PLW0603  (plugins are loaded once for each worker)
    if _registry is None:
        _registry = load_registry()
    return _one(seed, workload, _registry, full)


def _one(seed: int, workload: str | None, registry: Registry, full: bool) -> ScenarioOutcome:
    outcome = run_scenario(seed, None if workload is None else WORKLOADS[workload], registry)
    if full or outcome.violations:
        return outcome
    return outcome._replace(transcript=[])


def _leave_signals_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what was imported stays: no need to look through it at every collection
