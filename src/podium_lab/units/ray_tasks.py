"""Runs units as tasks of Ray, on any of its nodes.

Ray finds its cluster as its own rules say: RAY_ADDRESS names one, and without it a cluster is started on this machine.
Nodes need Python and the packages that Podium depends on. Podium's own code and the inputs travel with the work, and
results travel back: no path has to exist on another machine.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import msgspec

from podium_lab.units.dispatch import Done
from podium_lab.units.inputs import UnitInputs, inputs_of_contents
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import PACKAGES, Unit, UnitError, package_folder
from podium_lab.units.work import Failure, UnitOutcome, attempt

AHEAD = 2
"""Units that are handed to Ray for each core, so that none waits for this process."""


class RayWorkers:
    """The cores of a Ray cluster."""

    name = "Ray"

    def __init__(self, store: UnitStore, workers: int) -> None:
        self._ray = _ray()
        self._mine = not self._ray.is_initialized()
        if self._mine:
            self._ray.init(
                log_to_driver=False,
                logging_level="error",
                include_dashboard=None if "RAY_ADDRESS" in os.environ else False,
                runtime_env=runtime_environment(),
            )
        self._most = workers if workers > 1 else None
        self._store = store
        self._inputs: dict[tuple[str, ...], Any] = {}
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(run_remote)
        self._running: dict[Any, int] = {}

    @property
    def room(self) -> int:
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return max(0, (self._most or AHEAD * cores) - len(self._running))

    def begin(self, number: int, unit: Unit) -> None:
        digests = tuple(sorted(set(unit.inputs.values())))
        reference = self._inputs.get(digests)
        if reference is None:
            contents = {digest: self._store.input(digest) for digest in digests}
            reference = self._inputs[digests] = self._ray.put(msgspec.msgpack.encode(contents))
        task = self._task.remote(reference, digests, msgspec.msgpack.encode(unit))
        self._running[task] = number

    def wait(self, seconds: float) -> list[Done]:
        ready, _rest = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        if not ready:
            ready, _rest = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [Done(self._running.pop(task), self._outcome(task)) for task in ready]

    def drop(self, number: int) -> None:
        for task in [task for task, other in self._running.items() if other == number]:
            del self._running[task]
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()
        if self._mine:
            self._ray.shutdown()

    def _outcome(self, task: Any) -> UnitOutcome | None:
        """What a task came to; None: its worker, its node or its inputs were lost."""
        errors = self._ray.exceptions
        try:
            payload, failure = self._ray.get(task)
        except errors.RuntimeEnvSetupError as error:
            raise UnitError(f"--engine ray: a node cannot take Podium's code: {str(error).splitlines()[0]}") from None
        except errors.RayTaskError as error:
            raise UnitError(f"--engine ray: a task failed before it reached a unit: {error.cause}") from None
        except errors.RayError:
            self._inputs.clear()  # what was lost may have been these
            return None
        return UnitOutcome(payload, None if failure is None else msgspec.msgpack.decode(failure, type=Failure))


def run_remote(contents: bytes, digests: tuple[str, ...], unit: bytes) -> tuple[bytes | None, bytes | None]:
    """Run one unit on a node: its payload, or its failure."""
    inputs = _known.get(digests)
    if inputs is None:
        inputs = _known[digests] = inputs_of_contents(msgspec.msgpack.decode(contents, type=dict[str, bytes]))
    payload, failure = attempt(msgspec.msgpack.decode(unit, type=Unit), inputs)
    return payload, None if failure is None else msgspec.msgpack.encode(failure)


_known: dict[tuple[str, ...], UnitInputs] = {}
"""The inputs that this worker has unpacked already."""


def runtime_environment() -> dict[str, Any]:
    """What nodes are sent: the code of our packages."""
    return {"py_modules": [str(package_folder(name)) for name in PACKAGES]}


def _ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # without it, Ray warns about what is to come
    try:
        return import_module("ray")
    except ImportError:
        raise UnitError("--engine ray: Ray is not installed; install podium[ray]") from None
