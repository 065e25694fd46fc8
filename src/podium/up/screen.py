"""Shows what `podium up` does: as a live view where a terminal is attached, else as one line for each decision."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from podium.config.secrets import redacted
from podium.kube.printable import printable, printable_lines
from podium.serving.log import LOG
from podium.up.picture import Picture
from podium.up.pod_tracker import PodDecision
from podium.up.view import draw, line

REDRAWN: Final = 0.25
"""Seconds between two pictures."""


class Screen(Protocol):
    """Where `podium up` prints: a terminal or a pipe."""

    def say(self, text: str) -> None:
        """Print text that is read once."""

    def show_decision(self, decision: PodDecision) -> None: ...

    async def run(self, picture: Callable[[], Awaitable[Picture]]) -> None:
        """Show the picture until cancelled."""


class PlainScreen:
    """Plain lines on standard output."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def say(self, text: str) -> None:
        self._console.print(printable_lines(text))

    def show_decision(self, decision: PodDecision) -> None:
        self._console.print(printable(line(decision)))

    async def run(self, picture: Callable[[], Awaitable[Picture]]) -> None:
        await asyncio.Event().wait()


class LiveScreen:
    """A picture redrawn at the foot of the terminal, with printed text above it."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)

    def say(self, text: str) -> None:
        self._console.print(Text(printable_lines(text)), soft_wrap=True)

    def show_decision(self, decision: PodDecision) -> None:
        """Nothing: the picture has them."""

    async def run(self, picture: Callable[[], Awaitable[Picture]]) -> None:
        with Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            before = list(LOG.handlers)
            LOG.handlers[:] = [_Above(self)]
            try:
                while True:
                    live.update(draw(await picture(), self._console.height), refresh=True)
                    await asyncio.sleep(REDRAWN)
            finally:
                LOG.handlers[:] = before


class _Above(logging.Handler):
    """Log lines printed above the picture, where they do not tear it."""

    def __init__(self, view: LiveScreen) -> None:
        super().__init__()
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.say(f"{record.levelname.lower()}: {printable(redacted(record.getMessage()))}")
