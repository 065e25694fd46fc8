"""Counts what evaluating an expression costs, in the units of cel-go, and ends what costs too much or takes too long.

A unit is about what reading a variable takes. Functions that look at every character of a text cost a tenth of its
length, patterns the product of the lengths of text and pattern. Identifiers of overloads are those of `signatures`.

Also computes with ranges of sizes and costs: from the least to the most that is possible, never beyond 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kubecel.limits import look_at_the_time
from kubecel.strconv import words
from kubecel.values import (
    AddressValue,
    CelError,
    FormatValue,
    MapValue,
    NetworkValue,
    QuantityValue,
    SemverValue,
    UrlValue,
    size_of,
)

INTERRUPTED: Final = "operation interrupted"
ROUNDS_BETWEEN_LOOKS: Final = 100
"""After so many rounds of loops, all together, it is looked at whether the time is over; as in Kubernetes."""
TOO_COSTLY: Final = "operation cancelled: actual cost limit exceeded"
MAX_COPIES: Final = 5_000_000
PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
MESSAGE_COST: Final = 40
_FIXED: Final = frozenset(
    words(
        "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast "
        "format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major "
        "minor patch getScheme getHostname getHost getPort getEscapedPath getQuery"
    )
)
_TRAVERSALS: Final = frozenset(words("isSorted sum max min indexOf lastIndexOf"))
_ONCE: Final = frozenset(
    words("url lowerAscii upperAscii substring trim cidr isIP isCIDR quantity isQuantity semver isSemver")
)
_OF_ONE_COST: Final = (QuantityValue, AddressValue, NetworkValue, FormatValue, UrlValue, SemverValue)
_COMPARED: Final = frozenset(
    [f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")]
    + ["equals", "not_equals"]
)
_SCANNED: Final = frozenset(
    words("starts_with_string ends_with_string string_to_bytes bytes_to_string strings_quote string_format")
)
MOST: Final = 2**64 - 1


class CancelledError(Exception):
    """An evaluation that was ended from outside; no operator of CEL absorbs it."""


class Meter:
    """What one evaluation has cost so far, and the most it may; also the elements it may still copy into new lists,
    which cel-go does not count because it does not copy them. `rounds` is how many rounds of loops are left until it
    looks whether the time is over, and `interrupted` whether it was."""

    __slots__ = ("copies", "cost", "expired", "interrupted", "limit", "rounds")

    def __init__(self, limit: int, expired: Callable[[], bool] | None = None) -> None:
        self.cost = 0
        self.limit = limit
        self.copies = MAX_COPIES
        self.expired = expired
        self.rounds = ROUNDS_BETWEEN_LOOKS
        self.interrupted = False

    def start_again(self) -> None:
        self.cost = 0
        self.copies = MAX_COPIES

    def look_at_the_time(self) -> None:
        """End the loop where the time is over. That is an error that `||` can absorb, so every round of every other
        loop looks from then on: all of them end."""
        look_at_the_time()
        if self.interrupted or (self.expired is not None and self.expired()):
            self.interrupted = True
            self.rounds = 1
            raise CelError(INTERRUPTED)
        self.rounds = ROUNDS_BETWEEN_LOOKS

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CancelledError(TOO_COSTLY)

    def copy(self, elements: int) -> None:
        self.copies -= elements
        if self.copies < 0:
            raise CancelledError(TOO_COSTLY)


def _characters(size: float) -> int:
    return math.ceil(size * PER_CHARACTER)


def _pattern(text: object, pattern: object) -> int:
    return _characters(1 + size_of(text)) * math.ceil(size_of(pattern) * PER_PATTERN_CHARACTER)


def _traversal(value: object) -> int:
    match value:
        case str() | bytes():
            return int(len(value.encode() if isinstance(value, str) else value) * PER_CHARACTER)
        case list():
            return sum(map(_traversal, value))
        case MapValue():
            return sum(_traversal(key) + _traversal(each) for key, each in value.items())
    return 1


def _pairs(elements: object) -> int:
    """Every element compared with every other one, for sorting and finding duplicates."""
    assert isinstance(elements, list)
    factor = 2.1 if elements and isinstance(elements[0], (str, bytes)) else 2.0
    return int(len(elements) ** 2 * factor) + 1 + LIST_COST


def call_cost(function: str, overload: str, args: Sequence[object], result: object) -> int:
    """What a call has cost. `overload` is empty where it was chosen by the arguments."""
    if overload == "list_distinct" or overload.endswith("_sort"):
        return _pairs(args[0])
    if overload.endswith("_sortByAssociatedKeys"):
        return _pairs(args[1])
    if overload.startswith("list_sets_"):
        return 1 + size_of(args[0]) * size_of(args[1]) * (2 if "equivalent" in overload else 1)
    if overload in ("list_slice", "lists_range", "list_reverse"):
        return size_of(result) + 1 + LIST_COST
    if overload in ("list_flatten", "list_flatten_int"):
        depth = args[1] if len(args) > 1 and isinstance(args[1], int) else 1
        return size_of(args[0]) * depth + 1 + LIST_COST
    special = _library_cost(function, overload, args, result)
    return special if special is not None else _standard_cost(overload, args)


def _library_cost(function: str, overload: str, args: Sequence[object], result: object) -> int | None:
    if function in _FIXED or (function == "ip" and overload == "cidr_ip"):
        return 1
    if function in _TRAVERSALS:
        return _traversal(args[0])
    if function in _ONCE or function == "ip":
        return _characters(size_of(args[0]))
    match function:
        case "replace" | "split" | "ip.isCanonical":
            return _characters(size_of(args[0]) * 2)
        case "join":
            return _characters(size_of(result) * 2)
        case "find" | "findAll":
            return _pattern(args[0], args[1])
        case "containsIP" | "containsCIDR":
            return _containment(function, overload, args)
        case "validate" if isinstance(args[0], FormatValue):
            return _characters(1 + size_of(args[1])) * math.ceil(args[0].pattern_size * PER_PATTERN_CHARACTER)
        case "_==_" if isinstance(args[0], _OF_ONE_COST):
            return 1
    return None


def _containment(function: str, overload: str, args: Sequence[object]) -> int:
    cost = _characters(2 * size_of(args[0]))
    if function == "containsCIDR":
        cost += _characters(size_of(args[0])) + 1
    if overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost += _characters(size_of(args[1]))
    return cost


def _standard_cost(overload: str, args: Sequence[object]) -> int:
    if overload in _SCANNED:
        return _characters(size_of(args[0]))
    if overload == "in_list":
        return size_of(args[1])
    if overload in _COMPARED:
        return _characters(min(size_of(args[0]), size_of(args[1])))
    if overload in ("add_string", "add_bytes"):
        return _characters(size_of(args[0]) + size_of(args[1]))
    if overload == "matches_string":
        return _pattern(args[0], args[1])
    if overload == "contains_string":
        return _characters(size_of(args[0])) * _characters(size_of(args[1]))
    return 1


def _times(one: int, factor: float) -> int:
    if one > 0 and factor > 0 and float(one) > MOST / factor:
        return MOST
    return min(MOST, math.ceil(float(one) * factor))


class Span(NamedTuple):
    """The least and the most that a size or a cost can be."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        return Span(min(MOST, self.least + other.least), min(MOST, self.most + other.most))

    def times(self, other: Span) -> Span:
        return Span(min(MOST, self.least * other.least), min(MOST, self.most * other.most))

    def scaled(self, factor: float) -> Span:
        """Times a factor, rounded up."""
        return Span(_times(self.least, factor), _times(self.most, factor))

    def union(self, other: Span) -> Span:
        return Span(min(self.least, other.least), max(self.most, other.most))


def fixed(number: int) -> Span:
    return Span(number, number)


FREE: Final = Span(0, 0)
ONE: Final = Span(1, 1)
ANYTHING: Final = Span(0, MOST)


class EntrySizes(NamedTuple):
    """The sizes of keys (or indices) and values of a list or map."""

    is_list: bool
    key: Span
    value: Span

    def union(self, other: EntrySizes) -> EntrySizes:
        return EntrySizes(self.is_list, self.key.union(other.key), self.value.union(other.value))


class CallEstimate(NamedTuple):
    """What a call costs, and how large its result is where that is known."""

    cost: Span
    size: Span | None = None
