"""Evaluates what macros become: loops over lists and maps, and names for values.

Loops look at the time now and then, and end in an error when it is over. An accumulator starts when it is first read,
and may come to hold an error: reading it then raises the error, so that a later element can still decide an `exists`
or `all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubecel.values import CelError, MapValue

Frame = list[Any]
Evaluate = Callable[[Frame], object]
_UNREAD: Final = object()
_GO_NAMES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "Uint": "types.Uint",
    "float": "types.Double",
    "str": "types.String",
    "bytes": "types.Bytes",
    "NoneType": "types.Null",
    "QuantityValue": "cel.Quantity",
    "SemverValue": "cel.Semver",
    "Duration": "types.Duration",
    "Timestamp": "types.Timestamp",
    "Optional": "*types.Optional",
    "CelType": "*types.Type",
}


@dataclass(frozen=True)
class Fetch:
    """How a variable is read: from its slot, and the first time from `lazy`, in which so many calls nest as `height`
    says. `given`: it comes from outside."""

    slot: int
    lazy: Evaluate | None = None
    height: int = 0
    gathers: bool = False
    given: bool = False

    def reader(self) -> Evaluate:
        slot, lazy, gathers = self.slot, self.lazy, self.gathers
        if self.given:
            return lambda frame: _value(frame[slot])
        if lazy is None:
            return lambda frame: frame[slot]

        def read(frame: Frame) -> object:
            found = frame[slot]
            if found is _UNREAD:
                found = _attempt(lazy, frame)
                if gathers:
                    found = [] if isinstance(found, list) else MapValue()
                frame[slot] = found
            return _value(found)

        return read


def _value(found: object) -> object:
    """What was found, unless it is an error."""
    if isinstance(found, CelError):
        raise found
    return found


def _attempt(evaluate: Evaluate, frame: Frame) -> object:
    """The value, or the error in its place."""
    try:
        return evaluate(frame)
    except CelError as error:
        return error


def bind(name: Fetch, result: Evaluate) -> Evaluate:
    """A result that may read a name."""
    slot = name.slot

    def bound(frame: Frame) -> object:
        frame[slot] = _UNREAD
        return result(frame)

    return bound


def fold(
    accumulator: Fetch,
    ranged: Evaluate,
    slots: tuple[int, int],
    condition: Evaluate | None,
    step: Evaluate,
    result: Evaluate,
) -> Evaluate:
    """A loop: `slots` are those of the loop's variables, the second one 0 where it has one variable."""
    slot = accumulator.slot
    first, second = slots

    def looped(frame: Frame) -> object:
        elements = _elements(ranged(frame), pairs=bool(second))
        meter = frame[0]
        frame[slot] = _UNREAD
        for one, other in elements:
            frame[first] = one
            if second:
                frame[second] = other
            if condition is not None and condition(frame) is False:
                break
            frame[slot] = _attempt(step, frame)
            meter.rounds -= 1
            if not meter.rounds:
                meter.look_at_the_time()
        return result(frame)

    return looped


def _elements(value: object, *, pairs: bool) -> Iterator[tuple[object, object]]:
    if isinstance(value, list):
        return iter(list(enumerate(value))) if pairs else ((each, None) for each in value)
    if isinstance(value, MapValue):
        return iter(list(value.items()))
    kind = _GO_NAMES.get(type(value).__name__, type(value).__name__)
    if pairs:
        raise CelError(f"unsupported comprehension range type: {kind}")
    raise CelError(f"got '{kind}', expected iterable type")
