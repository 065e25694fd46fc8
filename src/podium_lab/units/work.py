"""Runs one unit: finds the function that its kind of work names, and gives it the unit's inputs.

What is wrong with the input travels back as the error's class and text, because errors of other processes have no
other way.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from podium.errors import UserError
from podium.packages import load
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.unit import Unit, UnitError, code_hash, is_for_this_code

WORK = {
    "simulate": "podium_lab.simulator.simulation_units:run_unit",
    "evaluate": "podium_lab.learning.evaluation:run_unit",
    "train": "podium_lab.learning.training_units:run_unit",
}
"""What can be run: a function that takes a unit and its inputs, and returns the payload."""


def perform(unit: Unit, inputs: UnitInputs) -> bytes:
    """The payload of a unit."""
    if not is_for_this_code(unit):
        raise UnitError(
            f"{unit.label}: is for Podium {unit.version}, and the code here has the hash {code_hash()}; "
            "install the same Podium everywhere"
        )
    function: Callable[[Unit, UnitInputs], bytes] = load(WORK[unit.what])
    return function(unit, inputs)


class Failure(msgspec.Struct, frozen=True):
    """Why a unit has no result."""

    error: str
    """The class, as module:name."""
    text: str


class UnitOutcome(NamedTuple):
    """What came of one attempt: a payload or a failure."""

    payload: bytes | None
    failure: Failure | None = None


def attempt(unit: Unit, inputs: UnitInputs) -> UnitOutcome:
    """Perform a unit; any error becomes a failure."""
    try:
        return UnitOutcome(perform(unit, inputs))
    except Exception as error:  # whatever the work does: this process goes on with other units
        return UnitOutcome(None, failure_of(error))


def failure_of(error: Exception) -> Failure:
    kind = type(error)
    text = str(error) if is_sentence(error) else traceback.format_exc()
    return Failure(f"{kind.__module__}:{kind.__qualname__}", text)


def is_sentence(error: Exception) -> bool:
    """Whether an error is written for the reader; others are mistakes of ours."""
    return isinstance(error, (UserError, OSError)) or type(error).__name__ in ("LearningError", "PolicyError")


def error_of(failure: Failure, unit: Unit) -> Exception:
    """The error that a failure was, or one that says where a mistake of ours was made."""
    if failure.error.startswith("podium"):
        kind: Any = load(failure.error)
        if issubclass(kind, UserError) or kind.__name__ in ("LearningError", "PolicyError"):
            found: Exception = kind(failure.text)
            return found
    if "Traceback" not in failure.text:
        return UnitError(f"{unit.label}: {failure.text}")
    return RuntimeError(f"{unit.label} failed where it was run:\n{failure.text}")
