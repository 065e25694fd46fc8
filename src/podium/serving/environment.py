"""Names what a process takes from the machine it runs on: time, chance, a host name, signals, an event loop.

A simulation gives its own time and chance.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from types import FrameType
from typing import NamedTuple

from podium.framework.clock import Clock, SystemClock
from podium.serving.log import LOG

ENDED_AT_ONCE = 1
LONGEST_STOP = 15.0
"""Seconds from the first signal; writing what is still to be written takes up to GRACE and LAST_WRITES of them."""


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


def stop_on_signals(longest: float = LONGEST_STOP) -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second ends the process at once, as it does kube-scheduler.

    Stops a running process at a signal: the first lets it finish what it does, the second ends it at once.

    Where a plugin or an object holds the event loop, the loop cannot hear the signal. So it is heard beside the
    loop, too, and the process ends after LONGEST_STOP seconds in any case: before Kubernetes would kill it.
    """
    stop = asyncio.Event()
    heard: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            _end("a second signal to stop: ending at once")
        last = Timer(longest, _end, [f"not stopped {longest:g} s after the signal: ending at once"])
        last.daemon = True
        last.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
        signal.signal(number, on_signal)  # beside the loop's own, which the signal wakes through a file
    return stop


def _end(why: str) -> None:
    LOG.error("%s", why)
    os._exit(ENDED_AT_ONCE)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Makes event loops: of uvloop where there is one, because requests take less time on it."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()
