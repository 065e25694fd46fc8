"""Threads may decode the same types for the first time at the same time, once their fields have been read."""

import subprocess
import sys

RACE = """
import sys, threading, msgspec
from podium.kube.decode import KINDS
from podium.kube.type_info import read_types

if {read}:
    read_types()
sys.setswitchinterval(1e-7)
ready = threading.Barrier(4)

def decode():
    for kind in dict.fromkeys(KINDS.values()):
        ready.wait()
        for _ in range(20):
            msgspec.json.Decoder(kind).decode(b'{{"metadata": {{"name": "a"}}, "spec": {{"selector": {{}}}}}}')

threads = [threading.Thread(target=decode) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


def test_types_that_were_read_are_decoded_by_several_threads_at_once() -> None:
    """Without `read_types` most of these processes crash."""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", RACE.format(read=True)], capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
