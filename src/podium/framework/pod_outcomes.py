"""Defines how plugins learn from what becomes of pods: the protocol between a driver and what learns.

A plugin says in its `__init__` what learns for it and where that is kept, and reads what has been learnt in its cycles:

    class Cautious(Plugin):
        def __init__(self, args, handle):
            super().__init__(args, handle)
            self.lessons = learn(handle, ConfigMapName("kube-system", "lessons"), Lessons)

A driver shows the learner every pod that came or changed, between cycles, and keeps what the learner wants kept, so
that it survives the process. What was kept comes back through `recall`: at the start, and again whenever another
replica has written in between; a learner that has learnt something itself by then puts both together. Learning does
nothing but that: no input, no output, no time but the one given with the pod. What a learner raises is the plugin's
mistake: it is logged with the plugin's name, and the pod taught nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from msgspec import field

from podium.framework.plugin_failures import PluginFailure
from podium.framework.timer import Step
from podium.kube.meta import Model, NamespacedObject

if TYPE_CHECKING:
    from podium.framework.handle import Handle


REWARD = "podium.dev/reward"
"""The annotation of a pod that says how it fares: from 0, as badly as can be, to 1."""


class ConfigMapName(NamedTuple):
    """Where learners keep things: a ConfigMap."""

    namespace: str
    name: str


class LearnedState(NamedTuple):
    """Where a plugin keeps what it learns, and the environment variables that say otherwise."""

    config_map: ConfigMapName
    name_variable: str = ""
    namespace_variable: str = ""


class Ended(Model, frozen=True, kw_only=True):
    """A run of a container that is over."""

    exit_code: int | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Model, frozen=True, kw_only=True):
    """One of three; which one is all that is known of the first two."""

    running: dict[str, object] | None = None
    waiting: dict[str, object] | None = None
    terminated: Ended | None = None


class ContainerOutcome(Model, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodPlace(Model, frozen=True, kw_only=True):
    node_name: str = ""


class PodProgress(Model, frozen=True, kw_only=True):
    phase: str = ""
    container_statuses: tuple[ContainerOutcome, ...] = field(default_factory=tuple)


class PodOutcome(NamespacedObject, frozen=True, kw_only=True):
    """A pod as far as its fate is concerned: who it is, where it runs, how that goes."""

    spec: PodPlace = PodPlace()
    status: PodProgress = PodProgress()


class Learner(Protocol):
    """Learns from what becomes of pods, and says what is to be kept of it."""

    def observe(self, pod: PodOutcome, now: float) -> bool:
        """A pod came or changed; whether there is something new to keep."""

    def restore(self, lessons: Mapping[str, str], now: float) -> None:
        """Take over what was kept, here or by another replica; what cannot be read is passed over."""

    def save(self, now: float) -> dict[str, str]:
        """What is to be kept: the data of a ConfigMap."""


L = TypeVar("L", bound=Learner)


LearnerFailed = Callable[[str, Exception], None]
"""Called with what a learner raised, and the pod that it was about, "namespace/name" or empty."""


class PodOutcomes(Protocol):
    """A driver's watch of pods, which also keeps what is learnt from them."""

    def follow(self, where: ConfigMapName, make: Callable[[], L], failed: LearnerFailed) -> L:
        """The learner whose lessons are kept there: the one there is, or a new one."""


class GivenOutcomes:
    """Pods shown by hand: for tests and simulations. Nothing is kept."""

    def __init__(self) -> None:
        self.learners: dict[ConfigMapName, Learner] = {}

    def follow(self, where: ConfigMapName, make: Callable[[], L], failed: LearnerFailed) -> L:
        return cast("L", self.learners.setdefault(where, make()))

    def show(self, pod: PodOutcome, now: float) -> None:
        for learner in self.learners.values():
            learner.observe(pod, now)


def learn(handle: Handle, where: ConfigMapName, make: Callable[[], L]) -> L:
    """The learner whose lessons are kept there; one that learns nothing where no driver watches pods."""
    if handle.pod_outcomes is None:
        return make()
    plugin, on_failure = handle.initializing, handle.on_failure

    def failed(pod: str, error: Exception) -> None:
        on_failure(PluginFailure(plugin, Step.LEARN, pod, "", error))

    return handle.pod_outcomes.follow(where, make, failed)
