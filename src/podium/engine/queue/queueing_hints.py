"""Decides which events wake which waiting pods.

A pod waits because certain plugins turned it away. Each plugin registers the events that could change its mind, some
with a hint that looks at the changed object. An event is worth a new attempt when it is registered by a plugin that
rejected the pod and a hint (or the lack of one) says so: at once if that plugin had the pod pending, otherwise when
the pod's backoff is over. A hint that raises counts as a yes, so that a broken one cannot strand a pod.

Most events concern few plugins or none; what each event means to each plugin is worked out once and kept.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from podium.framework.answers import describe
from podium.framework.declarations import derived_interests, wrong_interest
from podium.framework.events import USUAL, Action, Concerns, Event, Hint, Interest, Resource
from podium.framework.extender import EXTENDER
from podium.framework.plugin import Plugin
from podium.framework.plugin_failures import OnPluginFailure, PluginFailure, ignore_failure
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.framework.status import PluginError
from podium.framework.timer import UNTIMED, Step, Timer
from podium.kube import Pod
from podium.kube.versions import NEWEST, VersionRules

HintsByProfile = Mapping[str, Mapping[str, Sequence[Interest]]]
"""Profile → plugin → the events it wants to hear of."""

_ANYTHING = tuple(Interest(resource, Action.ALL) for resource in USUAL)


class Strategy(enum.Enum):
    """What an event does for a waiting pod."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class Listeners(NamedTuple):
    """Who cares for one kind of event."""

    label: str
    wildcard: bool
    plugins: tuple[str, ...]
    """Plugins of any profile that registered it."""
    hints: Mapping[str, Mapping[str, tuple[Hint | None, ...]]]
    """Profile → plugin → its hints for it; None stands for "always"."""
    one_by_one: frozenset[str]
    """Plugins whose hints must be asked about every pod."""
    concerns: Mapping[str, Concerns]
    """Plugins that can tell which pods it may matter to."""


def build_hints(
    plugins: Iterable[Plugin], rules: VersionRules = NEWEST, *, extenders: bool = False
) -> dict[str, list[Interest]]:
    """What the plugins of one profile registered, as the queue is to see it.

    Before 1.37, a plugin that waits for new nodes but not for taints is woken by every change of taints as well. For
    plugins that leave their interests open, these follow from what their answers depend on; where they cannot, all the
    usual kinds and their own resources count. Extenders cannot say what they wait for: much of everything wakes them.
    """
    by_plugin: dict[str, list[Interest]] = {EXTENDER: list(_ANYTHING)} if extenders else {}
    widens = rules.taint_changes_wake_node_listeners
    for plugin in plugins:
        interests = _registered(plugin)
        if interests is None:
            own = (Interest(resource.partition("/")[0], Action.ALL) for resource in plugin.resources)
            by_plugin[plugin.name] = [*_ANYTHING, *own]
            continue
        about_nodes = Action(0)
        for interest in interests:
            if interest.resource == Resource.NODE:
                about_nodes |= interest.action
        if widens and about_nodes & Action.ADD and not about_nodes & Action.UPDATE_NODE_TAINT:
            interests.append(Interest(Resource.NODE, Action.UPDATE_NODE_TAINT))
        if interests:
            by_plugin[plugin.name] = interests
    return by_plugin


def _registered(plugin: Plugin) -> list[Interest] | None:
    try:
        registered = plugin.interests()
        if registered is None:
            return derived_interests(plugin)
        interests = list(registered)
        for each in interests:
            if not isinstance(each, Interest):
                raise PluginError(f"interests must give Interests, got {type(each).__name__}")
            wrong = wrong_interest(each.resource)
            if wrong is not None:
                raise PluginError(f"interests: {wrong}")
    except Exception as error:  # whatever the plugin raises
        raise PluginError(f'initializing plugin "{plugin.name}": {describe(error)}') from error
    return interests


