"""What a scheduler process takes from the machine it runs on: the time, chance, a name. A simulation gives its own."""

from __future__ import annotations

import gc
import random
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from podium.framework.clock import Clock, SystemClock


class ProcessEnvironment(NamedTuple):
    """`stopwatch` is what durations are taken with; `settle` is called when all that stays has been listed."""

    clock: Clock
    rng: random.Random
    stopwatch: Callable[[], float]
    hostname: str
    settle: Callable[[], None]


def this_machine() -> ProcessEnvironment:
    return ProcessEnvironment(SystemClock(), random.Random(), time.perf_counter, socket.gethostname(), _settle)


def _settle() -> None:
    """No need to look through what was listed at every collection."""
    gc.collect()
    gc.freeze()
