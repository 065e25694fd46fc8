"""Implements the libraries of lists, sets and maps."""

from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from kubecel.operations import add, compare, contains, equal
from kubecel.values import (
    CelError,
    DurationValue,
    Implementation,
    MapValue,
    TimestampValue,
    Uint,
    no_overload,
    type_name,
)

_TYPES: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORT_TYPES: Final = tuple(
    {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}.get(n, n) for n in _TYPES
)
_ZEROS: Final[dict[str, object]] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": DurationValue(0)}
_COMPARABLE: Final = (bool, int, float, str, bytes, TimestampValue)
_LONGEST: Final = 1_000_000


def _slice(elements: list[object], start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def _flatten(elements: object, depth: object = 1) -> list[object]:
    if not isinstance(elements, list) or not isinstance(depth, int):
        shown = f"({type_name(depth)})" if depth != 1 else "()"
        raise CelError(f"no such overload: {type_name(elements)}.flatten{shown}")
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[object] = []
    for element in elements:
        if isinstance(element, list) and depth > 0:
            flat += _flatten(element, depth - 1) if depth > 1 else element
        else:
            flat.append(element)
    return flat


def _range(count: int) -> list[object]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > _LONGEST:
        raise CelError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _distinct(elements: list[object]) -> list[object]:
    unique: list[object] = []
    for element in elements:
        if not contains(unique, element):
            unique.append(element)
    return unique


def _sort(elements: list[object]) -> list[object]:
    return _sort_by(elements, elements)


def _sort_by(elements: list[object], keys: list[object]) -> list[object]:
    if len(elements) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(elements)} and {len(keys)} elements respectively"
        )
    if keys and not isinstance(keys[0], _COMPARABLE):
        raise CelError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    return [elements[number] for number in sorted(range(len(keys)), key=lambda number: by_key(keys[number]))]


def _is_sorted(elements: list[object]) -> bool:
    for one, other in pairwise(elements):
        if not isinstance(other, _COMPARABLE):
            raise no_overload()
        try:
            if compare(one, other) > 0:
                return False
        except CelError:
            continue
    return True


def _sum_from(zero: object) -> Implementation:
    def total(elements: list[object]) -> object:
        result = zero
        for element in elements:
            result = add(result, element)
        return result

    return total


def _extreme(name: str, wanted: int) -> Implementation:
    def chosen(elements: list[object]) -> object:
        if not elements:
            raise CelError(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            try:
                if compare(best, element) == wanted:
                    best = element
            except CelError:
                continue
        return best

    return chosen


def _index_of(elements: list[object], wanted: object) -> int:
    return next((number for number, each in enumerate(elements) if _is(each, wanted)), -1)


def _last_index_of(elements: list[object], wanted: object) -> int:
    return next((number for number in range(len(elements) - 1, -1, -1) if _is(elements[number], wanted)), -1)


def _is(one: object, other: object) -> bool:
    try:
        return equal(one, other)
    except CelError:
        return False


def _has_all(elements: list[object], wanted: list[object]) -> bool:
    return all(contains(elements, each) for each in wanted)


def _same_elements(one: list[object], other: list[object]) -> bool:
    return _has_all(one, other) and _has_all(other, one)


def _insert(entries: MapValue, key: object, value: object) -> MapValue:
    if key in entries:
        raise CelError(f"insert failed: key {key} already exists")
    entries.put(key, value)
    return entries


def _insert_all(entries: MapValue, more: MapValue) -> MapValue:
    for key, value in more.items():
        _insert(entries, key, value)
    return entries


FUNCTIONS: Final[dict[str, Implementation]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda elements: elements[::-1],
    "list_distinct": _distinct,
    **{f"list_{name}_sort": _sort for name in _SORT_TYPES},
    **{f"list_{name}_sortByAssociatedKeys": _sort_by for name in _SORT_TYPES},
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _TYPES},
    **{f"list_{name}_sum_{name}": _sum_from(zero) for name, zero in _ZEROS.items()},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in _TYPES},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in _TYPES},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_sets_contains_list": _has_all,
    "list_sets_equivalent_list": _same_elements,
    "list_sets_intersects_list": lambda one, other: any(contains(other, each) for each in one),
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
