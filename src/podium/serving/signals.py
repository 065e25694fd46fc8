"""How a running process is told to stop: once to finish what it does, twice to end at once."""

from __future__ import annotations

import asyncio
import os
import signal

from podium.serving.log import LOG

ENDED_AT_ONCE = 1


def stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second ends the process at once, as it does kube-scheduler."""
    stop = asyncio.Event()

    def told_to_stop() -> None:
        if stop.is_set():
            LOG.error("told to stop a second time: ending at once")
            os._exit(ENDED_AT_ONCE)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop)
    return stop
