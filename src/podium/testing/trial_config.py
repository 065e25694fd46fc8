"""Makes the configuration of a trial: kube-scheduler's default profile with the plugins of the test, or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from podium.config import SchedulerConfig, load_config
from podium.config.points import Point
from podium.framework.plugin import Plugin
from podium.plugins import load_registry, register


class TrialConfig(NamedTuple):
    """What a scheduler needs, and the plugins that the test is about."""

    config: SchedulerConfig
    registry: dict[str, type[Plugin]]
    tried: list[type[Plugin]]


def make_config(
    plugins: Sequence[type[Plugin] | str],
    args: Mapping[str, Any] | None,
    weight: int | None,
    config: str | Path | Mapping[str, Any] | None,
) -> TrialConfig:
    """Raises ConfigError for arguments or a configuration that `podium run` would refuse."""
    registry = load_registry()
    for each in plugins:
        if not isinstance(each, str):
            register(registry, each, f"plugin {each.__qualname__}")
    tried = [registry[each] if isinstance(each, str) else each for each in plugins]
    if config is not None and (args is not None or weight is not None):
        raise ValueError("args and weight belong into the configuration where one is given")
    if config is None:
        text, source = json.dumps(_default_with(tried, args, weight)), "the trial"
    elif isinstance(config, Mapping):
        text, source = json.dumps(config), "config"
    elif isinstance(config, Path):
        text, source = config.read_text(encoding="utf-8"), str(config)
    else:
        text, source = config, "config"
    return TrialConfig(load_config(text, source, registry).config, registry, tried)


def _default_with(tried: Sequence[type[Plugin]], args: Mapping[str, Any] | None, weight: int | None) -> dict[str, Any]:
    if (args is not None or weight is not None) and len(tried) != 1:
        raise ValueError("args and weight are for one plugin; give a configuration where there are several")
    enabled = [{"name": plugin.name, **({} if weight is None else {"weight": weight})} for plugin in tried]
    sorts = any(Point.QUEUE_SORT in plugin.points for plugin in tried)
    binds = any(Point.BIND in plugin.points for plugin in tried)
    replaced = [*(["PrioritySort"] if sorts else []), *(["DefaultBinder"] if binds else [])]
    multi_point = {"enabled": enabled, "disabled": [{"name": name} for name in replaced]}
    if binds:  # the plugin comes first, and may leave a pod to the default one
        multi_point["enabled"] = [*enabled, {"name": "DefaultBinder"}]
    given = [] if args is None else [{"name": tried[0].name, "args": dict(args)}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": multi_point}, "pluginConfig": given}],
    }
