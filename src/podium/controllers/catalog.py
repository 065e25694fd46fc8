"""Makes the controllers that are asked for, of those that the packages list."""

from __future__ import annotations

from collections.abc import Sequence

from podium import packages
from podium.controllers.controller import Controller
from podium.errors import UserError
from podium.framework.clock import Clock


class UnknownControllerError(UserError, ValueError):
    """A controller that there is not: one sentence says which there are."""


def choose(names: Sequence[str], clock: Clock) -> list[Controller]:
    """The controllers of these names; all where none is named. Raises UnknownControllerError."""
    known = packages.controllers()
    for name in names:
        if name not in known:
            raise UnknownControllerError(f'there is no controller "{name}"; there are {", ".join(known)}')
    return [packages.load(target)(clock) for name, target in known.items() if not names or name in names]
