"""Writes what pods that are gone have spent into an annotation of a living one, and reads it back after a restart.

    podium.dev/qos-history: {"at": 1767229200.0, "slots": [[E, D, W, B, incarnations, bound], …]}
    podium.dev/qos-slot: "2"

Where replicas must run together, E and D are what the controller had by the moment `at`; otherwise they belong to the
pods that are gone. The one who knows of more ended pods is right, so a process takes over an annotation only
if it speaks of more of them than the process has seen end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from podium_plugins.qos.account import ControllerAccount
from podium_plugins.qos.formulas import CONCURRENT, QosSums

HISTORY: Final = "podium.dev/qos-history"
SLOT: Final = "podium.dev/qos-slot"
MOST_SLOTS: Final = 1000
"""Slots that are written one by one; the rest is summed up in the last."""
LONGEST: Final = 200_000
_FEW = 1e12


class QosHistory(NamedTuple):
    """What is known of ended pods, by slot, and when it was written."""

    at: float
    slots: list[QosSums]


def write_history(account: ControllerAccount, now: float) -> str:
    """The text of the annotation."""
    slots = list(account.closed[:MOST_SLOTS])
    for each in account.closed[MOST_SLOTS:]:
        slots[-1] = slots[-1].plus(each)
    if account.approach == CONCURRENT and slots:
        effective, discarded, now = account.sweep_up(now)
        slots[0] = slots[0]._replace(effective=effective, discarded=discarded)
    rounded = [[round(each, 3) for each in slot] for slot in slots]
    return msgspec.json.encode({"at": round(now, 3), "slots": rounded}).decode()


def read_history(text: str) -> QosHistory | None:
    """
    >>> read_history('{"at": 5.0, "slots": [[1, 0, 2, 0, 1, 1]]}').slots[0].waiting
    2.0
    >>> read_history('{"at": 5.0, "slots": [[-1, 0, 2, 0, 1, 1]]}') is None
    True
    >>> read_history('{"at": 5.0, "slots": [[1, 0, 2, 0, 1, 1' + "0" * 400 + "]]}") is None
    True
    """
    try:
        found = msgspec.json.decode(text[:LONGEST], type=_Written)
    except (msgspec.DecodeError, RecursionError):
        return None
    slots = [QosSums(*slot) for slot in found.slots[:MOST_SLOTS]]
    numbers = [found.at, *(number for slot in slots for number in slot)]
    if not all(0 <= number < _FEW for number in numbers):  # false for NaN too
        return None
    return QosHistory(found.at, slots)


class _Written(msgspec.Struct):
    at: float
    slots: list[tuple[float, float, float, float, int, int]]


def read_slot(annotations: Mapping[str, str]) -> int | None:
    """The slot that a pod was given before."""
    text = annotations.get(SLOT, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def restore(account: ControllerAccount, history: QosHistory) -> None:
    """Let an account go on from a history."""
    account.version += 1
    while len(account.slots) < len(history.slots):
        account.slots.append(None)
        account.closed.append(QosSums())
    account.all_closed = QosSums()
    slots = history.slots
    if account.approach == CONCURRENT and slots:
        account.resume(slots[0].effective, slots[0].discarded, history.at)
        slots = [slot._replace(effective=0.0, discarded=0.0) for slot in slots]
    for i, slot in enumerate(slots):
        account.closed[i] = slot
        account.all_closed = account.all_closed.plus(slot)
