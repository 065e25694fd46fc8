"""Does many pieces of work at once, on processes of this machine or on Ray, and gives the results in order."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any, Literal, TypeVar

from podium_lab.learning.extra import LearningError

Work = TypeVar("Work")
Result = TypeVar("Result")
Engine = Literal["local", "ray"]


def perform(
    function: Callable[[Work], Result], work: Sequence[Work], workers: int, engine: Engine = "local"
) -> Iterator[Result]:
    """The result of each piece, in order; the same with any number of workers."""
    if engine == "ray":
        yield from _on_ray(function, work)
    elif workers == 1 or len(work) <= 1:
        yield from map(function, work)
    else:
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(min(workers, len(work)), mp_context=context, initializer=_ignore_interrupts) as pool:
            try:
                yield from pool.map(function, work)
            except BaseException:  # also an interrupt: nothing else is waited for
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _ignore_interrupts() -> None:
    """The parent ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_ray(function: Callable[[Work], Result], work: Sequence[Work]) -> Iterator[Result]:
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise LearningError("--engine ray: Ray is not installed; install podium[ray]") from None
    if not ray.is_initialized():  # once: starting takes longer than a generation, and Ray ends with the process
        ray.init(log_to_driver=False, logging_level="error")
    task = ray.remote(num_cpus=1, max_retries=10)(function)
    yield from ray.get([task.remote(each) for each in work])
