"""Decides by what a cached answer of a plugin is seen to be stale, beyond the rows that the journals name.

Answers are cached per signature of pods, which leaves out the names of claims. Their watermark for a pod is what the
plugin's `watermark` gives; a plugin that sees claims (any that does not say otherwise) gets those of the pod added, so
that it is asked for every pod with other claims.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from podium.config.points import Point
from podium.framework.answers import describe
from podium.framework.cycle import Cycle
from podium.framework.plugin import Plugin, Scope
from podium.framework.status import PluginError

WatermarkOf = Callable[[Cycle], Hashable]
"""cycle → the watermark for its pod; None: nothing can be cached; (): nothing but changed rows will ever matter."""


def watermark_of(plugin: Plugin) -> WatermarkOf | None:
    """How a plugin's watermark is found; None when changed rows are all that matters."""
    filters = plugin.points & {Point.PRE_FILTER, Point.FILTER} and plugin.filter_scope == Scope.CLUSTER
    scores = Point.SCORE in plugin.points and plugin.score_scope == Scope.CLUSTER
    rows_alone = not filters and not scores and type(plugin).watermark is Plugin.watermark
    if rows_alone:
        return _claims if plugin.sees_claims else None
    watermark: Callable[..., Hashable] = plugin.watermark
    if not plugin.sees_claims:
        return lambda cycle: watermark(cycle.pod)

    def with_claims(cycle: Cycle) -> Hashable:
        value = watermark(cycle.pod)
        return value if value is None or not cycle.facts.claims else (value, cycle.facts.claims)

    return with_claims


def _claims(cycle: Cycle) -> Hashable:
    return cycle.facts.claims


class Watermarks:
    """The watermarks of some plugins, as of the last look."""

    __slots__ = ("_seen", "plugins", "tellable")

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._seen = [_Seen(plugin, find) for plugin in plugins if (find := watermark_of(plugin)) is not None]
        self.plugins = frozenset(each.plugin for each in self._seen)
        """The plugins that have one."""
        self.tellable = True
        """Whether, at the last look, each plugin could tell its watermark."""

    def may_move(self, plugin: Plugin) -> bool:
        """Whether the plugin has a watermark of its own that another look may find moved."""
        own = type(plugin).watermark is not Plugin.watermark
        return own and any(each.plugin is plugin for each in self._seen)

    def moved(self, cycle: Cycle) -> list[Plugin]:
        """The plugins whose watermark for this pod is another than at the last look, or that cannot tell."""
        moved = []
        self.tellable = True
        for each in self._seen:
            try:
                value = each.find(cycle)
            except Exception as error:  # whatever the plugin raises
                raise PluginError(f'watermark of plugin "{each.plugin.name}": {describe(error)}') from error
            if value is None or value != each.value:
                each.value = value
                moved.append(each.plugin)
                self.tellable = self.tellable and value is not None
        if moved:
            self._seen = [each for each in self._seen if each.value != ()]
        return moved


class _Seen:
    """One plugin's watermark as of the last look."""

    __slots__ = ("find", "plugin", "value")

    def __init__(self, plugin: Plugin, find: WatermarkOf) -> None:
        self.plugin = plugin
        self.find = find
        self.value: Hashable = None
