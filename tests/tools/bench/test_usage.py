"""What other processes cost: counted with their children, whether those run or have ended."""

import subprocess
import sys
import time

import pytest

from tools.bench.usage import cpu_seconds, peak_bytes

BURN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"
"""A tenth more than is looked for: the kernel counts in hundredths, rounded down."""
BURN_AND_STAY = f"{BURN}print('done', flush=True)\ntime.sleep(60)"
READY = "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n"


def started(code: str) -> "subprocess.Popen[str]":
    """A Python that has done `code` and waits."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code + READY], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    "code",
    [
        BURN,
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n",
        "import atexit, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BURN_AND_STAY!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\natexit.register(child.kill)\n",
    ],
    ids=["its own", "of a child that ended", "of a child that runs"],
)
def test_processor_time_is_counted(code: str) -> None:
    with started(code) as process:
        assert 0.3 <= cpu_seconds(process.pid) < 30
        process.communicate("")


def test_a_waiting_process_costs_nothing() -> None:
    with started("") as process:
        before = cpu_seconds(process.pid)
        time.sleep(0.2)
        assert cpu_seconds(process.pid) == before
        process.communicate("")


def test_the_peak_stays_when_the_memory_is_given_back() -> None:
    with started("bytearray(200_000_000)\n") as process:
        assert 200_000_000 < peak_bytes(process.pid) < 400_000_000
        process.communicate("")
