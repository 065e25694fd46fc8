"""Defines what a plugin answers: go on, reject the pod, wait, or fail.

The codes are kube-scheduler's. The difference between the two ways of rejecting a pod matters to preemption:
`UNSCHEDULABLE` may be cured by removing pods from the node, `UNRESOLVABLE` may not.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from podium.errors import UserError


class Code(enum.IntEnum):
    """The kinds of answers, with the numbers of kube-scheduler."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6


SUCCESS, ERROR, SKIPPED = Code.SUCCESS, Code.ERROR, Code.SKIP
"""To look a member up in its class takes ten times as long as a global name."""

REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


class Status(msgspec.Struct, frozen=True):
    """An answer with its reasons; no status (None) means success.

    >>> Status.unschedulable("Too many pods").message
    'Too many pods'
    """

    code: Code
    """What kind of answer it is."""
    reasons: tuple[str, ...] = ()
    """Why, as the event shows it."""
    plugin: str = ""
    """Whose answer it is; the runtime fills it in."""

    @staticmethod
    def unschedulable(*reasons: str) -> Status:
        """The pod does not fit now; removing other pods may help."""
        return Status(Code.UNSCHEDULABLE, reasons)

    @staticmethod
    def unresolvable(*reasons: str) -> Status:
        """The pod does not fit, and removing other pods would not help."""
        return Status(Code.UNRESOLVABLE, reasons)

    @staticmethod
    def pending(*reasons: str) -> Status:
        """The pod must wait for something that happens outside the scheduler."""
        return Status(Code.PENDING, reasons)

    @staticmethod
    def error(reason: str) -> Status:
        """Something broke; the pod is tried again after a while."""
        return Status(Code.ERROR, (reason,))

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """Whether it refuses the pod or the node."""
        return self.code in REJECTIONS

    def by(self, plugin: str) -> Status:
        """The same status, naming the plugin it came from."""
        return Status(self.code, self.reasons, plugin)


SKIP = Status(Code.SKIP)


def code_of(status: Status | None) -> Code:
    return SUCCESS if status is None else status.code


class Wait(NamedTuple):
    """Permit's third answer: hold the pod for at most this long."""

    seconds: float
    """The longest wait; no wait is longer than 15 minutes."""
    reason: str = ""
    """What the pod waits for, as the event shows it."""


class Waits(dict[str, float]):
    """How long each plugin wants a pod held at Permit; empty: not at all. `reason` is that of the last one."""

    reason: str = ""

    @property
    def message(self) -> str:
        return ", ".join(filter(None, (self.reason, WAIT_MESSAGE)))


def permit_code(answer: Status | Waits) -> Code:
    return answer.code if isinstance(answer, Status) else Code.WAIT if answer else SUCCESS


NO_WAITS = Waits()
WAIT_MESSAGE = "one or more plugins asked to wait and no plugin rejected pod"


class PluginError(UserError):
    """A plugin raised or answered nonsense. It fails the pod's cycle and names the plugin, and nothing else."""

    logged = False
    """Whether it is a mistake that `Handle.on_failure` has heard of."""


class WrongAnswerError(PluginError):
    """A plugin answered what its extension point does not take: the text says what is wanted and what came.

    `advice` is the sentence for the log, where that of the pod's event has to be kube-scheduler's.
    """

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence)
        self.advice = advice or sentence
