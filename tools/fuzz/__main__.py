"""Fuzzes for as long as wanted, under a memory limit: `python -m tools.fuzz --minutes 10 --seed 1`.

Every turn takes another reader or endpoint, in an order and with inputs that follow from the seed. What fails is
written to a file and named; a crash of the interpreter leaves the last input in the same folder.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import resource
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random

from tools.fuzz.endpoints import ENDPOINTS, ServerFailedError, run_attack
from tools.fuzz.limits import cpu_limit
from tools.fuzz.mutation import mutated
from tools.fuzz.readers import READERS

MEMORY = 4_000_000_000
TURN = 3.0
"""Seconds for one reader or endpoint before the next has its turn."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="a part of the names to take")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure, with the others")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    logging.disable(logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="podium-fuzz-"))
    print(
        f"seed {given.seed}, {given.minutes:g} minutes, {MEMORY >> 20} MiB; inputs that fail go to {folder}", flush=True
    )
    rng = Random(given.seed)
    names = [name for name in (*READERS, *ENDPOINTS) if given.only in name]
    counts = dict.fromkeys(names, 0)
    failed: set[str] = set()
    end = time.monotonic() + given.minutes * 60
    while time.monotonic() < end and len(failed) < len(names):
        left = [name for name in names if name not in failed]
        servers = [name for name in left if name in ENDPOINTS]  # slower than readers, so they get half of the time
        name = rng.choice(servers if servers and rng.random() < 0.5 else left)
        turn_ends = min(end, time.monotonic() + TURN)
        try:
            counts[name] += _turn(name, rng, turn_ends, folder)
        except Exception as error:
            failed.add(name)
            print(f"FAILED {name}: {_kept(folder, name, error)}", flush=True)
            traceback.print_exception(error, limit=-6)
            if not given.keep_going:
                break
    for name, count in counts.items():
        print(f"{count:>9,} {name}{'  FAILED' if name in failed else ''}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{sum(counts.values()):>9,} inputs, {len(failed)} failures, {peak} MiB at most")
    if not failed:
        shutil.rmtree(folder)
    return 1 if failed else 0


def _turn(name: str, rng: Random, end: float, folder: Path) -> int:
    if name in ENDPOINTS:
        return run_attack(name, rng, until=lambda _count: time.monotonic() > end)
    reader, count = READERS[name], 0
    with (folder / "last").open("wb", buffering=0) as last:
        while time.monotonic() < end:
            text = mutated(rng, reader.seeds)
            last.seek(0)
            last.truncate()
            last.write(text)
            with cpu_limit(), suppress(*reader.errors):
                reader.read(text)
            count += 1
    return count


def _kept(folder: Path, name: str, error: Exception) -> Path:
    """Where the input of a failure can be found."""
    file = folder / name.replace(" ", "-")
    if isinstance(error, ServerFailedError):
        file.write_bytes(error.sent)
    elif (folder / "last").exists():
        file.write_bytes((folder / "last").read_bytes())
    return file


if __name__ == "__main__":
    sys.exit(main())
