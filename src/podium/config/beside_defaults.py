"""Writes the configuration that enables some plugins beside those of kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.config.points import Point
from podium.config.registry import PluginType
from podium.config.types import API_VERSION, KIND


def beside_defaults(
    plugins: Sequence[PluginType], args: Mapping[str, Any] | None = None, weight: int | None = None
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration as data; arguments and weight are for one plugin."""
    if (args is not None or weight is not None) and len(plugins) != 1:
        raise ValueError("args and weight are for one plugin; give a configuration where there are several")
    enabled = [{"name": plugin.name, **({} if weight is None else {"weight": weight})} for plugin in plugins]
    sorts = any(Point.QUEUE_SORT in plugin.points for plugin in plugins)
    binds = any(Point.BIND in plugin.points for plugin in plugins)
    replaced = [*(["PrioritySort"] if sorts else []), *(["DefaultBinder"] if binds else [])]
    multi_point = {"enabled": enabled, "disabled": [{"name": name} for name in replaced]}
    if binds:  # the plugin comes first, and may leave a pod to the default one
        multi_point["enabled"] = [*enabled, {"name": "DefaultBinder"}]
    given = [] if args is None else [{"name": plugins[0].name, "args": dict(args)}]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{"plugins": {"multiPoint": multi_point}, "pluginConfig": given}],
    }
