"""Names what a process takes from the machine it runs on: time, chance, a host name. A simulation gives its own."""

from __future__ import annotations

import gc
import random
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from podium.framework.clock import Clock, SystemClock


class ProcessEnvironment(NamedTuple):
    """`timer` is what durations are taken with; `settle` is called when all that stays in memory has been listed."""

    clock: Clock
    rng: random.Random
    timer: Callable[[], float]
    hostname: str
    settle: Callable[[], None]
    real_time: bool = False
    """Whether threads may watch the loop: in virtual time they would see nothing, and not the same twice."""


def this_machine() -> ProcessEnvironment:
    return ProcessEnvironment(SystemClock(), random.Random(), time.perf_counter, socket.gethostname(), _settle, True)


def _settle() -> None:
    """Leave what was listed out of every later garbage collection."""
    gc.collect()
    gc.freeze()
