"""Takes checks that last long out of the request, so that the server answers others meanwhile.

A request is decided in one synchronous step. A check of a custom object may take seconds, though: its definition brings
rules and patterns. So a check gets a moment within the step. One that needs more ends the step with SlowCheck, before
anything was stored; the server runs it in a thread and takes the step again, which then finds the verdict. Verdicts
are about the content that was checked, so an object that changed meanwhile is checked afresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from typing import Final

import msgspec

from kubecel.limits import TookTooLongError, time_limit
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause

MOMENT: Final = 0.02
"""Seconds that a check may take within a request."""

_BY_CHANCE: Final = ("uid", "creationTimestamp", "managedFields", "resourceVersion")

Causes = list[Cause]
Verdicts = dict[bytes, Causes]

_verdicts: ContextVar[Verdicts | None] = ContextVar("verdicts", default=None)


class SlowCheck(Exception):  # noqa: N818 — not an error: the request goes on with the verdict
    """A check that does not fit into the request. `run` may be called in any thread."""

    def __init__(self, key: bytes, run: Callable[[], Causes]) -> None:
        super().__init__("a check takes long")
        self.key = key
        self.run = run


@contextmanager
def known_verdicts(verdicts: Verdicts | None) -> Iterator[None]:
    """Let checks within that take long end with SlowCheck unless they are among these; None: take all the time."""
    token = _verdicts.set(verdicts)
    try:
        yield
    finally:
        _verdicts.reset(token)


def checked(check: Callable[..., Causes], *objects: JsonObject) -> Causes:
    """What a check has against the objects."""
    verdicts = _verdicts.get()
    if verdicts is None:
        return check(*objects)
    if verdicts and (found := verdicts.get(_key(check, objects))) is not None:
        return found
    try:
        with time_limit(MOMENT):
            return check(*objects)
    except TookTooLongError:
        raise SlowCheck(_key(check, objects), partial(check, *objects)) from None


def _key(check: Callable[..., Causes], objects: tuple[JsonObject, ...]) -> bytes:
    """What the verdict depends on: not what differs when the same request is taken again."""
    parts = [repr(check), *(msgspec.json.encode(_without_chance(each), order="sorted") for each in objects)]
    return sha256(msgspec.json.encode(parts)).digest()


def _without_chance(obj: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _BY_CHANCE}
    if metadata.get("generateName"):
        metadata.pop("name", None)
    return {**obj, "metadata": metadata}
