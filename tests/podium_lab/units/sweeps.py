"""Sweeps for tests of engines, run as a user runs them: by the command, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from podium_lab.units.store import open_store
from tests.podium_lab.simulator.scenarios import SMALL

PROFILES = "profiles:\n- {name: a}\n- {name: b}\nseeds: 1-5\n"
TEXT = SMALL + PROFILES
LONG = SMALL.replace("count: 60", "count: 3000").replace("every: 30s", "every: 10m") + PROFILES
"""Ten units of about a second each."""


def command(scenario: Path, *arguments: str, python: Sequence[str] = (sys.executable,)) -> list[str]:
    return [*python, "-m", "podium", "simulate", str(scenario), *arguments]


def results(folder: Path) -> dict[str, bytes]:
    """What a sweep has written, except the page, which says what was typed."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix == ".csv"}


def stored(store: Path) -> dict[str, bytes]:
    """Every result file by its name."""
    return {entry.name: (store / entry.name).read_bytes() for entry in open_store(str(store)).place.entries("results")}


def run_until(
    arguments: Sequence[str],
    until: Callable[[], bool],
    *,
    number: int = signal.SIGKILL,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> str:
    """Start a command and end it by a signal as soon as `until` holds; what it wrote to standard error."""
    with subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        deadline = time.monotonic() + timeout
        try:
            while not until():
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline, "it takes too long"
                time.sleep(0.05)
            process.send_signal(number)
            return process.communicate(timeout=60)[1]
        finally:
            process.kill()


def finished(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, int]:
    """Run a command to its end; the last line of its progress."""
    ran = subprocess.run(
        arguments, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **(environment or {})}
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line.startswith("{")]
    tally: dict[str, int] = json.loads(lines[-1])
    return tally
