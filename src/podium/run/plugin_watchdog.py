"""Names plugins that block.

Plugins run on the event loop, so one that blocks (a request, a lock, a loop over everything) holds up scheduling and
all else on it. A thread looks fifty times a second at what the loop's thread is doing. A plugin's call that is still
the same one after 100 ms is reported: which plugin, where in it, for which pod; and from then on once a minute, with
the sum. The plugin itself pays nothing for being looked at. A C function that does not let go of the interpreter holds
up this thread, too: it is reported when it has ended, if the plugin's call has not.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType

from podium.framework.answers import filter_by_node, score_by_node
from podium.framework.cycle import Cycle
from podium.framework.extension_points import METHODS as METHODS_OF_POINTS
from podium.framework.plugin import Plugin
from podium.kube import Pod
from podium.serving.process_loop import SideThread

SLOW = 0.1
"""Seconds from which on a call is slow."""
LOOK_EVERY = 0.02
SUM_EVERY = 60.0

METHODS = (*METHODS_OF_POINTS, "answer_key", "observe")
_LOOPS = frozenset({id(filter_by_node.__code__), id(score_by_node.__code__)})
"""These call the one-node form of a plugin thousands of times: what counts is all of it."""

Call = tuple[str, str]
"""(plugin, method)."""


class PluginWatchdog:
    """Watches the thread that makes it `start`."""

    def __init__(self, plugins: Iterable[Plugin], report: Callable[[str], None]) -> None:
        self._call_of: dict[int, Call] = {
            id(code): (plugin.name, method) for plugin in plugins for method, code in _methods_of(plugin)
        }
        """By the code of the method: frames have it, and it lives as long as the class."""
        self._report = report
        self._since: dict[FrameType, float] = {}
        """Calls under way, with when each was first seen."""
        self._known: dict[FrameType, Call] = {}
        self._slow_frames: set[FrameType] = set()
        self._last_look = 0.0
        self._next_sum = 0.0
        self._sums: dict[Call, tuple[int, float]] = {}
        self.seconds: dict[Call, float] = {}
        """What slow calls took so far, by plugin and method."""
        self._thread = SideThread("plugin-watchdog")

    def start(self) -> None:
        self._thread.start(self._run, threading.get_ident())

    def stop(self) -> None:
        self._thread.stop()

    def _run(self, watched: int) -> None:
        while not self._thread.ended.wait(LOOK_EVERY):
            self.look(sys._current_frames().get(watched), time.monotonic())
        self._forget_all()

    def look(self, frame: FrameType | None, now: float) -> None:
        """Take note of the plugins' calls on a thread's stack."""
        passed, self._last_look = now - self._last_look, now
        calls = list(self._calls(frame))
        frames = {each for each, _call in calls}
        self._since = {each: self._since.get(each, now) for each in frames}
        self._known = {each: call for each, call in calls if call is not None}
        self._slow_frames &= frames
        for each, call in calls:  # the innermost first: what it is called by waits for it
            if call is not None and now - self._since[each] >= SLOW:
                begins = each not in self._slow_frames
                self._slow_frames.add(each)
                if call not in self._sums:
                    self._next_sum = self._next_sum or now + SUM_EVERY
                    self._report(_first_words(call, each, frame))
                self._add(call, 1 if begins else 0, SLOW if begins else passed)
                break
        if self._next_sum and now >= self._next_sum:
            self._next_sum = now + SUM_EVERY
            self._report_sums()

    def _calls(self, frame: FrameType | None) -> Iterator[tuple[FrameType, Call | None]]:
        """The plugins' calls on a stack, innermost first; None where it cannot be seen which plugin a loop calls."""
        innermost: Call | None = None
        while frame is not None:
            call = self._call_of.get(id(frame.f_code))
            if call is not None:
                innermost = innermost or call
                yield frame, call
            elif id(frame.f_code) in _LOOPS:
                yield frame, innermost or self._known.get(frame)
            frame = frame.f_back

    def _add(self, call: Call, calls: int, seconds: float) -> None:
        self.seconds[call] = self.seconds.get(call, 0.0) + seconds
        number, sum_ = self._sums.get(call, (0, 0.0))
        self._sums[call] = (number + calls, sum_ + seconds)

    def _report_sums(self) -> None:
        for (plugin, method), (number, seconds) in self._sums.items():
            if number:
                self._report(
                    f'plugin "{plugin}" blocks: {number} calls of {method} in the last minute took more than '
                    f"{1000 * SLOW:.0f} ms each, {seconds:.1f} s together"
                )
            self._sums[plugin, method] = (0, 0.0)

    def _forget_all(self) -> None:
        """Frames hold on to all that is in them."""
        self._since, self._known, self._slow_frames = {}, {}, set()


def _methods_of(plugin: Plugin) -> Iterator[tuple[str, CodeType]]:
    for name in METHODS:
        code = getattr(getattr(type(plugin), name, None), "__code__", None)
        if code is not None and getattr(Plugin, name, None) is not getattr(type(plugin), name):
            yield name, code


def _first_words(call: Call, frame: FrameType, innermost: FrameType | None) -> str:
    plugin, method = call
    pod = _pod_of(frame)
    at = f", now in {innermost.f_code.co_filename}:{innermost.f_lineno}" if innermost is not None else ""
    return (
        f'plugin "{plugin}" blocks: {method} has taken more than {1000 * SLOW:.0f} ms{f" for pod {pod}" if pod else ""}'
        f"{at}; nothing else is scheduled meanwhile"
    )


def _pod_of(frame: FrameType) -> str:
    """The pod that a method was called for, from its arguments."""
    values = frame.f_locals
    for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
        value = values.get(name)
        if isinstance(value, Cycle):
            return value.pod.key
        if isinstance(value, Pod):
            return value.key
    return ""
