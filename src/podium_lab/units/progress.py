"""Shows how far units are: a line with rate and time left on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self, TextIO

import msgspec

from podium_lab.units.run import Tally
from podium_lab.units.unit import Unit, seconds_now

EVERY = 5.0
"""Seconds between two JSON lines."""


class UnitProgress:
    """The progress of one command on standard error."""

    def __init__(self, *, always: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._always = always
        """Whether a last JSON line is written even for a short run: what was kept in a store is worth a line."""
        self._began = self._written = seconds_now()
        self._tally = Tally(0)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("units", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._tally.units and (self._always or self._written > self._began):
            self._line()

    def on_unit(self, tally: Tally, unit: Unit | None) -> None:
        """A unit is finished; None: it begins."""
        self._tally = tally
        if self._bar is not None:
            text = "" if unit is None else f"{pace_words(self.pace(), tally.left)} · {unit.label}"
            self._bar.update(self._task, total=tally.units, completed=tally.skipped + tally.done, description=text)
        elif seconds_now() - self._written >= EVERY:
            self._line()

    def inside(self, text: str) -> None:
        """What the unit is at that runs in this process."""
        if self._bar is not None:
            self._bar.update(self._task, description=text)

    def pace(self) -> float | None:
        """Units a second."""
        seconds = seconds_now() - self._began
        return self._tally.done / seconds if self._tally.done and seconds > 0 else None

    def _line(self) -> None:
        self._written = seconds_now()
        tally, pace = self._tally, self.pace()
        line = {
            **msgspec.structs.asdict(tally),
            "seconds": round(self._written - self._began, 1),
            "perSecond": None if pace is None else round(pace, 3),
            "secondsLeft": None if pace is None else round(tally.left / pace, 1),
        }
        print(msgspec.json.encode(line).decode(), file=self._stream, flush=True)


def pace_words(pace: float | None, left: int) -> str:
    """
    >>> pace_words(2.0, 600), pace_words(0.01, 36)
    ('2.0 a second, 5 min left', '0.6 a minute, 1.0 h left')
    """
    if pace is None:
        return ""
    rate = f"{pace:.1f} a second" if pace >= 1 else f"{60 * pace:.1f} a minute"
    return f"{rate}, {duration_words(left / pace)} left"


def duration_words(seconds: float) -> str:
    """
    >>> duration_words(42), duration_words(300), duration_words(7200)
    ('42 s', '5 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
