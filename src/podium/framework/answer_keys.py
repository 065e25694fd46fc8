"""Decides by what a cached answer of a plugin is seen to be stale, beyond the rows that the journals name.

What a plugin declares is compiled once for each profile: `depends_on` and `answer_key` become one function that gives
the key of a cycle. Answers are cached per signature of pods, which leaves out the names of claims; a plugin whose
answers depend on them gets those of the pod added to its key, so that it is asked for every pod with other claims.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from podium.config.points import Point
from podium.framework.answers import describe
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.plugin import Plugin
from podium.framework.protocols import KeyedPlugin
from podium.framework.status import PluginError

KeyOf = Callable[[Cycle], Hashable]
"""cycle → the key for its pod; None: nothing can be cached; (): nothing but changed rows will ever matter."""


class Dependence(NamedTuple):
    """A plugin's declaration as the engine uses it."""

    plugin: Plugin
    node: NodePart
    key_of: KeyOf | None
    """None when changed rows are all that matters."""
    may_move: bool
    """Whether a pod's key may be another the next time, so that what objects to it now may not later."""


def dependence_of(plugin: Plugin) -> Dependence:
    """Compile what a plugin declares."""
    declared = plugin.depends_on
    own = plugin.answer_key if isinstance(plugin, KeyedPlugin) else None
    answering = plugin.points & {Point.PRE_FILTER, Point.FILTER, Point.SCORE}
    if own is not None:
        key_of: KeyOf | None = _own_key(own)
    elif answering and declared.node == NodePart.ANYTHING:
        return Dependence(plugin, declared.node, _cannot_tell, False)
    else:
        key_of = _versions_of(declared.kinds) if declared.kinds else None
    moves = key_of is not None
    return Dependence(plugin, declared.node, _with_claims(key_of) if declared.claims else key_of, moves)


def _own_key(answer_key: Callable[..., Hashable]) -> KeyOf:
    return lambda cycle: answer_key(cycle.pod)


def _cannot_tell(_cycle: Cycle) -> Hashable:
    return None


def _versions_of(kinds: Iterable[type]) -> KeyOf:
    """What changes with every object of these kinds."""

    def versions(cycle: Cycle) -> Hashable:
        stores = map(cycle.cluster.objects.store_of, kinds)
        return tuple([store.version for store in stores if store is not None])

    return versions


def _with_claims(key_of: KeyOf | None) -> KeyOf:
    if key_of is None:
        return lambda cycle: cycle.facts.claims

    def with_claims(cycle: Cycle) -> Hashable:
        value = key_of(cycle)
        return value if value is None or not cycle.facts.claims else (value, cycle.facts.claims)

    return with_claims


class AnswerKeys:
    """The keys of some plugins, as of the last look."""

    __slots__ = ("_seen", "plugins", "tellable")

    def __init__(self, dependences: Iterable[Dependence]) -> None:
        self._seen = [_Seen(each, each.key_of) for each in dependences if each.key_of is not None]
        self.plugins = frozenset(each.dependence.plugin for each in self._seen)
        """The plugins that have one."""
        self.tellable = True
        """Whether, at the last look, each plugin could tell its key."""

    def may_move(self, plugin: Plugin) -> bool:
        """Whether another look may find the key of a plugin moved."""
        return any(each.dependence.plugin is plugin and each.dependence.may_move for each in self._seen)

    def moved(self, cycle: Cycle) -> list[Plugin]:
        """The plugins whose key for this pod is another than at the last look, or that cannot tell."""
        moved = []
        self.tellable = True
        for each in self._seen:
            try:
                value = each.key_of(cycle)
            except Exception as error:  # whatever the plugin raises
                name = each.dependence.plugin.name
                raise PluginError(f'answer_key of plugin "{name}": {describe(error)}') from error
            if value is None or value != each.value:
                each.value = value
                moved.append(each.dependence.plugin)
                self.tellable = self.tellable and value is not None
        if moved:
            self._seen = [each for each in self._seen if each.value != ()]
        return moved


class _Seen:
    """One plugin's key as of the last look."""

    __slots__ = ("dependence", "key_of", "value")

    def __init__(self, dependence: Dependence, key_of: KeyOf) -> None:
        self.dependence = dependence
        self.key_of = key_of
        self.value: Hashable = None
