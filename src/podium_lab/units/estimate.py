"""Estimates what all units will take from two trial units, which are run here one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from podium_lab.units.inputs import inputs_of_store
from podium_lab.units.progress import duration_words
from podium_lab.units.run import UnitPart
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import Unit, seconds_now
from podium_lab.units.work import perform


class TrialUnit(NamedTuple):
    """A unit that was run to see how long it takes."""

    label: str
    seconds: float


class UnitEstimate(NamedTuple):
    """What is left to do, and how long it may take."""

    units: int
    done: int
    """Have a result already."""
    workers: int
    trials: list[TrialUnit]

    @property
    def core_seconds(self) -> float:
        """Of one core, for what is left."""
        return (self.units - self.done) * sum(each.seconds for each in self.trials) / max(1, len(self.trials))

    @property
    def seconds(self) -> float:
        return self.core_seconds / self.workers

    def to_data(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "done": self.done,
            "workers": self.workers,
            "trials": [{"unit": each.label, "seconds": round(each.seconds, 3)} for each in self.trials],
            "coreSeconds": round(self.core_seconds, 1),
            "seconds": round(self.seconds, 1),
        }

    def sentences(self) -> list[str]:
        left = self.units - self.done
        if not left:
            return [f"{self.units:,} units: all have a result"]
        took = " and ".join(f"{each.seconds:.2f} s ({each.label})" for each in self.trials)
        workers = f"{self.workers} workers" if self.workers > 1 else "1 worker"
        return [
            f"{left:,} of {self.units:,} units are left",
            f"trial units took {took}",
            f"about {duration_words(self.core_seconds)} of one core like this; "
            f"{duration_words(self.seconds)} with {workers}",
        ]


def estimate_units(
    units: Sequence[Unit], store: UnitStore, workers: int, part: UnitPart, run: Callable[[Unit], bytes] | None = None
) -> UnitEstimate:
    """Run the first unit that is left and one in the middle; their results are kept."""
    mine = units[part.number - 1 :: part.of]
    done = store.standing(mine).done
    left = [unit for unit in mine if unit.key not in done]
    inputs = inputs_of_store(store)
    trials = []
    for unit in [left[i] for i in dict.fromkeys((0, len(left) // 2))] if left else []:
        began = seconds_now()
        store.put_result(unit, run(unit) if run is not None else perform(unit, inputs))
        trials.append(TrialUnit(unit.label, seconds_now() - began))
    return UnitEstimate(len(mine), len(done) + len(trials), workers, trials)
