"""Reads the configuration a command runs with (a file, or what kube-scheduler runs without one), and its plugins."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from podium.cli.console import echo
from podium.cli.files import read_text
from podium.config import SchedulerConfig, default_config, load_config
from podium.config.feature_gates import Gates, read_gates

if TYPE_CHECKING:
    from podium.framework import Plugin
    from podium.plugins import PluginRegistry


class Configured(NamedTuple):
    """What a scheduler is built from."""

    settings: SchedulerConfig
    registry: "PluginRegistry"


def read_config(
    file: str | None,
    plugins: Sequence[str] | None = None,
    feature_gates: list[str] | None = None,
    *,
    again: bool = False,
) -> Configured:
    """Loads the plugins of `--plugin` and the file, and prints its warnings.

    Without a file, the plugins that are named are enabled beside those of the default profile. With `again`, they are
    loaded from their source as it is now. Raises ConfigError with everything that is wrong with the file.
    """
    registry, named = registry_and_named(plugins, again=again)
    gates = gates_of(feature_gates)
    if file is None:
        return Configured(default_config(registry, gates, beside=named), registry)
    settings, warnings = load_config(*read_text(file), registry, gates)
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return Configured(settings, registry)


def gates_of(feature_gates: list[str] | None) -> Gates:
    """The gates that `--feature-gates` switches on; prints what Podium cannot switch."""
    gates, warnings = read_gates(feature_gates or ())
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return gates


def registry_with(extra: Sequence[str] | None) -> "PluginRegistry":
    """Every plugin by name. A plugin named on the command line may lie in the current folder."""
    return registry_and_named(extra)[0]


def registry_and_named(
    extra: Sequence[str] | None, *, again: bool = False
) -> "tuple[PluginRegistry, list[type[Plugin]]]":
    """Every plugin by name, and those that the command line names.

    With `again`, those that are named are loaded from their source as it is now.
    """
    from podium.plugins import load_named, load_registry

    if extra and "" not in sys.path:
        sys.path.insert(0, "")
    registry = load_registry()
    return registry, load_named(registry, extra or (), again=again)
