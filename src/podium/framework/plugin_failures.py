"""Records what plugins raise: which plugin, where, for which pod and node, with the traceback.

The pod's event has one sentence about it. The traceback is for the author of the plugin, who finds it in the log
(`podium run`, `podium up`), in `podium explain -v`, or nowhere, where nothing listens.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import NamedTuple

from podium.framework.timer import Step

MOST_LOCATIONS = 256
"""Locations that are remembered; one that is different each time would never end."""


class PluginFailure(NamedTuple):
    """An exception that a plugin raised."""

    plugin: str
    step: Step
    pod: str
    """ "namespace/name"."""
    node: str
    """Empty where the plugin was asked about many nodes at once, or about none."""
    error: Exception

    @property
    def location(self) -> tuple[str, Step, type[Exception], str, int]:
        """Plugin, step, type, file and line: failures with one location are one mistake."""
        frames = traceback.extract_tb(self.error.__traceback__, limit=-1)
        file, line = (frames[0].filename, frames[0].lineno or 0) if frames else ("", 0)
        return self.plugin, self.step, type(self.error), file, line

    def __str__(self) -> str:
        on = f" on node {self.node}" if self.node else ""
        raised = f"{type(self.error).__name__}: {self.error}"
        return f'plugin "{self.plugin}" failed at {self.step} for pod {self.pod}{on}: {raised}'

    def traceback(self) -> str:
        return "".join(traceback.format_exception(self.error)).rstrip()


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
