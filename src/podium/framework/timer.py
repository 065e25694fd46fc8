"""Defines the timer: how a driver measures attempts, extension points, plugins and events, to make metrics of them.

A timer only measures: it calls the function that it is handed and gives back the answer. Where nothing is timed
(`UNTIMED`: simulations, benchmarks, explanations) that is all it does. The steps of a pod's way say above their `def`
that they are timed, which costs less than 0.1 µs where they are not. A plugin's method is called more often, so it is
wrapped once, when the profile is built, or left as it is. A timer's time is not the engine's clock, and nothing it does
changes a decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, TypeVarTuple, cast

from podium.config.points import Point
from podium.framework.events import Event, Hint
from podium.framework.queued import QueuedPod
from podium.framework.status import SUCCESS, Code

if TYPE_CHECKING:
    from podium.framework.cycle import Cycle

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

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

    def time(self, step: Step, code_of: Callable[[R], Code], run: Callable[[*Ts], R], *args: *Ts) -> R:
        """Run all plugins of a step; what raises took its time with an error."""

    def time_decision(
        self, step: Step, code_of: Callable[[R], Code], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        """The same for the steps that a decision rests on; counts the plugins evaluated: those not skipped."""

    def time_cached(
        self, step: Step, code_of: Callable[[R], Code | None], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        """The same where answers are cached: a call whose code is None, or that raises, does not count."""

    def time_binding(
        self,
        step: Step,
        code_of: Callable[[R], Code],
        run: Callable[[*Ts], Awaitable[R]],
        *args: *Ts,
    ) -> Awaitable[R]:
        """The same for the steps that may wait."""

    def timed_plugin(self, step: Step, plugin: str, method: Callable[P, R]) -> Callable[P, R]:
        """A plugin's method, timed in sampled attempts."""

    def time_node_hint(self, run: Callable[[*Ts], str], *args: *Ts) -> str:
        """Look for a node to try first; empty where there is none."""

    def time_store(self, run: Callable[[*Ts], None], *args: *Ts) -> None:
        """Keep the scores of a pod for the next."""

    def timed_effect(self, step: Step, plugin: str, method: Callable[P, Any]) -> Callable[P, Any]:
        """A plugin's method that binds or prepares binding, timed in every call: those outlive the attempt."""


