"""Makes the configuration of a trial: kube-scheduler's default profile with the plugins of the test, or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from podium.config import SchedulerConfig, load_config
from podium.config.defaults import beside_defaults
from podium.framework.plugin import Plugin
from podium.plugins import PluginRegistry, load_registry, register


class TrialConfig(NamedTuple):
    """What a scheduler needs, and the plugins that the test is about."""

    config: SchedulerConfig
    registry: PluginRegistry
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
        text, source = json.dumps(beside_defaults(tried, args, weight)), "the trial"
    elif isinstance(config, Mapping):
        text, source = json.dumps(config), "config"
    elif isinstance(config, Path):
        text, source = config.read_text(encoding="utf-8"), str(config)
    else:
        text, source = config, "config"
    return TrialConfig(load_config(text, source, registry).config, registry, tried)
