"""Finds what computes a call: the one overload that its types allow, or at run time the one that its values fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from kubecel import operations
from kubecel.declarations import FUNCTIONS, RETIRED, Overload
from kubecel.library import IMPLEMENTATIONS
from kubecel.library.strings import matches
from kubecel.strconv import words
from kubecel.types import CelType, TypeKind
from kubecel.values import CelError, MapValue, QuantityValue, no_overload, type_name

CONVERSIONS: Final = frozenset(words("bool bytes double duration dyn int string timestamp type uint"))
_UNGUARDED: Final = frozenset({"contains", "startsWith", "endsWith", "flatten"})
"""Functions that check their arguments themselves."""


def _not(value: object) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return not value


def _size(value: object) -> int:
    if not isinstance(value, (str, bytes, list, MapValue)):
        raise no_overload() if type_name(value).startswith("google.") else CelError("no such overload: size")
    return len(value)


def _unequal(one: object, other: object) -> bool:
    try:
        return not operations.equal(one, other)
    except CelError:
        return True


def _type(value: object) -> CelType:
    return CelType(TypeKind.TYPE, type_name(value))


_OPERATORS: Final[dict[str, Callable[..., object]]] = {
    "_==_": operations.equal,
    "_!=_": _unequal,
    "_<_": operations.less,
    "_<=_": operations.less_or_equal,
    "_>_": operations.greater,
    "_>=_": operations.greater_or_equal,
    "_+_": operations.add,
    "_-_": operations.subtract,
    "_*_": operations.multiply,
    "_/_": operations.divide,
    "_%_": operations.modulo,
    "-_": operations.negate,
    "!_": _not,
    "@in": lambda element, container: operations.contains(container, element),
    "size": _size,
    "matches": matches,
    "type": _type,
    "dyn": lambda value: value,
}


def bound_call(function: str, overloads: Sequence[str]) -> Callable[..., object]:
    """What computes the function, for the overloads that the checker left."""
    operator = _OPERATORS.get(function)
    if operator is not None:
        return operator
    return _one(function, overloads[0]) if len(overloads) == 1 else _any(function, not RETIRED.isdisjoint(overloads))


@cache
def _one(function: str, overload_id: str) -> Callable[..., object]:
    overload = next(each for each in FUNCTIONS[function] if each.id == overload_id)
    implementation = IMPLEMENTATIONS.get(overload_id)
    if implementation is None:
        return _missing(function)
    if function in _UNGUARDED or not overload.arguments:
        return implementation

    if [each.name for each in overload.arguments] == ["kubernetes.Quantity"] * 2:
        return _of_two_quantities(function, implementation)

    def guarded(*args: object) -> object:
        if not _fits(overload, args):
            raise _no_overload_for(function, args)
        return implementation(*args)

    return guarded


def _of_two_quantities(function: str, implementation: Callable[..., object]) -> Callable[..., object]:
    """The guard of what selectors call most, without a loop."""

    def guarded(one: object, other: object) -> object:
        if type(one) is QuantityValue and type(other) is QuantityValue:
            return implementation(one, other)
        raise _no_overload_for(function, (one, other))

    return guarded


@cache
def _any(function: str, with_retired: bool) -> Callable[..., object]:
    """The overload that the values fit, whichever way the function is called."""
    known = [each for each in FUNCTIONS[function] if with_retired or each.id not in RETIRED]
    candidates = [(each, IMPLEMENTATIONS[each.id]) for each in known if each.id in IMPLEMENTATIONS]

    def dispatched(*args: object) -> object:
        for overload, implementation in candidates:
            if len(overload.arguments) == len(args) and _fits(overload, args):
                return implementation(*args)
        raise _no_overload_for(function, args)

    return dispatched


def _missing(function: str) -> Callable[..., object]:
    def refused(*args: object) -> object:
        raise _no_overload_for(function, args)

    return refused


def _no_overload_for(function: str, args: Sequence[object]) -> CelError:
    return CelError(f"no such overload: {function}({', '.join(type_name(arg) for arg in args)})")


def _fits(overload: Overload, args: Sequence[object]) -> bool:
    return all(_fits_type(wanted, arg) for wanted, arg in zip(overload.arguments, args, strict=True))


def _fits_type(wanted: CelType, value: object) -> bool:
    """Whether a value is of a type; of lists and maps the first element speaks for all."""
    if wanted.is_dynamic or wanted.kind is TypeKind.PARAMETER:
        return True
    if wanted.name != type_name(value):
        return False
    match value:
        case list() if value:
            return _fits_type(wanted.parameters[0], value[0])
        case MapValue() if len(value):
            key, element = next(value.items())
            return _fits_type(wanted.parameters[0], key) and _fits_type(wanted.parameters[1], element)
    return True
