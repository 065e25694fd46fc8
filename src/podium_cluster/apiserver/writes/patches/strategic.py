"""Applies a strategic merge patch: a merge patch that knows which lists are merged by key instead of replaced.

The schema names, per field, the strategy (merge, replace, retainKeys) and the merge key of a list. Directives
inside the patch steer the rest: `$patch: replace|delete` in a map or a list's entry,
`$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`, `$retainKeys`. Order of a merged list: first what the
patch or the order list says, then the live order, interleaved.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from podium_cluster.apiserver.errors import StatusError, bad_request, shown_json
from podium_cluster.apiserver.writes.patches.json_patch import rejected, same
from podium_cluster.apiserver.writes.patches.typed_values import MergeType

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"
BAD_ORDER_LIST = "invalid patch format of setElementOrder list"


def strategic_merge(obj: dict[str, Any], patch: dict[str, Any], schema: MergeType) -> dict[str, Any]:
    """The object with the patch merged in; neither argument is changed."""
    return _merge_map(copy.deepcopy(obj), copy.deepcopy(patch), schema)


def _merge_map(original: dict[str, Any], patch: dict[str, Any], schema: MergeType | None) -> dict[str, Any]:
    if DIRECTIVE in patch:
        return _by_directive(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, schema)
    for key, value in patch.items():
        deleting = key.startswith(DELETE_FROM)
        name = _named_field(key, DELETE_FROM, "invalid patch format of primitive list") if deleting else key
        if value is None:
            original.pop(name, None)
            continue
        if name not in original or type(original[name]) is not type(value):
            if not deleting:
                _set(original, name, _without_nulls(value))
        elif isinstance(value, dict):
            inner, strategies, _ = _field(schema, name)
            original[name] = value if "replace" in strategies else _merge_map(original[name], value, inner)
        elif isinstance(value, list):
            inner, strategies, merge_key = _field(schema, name)
            original[name] = _merge_or_replace(
                original[name], value, _element(inner), strategies, merge_key, deleting=deleting
            )
        else:
            _set(original, name, value)
    return original


def _by_directive(patch: dict[str, Any]) -> dict[str, Any]:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _internal(f"unknown patch type: {shown_json(other)} in map: {shown_json(patch)}")


def _retain_keys(original: dict[str, Any], patch: dict[str, Any]) -> None:
    if RETAIN_KEYS not in patch:
        return
    retained = patch.pop(RETAIN_KEYS)
    if not isinstance(retained, list) or any(
        value is not None and not key.startswith((DELETE_FROM, SET_ORDER)) and key not in retained
        for key, value in patch.items()
    ):
        raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in original if key not in retained]:
        del original[key]


def _merge_ordered_lists(original: dict[str, Any], patch: dict[str, Any], schema: MergeType | None) -> None:
    """Lists with a `$setElementOrder` beside them; they leave the patch, so that they are not merged twice."""
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise _wrong_type([], order)
        name = _named_field(key, SET_ORDER, BAD_ORDER_LIST)
        live, given = original.get(name, []), patch.get(name, [])
        for value in (live, given):
            if not isinstance(value, list):
                raise _wrong_type([], value)
        inner, strategies, merge_key = _field(schema, name)
        element = _element(inner)
        _check_order(given, order, merge_key)
        if name in original and name in patch:
            merged = _merge_or_replace(list(live), given, element, strategies, merge_key)
        elif name in original:
            merged = live
        elif name in patch:
            merged = _without_directives(given)[0]
        else:
            continue
        _same_types([live, given])
        original[name] = _ordered(merged, order, live, merge_key)
        patch.pop(name, None)


def _check_order(given: list[Any], order: list[Any], merge_key: str) -> None:
    """What the patch lists must appear in the order list, in the same order; what it deletes does not count."""
    if not order or not given:
        return
    if merge_key and (other := [item for item in given if not isinstance(item, dict)]):
        raise _wrong_type({}, other[0])
    remaining = list(order)
    for item in given:
        if isinstance(item, dict) and DIRECTIVE in item:
            continue
        while remaining:
            candidate = remaining.pop(0)
            if same(_identity(item, merge_key), _identity(candidate, merge_key)):
                break
        else:
            message = f"order in patch list doesn't match {SET_ORDER} list"
            raise _internal(f"{message}: {shown_json(given)}, {shown_json(order)}")


def _merge_or_replace(
    original: list[Any],
    patch: list[Any],
    element: MergeType | None,
    strategies: Sequence[str],
    merge_key: str,
    *,
    deleting: bool = False,
) -> list[Any]:
    if "merge" not in strategies and not deleting:
        return patch
    if not original and not patch:
        return original
    if not _same_types([original, patch]):
        if deleting:
            return [value for value in original if not _contains(patch, value)]
        merged: list[Any] = []
        for value in original + patch:
            if not _contains(merged, value):
                merged.append(value)
        return _ordered(merged, patch, original, merge_key)
    if not merge_key:
        raise _internal("cannot merge lists without merge key for struct")
    original, patch = _apply_entry_directives(original, patch, merge_key)
    merged = list(original)
    for item in patch:
        at = _find(merged, merge_key, _identity(item, merge_key))
        if at is None:
            merged.append(item)
        else:
            merged[at] = _merge_map(merged[at], item, element)
    return _ordered(merged, patch, original, merge_key)


def _apply_entry_directives(
    original: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[dict[str, Any]]]:
    plain = []
    replace = False
    for item in patch:
        match item.get(DIRECTIVE) if DIRECTIVE in item else DIRECTIVE:
            case "$patch":
                plain.append(item)
            case "delete":
                gone = _identity(item, merge_key)
                original = [entry for entry in original if not same(entry.get(merge_key), gone)]
            case "replace":
                replace = True
            case "merge":
                raise _internal("merging lists cannot yet be specified in the patch")
            case other:
                raise _internal(f"unknown patch type: {shown_json(other)} in map: {shown_json(item)}")
    return (plain, []) if replace else (original, plain)


def _ordered(merged: list[Any], first: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """What `first` names in its order, the rest in the live order, each of the rest before what it preceded live."""
    firsts = [_identity(item, merge_key) for item in first]
    lives = [_identity(item, merge_key) for item in live]
    identified = [(_identity(item, merge_key), item) for item in merged]
    named = sorted(((key, item) for key, item in identified if _contains(firsts, key)), key=lambda e: _at(firsts, e[0]))
    others = [(key, item) for key, item in identified if not _contains(firsts, key)]
    others.sort(key=lambda entry: _at(lives, entry[0]))
    result = []
    while others and named:
        other, chosen = _at(lives, others[0][0]), _at(lives, named[0][0])
        result.append(others.pop(0) if 0 <= other < chosen else named.pop(0))
    return [item for _, item in result + named + others]


def _identity(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise _wrong_type({}, item)
    if merge_key not in item:
        raise _internal(f"map: {shown_json(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _find(items: list[Any], merge_key: str, wanted: Any) -> int | None:
    return next((at for at, item in enumerate(items) if same(item.get(merge_key), wanted)), None)


def _at(items: list[Any], wanted: Any) -> int:
    return next((at for at, item in enumerate(items) if same(item, wanted)), -1)


def _contains(items: list[Any], wanted: Any) -> bool:
    return _at(items, wanted) >= 0


def _field(schema: MergeType | None, name: str) -> tuple[MergeType | None, Sequence[str], str]:
    """The type of a field, its strategies and merge key; a map's values have neither."""
    if schema is None or schema.form == "anything":
        return None, (), ""
    if schema.form == "map":
        return schema.element, (), ""
    found = schema.field(name)
    if found is None:
        raise _internal(f'unable to find api field in struct {getattr(schema, "name", "")} for the json field "{name}"')
    return found, found.strategies, found.merge_key


