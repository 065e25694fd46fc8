"""Reads the configuration a command runs with (a file, or what kube-scheduler runs without one), and its plugins.

Also finds by which Kubernetes minor's rules the command decides: `--kubernetes-version`, the cluster, or the newest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.files import read_text
from podium.config import SchedulerConfig, default_config, load_config
from podium.config.feature_gates import read_gates
from podium.kube.versions import KNOWN, NEWEST, FoundRules, UnknownVersionError, VersionRules, find_rules

if TYPE_CHECKING:
    from podium.client import Access
    from podium.framework import Plugin
    from podium.plugins import PluginRegistry


class Configured(NamedTuple):
    """What a scheduler is built from."""

    settings: SchedulerConfig
    registry: PluginRegistry


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


def registry_with(extra: Sequence[str] | None) -> PluginRegistry:
    """Every plugin by name. A plugin named on the command line may lie in the current folder."""
    return registry_and_named(extra)[0]


def registry_and_named(
    extra: Sequence[str] | None, *, again: bool = False
) -> tuple[PluginRegistry, list[type[Plugin]]]:
    """Every plugin by name, and those that the command line names.

    With `again`, those that are named are loaded from their source as it is now.
    """
    from podium.plugins import load_named, load_registry

    if extra and "" not in sys.path:
        sys.path.insert(0, "")
    registry = load_registry()
    return registry, load_named(registry, extra or (), again=again)


T = TypeVar("T")


def given_rules(kubernetes_version: str | None) -> VersionRules | None:
    """The rules that `--kubernetes-version` names; None where it is not given. Prints where they are not its own."""
    if kubernetes_version is None:
        return None
    try:
        return with_warning(find_rules(kubernetes_version))
    except UnknownVersionError as error:
        raise InputError(f"--kubernetes-version: {error}") from None


def with_warning(found: FoundRules) -> VersionRules:
    """Print the warning, if there is one."""
    if found.warning:
        echo(f"warning: {found.warning}", err=True)
    return found.rules


def rules_of_dump(server_version: str) -> VersionRules:
    """The rules of the `serverVersion` in a dump; the newest where it has none."""
    if not server_version:
        return NEWEST
    try:
        return with_warning(find_rules(server_version))
    except UnknownVersionError as error:
        raise InputError(f"serverVersion: {error}, as --kubernetes-version") from None


def rules_at(access: Access) -> VersionRules:
    """The rules of a live API server's minor; raises ClientError where it does not answer."""
    import asyncio

    from podium.client import Client
    from podium.serving.server_rules import rules_of_server

    async def ask() -> FoundRules:
        async with Client(access) as client:
            return await rules_of_server(client)

    return with_warning(asyncio.run(ask()))


def first_for_some_minor(given: VersionRules | None, read: Callable[[VersionRules], T]) -> T:
    """A configuration by the rules that were given, else by those of any minor that accepts it, the newest first.

    Which rules count is not known before the cluster answers. What no minor accepts is refused before that.
    """
    from podium.config import ConfigError

    newest, *older = [given] if given is not None else reversed(KNOWN.values())
    try:
        return read(newest)
    except ConfigError:
        for rules in older:
            with suppress(ConfigError):
                return read(rules)
        raise
