"""Defines the timer: how a driver measures attempts, extension points, plugins and events, to make metrics of them.

A timer only measures. It gives back each function it is handed, timed or as it was, and the engine calls what it got
back. Where nothing is timed (`UNTIMED`: simulations, benchmarks, explanations) that is the function itself, so that not
being timed costs nothing. A timer's time is not the engine's clock, and nothing it does changes a decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from podium.config.points import Point
from podium.framework.events import Event, Hint
from podium.framework.queued import QueuedPod
from podium.framework.status import Code

if TYPE_CHECKING:
    from podium.framework.cycle import Cycle

P = ParamSpec("P")
R = TypeVar("R")

Done = Callable[[str | None], None]
"""Called when something is over, with what went wrong, if anything did."""


class Step(StrEnum):
    """What plugins do, in kube-scheduler's words for metrics: an extension point may have several steps."""

    QUEUE_SORT = Point.QUEUE_SORT.label
    QUEUEING_HINT = "QueueingHint"
    OBSERVE = "Observe"
    PRE_ENQUEUE = Point.PRE_ENQUEUE.label
    PRE_FILTER = Point.PRE_FILTER.label
    ADD_POD = "PreFilterExtensionAddPod"
    REMOVE_POD = "PreFilterExtensionRemovePod"
    FILTER = Point.FILTER.label
    POST_FILTER = Point.POST_FILTER.label
    PRE_SCORE = Point.PRE_SCORE.label
    SCORE = Point.SCORE.label
    NORMALIZE = "ScoreExtensionNormalize"
    RESERVE = Point.RESERVE.label
    UNRESERVE = "Unreserve"
    PERMIT = Point.PERMIT.label
    PREFLIGHT = "PreBindPreFlight"
    PRE_BIND = Point.PRE_BIND.label
    BIND = Point.BIND.label
    POST_BIND = Point.POST_BIND.label
    LEARN = "Learn"


class ProfileTimer(Protocol):
    """Times the extension points and the plugins of one profile."""

    @property
    def sampled(self) -> bool:
        """Whether plugins are timed one by one in the attempt under way."""

    def timed(self, step: Step, run: Callable[P, R], code_of: Callable[[R], Code]) -> Callable[P, R]:
        """A function that runs all plugins of a step; what raises took its time with an error."""

    def timed_decision(
        self,
        step: Step,
        run: Callable[Concatenate[Cycle, P], R],
        code_of: Callable[[R], Code | None],
        *,
        errors: bool = True,
    ) -> Callable[Concatenate[Cycle, P], R]:
        """The same for the steps that a decision rests on; counts the plugins evaluated, which are those not skipped.

        A call whose code is None is as if it had not been made; so is one that raises, without `errors`.
        """

    def timed_binding(
        self, step: Step, run: Callable[P, Awaitable[R]], code_of: Callable[[R], Code]
    ) -> Callable[P, Awaitable[R]]:
        """The same for the steps that may wait."""

    def timed_plugin(self, step: Step, plugin: str, method: Callable[P, R]) -> Callable[P, R]:
        """A plugin's method, timed in sampled attempts."""

    def timed_node_hint(self, run: Callable[P, str]) -> Callable[P, str]:
        """A function that looks for a node to try first; empty where there is none."""

    def timed_store(self, run: Callable[P, None]) -> Callable[P, None]:
        """A function that keeps the scores of a pod for the next."""

    def timed_effect(self, step: Step, plugin: str, method: Callable[P, Any]) -> Callable[P, Any]:
        """A plugin's method that binds or prepares binding, timed in every call: those outlive the attempt."""


