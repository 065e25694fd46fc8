"""Reads the configuration a command runs with (a file, or what kube-scheduler runs without one), and its plugins."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from podium.cli.console import echo
from podium.cli.files import read_text
from podium.config import SchedulerConfig, default_config, load_config
from podium.config.feature_gates import read_gates
from podium.kube.versions import NEWEST, VersionRules

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
    rules: VersionRules = NEWEST,
    *,
    again: bool = False,
    quiet: bool = False,
) -> Configured:
    """Loads the plugins of `--plugin` and the file, and prints its warnings.

    Without a file, the plugins that are named are enabled beside those of the default profile. With `again`, they are
    loaded from their source as it is now; `quiet` leaves warnings out. Raises ConfigError with everything that is
    wrong.
    """
    registry, named = registry_and_named(plugins, again=again)
    rules = rules_with(feature_gates, rules, quiet=quiet)
    if file is None:
        return Configured(default_config(registry, rules, beside=named), registry)
    settings, warnings = load_config(*read_text(file), registry, rules)
    for warning in () if quiet else warnings:
        echo(f"warning: {warning}", err=True)
    return Configured(settings, registry)


def rules_with(feature_gates: list[str] | None, rules: VersionRules, *, quiet: bool = False) -> VersionRules:
    """The rules with the gates that `--feature-gates` switches; prints what Podium cannot switch."""
    gates, warnings = read_gates(feature_gates or (), rules)
    for warning in () if quiet else warnings:
        echo(f"warning: {warning}", err=True)
    return rules.with_gates(gates)


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
