"""Runs every workload in a process of its own: its memory is its own, and leftovers of an earlier one do not count.

The child is this module run as a program. It reads a request from standard input, one line, and writes lines to
standard output: the phases it goes through, then what it measured. Where workloads are compared they take turns on one
core: before each batch of pods a child says so, and goes on when it reads another line. What disturbs that core then
disturbs all of them equally.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import IO

import msgspec
from msgspec.structs import replace

from podium.config import SchedulerConfig, default_config, load_config
from podium.config.points import Point
from podium.plugins import load_registry
from podium.plugins.priority_sort import NAME as PRIORITY_SORT
from tools.bench.runner import Measurement, run_workload
from tools.bench.suite import by_name
from tools.bench.workload import Workload


class WorkloadRequest(msgspec.Struct, frozen=True):
    """A workload by name, with its sizes, and the configuration as text; without one, the workload's."""

    workload: str
    sizes: dict[str, int]
    config: str | None = None
    config_source: str = ""
    plugins: tuple[str, ...] = ()
    without: str = ""
    """A plugin to be left out of the configuration."""
    in_turns: bool = False


class _Line(msgspec.Struct, omit_defaults=True):
    phase: str = ""
    turn: bool = False
    measurement: Measurement | None = None


class WorkloadFailedError(Exception):
    """A workload's process ended without an answer."""


def request_for(
    workload: Workload, config: tuple[str, str] | None = None, plugins: Sequence[str] = ()
) -> WorkloadRequest:
    """`config` is the text of a configuration and what its file is called."""
    text, source = config or (None, "")
    return WorkloadRequest(workload.name, dict(workload.sizes), text, source, tuple(plugins))


def measure(request: WorkloadRequest, on_phase: Callable[[str], None] = lambda _phase: None) -> Measurement:
    """Run a workload in a new process."""
    with _child(request) as child:
        for phase in child.phases():
            on_phase(phase)
        return child.measurement()


def measure_in_turns(requests: Sequence[WorkloadRequest]) -> list[Measurement]:
    """Run workloads side by side, each in a new process, of which one goes on at a time, a batch of pods after another.

    The one that goes first in a round goes second in the next.
    """
    with ExitStack() as stack:
        children = [stack.enter_context(_child(replace(request, in_turns=True))) for request in requests]
        for child in children:
            child.run_to_turn()
        going = children
        while going := [child for child in reversed(going) if not child.done]:
            for child in going:
                child.take_turn()
        return [child.measurement() for child in children]


class _Child:
    def __init__(self, request: WorkloadRequest, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
        self._request = request
        self._process = process
        self._complaints = complaints
        self._measured: Measurement | None = None
        self.done = False

    def phases(self) -> Iterator[str]:
        """What it does, to the end or to its next turn."""
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = msgspec.json.decode(text, type=_Line)
            if line.phase:
                yield line.phase
            self._measured = line.measurement or self._measured
            if line.turn:
                return
        self.done = True

    def run_to_turn(self) -> None:
        for _phase in self.phases():
            pass

    def take_turn(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self.run_to_turn()

    def measurement(self) -> Measurement:
        code = self._process.wait()
        if self._measured is None:
            self._complaints.seek(0)
            complaint = self._complaints.read().decode(errors="replace").strip()
            last = complaint.splitlines()[-1] if complaint else f"its process ended with {code}"
            raise WorkloadFailedError(f"{self._request.workload}: {last}")
        return self._measured


@contextmanager
def _child(request: WorkloadRequest) -> Iterator[_Child]:
    command = [sys.executable, "-m", "tools.bench.processes"]
    pipe = subprocess.PIPE
    with (
        TemporaryFile() as complaints,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=complaints) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(request) + b"\n")
        process.stdin.flush()
        try:
            yield _Child(request, process, complaints)
        except BaseException:  # also an interrupt: the process must not outlive the measurement
            process.kill()
            raise


def answer(request: WorkloadRequest, on_phase: Callable[[str], None], turn: Callable[[], None]) -> Measurement:
    """What the child does."""
    registry = load_registry(request.plugins)
    workload = by_name(request.workload).with_sizes(request.sizes)
    if request.config is not None:
        config = load_config(request.config, request.config_source, registry).config
    elif workload.config is not None:
        config = load_config(workload.config, workload.name, registry).config
    else:
        config = default_config(registry)
    if request.without:
        config = without_plugin(config, request.without)
    return run_workload(workload, config, registry, on_phase, turn if request.in_turns else None)


def without_plugin(config: SchedulerConfig, name: str) -> SchedulerConfig:
    """The configuration as it would be if no profile enabled a plugin. A queue is sorted by priority then."""
    profiles = []
    for profile in config.profiles:
        plugins = {point: tuple(each for each in names if each != name) for point, names in profile.plugins.items()}
        plugins[Point.QUEUE_SORT] = plugins[Point.QUEUE_SORT] or (PRIORITY_SORT,)
        profiles.append(replace(profile, plugins=plugins))
    return replace(config, profiles=tuple(profiles))


def main() -> None:
    def say(line: _Line) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()

    def turn() -> None:
        say(_Line(turn=True))
        sys.stdin.buffer.readline()

    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkloadRequest)
    if request.in_turns and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    say(_Line(measurement=answer(request, lambda phase: say(_Line(phase=phase)), turn)))


if __name__ == "__main__":
    main()
