"""Finds what packages bring for `podium controller`: controllers, and definitions of custom resources."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import yaml

from podium import packages
from podium.controllers.controller import Controller
from podium.errors import UserError
from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject


class UnknownControllerError(UserError, ValueError):
    """A controller that there is not: one sentence says which there are."""


def choose(names: Sequence[str], clock: Clock) -> list[Controller]:
    """The controllers of these names; all where none is named. Raises UnknownControllerError."""
    known = packages.controllers()
    for name in names:
        if name not in known:
            raise UnknownControllerError(f'there is no controller "{name}"; there are {", ".join(known)}')
    return [packages.load(target)(clock) for name, target in known.items() if not names or name in names]


def definitions() -> dict[str, JsonObject]:
    """Every CustomResourceDefinition by its plural name, as it is applied.

    >>> list(definitions())[:2]
    ['appgroups', 'elasticquotas']
    """
    found = {
        file.name.removesuffix(".yaml"): file
        for package in packages.packages()
        for folder in package.custom_resources
        for file in files(folder).iterdir()
        if file.name.endswith(".yaml")
    }
    return {name: yaml.safe_load(found[name].read_text("utf-8")) for name in sorted(found)}
