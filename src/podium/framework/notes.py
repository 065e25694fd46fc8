"""Finds notes in `cycle.data` that a dry run changes though the decision itself reads them, too.

A dry run works on a clone of the cycle. Notes with a `clone()` are copied; all others are shared, which is right as
long as `add_pod` and `remove_pod` leave them alone. A plugin that changes a shared note there would take room that the
dry run made for room that exists. So around these calls shared notes are compared with what they were. A plugin that
has a note with a `clone()` knows the rule and is not checked; nor is a trusted one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
import numpy as np

from podium.cluster import Cluster, Cursor, Journal, NodeInfo, Nodes, Objects, PlacedPod, PodFacts, RowCursor, Store
from podium.framework.cycle import Cycle, DryRunCycle
from podium.framework.diagnosis import NodeStatuses
from podium.framework.plugin import Plugin
from podium.framework.queued import QueuedPod
from podium.framework.status import WrongAnswerError

CONSTANTS = (type(None), bool, int, float, complex, str, bytes)
GIVEN = (
    *(Cluster, Cursor, Cycle, Journal, NodeInfo, NodeStatuses, Nodes, Objects),
    *(PlacedPod, Plugin, PodFacts, QueuedPod, RowCursor, Store),
)
"""What plugins are given. It counts by identity, whatever it holds: a dry run moves some of it, and that is right."""
DEEPEST = 4
MOST_VALUES = 10_000
"""A note is compared as far as this; what lies behind counts as unchanged."""


class SharedNoteError(WrongAnswerError):
    """A plugin changed a note in a dry run that the decision itself reads, too."""


def shared_notes(cycle: Cycle, plugin: str) -> dict[str, Hashable]:
    """What the notes look like that this plugin could change for the decision itself, by key; none outside dry runs."""
    if not isinstance(cycle, DryRunCycle):
        return {}
    shared: dict[str, Any] = {}
    for key, note in cycle.data.items():
        if cycle.original.get(key) is note:
            if not isinstance(note, CONSTANTS):
                shared[key] = note
        elif plugin in key and hasattr(note, "clone"):
            return {}
    return {key: _picture(note, DEEPEST, [MOST_VALUES]) for key, note in shared.items()}


def check_notes(cycle: Cycle, plugin: str, before: Mapping[str, Hashable]) -> None:
    """Raises SharedNoteError where a shared note is not what it was; another in its place is the dry run's own."""
    assert isinstance(cycle, DryRunCycle)
    for key, picture in before.items():
        if _picture(cycle.original[key], DEEPEST, [MOST_VALUES]) != picture:
            raise SharedNoteError(
                f'plugin "{plugin}" changed the note cycle.data["{key}"] in a dry run, so that the decision itself saw '
                "it changed: give the note a clone() method that returns a copy"
            )


def _picture(value: Any, depth: int, left: list[int]) -> Hashable:
    """Equal while the value is. Objects of the API and what plugins are given count by identity."""
    left[0] -= 1
    if isinstance(value, CONSTANTS):
        return value if value == value else "nan"  # noqa: PLR0124 (NaN is not itself)
    if not depth or left[0] <= 0:
        return id(value)
    if isinstance(value, dict):
        return tuple((_picture(key, depth - 1, left), _picture(each, depth - 1, left)) for key, each in value.items())
    if isinstance(value, list | tuple | deque):
        return tuple(_picture(each, depth - 1, left) for each in value)
    if isinstance(value, set | frozenset):
        return frozenset(_picture(each, depth - 1, left) for each in value)
    if isinstance(value, np.ndarray):
        return id(value) if value.dtype.hasobject else hash(value.tobytes())
    if isinstance(value, GIVEN) or (isinstance(value, msgspec.Struct) and value.__struct_config__.frozen):
        return id(value)
    names = [*getattr(value, "__dict__", ()), *_slots(type(value))]
    if not names:
        return id(value)
    return tuple((name, _picture(getattr(value, name, None), depth - 1, left)) for name in names)


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return [name for name in found if name not in ("__dict__", "__weakref__")]
