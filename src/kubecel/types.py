"""Holds the types of CEL and decides which fits which.

A type is a kind, a name and parameters: list(int), map(string, dyn), optional_type(string). `dyn` and `any` fit
everything. A type parameter (`A`, `_var0`) stands for a type that is found while checking: `Bindings` keeps what each
one was found to be. There is one object for each type, so that comparing two takes the same time however deep they
nest: a short text can have a type of thousands of lists in lists.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

from kubecel.limits import is_nearly_used, on_fresh_stack


class TypeKind(Enum):
    """The sort of thing that a type describes."""

    DYN = "dyn"
    ANY = "any"
    PRIMITIVE = "primitive"
    TIME = "time"
    ERROR = "error"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    OBJECT = "object"
    TYPE = "type"
    PARAMETER = "parameter"


class CelType:
    """A type; two of the same kind, name and parameters are one object. `open`: whether it has type parameters."""

    __slots__ = ("__weakref__", "kind", "name", "open", "parameters")

    kind: TypeKind
    name: str
    parameters: tuple[CelType, ...]
    open: bool

    def __new__(cls, kind: TypeKind, name: str, parameters: tuple[CelType, ...] = ()) -> CelType:
        with _ONE_AT_A_TIME:
            found = _KNOWN.get((kind, name, parameters))
            if found is None:
                found = _KNOWN[kind, name, parameters] = super().__new__(cls)
                found.kind, found.name, found.parameters = kind, name, parameters
                found.open = kind is TypeKind.PARAMETER or any(each.open for each in parameters)
            return found

    @property
    def is_dynamic(self) -> bool:
        return self.kind in (TypeKind.DYN, TypeKind.ANY)

    @property
    def is_optional(self) -> bool:
        return self.kind is TypeKind.OPAQUE and self.name == "optional_type"

    def __str__(self) -> str:
        """As the compiler names the type of a whole expression."""
        if self.kind is TypeKind.PARAMETER:
            return f"<{self.name}>"
        if not self.parameters:
            return self.name
        if is_nearly_used():
            return on_fresh_stack(self.__str__)
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def shown(self) -> str:
        """As errors about types name it."""
        return _shown(self)


_ONE_AT_A_TIME: Final = Lock()
_KNOWN: Final[WeakValueDictionary[tuple[TypeKind, str, tuple[CelType, ...]], CelType]] = WeakValueDictionary()


@lru_cache(maxsize=10_000)
def _shown(found: CelType) -> str:
    match found.kind:
        case TypeKind.ANY:
            return "any"
        case TypeKind.ERROR:
            return "!error!"
        case TypeKind.NULL:
            return "null"
        case TypeKind.TIME:
            return found.name.rpartition(".")[2].lower()
    if not found.parameters:
        return found.name
    if is_nearly_used():
        return on_fresh_stack(_shown, found)
    return f"{found.name}({', '.join(each.shown() for each in found.parameters)})"


def _primitive(name: str) -> CelType:
    return CelType(TypeKind.PRIMITIVE, name)


DYN: Final = CelType(TypeKind.DYN, "dyn")
ANY: Final = CelType(TypeKind.ANY, "google.protobuf.Any")
ERROR: Final = CelType(TypeKind.ERROR, "error")
BOOL: Final = _primitive("bool")
BYTES: Final = _primitive("bytes")
DOUBLE: Final = _primitive("double")
INT: Final = _primitive("int")
STRING: Final = _primitive("string")
UINT: Final = _primitive("uint")
NULL: Final = CelType(TypeKind.NULL, "null_type")
TYPE: Final = CelType(TypeKind.TYPE, "type")
DURATION: Final = CelType(TypeKind.TIME, "google.protobuf.Duration")
TIMESTAMP: Final = CelType(TypeKind.TIME, "google.protobuf.Timestamp")


def list_of(element: CelType) -> CelType:
    return CelType(TypeKind.LIST, "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(TypeKind.MAP, "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType(TypeKind.OPAQUE, "optional_type", (value,))


def type_of(described: CelType) -> CelType:
    return CelType(TypeKind.TYPE, "type", (described,))


def parameter(name: str) -> CelType:
    return CelType(TypeKind.PARAMETER, name)


def object_type(name: str) -> CelType:
    return CelType(TypeKind.OBJECT, name)


def opaque(name: str) -> CelType:
    return CelType(TypeKind.OPAQUE, name)


def equivalent(one: CelType, other: CelType) -> bool:
    """Whether they are the same, whatever their type parameters are called."""
    if one is other:
        return True
    if one.kind is not other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind is not TypeKind.PARAMETER and one.name != other.name:
        return False
    if is_nearly_used():
        return on_fresh_stack(equivalent, one, other)
    return all(equivalent(a, b) for a, b in zip(one.parameters, other.parameters, strict=True))


def unwrapped(found: CelType) -> tuple[CelType, bool]:
    """The type of an optional's value, and whether it was an optional."""
    return (found.parameters[0], True) if found.is_optional else (found, False)


