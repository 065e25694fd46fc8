"""Runs the units of a plan in a pod: its own share first, then what others have not done.

    python3 -m podium_lab.units --store STORE --plan HASH --parts N     with $JOB_COMPLETION_INDEX

Exit code 2: the input is wrong, and no other pod would do better. Results that are there are not made again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from podium.errors import UserError
from podium_lab.units.inputs import inputs_of_store
from podium_lab.units.store import UnitStore, open_store
from podium_lab.units.unit import DamagedError, Unit
from podium_lab.units.work import perform


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m podium_lab.units", description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--plan", required=True)
    parser.add_argument("--parts", type=int, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a node goes: end now, and leave nothing half written
    index = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
    try:
        serve(open_store(given.store), given.plan, index, given.parts)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def serve(store: UnitStore, plan: str, index: int, parts: int) -> None:
    """Give every unit of a plan a result that has none, beginning with one's own share."""
    units = store.plan(plan).units
    inputs = inputs_of_store(store)
    share = units[index::parts]
    # Others begin at the front of their shares, so help comes from behind: it seldom does what is under way.
    for unit in (*share, *reversed(units)):
        if not _has_result(store, unit):
            store.put_result(unit, perform(unit, inputs))
            print(unit.label, flush=True)


def _has_result(store: UnitStore, unit: Unit) -> bool:
    try:
        return store.result(unit) is not None
    except DamagedError:
        return False


if __name__ == "__main__":
    sys.exit(main())
