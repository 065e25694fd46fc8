"""Stops a running process at a signal: the first lets it finish what it does, the second ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal

from podium.serving.log import LOG

ENDED_AT_ONCE = 1


def stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second ends the process at once, as it does kube-scheduler."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            LOG.error("a second signal to stop: ending at once")
            os._exit(ENDED_AT_ONCE)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop
