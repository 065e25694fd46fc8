"""Every workload in a process of its own: its memory is then its own, and nothing an earlier one left behind counts.

The child is this module run as a program. It reads one request from standard input and writes lines to standard output:
the phases it goes through, then what it measured.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

import msgspec

from podium.bench.runner import Measurement, run_workload
from podium.bench.suite import by_name
from podium.bench.workload import Workload
from podium.config import default_config, load_config
from podium.plugins import load_registry


class Request(msgspec.Struct, frozen=True):
    """A workload by name, with its sizes, and the configuration as text; without one, the default configuration."""

    workload: str
    sizes: dict[str, int]
    config: str | None = None
    config_source: str = ""
    plugins: tuple[str, ...] = ()


class _Line(msgspec.Struct, omit_defaults=True):
    phase: str = ""
    measurement: Measurement | None = None


class WorkloadFailedError(Exception):
    """A workload's process ended without an answer."""


def request_for(workload: Workload, config: tuple[str, str] | None = None, plugins: Sequence[str] = ()) -> Request:
    """`config` is the text of a configuration and what its file is called."""
    text, source = config or (None, "")
    return Request(workload.name, dict(workload.sizes), text, source, tuple(plugins))


def measure(request: Request, on_phase: Callable[[str], None] = lambda _phase: None) -> Measurement:
    """Run a workload in a new process."""
    command = [sys.executable, "-m", "podium.bench.processes"]
    pipe = subprocess.PIPE
    with TemporaryFile() as complaints, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=complaints) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(msgspec.json.encode(request))
        child.stdin.close()
        measured = None
        for text in child.stdout:
            line = msgspec.json.decode(text, type=_Line)
            if line.phase:
                on_phase(line.phase)
            measured = line.measurement or measured
        child.wait()
        complaints.seek(0)
        complaint = complaints.read().decode(errors="replace").strip()
    if measured is None:
        last = complaint.splitlines()[-1] if complaint else f"its process ended with {child.returncode}"
        raise WorkloadFailedError(f"{request.workload}: {last}")
    return measured


def answer(request: Request, on_phase: Callable[[str], None]) -> Measurement:
    """What the child does."""
    registry = load_registry(request.plugins)
    if request.config is None:
        config = default_config(registry)
    else:
        config = load_config(request.config, request.config_source, registry).config
    workload = by_name(request.workload).with_sizes(request.sizes)
    return run_workload(workload, config, registry, on_phase)


def main() -> None:
    def say(line: _Line) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()

    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    say(_Line(measurement=answer(request, lambda phase: say(_Line(phase=phase)))))


if __name__ == "__main__":
    main()
