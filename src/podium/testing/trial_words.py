"""Collects the texts that a plugin's code speaks of: labels, annotations, resources and names that may matter to it.

A change of a label that a plugin never reads shows nothing. So the labels, annotations and names of random objects are
drawn from the constants of the plugin's methods, and of the functions and values of its own package that they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final

_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,120}[A-Za-z0-9])?")
_MOST: Final = 60
_USUAL: Final = ("app", "tier", "true", "false", "a", "b", "1", "50")


def words_of(plugin: type) -> list[str]:
    """What could be a key or a value, from the plugin's code, and a few that are usual."""
    found: dict[str, None] = {}
    for text in _texts_of_class(plugin, plugin.__module__.partition(".")[0], set()):
        if _KEY.fullmatch(text):
            found[text] = None
        if len(found) >= _MOST:
            break
    return list(dict.fromkeys((*found, *_USUAL)))


def _texts_of_class(kind: type, package: str, seen: set[int]) -> Iterator[str]:
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == package and base.__module__ != "podium.framework.plugin":
            for name, value in vars(base).items():
                if name not in ("__module__", "__qualname__", "__doc__", "points", "name"):
                    yield from _texts(value, package, seen)


def _texts(value: Any, package: str, seen: set[int]) -> Iterator[str]:
    if id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case str():
            yield value
        case property(fget=getter):
            yield from _texts(getter, package, seen)
        case staticmethod() | classmethod():
            yield from _texts(value.__func__, package, seen)
        case tuple() | list() | set() | frozenset():
            for each in value:
                yield from _texts(each, package, seen)
        case dict():
            for each in (*value.keys(), *value.values()):
                yield from _texts(each, package, seen)
        case FunctionType() if (value.__module__ or "").partition(".")[0] == package:
            yield from _texts_of_code(value.__code__, value.__globals__, package, seen)
            for cell in value.__closure__ or ():
                yield from _texts(cell.cell_contents, package, seen)
        case type() if value.__module__.partition(".")[0] == package:
            yield from _texts_of_class(value, package, seen)


def _texts_of_code(code: CodeType, names: dict[str, Any], package: str, seen: set[int]) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_of_code(constant, names, package, seen)
        else:
            yield from _texts(constant, package, seen)
    for name in code.co_names:
        if name in names:
            yield from _texts(names[name], package, seen)


def keys_of(objects: Iterable[Any]) -> list[str]:
    """The labels and annotations of objects, keys and values."""
    found: dict[str, None] = {}
    for each in objects:
        metadata = getattr(each, "metadata", None)
        for texts in (getattr(metadata, "labels", {}), getattr(metadata, "annotations", {})):
            found |= dict.fromkeys((*texts.keys(), *texts.values()))
    return [text for text in found if text]
