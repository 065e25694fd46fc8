"""Says how far everything in a store is: of each plan what is done, what is damaged, and how fast it goes."""

from __future__ import annotations

from typing import Any, NamedTuple

from podium.framework.clock import SystemClock
from podium_lab.units.places import FolderPlace
from podium_lab.units.store import UnitPlan, UnitStore, open_store
from podium_lab.units.unit import StoreError

RECENT = 600.0
"""Seconds over which the rate is taken."""


class PlanStatus(NamedTuple):
    """One plan of a store."""

    plan: str
    what: str
    command: str
    units: int
    done: int
    damaged: list[str]
    per_minute: float
    """Results written in the last ten minutes."""
    version: str

    @property
    def left(self) -> int:
        return self.units - self.done

    @property
    def seconds_left(self) -> float | None:
        return 60 * self.left / self.per_minute if self.per_minute and self.left else None

    def to_data(self) -> dict[str, Any]:
        seconds = self.seconds_left
        return {
            "plan": self.plan,
            "what": self.what,
            "command": self.command,
            "version": self.version,
            "units": self.units,
            "done": self.done,
            "left": self.left,
            "damaged": self.damaged,
            "perMinute": round(self.per_minute, 2),
            "secondsLeft": None if seconds is None else round(seconds),
        }


class StoreStatus(NamedTuple):
    """A store: its plans, and what killed processes left there."""

    store: str
    plans: list[PlanStatus]
    leftovers: list[str]
    damaged_inputs: list[str]

    @property
    def complete(self) -> bool:
        return not self.damaged_inputs and all(not each.left for each in self.plans)

    def to_data(self) -> dict[str, Any]:
        return {
            "store": self.store,
            "complete": self.complete,
            "plans": [each.to_data() for each in self.plans],
            "damagedInputs": self.damaged_inputs,
            "leftovers": self.leftovers,
        }


def store_status(url: str) -> StoreStatus:
    """Read and verify everything in a store."""
    store = open_store(url)
    names = store.plans()
    if not names:
        missing = isinstance(store.place, FolderPlace) and not store.place.folder.is_dir()
        raise StoreError(f"{url}: {'there is no such folder' if missing else 'holds no plan of units'}")
    now = SystemClock().now()
    plans = []
    inputs: set[str] = set()
    for name, plan in _by_command(store, names).items():
        standing = store.standing(plan.units)
        recent = [at for at in standing.done.values() if now - at < RECENT]
        window = now - min(recent) if recent else RECENT
        pace = 60 * len(recent) / max(window, 1.0)
        kinds = ", ".join(dict.fromkeys(f"{unit.what} {unit.profile}" for unit in plan.units[:1000]))
        versions = ", ".join(dict.fromkeys(unit.version for unit in plan.units))
        damaged = list(standing.damaged.values())
        counts = len(plan.units), len(standing.done)
        plans.append(PlanStatus(name, kinds, plan.command, *counts, damaged, pace, versions))
        inputs |= {digest for unit in plan.units for digest in unit.inputs.values()}
    return StoreStatus(store.url, plans, store.place.leftovers(), _damaged_inputs(store, inputs))


def _by_command(store: UnitStore, names: list[str]) -> dict[str, UnitPlan]:
    """Plans by name; what one command has planned in turn (a generation after the other) is one plan."""
    found: dict[str, UnitPlan] = {}
    first: dict[str, str] = {}
    for name in names:
        plan = store.plan(name)
        known = first.setdefault(plan.command, name) if plan.command else name
        before = found[known].units if known in found else ()
        found[known] = UnitPlan(plan.command, tuple({unit.key: unit for unit in (*before, *plan.units)}.values()))
    return found


def _damaged_inputs(store: UnitStore, digests: set[str]) -> list[str]:
    found = []
    for digest in sorted(digests):
        try:
            store.input(digest)
        except StoreError as error:
            found.append(str(error))
    return found
