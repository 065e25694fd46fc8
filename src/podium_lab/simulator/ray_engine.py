"""Runs a sweep on Ray: many machines, each run a task that is tried again elsewhere when its machine is lost.

Ray is found as its own rules say: RAY_ADDRESS names a cluster, without it one is started on this machine. Podium and
the files that a scenario names must be on every machine, at the same path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium_lab.simulator.scenario import ScenarioError

if TYPE_CHECKING:
    from podium_lab.simulator.run import RunResult
    from podium_lab.simulator.sweep import Plan

TRIES = 10
"""How often a run is begun again because its machine was lost."""


def perform_on_ray(planned: Plan) -> Iterator[tuple[int, RunResult]]:
    """The numbers and results of all runs, as they finish."""
    from podium_lab.simulator.sweep import run_alone

    ray = _ray()
    mine = not ray.is_initialized()
    if mine:
        ray.init(log_to_driver=False, logging_level="error", include_dashboard=False if _local() else None)
    try:
        task = ray.remote(num_cpus=1, max_retries=TRIES)(run_alone)
        loaded = ray.put(planned.loaded)
        running = [task.remote(loaded, job, planned.plugins) for job in planned.jobs]
        try:
            while running:
                finished, running = ray.wait(running, num_returns=1)
                yield _result(ray, finished[0])
        finally:
            for each in running:
                ray.cancel(each, force=True)
    finally:
        if mine:
            ray.shutdown()


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise ScenarioError("--engine ray: Ray is not installed; install podium[ray]") from None


def _local() -> bool:
    return "RAY_ADDRESS" not in os.environ


def _result(ray: Any, finished: Any) -> tuple[int, RunResult]:
    try:
        found: tuple[int, RunResult] = ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.WorkerCrashedError:
        raise ScenarioError(
            f"--engine ray: a run was lost {TRIES} times with its machine; see the logs of Ray"
        ) from None
    return found
