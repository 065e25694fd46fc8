"""Holds the values of CEL that Python has no type for, and names the type of every value.

Whole numbers, strings, bytes, booleans, null and lists are Python's own. An error is an exception: CEL's operators `&&`
and `||` catch it where the other side decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from kubecel.types import CelType

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1
NO_OVERLOAD: Final = "no such overload"

Implementation = Callable[..., object]
"""What computes a function of an expression."""


class CelError(Exception):
    """What an expression ends in where it has no value."""


def no_overload() -> CelError:
    return CelError(NO_OVERLOAD)


class Uint(int):
    """An unsigned whole number."""

    __slots__ = ()


class DurationValue(int):
    """A length of time, in nanoseconds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TimestampValue:
    """A moment: nanoseconds since 1970, and the zone it was written in."""

    nanoseconds: int
    zone: timezone = UTC

    def at(self) -> datetime:
        """The moment in its zone, without what is finer than a microsecond."""
        whole = timedelta(microseconds=self.nanoseconds // 1000)
        return (datetime(1970, 1, 1, tzinfo=UTC) + whole).astimezone(self.zone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimestampValue) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or none: `present` tells which."""

    value: object = None
    present: bool = False

    def get(self) -> object:
        if not self.present:
            raise CelError("optional.none() dereference")
        return self.value


NONE: Final = Optional()


def some(value: object) -> Optional:
    return Optional(value, present=True)


@dataclass(frozen=True, slots=True)
class QuantityValue:
    """An amount, in nano units. `whole` tells whether Kubernetes calls it an integer, which "1000m" is not. `computed`
    marks one that add or sub made: held by reference, it finds no overload on the right of `==`."""

    nano: int
    whole: bool = True
    computed: bool = False


@dataclass(frozen=True, slots=True)
class SemverValue:
    """A semantic version; `text` keeps the build, which does not count in comparisons."""

    core: tuple[int, int, int]
    prerelease: tuple[int | str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class AddressValue:
    """An IP address: its bits as a number, and the family 4 or 6."""

    bits: int
    family: int


@dataclass(frozen=True, slots=True)
class NetworkValue:
    """A range of IP addresses: an address and how many of its first bits count."""

    address: AddressValue
    prefix: int


@dataclass(frozen=True, slots=True)
class UrlValue:
    """An absolute URL, in parts."""

    text: str
    scheme: str
    host: str
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class FormatValue:
    """A named format of Kubernetes with the check that belongs to it."""

    name: str
    check: Callable[[str], list[str]]
    pattern_size: int


MISSING: Final = object()
"""Stands for no value where null is one."""


class MapValue:
    """A map. Numbers that are equal are one key, whatever their type; a key that is missing may have a default."""

    __slots__ = ("_entries", "_keys", "default")

    def __init__(self, entries: Mapping[str, object] | None = None, default: object = MISSING) -> None:
        self._entries: dict[object, object] = {}
        self._entries.update(entries or {})
        self._keys: dict[object, object] = {}
        self.default = default

    def put(self, key: object, value: object) -> None:
        normal = key if type(key) is str else normal_key(key)
        if normal is not key:
            self._keys[normal] = key
        self._entries[normal] = value

    def remove(self, key: object) -> None:
        normal = normal_key(key)
        self._entries.pop(normal, None)
        self._keys.pop(normal, None)

    def find(self, key: object) -> tuple[object, bool]:
        """The value and whether it is there; the default counts as being there."""
        found = self.get(key)
        return (None, False) if found is MISSING else (found, True)

    def get(self, key: object) -> object:
        """The value, or the default, or MISSING."""
        return self._entries.get(key if type(key) is str else normal_key(key), self.default)

    def __contains__(self, key: object) -> bool:
        return normal_key(key) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[object, object]]:
        for normal, value in self._entries.items():
            yield self._keys.get(normal, normal), value

    def copied(self) -> MapValue:
        other = MapValue(default=self.default)
        other._entries, other._keys = dict(self._entries), dict(self._keys)
        return other


def normal_key(key: object) -> object:
    """A key under which equal keys meet, and unequal ones do not."""
    match key:
        case bool() | DurationValue():
            return type(key).__name__, key
        case int():
            return "number", int(key)
        case float():
            return ("number", int(key)) if key.is_integer() else ("double", key)
        case str():
            return key
    return type(key).__name__, key if isinstance(key, Hashable) else id(key)


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    MapValue: "map",
    DurationValue: "google.protobuf.Duration",
    TimestampValue: "google.protobuf.Timestamp",
    CelType: "type",
    Optional: "optional_type",
    QuantityValue: "kubernetes.Quantity",
    SemverValue: "kubernetes.Semver",
    AddressValue: "net.IP",
    NetworkValue: "net.CIDR",
    UrlValue: "kubernetes.URL",
    FormatValue: "kubernetes.NamedFormat",
}


def type_name(value: object) -> str:
    """The name of a value's type, as errors write it."""
    found = _NAMES.get(type(value))
    if found is not None:
        return found
    return "list" if isinstance(value, list) else "map" if isinstance(value, MapValue) else "unknown"


def size_of(value: object) -> int:
    """The size that a value counts with in costs: characters, elements, bytes; one for everything else."""
    match value:
        case str() | bytes() | list():
            return len(value)
        case MapValue():
            return len(value)
        case AddressValue():
            return 4 if value.family == 4 else 16
        case NetworkValue():
            return -(-value.prefix // 8)
        case Optional() if value.present:
            return size_of(value.value)
    return 1


def checked_int(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise CelError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    if not 0 <= value <= MAX_UINT:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def checked_duration(value: int) -> DurationValue:
    if not MIN_INT <= value <= MAX_INT:
        raise CelError("duration overflow")
    return DurationValue(value)
