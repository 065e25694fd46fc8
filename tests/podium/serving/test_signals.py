"""Processes that cannot stop by themselves end all the same."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, uvloop
from podium.serving.environment import stop_on_signals
async def main():
    stop = stop_on_signals(0.2)
    print("ready", flush=True)
    {body}
{loop}.run(main())
"""
NEVER_ENDS = {"a loop that is held": "while True: pass", "work that takes long": "await asyncio.sleep(600)"}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("body", NEVER_ENDS.values(), ids=NEVER_ENDS.keys())
def test_one_signal_is_enough_whatever_holds_the_process(body: str, loop: str) -> None:
    program = PROGRAM.format(body=body, loop=loop)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert b"not stopped 0.2 s after the signal" in process.stderr.read()
