"""Compiles and evaluates the selectors of devices: expressions over the variable `device`.

    compile_selector('device.driver == "gpu.example.com"').matches(device)

A device has a driver, attributes and capacities by domain and name, and whether it may be allocated several times.
Names without a domain belong to the driver's. A domain that a device knows nothing of is an empty map; a name in it
that is not there is an error. What the API server refuses is refused with its words, the estimated cost included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from kubecel import types
from kubecel.checker import Environment
from kubecel.compilation import CompilationError, compile_expression
from kubecel.cost_estimate import estimate_cost
from kubecel.declarations import RETIRED, read_type
from kubecel.evaluation import Program, ProgramError
from kubecel.library.versions import read_version
from kubecel.metering import INTERRUPTED, CancelledError, Meter, Span
from kubecel.values import CelError, MapValue, QuantityValue, SemverValue, type_name

MAX_COST: Final = 1_000_000
"""The most that evaluating a selector may cost, estimated or real."""
MAX_LENGTH: Final = 10 * 1024
"""The most bytes that a selector may have."""
_DEVICE: Final = "kubernetes.DRADevice"
_ATTRIBUTES: Final = types.map_of(types.STRING, types.map_of(types.STRING, types.ANY))
_CAPACITY: Final = types.map_of(types.STRING, types.map_of(types.STRING, read_type("Quantity")))
_ENVIRONMENT: Final = Environment(
    {"device": types.object_type(_DEVICE)},
    {
        _DEVICE: {
            "driver": types.STRING,
            "attributes": _ATTRIBUTES,
            "capacity": _CAPACITY,
            "allowMultipleAllocations": types.BOOL,
        }
    },
    without=RETIRED,
)
_WITH_DURATIONS_OF_INT: Final = replace(_ENVIRONMENT, without=frozenset())
_MOST_ENTRIES: Final = 32
_SIZES: Final = {
    (): 0,
    ("driver",): 63,
    ("allowMultipleAllocations",): 1,
    **{
        (name, *steps): size
        for name in ("attributes", "capacity")
        for steps, size in {
            (): _MOST_ENTRIES,
            ("@keys",): 63,
            ("@values",): _MOST_ENTRIES,
            ("@values", "@keys"): 32,
            ("@values", "@values"): 64 if name == "attributes" else 0,
        }.items()
    },
}
"""The most elements or characters at each path from the device."""
_CONVERSIONS: Final = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
}


AttributeValue = bool | int | str | SemverValue
"""The value of an attribute; `version` makes that of a version."""


class DeviceSelectorError(ValueError):
    """A selector that is none; `internal` where the API server calls that its own error. `interrupted`: the time was
    over while it was evaluated, and with more time it could have an answer."""

    def __init__(self, message: str, *, internal: bool = False, interrupted: bool = False) -> None:
        super().__init__(message)
        self.internal = internal
        self.interrupted = interrupted


@dataclass(frozen=True)
class SelectableDevice:
    """A device as selectors see it; make it with `selectable`."""

    values: MapValue


def selectable(
    driver: str,
    attributes: Mapping[str, AttributeValue],
    capacity: Mapping[str, int],
    *,
    multiple: bool = False,
) -> SelectableDevice:
    """A device for selectors: attributes by name, with or without domain, and capacities in nano units."""
    amounts = {name: QuantityValue(nano) for name, nano in capacity.items()}
    return SelectableDevice(
        MapValue(
            {
                "driver": driver,
                "attributes": _by_domain(attributes, driver),
                "capacity": _by_domain(amounts, driver),
                "allowMultipleAllocations": multiple,
            }
        )
    )


def _by_domain(named: Mapping[str, object], driver: str) -> MapValue:
    domains: dict[str, MapValue] = {}
    for name, value in named.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, MapValue()).put(identifier, value)
    return MapValue(domains, default=MapValue())


def version(text: str) -> SemverValue:
    """The value of an attribute that is a version; ValueError where it is none."""
    try:
        return read_version(text)
    except CelError as error:
        raise ValueError(f"parse semantic version: {error}") from None


class DeviceSelector:
    """A compiled selector."""

    def __init__(self, expression: str, *, durations_of_int: bool = False) -> None:
        self.expression = expression
        environment = _WITH_DURATIONS_OF_INT if durations_of_int else _ENVIRONMENT
        try:
            checked = compile_expression(expression, environment, bindings=True)
        except CompilationError as error:
            raise DeviceSelectorError(str(error)) from None
        if checked.type not in (types.BOOL, types.ANY):
            raise DeviceSelectorError(f"must evaluate to bool or the unknown type, not {checked.type}")
        self._checked = checked
        self.max_cost = estimate_cost(checked, _size_of_path).most
        try:
            self._program = Program(checked, ["device"], MAX_COST, metered=self.max_cost > MAX_COST)
        except ProgramError as error:
            raise DeviceSelectorError(f"program instantiation failed: {error}", internal=True) from None

    @property
    def is_too_complex(self) -> bool:
        """Whether the API server refuses it for what evaluating it may cost."""
        return self.max_cost > MAX_COST

    def matches(self, device: SelectableDevice, expired: Callable[[], bool] | None = None) -> bool:
        """Whether it selects a device; DeviceSelectorError where that has no answer.

        `expired` says whether the time is over: loops then end, and so does the evaluation, with TimeoutError. As in
        Kubernetes, an error that came before it in the expression is the one that is raised.
        """
        meter = Meter(MAX_COST, expired) if self._program.is_metered else None
        try:
            answer = _as_bool(self._program.run([device.values], meter))
        except (CelError, CancelledError) as error:
            interrupted = meter is not None and meter.interrupted
            if interrupted and INTERRUPTED in str(error):
                raise TimeoutError from None
            raise DeviceSelectorError(str(error), interrupted=interrupted) from None
        if meter is not None and meter.interrupted:
            raise TimeoutError
        return answer

    def cost(self, device: SelectableDevice) -> int:
        """What evaluating it for a device costs."""
        return Program(self._checked, ["device"], MAX_COST, metered=True).cost([device.values])[1]


def _as_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    name = type_name(value)
    problem = _CONVERSIONS.get(name, f"type conversion error from '{name}' to 'bool'")
    raise CelError(f"CEL result of type {name} could not be converted to bool: {problem}")


def _size_of_path(path: tuple[str, ...]) -> Span | None:
    if path[0] != "device":
        return None
    steps = path[1:]
    if steps[:2] == ("attributes", "@values") and len(steps) == 3 and not steps[2].startswith("@"):
        return Span(0, _SIZES[("attributes", "@values", "@values")])
    steps = tuple("@values" if step == "@items" else step for step in steps)
    size = _SIZES.get(steps)
    return None if size is None else Span(0, size)


@lru_cache(maxsize=1000)
def compile_selector(expression: str, *, durations_of_int: bool = False) -> DeviceSelector:
    """The compiled selector, shared by all callers; DeviceSelectorError where it is none.

    Before Kubernetes 1.37, `duration(1)` was a duration, too.

    >>> gpu = selectable("gpu.example.com", {"model": "a100"}, {})
    >>> compile_selector('device.attributes["gpu.example.com"].model == "a100"').matches(gpu)
    True
    """
    return DeviceSelector(expression, durations_of_int=durations_of_int)
