"""Defines the errors of units and of their store, each a sentence for the reader."""

from podium.errors import UserError


class UnitError(UserError):
    """A unit cannot be run, or not with these options."""


class StoreError(UserError):
    """The store cannot be read or written."""


class DamagedError(Exception):
    """Content of a store that is not what its name says; the text says why."""