class Bindings:
    """What type parameters were found to be, while one expression is checked."""

    def __init__(self, found: dict[CelType, CelType] | None = None) -> None:
        self._found = found or {}
        self._replaced: list[tuple[CelType, CelType | None]] = []
        self._resolved: dict[tuple[CelType, bool], CelType] = {}
        """What types were resolved to since a parameter was found; types that nest deep share their inner ones."""

    def assign(self, one: CelType, other: CelType) -> bool:
        """Whether a value of one type fits where the other is asked for; remembers what parameters that needs."""
        return self.assign_all((one,), (other,))

    def assign_all(self, ones: tuple[CelType, ...], others: tuple[CelType, ...]) -> bool:
        self._replaced.clear()
        if self._fits_all(ones, others):
            return True
        self._resolved.clear()
        for variable, before in reversed(self._replaced):
            if before is None:
                del self._found[variable]
            else:
                self._found[variable] = before
        return False

    def resolve(self, found: CelType, *, free_as_dyn: bool = False) -> CelType:
        """The type with its parameters replaced by what they were found to be; others stay, or become dyn."""
        if not found.open:
            return found
        known = self._resolved.get((found, free_as_dyn))
        if known is None:
            work = self._resolve
            known = on_fresh_stack(work, found, free_as_dyn) if is_nearly_used() else work(found, free_as_dyn)
            self._resolved[found, free_as_dyn] = known
        return known

    def _resolve(self, found: CelType, free_as_dyn: bool) -> CelType:
        bound = self._found.get(found)
        if bound is not None:
            return self.resolve(bound, free_as_dyn=free_as_dyn)
        if found.kind is TypeKind.PARAMETER:
            return DYN if free_as_dyn else found
        parameters = tuple(self.resolve(each, free_as_dyn=free_as_dyn) for each in found.parameters)
        return CelType(found.kind, found.name, parameters)

    def _fits_all(self, ones: tuple[CelType, ...], others: tuple[CelType, ...]) -> bool:
        if len(ones) != len(others):
            return False
        return all(self._fits(one, other) for one, other in zip(ones, others, strict=True))

    def _fits(self, one: CelType, other: CelType) -> bool:
        if other.kind is TypeKind.PARAMETER:
            valid, known = self._bind(one, other)
            if valid:
                return True
            if known:
                return False
        if one.kind is TypeKind.PARAMETER:
            return self._bind(other, one)[0]
        if _matches_anything(one) or _matches_anything(other):
            return True
        if one.kind is TypeKind.NULL or other.kind is TypeKind.NULL:
            return _nullable(other if one.kind is TypeKind.NULL else one)
        if one is other and not one.open:
            return True
        match one.kind:
            case TypeKind.PRIMITIVE | TypeKind.TIME | TypeKind.OBJECT:
                return one == other
            case TypeKind.TYPE:
                return other.kind is TypeKind.TYPE
            case TypeKind.OPAQUE | TypeKind.LIST | TypeKind.MAP:
                same = one.kind is other.kind and one.name == other.name
                if same and is_nearly_used():
                    return on_fresh_stack(self._fits_all, one.parameters, other.parameters)
                return same and self._fits_all(one.parameters, other.parameters)
        return False

    def _bind(self, found: CelType, variable: CelType) -> tuple[bool, bool]:
        """Whether the type can stand for the parameter, and whether something stood for it before."""
        if found == variable:
            return True, True
        bound = self._found.get(variable)
        if bound is not None:
            if found == bound:
                return True, True
            if self._fits(found, bound):
                general = most_general(found, bound)
                if not self._occurs(variable, general):
                    self._replace(variable, general)
                return True, True
            return False, True
        if not self._occurs(variable, found):
            self._replace(variable, found)
            return True, False
        return False, False

    def _replace(self, variable: CelType, found: CelType) -> None:
        self._replaced.append((variable, self._found.get(variable)))
        self._found[variable] = found
        self._resolved.clear()

    def _occurs(self, variable: CelType, within: CelType) -> bool:
        if variable == within:
            return True
        if within.kind is TypeKind.PARAMETER:
            bound = self._found.get(within)
            return bound is not None and self._occurs(variable, bound)
        if within.open and within.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP, TypeKind.TYPE):
            if is_nearly_used():
                return on_fresh_stack(self._occurs, variable, within)
            return any(self._occurs(variable, each) for each in within.parameters)
        return False


def _matches_anything(found: CelType) -> bool:
    return found.is_dynamic or found.kind is TypeKind.ERROR


def _nullable(found: CelType) -> bool:
    return found.kind in (TypeKind.NULL, TypeKind.OPAQUE, TypeKind.OBJECT, TypeKind.ANY, TypeKind.TIME)


def most_general(one: CelType, other: CelType) -> CelType:
    """The more general of two types that fit each other."""
    return one if _no_more_specific(one, other) else other


def _no_more_specific(one: CelType, other: CelType) -> bool:
    if one is other or one.is_dynamic or one.kind is TypeKind.PARAMETER:
        return True
    if other.is_dynamic or other.kind is TypeKind.PARAMETER or one.kind is not other.kind:
        return False
    if one.kind is TypeKind.TYPE:
        return True
    if one.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP):
        if one.name != other.name or len(one.parameters) != len(other.parameters):
            return False
        if is_nearly_used():
            return on_fresh_stack(_no_more_specific, one, other)
        return all(_no_more_specific(a, b) for a, b in zip(one.parameters, other.parameters, strict=True))
    return one == other
