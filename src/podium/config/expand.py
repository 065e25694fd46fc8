"""Fills each extension point with the plugins that run there, in running order.

A plugin comes to a point in two ways: named under the point's own key, or named under `multiPoint` and implementing
the point. The order is

1. plugins named both ways, in the order of the point's key,
2. plugins that come through `multiPoint`, in its order, unless the point disables them,
3. the other plugins of the point's key.

`*` under a point's `disabled` shuts `multiPoint` out of it. The built-in plugins are all in `multiPoint`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from podium.config.defaults import EVERYTHING
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.types import PluginEntry, Plugins, PluginSet

MULTI_POINT = "multiPoint"
MAX_NODE_SCORE = 100
MAX_TOTAL_SCORE = 2**63 - 1


class Refusal(NamedTuple):
    """Why the points cannot be filled: which entry of `key`'s enabled list is at fault, in kube-scheduler's words."""

    key: str
    position: int
    name: str
    message: str


class Expansion(NamedTuple):
    """Plugin names per extension point, in running order, or what stands against it."""

    plugins: dict[Point, tuple[str, ...]]
    refusals: list[Refusal]


def expand(plugins: Plugins, registry: Registry) -> Expansion:
    """Fills every extension point of one profile's merged plugin sets."""
    sets = plugins.by_key()
    refusals = [refusal for point in Point for refusal in _check_own(point, sets[point], registry)]
    refusals += _check_multi_point(sets, registry)
    known = [plugin.name for plugin in sets[MULTI_POINT].enabled if plugin.name in registry]
    filled = {point: _fill(sets[point], [name for name in known if point in registry[name].points]) for point in Point}
    return Expansion(filled, refusals)


def score_weights(point: Point, plugins: Plugins, registry: Registry) -> dict[str, int]:
    """Weights at `score` or `placementScore`: the point's own entry counts before multiPoint's, 0 and unset mean 1.

    Raises OverflowError when the highest possible total would not fit 64 bits.
    """
    sets = plugins.by_key()
    weights: dict[str, int] = {}
    for plugin in (*sets[point].enabled, *sets[MULTI_POINT].enabled):
        if plugin.name in registry and point in registry[plugin.name].points:
            weights.setdefault(plugin.name, plugin.weight or 1)
    if sum(weights.values()) * MAX_NODE_SCORE > MAX_TOTAL_SCORE:
        raise OverflowError("total score of Score plugins could overflow")
    return weights


def _fill(own: PluginSet, through_multi_point: list[str]) -> tuple[str, ...]:
    named = list(dict.fromkeys(plugin.name for plugin in own.enabled))
    disabled = {plugin.name for plugin in own.disabled}
    if EVERYTHING in disabled:
        return tuple(named)
    arriving = [name for name in dict.fromkeys(through_multi_point) if name not in disabled]
    both = [name for name in named if name in arriving]
    return (*both, *(name for name in arriving if name not in named), *(name for name in named if name not in both))


def _check_own(point: Point, own: PluginSet, registry: Registry) -> list[Refusal]:
    refusals: list[Refusal] = []
    seen: set[str] = set()
    for index, plugin in enumerate(own.enabled):
        message = _objection(point, plugin, registry, seen)
        if message:
            refusals.append(Refusal(point, index, plugin.name, message))
        seen.add(plugin.name)
    return refusals


def _objection(point: Point, plugin: PluginEntry, registry: Registry, seen: set[str]) -> str:
    kind = point.interface
    if plugin.name not in registry:
        return f'{kind} "{plugin.name}" does not exist'
    if point not in registry[plugin.name].points:
        return f'plugin "{plugin.name}" does not extend {kind} plugin'
    if plugin.name in seen:
        return f'plugin "{plugin.name}" already registered as "{kind}"'
    return ""


def _check_multi_point(sets: Mapping[str, PluginSet], registry: Registry) -> list[Refusal]:
    open_points = {
        point: {plugin.name for plugin in (*sets[point].enabled, *sets[point].disabled)}
        for point in Point
        if all(plugin.name != EVERYTHING for plugin in sets[point].disabled)
    }
    refusals: list[Refusal] = []
    seen: set[str] = set()
    for index, plugin in enumerate(sets[MULTI_POINT].enabled):
        if plugin.name not in registry:
            first = next(iter(open_points), Point.SCORE)  # with every point shut, kube-scheduler fails over the weights
            refusals.append(
                Refusal(MULTI_POINT, index, plugin.name, f'{first.interface} "{plugin.name}" does not exist')
            )
        elif plugin.name in seen:
            arrives_at = [
                point
                for point, named in open_points.items()
                if point in registry[plugin.name].points and plugin.name not in named
            ]
            if arrives_at:
                message = f'plugin "{plugin.name}" already registered as "{arrives_at[0].interface}"'
                refusals.append(Refusal(MULTI_POINT, index, plugin.name, message))
        seen.add(plugin.name)
    return refusals
