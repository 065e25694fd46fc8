"""Declares what patches ask of a schema: the form of each value, how lists are identified, how fields are merged.

The schema's own types answer this protocol, so the patch functions stay pure and can be tested with types written
by hand.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

Form = Literal["struct", "map", "list", "string", "number", "boolean", "scalar", "anything"]


class MergeType(Protocol):
    """The type of one value, as the field that holds it declares it."""

    @property
    def form(self) -> Form: ...

    @property
    def atomic(self) -> bool:
        """Owned and replaced as a whole: lists unless declared as sets or maps, and some structs and maps."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that identify an entry of a list; a list with neither keys nor `atomic` is a set of scalars."""
        ...

    @property
    def strategies(self) -> tuple[str, ...]:
        """How strategic merge treats the field: merge, replace, retainKeys."""
        ...

    @property
    def merge_key(self) -> str:
        """What identifies an entry of the list in a strategic merge."""
        ...

    @property
    def default(self) -> Any: ...

    def field(self, name: str) -> MergeType | None:
        """The type of a struct's field; None when it has no such field."""
        ...

    @property
    def element(self) -> MergeType | None:
        """The type of a map's values or a list's entries."""
        ...
