"""Who watches the engine work: what a driver may ask to be told, to make metrics of it.

An observer only listens. What it is told comes after the fact, it answers nothing that a decision could rest on, and
its stopwatch (`now`) is not the engine's clock, so that a scheduler decides alike with and without one. Without one,
which is the rule in simulations and benchmarks, nothing is timed at all.

Extension points are called by kube-scheduler's names for them in metrics ("PreFilter", "ScoreExtensionNormalize").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from podium.framework.events import Event, Hint
from podium.framework.queued import QueuedPod
from podium.framework.status import Code

if TYPE_CHECKING:
    from podium.framework.profile import ProfileRuntime

Done = Callable[[str | None], None]
"""Called when something is over, with what went wrong, if anything did."""


Seconds = Callable[[float], None]
"""Told how long something took."""


class Stopwatch(Protocol):
    """Times the extension points of one profile. Looked at many times for each pod: no calls but those needed."""

    @property
    def now(self) -> Callable[[], float]:
        """Gives seconds since some moment."""

    @property
    def took(self) -> Mapping[str, Sequence[Seconds]]:
        """Extension point → whom to tell, by status code, how long all its plugins took together."""

    def evaluated(self, point: str, skipped: Collection[str]) -> None:
        """A decision rests on what the plugins of a point said, except those skipped."""

    def plugin_took(self, plugin: str, point: str, code: Code, began: float) -> None:
        """One plugin has run, in an attempt that is `sampled`."""

    @property
    def sampled(self) -> bool:
        """Whether plugins are timed one by one in the attempt under way."""


class Observer(Protocol):
    """Told of attempts, and of what happens beside them."""

    @property
    def now(self) -> Callable[[], float]:
        """Gives seconds since some moment, as its stopwatches do."""

    def watch(self, runtime: ProfileRuntime) -> Stopwatch:
        """The stopwatch for a profile; asked for once."""

    def began(self, queued: QueuedPod) -> None:
        """An attempt to schedule a pod begins."""

    def decided(self, queued: QueuedPod) -> None:
        """A node has been chosen for the pod."""

    def paused(self, queued: QueuedPod) -> None:
        """The scheduler turns to something else: the attempt has failed, or binding or Permit go on with it."""

    def scheduled(self, queued: QueuedPod) -> None:
        """The pod is bound."""

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        """The attempt failed: no node for the pod (`rejected`), or an error."""

    def entered(self, place: str, event: str) -> None:
        """A pod entered one of the queue's places because of an event."""

    def heard(self, events: Sequence[Event], began: float) -> None:
        """A change in the cluster, which means these events, has been dealt with."""

    def waited(self, code: Code, seconds: float) -> None:
        """A pod's wait at Permit is over; the seconds are the engine's own."""

    def preemption_attempted(self) -> None:
        """A pod that fits nowhere asked for room to be made."""

    def preempting(self, victims: int) -> Done:
        """Pods are about to be evicted; the answer is to be called when they have been."""

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint | None:
        """A queueing hint as it is to be asked: the same answers, with the time they take noted."""
