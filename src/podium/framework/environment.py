"""Settings from the environment: where a configuration leaves an argument of a plugin open, a variable fills it.

Agents that run beside a scheduler are set up by environment variables. The same plugins in a profile have arguments;
what is written there wins, because it is closer. A field that may be filled so is `None` by default; the arguments say
under which variables it is found:

    variables = {"utilization": "SAFEUTILIZATION"}

A variable that is empty counts as not set. One that cannot be read, or that the arguments' own `validate` refuses, is
an error: a scheduler that runs with other settings than those written down is worse than one that does not start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import replace

from podium.config.field import FieldPath
from podium.framework.row_numbers import read_whole
from podium.framework.status import PluginError

T = TypeVar("T", bound=msgspec.Struct)


def filled(args: T, variables: Mapping[str, str], environment: Mapping[str, str] | None = None) -> T:
    """The arguments with every field that is None taken from its variable, where that is set."""
    given = os.environ if environment is None else environment
    fields = {field.name: field for field in msgspec.structs.fields(args)}
    found = {
        name: _read(variable, given[variable], fields[name].type)
        for name, variable in variables.items()
        if getattr(args, name) is None and given.get(variable)
    }
    if not found:
        return args
    complete = replace(args, **found)
    variable_of = {fields[name].encode_name: variables[name] for name in found}
    for error in _complaints(complete):
        variable = variable_of.get(str(error.path.steps[0])) if error.path.steps else None
        if variable is not None:
            raise PluginError(f"environment variable {variable}: {error.body}")
    return complete


def _complaints(args: Any) -> Any:
    return args.validate(FieldPath()) if hasattr(args, "validate") else ()


def _read(variable: str, text: str, kind: Any) -> Any:
    """A variable's text as a value of a field's type: a whole number, true or false, one of some words, or text."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    wanted = next(each for each in kinds if each is not type(None))
    problem = f'environment variable {variable}: "{text}" cannot be used: '
    if get_origin(wanted) is Literal:
        words = get_args(wanted)
        if text not in words:
            raise PluginError(f"{problem}write one of {', '.join(words)}")
        return text
    if wanted is bool:
        if text not in ("true", "false"):
            raise PluginError(f"{problem}write true or false")
        return text == "true"
    if wanted is int:
        number = read_whole(text)
        if number is None:
            raise PluginError(f"{problem}write a whole number")
        return number
    assert wanted is str, f"settings of type {wanted} are not read from the environment"
    return text
