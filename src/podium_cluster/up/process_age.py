"""Measures how long this process has been running, its imports included."""

import os
import time
from pathlib import Path


def process_age() -> float:
    """Seconds since this process began."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return time.process_time()
