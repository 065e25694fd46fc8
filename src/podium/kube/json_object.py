"""Names the type of a decoded JSON object, for objects that are read and written as plain dictionaries.

Also replaces null where a value is expected: Go reads it as "not given", so `"labels": null` is legal.

A null field is left to its default; a null inside a list or a map is the zero value of its type, for the place is
taken. Objects with such nulls are rare, so decoding tries without and comes here only after a failure.
"""

from functools import lru_cache
from typing import Any

from msgspec import inspect

JsonObject = dict[str, Any]


def without_null_fields(value: Any) -> Any:
    """The value with all fields that are null left out; in lists null keeps its place."""
    if isinstance(value, dict):
        return {key: without_null_fields(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_null_fields(inner) for inner in value]
    return value


def without_nulls(value: Any, type_: type) -> Any:
    """The decoded JSON value with every null replaced by what it means for the type."""
    return _clean(value, _inspected(type_))


@lru_cache(maxsize=256)
def _inspected(type_: type) -> inspect.Type:
    return inspect.type_info(type_)


def _clean(value: Any, type_: inspect.Type) -> Any:
    if isinstance(type_, inspect.UnionType):
        containers = (inspect.StructType, inspect.DictType, inspect.VarTupleType)
        type_ = next((option for option in type_.types if isinstance(option, containers)), type_)
    if isinstance(type_, inspect.StructType) and isinstance(value, dict):
        types = {field.encode_name: field.type for field in type_.fields}
        return {key: _clean(item, types[key]) for key, item in value.items() if item is not None and key in types}
    if isinstance(type_, inspect.DictType) and isinstance(value, dict):
        return {key: _filled(item, type_.value_type) for key, item in value.items()}
    if isinstance(type_, inspect.VarTupleType) and isinstance(value, list):
        return [_filled(item, type_.item_type) for item in value]
    return value


def _filled(value: Any, type_: inspect.Type) -> Any:
    return _zero(type_) if value is None else _clean(value, type_)


def _zero(type_: inspect.Type) -> Any:
    if isinstance(type_, inspect.StructType):
        return {}
    return "" if isinstance(type_, inspect.StrType) else 0
