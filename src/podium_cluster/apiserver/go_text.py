"""Prints values as the API server does inside its messages (the `%v` of its language): map[a:1 b:[x y]]."""

from __future__ import annotations

from typing import Any


def go_text(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    return str(value)


def go_type(value: Any) -> str:
    """The name of a decoded JSON value's type."""
    if value is None:
        return "%!s(<nil>)"
    for python, name in (
        (bool, "bool"),
        (dict, "map[string]interface {}"),
        (list, "[]interface {}"),
        (str, "string"),
        (int, "int64"),
    ):
        if isinstance(value, python):
            return name
    return "float64"
