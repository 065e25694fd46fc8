"""Applies `key=value` texts to a scenario before it is decoded.

A key is a path from the top (`workload.generate.count`, `nodes.0.count`), or any end of one that fits in one place only
(`list`, `generate.count`). The value is read as YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from podium.config.field import FieldPath, Step
from podium.config.positions import MalformedConfigError, parse
from podium_lab.simulator.scenario import Scenario, ScenarioError


class Override(NamedTuple):
    """A value that replaces what the file says."""

    text: str
    steps: tuple[Step, ...]


def apply(value: dict[str, Any], sets: Sequence[str]) -> list[Override]:
    """Writes the overrides into the value of a document."""
    return [_apply(value, text) for text in sets]


def _apply(value: dict[str, Any], text: str) -> Override:
    key, equals, written = text.partition("=")
    if not equals or not key:
        raise ScenarioError(f"--set {text}: write it as KEY=VALUE, such as --set generate.count=1000")
    try:
        new = parse(written).value
    except MalformedConfigError as error:
        raise ScenarioError(f"--set {text}: {error}") from None
    steps = _find(value, key)
    _write(value, steps, new, text)
    return Override(text, steps)


def _find(value: dict[str, Any], key: str) -> tuple[Step, ...]:
    words: tuple[Step, ...] = tuple(int(word) if word.isdigit() else word for word in key.split("."))
    if words[0] in _fields(Scenario):
        return words
    found = [(*path, *words) for path, fields in _mappings(value, Scenario, ()) if words[0] in fields]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ScenarioError(f'--set {key}: the scenario has no "{words[0]}"; write the whole path, such as nodes.count')
    paths = ", ".join(str(FieldPath(steps)) for steps in found)
    raise ScenarioError(f"--set {key}: that may be {paths}; write the whole path")


def _mappings(value: Any, kind: Any, path: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], dict[str, Any]]]:
    """Every mapping of the document with the fields that its type has."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _mappings(item, kind, (*path, i))
        return
    struct = _struct_in(kind)
    if struct is None or not isinstance(value, dict):
        return
    fields = _fields(struct)
    yield path, fields
    for name, item in value.items():
        if name in fields:
            yield from _mappings(item, fields[name], (*path, name))


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {each.encode_name: each.type for each in msgspec.structs.fields(kind)}


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The one struct that a type speaks of: itself, in a union or in a list."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    if get_origin(kind) is dict:
        return None
    return next((found for each in get_args(kind) if (found := _struct_in(each)) is not None), None)


def _write(value: Any, steps: tuple[Step, ...], new: Any, text: str) -> None:
    for step, following in pairwise(steps):
        if isinstance(value, dict) and isinstance(step, str):
            value = value.setdefault(step, {})
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            raise ScenarioError(f'--set {text}: there is nothing at "{step}" that could have a "{following}"')
    last = steps[-1]
    if isinstance(value, dict):
        value[str(last)] = new
    elif isinstance(value, list) and isinstance(last, int) and last < len(value):
        value[last] = new
    else:
        raise ScenarioError(f'--set {text}: there is nothing that could have a "{last}"')
