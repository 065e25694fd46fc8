"""Compares decoded JSON strictly: 1, 1.0 and true are three values."""

from __future__ import annotations

from typing import Any


def same_json(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same, types included.

    >>> same_json({"a": [1]}, {"a": [1]}), same_json({"a": [1]}, {"a": [1.0]})
    (True, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