class Hints:
    """The interests of all profiles, by event."""

    def __init__(
        self,
        interests: HintsByProfile,
        timer: Timer = UNTIMED,
        on_failure: OnPluginFailure = ignore_failure,
    ) -> None:
        self._interests = interests
        self._timer = timer
        self._on_failure = on_failure
        self._by_event: dict[Event, Listeners] = {}
        self.concerns = _concerns(interests)
        """Plugins that can tell what pods wait for; at most one way each."""

    def registered(self, profile: str) -> Mapping[str, Sequence[Interest]]:
        """What the plugins of a profile registered."""
        return self._interests.get(profile, {})

    def listeners(self, event: Event) -> Listeners:
        known = self._by_event.get(event)
        if known is None:
            known = self._by_event[event] = self._find(event)
        return known

    def _find(self, event: Event) -> Listeners:
        hints: dict[str, dict[str, tuple[Hint | None, ...]]] = {}
        found: dict[str, list[Interest]] = {}
        for profile, by_plugin in self._interests.items():
            hints[profile] = {}
            for plugin, interests in by_plugin.items():
                covering = [interest for interest in interests if interest.event.covers(event)]
                if covering:
                    plugin_hints = tuple(interest.hint for interest in covering)
                    if None in plugin_hints:
                        plugin_hints = (None,)
                    hints[profile][plugin] = tuple(
                        self._timer.timed_hint(plugin, event.label, hint) for hint in plugin_hints
                    )
                    found.setdefault(plugin, []).extend(covering)
        one_by_one = {
            name for name, all_of in found.items() if any(each.hint and not each.by_signature for each in all_of)
        }
        concerns = {
            name: known
            for name, known in self.concerns.items()
            if name in found and all(each.concerns is known for each in found[name])
        }
        return Listeners(event.label, event.wildcard, tuple(found), hints, frozenset(one_by_one), concerns)

    def strategy(self, queued: QueuedPod, listeners: Listeners, before: Any, after: Any) -> Strategy:
        """Whether an event is worth a new attempt at a pod, or at any member of a pod group, and how soon."""
        if isinstance(queued, QueuedGroup):
            found = {self.strategy(member, listeners, before, after) for member in queued.members}
            return next(each for each in (Strategy.IMMEDIATELY, Strategy.AFTER_BACKOFF, Strategy.SKIP) if each in found)
        pod, unschedulable, pending = queued.pod, queued.unschedulable_plugins, queued.pending_plugins
        if not unschedulable and not pending:
            return Strategy.AFTER_BACKOFF
        if listeners.wildcard:
            # With an object it is meant for that pod alone.
            others = after is not None and not (isinstance(after, Pod) and after.uid == pod.uid)
            return Strategy.SKIP if others else Strategy.AFTER_BACKOFF
        hints = listeners.hints.get(pod.spec.scheduler_name)
        if hints is None:
            return Strategy.AFTER_BACKOFF
        for plugin in pending:
            if plugin in hints and self._says_yes(plugin, hints[plugin], pod, before, after):
                return Strategy.IMMEDIATELY
        for plugin in unschedulable:
            if plugin in hints and self._says_yes(plugin, hints[plugin], pod, before, after):
                return Strategy.AFTER_BACKOFF
        return Strategy.SKIP

    def _says_yes(self, plugin: str, hints: tuple[Hint | None, ...], pod: Pod, before: Any, after: Any) -> bool:
        for hint in hints:
            try:
                if hint is None or hint(pod, before, after):
                    return True
            except Exception as error:  # whatever the plugin raises
                self._on_failure(PluginFailure(plugin, Step.QUEUEING_HINT, pod.key, "", error))
                return True
        return False


def _concerns(interests: HintsByProfile) -> dict[str, Concerns]:
    """With several profiles a plugin's name may stand for several plugins, which are not distinguished here."""
    if len(interests) != 1:
        return {}
    (by_plugin,) = interests.values()
    return {
        plugin: interest.concerns
        for plugin, registered in by_plugin.items()
        for interest in registered
        if interest.concerns is not None
    }