class Timer(Protocol):
    """Times a scheduler: its attempts, and what happens beside them."""

    def for_profile(self, scheduler_name: str) -> ProfileTimer:
        """The timer of a profile."""

    def timed_attempt(
        self, run: Callable[Concatenate[QueuedPod, P], None]
    ) -> Callable[Concatenate[QueuedPod, P], None]:
        """A function that tries a pod: until it has failed, or binding or the wait at Permit go on with it."""

    def decided(self, queued: QueuedPod) -> None:
        """Records that a node has been chosen for the pod."""

    def scheduled(self, queued: QueuedPod) -> None:
        """Records that the pod is bound."""

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        """Records a failed attempt: no node for the pod (`rejected`), or an error."""

    def timed_intake(self, run: Callable[P, None]) -> Callable[P, None]:
        """A function that takes in a change of the cluster, which is one event or several."""

    def as_event(self, event: Event, run: Callable[P, R]) -> Callable[P, R]:
        """A function whose call is an event, within a timed intake."""

    def as_events(self, run: Callable[Concatenate[Event, P], R]) -> Callable[Concatenate[Event, P], R]:
        """The same where the first argument is the event."""

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint | None:
        """A queueing hint; None, where there is none, means yes."""

    def entered(self, queue: str, event: str) -> None:
        """Counts a pod that entered one of the queues because of an event."""

    def waited(self, code: Code, seconds: float) -> None:
        """Records a wait at Permit that is over; the seconds are the engine's own."""

    def group_decided(self, queued: QueuedPod) -> None:
        """Records that nodes have been looked for, for a whole pod group; the pod is the one popped."""

    def group_tried(self, queued: QueuedPod, result: str) -> None:
        """Records how the attempt on a pod group ended: scheduled, unschedulable, waiting_on_preemption or error."""

    def preemption_attempted(self) -> None:
        """Counts a pod that fits nowhere and asks for room to be made."""

    def preempting(self, victims: int) -> Done:
        """Records pods about to be evicted; what it gives is to be called when they have been."""


class _UntimedProfile:
    """Times nothing: every function comes back as it was."""

    sampled = False

    def timed(self, step: Step, run: Callable[P, R], code_of: Callable[[R], Code]) -> Callable[P, R]:
        return run

    def timed_decision(
        self,
        step: Step,
        run: Callable[Concatenate[Cycle, P], R],
        code_of: Callable[[R], Code | None],
        *,
        errors: bool = True,
    ) -> Callable[Concatenate[Cycle, P], R]:
        return run

    def timed_binding(
        self, step: Step, run: Callable[P, Awaitable[R]], code_of: Callable[[R], Code]
    ) -> Callable[P, Awaitable[R]]:
        return run

    def timed_plugin(self, step: Step, plugin: str, method: Callable[P, R]) -> Callable[P, R]:
        return method

    def timed_node_hint(self, run: Callable[P, str]) -> Callable[P, str]:
        return run

    def timed_store(self, run: Callable[P, None]) -> Callable[P, None]:
        return run

    def timed_effect(self, step: Step, plugin: str, method: Callable[P, Any]) -> Callable[P, Any]:
        return method


class Untimed:
    """The timer where nothing is timed."""

    def for_profile(self, scheduler_name: str) -> ProfileTimer:
        return _UNTIMED_PROFILE

    def timed_attempt(
        self, run: Callable[Concatenate[QueuedPod, P], None]
    ) -> Callable[Concatenate[QueuedPod, P], None]:
        return run

    def decided(self, queued: QueuedPod) -> None:
        pass

    def scheduled(self, queued: QueuedPod) -> None:
        pass

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        pass

    def timed_intake(self, run: Callable[P, None]) -> Callable[P, None]:
        return run

    def as_event(self, event: Event, run: Callable[P, R]) -> Callable[P, R]:
        return run

    def as_events(self, run: Callable[Concatenate[Event, P], R]) -> Callable[Concatenate[Event, P], R]:
        return run

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint | None:
        return hint

    def entered(self, queue: str, event: str) -> None:
        pass

    def waited(self, code: Code, seconds: float) -> None:
        pass

    def group_decided(self, queued: QueuedPod) -> None:
        pass

    def group_tried(self, queued: QueuedPod, result: str) -> None:
        pass

    def preemption_attempted(self) -> None:
        pass

    def preempting(self, victims: int) -> Done:
        return _nothing


def _nothing(_error: str | None) -> None:
    pass


_UNTIMED_PROFILE = _UntimedProfile()
UNTIMED = Untimed()