class Timer(Protocol):
    """Times a scheduler: its attempts, and what happens beside them."""

    def for_profile(self, scheduler_name: str) -> ProfileTimer:
        """The timer of a profile."""

    def time_attempt(self, run: Callable[[QueuedPod, T], None], queued: QueuedPod, by: T) -> None:
        """Try a pod: until it has failed, or binding or the wait at Permit go on with it."""

    def decided(self, queued: QueuedPod) -> None:
        """Records that a node has been chosen for the pod."""

    def scheduled(self, queued: QueuedPod) -> None:
        """Records that the pod is bound."""

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        """Records a failed attempt: no node for the pod (`rejected`), or an error."""

    def time_intake(self, run: Callable[[T], None], change: T) -> None:
        """Take in a change of the cluster, which is one event or several."""

    def event(self, event: Event) -> None:
        """Records one of the events that are taken in."""

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint | None:
        """A queueing hint; None, where there is none, means yes."""

    def entered(self, queue: str, event: str, members: int = 0) -> None:
        """Counts a pod that entered one of the queues because of an event; with members, a pod group with so many."""

    def stayed(self, queue: str, event: str, members: int = 0) -> None:
        """Counts a pod, or pod group, that an event called, and that went back to the queue it was in."""

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

    def time(self, step: Step, code_of: Callable[[R], Code], run: Callable[[*Ts], R], *args: *Ts) -> R:
        return run(*args)

    def time_decision(
        self, step: Step, code_of: Callable[[R], Code], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        return run(*args)

    def time_cached(
        self, step: Step, code_of: Callable[[R], Code | None], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        return run(*args)

    def time_binding(
        self,
        step: Step,
        code_of: Callable[[R], Code],
        run: Callable[[*Ts], Awaitable[R]],
        *args: *Ts,
    ) -> Awaitable[R]:
        return run(*args)

    def timed_plugin(self, step: Step, plugin: str, method: Callable[P, R]) -> Callable[P, R]:
        return method

    def time_node_hint(self, run: Callable[[*Ts], str], *args: *Ts) -> str:
        return run(*args)

    def time_store(self, run: Callable[[*Ts], None], *args: *Ts) -> None:
        run(*args)

    def timed_effect(self, step: Step, plugin: str, method: Callable[P, Any]) -> Callable[P, Any]:
        return method


class Untimed:
    """The timer where nothing is timed."""

    def for_profile(self, scheduler_name: str) -> ProfileTimer:
        return _UNTIMED

    def time_attempt(self, run: Callable[[QueuedPod, T], None], queued: QueuedPod, by: T) -> None:
        run(queued, by)

    def decided(self, queued: QueuedPod) -> None:
        pass

    def scheduled(self, queued: QueuedPod) -> None:
        pass

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        pass

    def time_intake(self, run: Callable[[T], None], change: T) -> None:
        run(change)

    def event(self, event: Event) -> None:
        pass

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint | None:
        return hint

    def entered(self, queue: str, event: str, members: int = 0) -> None:
        pass

    def stayed(self, queue: str, event: str, members: int = 0) -> None:
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


_UNTIMED = _UntimedProfile()
UNTIMED = Untimed()


# Decorators of methods that are steps. Their objects have a `timer`, which is that of their profile.

Method = TypeVar("Method", bound=Callable[..., Any])


def _succeeded(_answer: object) -> Code:
    """The code of steps that fail only by raising."""
    return SUCCESS


def timed(step: Step, code_of: Callable[[Any], Code] = _succeeded) -> Callable[[Method], Method]:
    """Has a method of two arguments timed as a step: `ProfileTimer.time`."""

    def decorate(run: Method) -> Method:
        @wraps(run)
        def run_timed(self: Any, about: Any, also: Any) -> Any:
            timer = self.timer
            return run(self, about, also) if timer is _UNTIMED else timer.time(step, code_of, run, self, about, also)

        return cast("Method", _with_own_code(run_timed))

    return decorate


def timed_binding(step: Step, code_of: Callable[[Any], Code]) -> Callable[[Method], Method]:
    """Has a method without arguments timed that may wait: `ProfileTimer.time_binding`."""

    def decorate(run: Method) -> Method:
        @wraps(run)
        def run_timed(self: Any) -> Any:
            timer = self.timer
            return run(self) if timer is _UNTIMED else timer.time_binding(step, code_of, run, self)

        return cast("Method", _with_own_code(run_timed))

    return decorate


def timed_decision(step: Step, code_of: Callable[[Any], Code] = _succeeded) -> Callable[[Method], Method]:
    """Has a method timed that a decision rests on, and whose first argument is the cycle: `time_decision`."""

    def decorate(run: Method) -> Method:
        @wraps(run)
        def run_timed(self: Any, cycle: Cycle, *args: Any) -> Any:
            timer = self.timer
            if timer is _UNTIMED:
                return run(self, cycle, *args)
            return timer.time_decision(step, code_of, cycle, run, self, cycle, *args)

        return cast("Method", _with_own_code(run_timed))

    return decorate


def timed_cached(step: Step, code_of: Callable[[Any], Code | None]) -> Callable[[Method], Method]:
    """The same where answers are cached, and the cycle is the only argument: `time_cached`."""

    def decorate(run: Method) -> Method:
        @wraps(run)
        def run_timed(self: Any, cycle: Cycle) -> Any:
            timer = self.timer
            if timer is _UNTIMED:
                return run(self, cycle)
            return timer.time_cached(step, code_of, cycle, run, self, cycle)

        return cast("Method", _with_own_code(run_timed))

    return decorate


def _with_own_code(run_timed: Any) -> Any:
    """The function with a code object of its own: Python's inline caches belong to that, and hold one callee each."""
    run_timed.__code__ = run_timed.__code__.replace()
    return run_timed