def _element(list_type: MergeType | None) -> MergeType | None:
    return list_type.element if list_type is not None and list_type.form == "list" else None


def _named_field(key: str, prefix: str, complaint: str) -> str:
    directive, slash, name = key.partition("/")
    if not slash or directive != prefix:
        raise bad_request(complaint)
    return name


def _same_types(lists: list[list[Any]]) -> bool:
    """Whether the entries are maps. Entries of different types cannot be merged, nor lists of lists."""
    entries = [item for items in lists for item in items]
    if not entries:
        raise _internal("no elements in any of the given slices")
    if isinstance(entries[0], list):
        raise rejected()
    if any(type(item) is not type(entries[0]) for item in entries):
        raise _internal(f"list element types are not identical: {shown_json(lists)}")
    return isinstance(entries[0], dict)


def _set(original: dict[str, Any], name: str, value: Any) -> None:
    retained, keep = _without_directives(value)
    if keep:
        original[name] = retained
    else:
        original.pop(name, None)


def _without_directives(value: Any) -> tuple[Any, bool]:
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return None, False
        inner = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, (item, keep) in inner.items() if keep}, True
    if isinstance(value, list):
        return [item for item, keep in map(_without_directives, value) if keep], True
    return value, True


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _wrong_type(expected: Any, actual: Any) -> StatusError:
    wanted = "list" if isinstance(expected, list) else "object"
    return _internal(f"expected a {wanted}, but received {shown_json(actual)}")


def _internal(message: str) -> StatusError:
    return StatusError(500, "", message)
