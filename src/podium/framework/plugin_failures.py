"""Records what plugins raise and wrongly answer: which plugin, where, for which pod and node, with the traceback.

The pod's event has one sentence about it. The traceback is for the author of the plugin, who finds it in the log
(`podium run`, `podium up`, `podium extender`), in `podium explain -v`, or nowhere, where nothing listens. It begins in
the plugin: how Podium came to call it tells an author nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple

from podium.framework.plugin import Plugin
from podium.framework.status import WrongAnswerError
from podium.framework.timer import Step

MOST_LOCATIONS = 256
"""Locations that are remembered; one that is different each time would never end."""


class PluginFailure(NamedTuple):
    """An exception that a plugin raised, or a wrong answer of it."""

    plugin: str
    step: Step
    pod: str
    """ "namespace/name"."""
    node: str
    """Empty where the plugin was asked about many nodes at once, or about none."""
    error: Exception

    @property
    def location(self) -> tuple[str, Step, type[Exception], str, int]:
        """Plugin, step, type, file and line: failures with one location are one mistake. That of a wrong answer is the
        check that found it."""
        frames = traceback.extract_tb(self.error.__traceback__, limit=-1)
        file, line = (frames[0].filename, frames[0].lineno or 0) if frames else ("", 0)
        return self.plugin, self.step, type(self.error), file, line

    @property
    def is_wrong_answer(self) -> bool:
        return isinstance(self.error, WrongAnswerError)

    def __str__(self) -> str:
        about = f" for pod {self.pod}" if self.pod else ""
        if self.node:
            about += f" on node {self.node}"
        error = self.error
        if isinstance(error, WrongAnswerError):
            return f'plugin "{self.plugin}" gave a wrong answer at {self.step}{about}: {error.advice}'
        return f'plugin "{self.plugin}" failed at {self.step}{about}: {type(error).__name__}: {error}{line_of(error)}'

    @property
    def frames(self) -> TracebackType | None:
        """The traceback from the plugin's method on; None where nothing of it is the plugin's."""
        return _frames(self.error)

    def traceback(self) -> str:
        """As Python prints it; empty for a wrong answer, whose sentence says all there is."""
        if self.is_wrong_answer:
            return ""
        return "".join(traceback.format_exception(type(self.error), self.error, self.frames)).rstrip()


def line_of(error: Exception) -> str:
    """The innermost line of the plugin's own file, " (rack.py:7)"; "" where nothing of it is the plugin's."""
    frames = traceback.extract_tb(_frames(error))
    mine = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" ({Path(mine[-1].filename).name}:{mine[-1].lineno})" if mine else ""


def _frames(error: Exception) -> TracebackType | None:
    """The traceback from the plugin's method on. Where no method is in it (a function may be a hint, too), without the
    file that caught it and the files beside this one."""
    frames = error.__traceback__
    while frames is not None and not _is_method(frames.tb_frame):
        frames = frames.tb_next
    if frames is not None or error.__traceback__ is None:
        return frames
    frames = error.__traceback__
    callers = {Path(__file__).parent, Path(_file(frames)).parent}
    while frames is not None and Path(_file(frames)).parent in callers:
        frames = frames.tb_next
    return frames


def _is_method(frame: FrameType) -> bool:
    """Whether a frame is of a method of a plugin: its first argument is the plugin, which has that method."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return isinstance(first, Plugin) and hasattr(first, code.co_name)


def _file(frames: TracebackType) -> str:
    return frames.tb_frame.f_code.co_filename


OnPluginFailure = Callable[[PluginFailure], None]
"""Hears of every failure."""


def ignore_failure(_failure: PluginFailure) -> None:
    """For drivers that have no one to show a failure to."""


class FirstFailures:
    """Passes on the first failure of each location, and counts all by plugin and step."""

    def __init__(self, show: OnPluginFailure) -> None:
        self._show = show
        self._shown: set[tuple[str, Step, type[Exception], str, int]] = set()
        self.counts: dict[tuple[str, Step], int] = {}

    def __call__(self, failure: PluginFailure) -> None:
        labels = (failure.plugin, failure.step)
        self.counts[labels] = self.counts.get(labels, 0) + 1
        location = failure.location
        if location not in self._shown and len(self._shown) < MOST_LOCATIONS:
            self._shown.add(location)
            self._show(failure)
