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


ANOTHER = """
import msgspec
from podium.kube.type_info import read_types

class Theirs(msgspec.Struct):
    a: int

class Unreadable(msgspec.Struct):
    a: "Missing"

class Last(msgspec.Struct):
    a: int

read_types()
for each in (Theirs, Last):
    each.__annotations__["a"] = str  # too late for a type that was read
    print(msgspec.json.decode(b'{"a": 5}', type=each).a)
"""


def test_types_of_every_package_are_read_and_one_that_cannot_be_stops_none() -> None:
    ran = subprocess.run([sys.executable, "-c", ANOTHER], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("5\n5\n", "")
