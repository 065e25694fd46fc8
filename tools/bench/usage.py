"""Measures what another process has cost so far, as Linux counts it: processor time and memory.

A process is taken together with its children, those that ended (the kernel adds them to their parent once it has asked
for them) and those that still run, so that no scheduler can hide its work in another process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of the process and all its descendants since they started."""
    return sum(_ticks(each) for each in _with_children(pid)) / TICKS_PER_SECOND


def peak_bytes(pid: int) -> int:
    """The most memory the process ever held at once (VmHWM), plus the same of each descendant."""
    return sum(_status_bytes(each, "VmHWM:") for each in _with_children(pid))


def resident_bytes(pid: int) -> int:
    """The memory that the process and its descendants hold now (VmRSS)."""
    return sum(_status_bytes(each, "VmRSS:") for each in _with_children(pid))


def _ticks(pid: int) -> int:
    # The second field is the program's name in brackets, which may hold anything; utime is the 12th after it.
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])  # utime, stime, and both of the children that ended


def _status_bytes(pid: int, field: str) -> int:
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for children in (PROC / str(pid) / "task").glob("*/children"):
        for child in children.read_text().split():
            yield from _with_children(int(child))
