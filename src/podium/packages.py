"""Finds what the installed packages bring: commands, plugins, agents, controllers and custom resources.

Each package of ours says so in one record, `PACKAGE` of its module `package`, in strings: nothing is loaded to list it,
and a class is loaded when a profile or a command names it. `podium.index` holds the records of all of them, written by
`python -m tools.index`, so that a start need not look for them. Packages of others are found by entry points: commands
in the group `podium.commands`, plugins in `podium.plugins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import distribution, entry_points
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

COMMANDS: Final = "podium.commands"
PLUGINS: Final = "podium.plugins"
"""Groups of entry points."""


class CommandEntry(NamedTuple):
    """A command: its words after `podium`, where it is, and what `--help` says of it."""

    words: str
    target: str
    heading: str = ""
    summary: str = ""


class ListedPlugin(NamedTuple):
    """A plugin, where it is, and what it is for."""

    name: str
    target: str
    group: str
    purpose: str


class Package(NamedTuple):
    """What a package brings; targets are `module:attribute`."""

    name: str
    commands: tuple[CommandEntry, ...] = ()
    plugins: tuple[ListedPlugin, ...] = ()
    agents: tuple[tuple[str, str], ...] = ()
    """Agents of `podium extender`, by name."""
    controllers: tuple[tuple[str, str], ...] = ()
    """Controllers of `podium controller`, by name."""
    custom_resources: tuple[str, ...] = ()
    """Packages whose folders hold definitions of custom resources, as YAML."""
    shadow_logs: tuple[str, ...] = ()
    """Functions that sum up the log of a plugin with a shadow mode of its own, for `podium shadow report`."""
    api_rules: tuple[str, ...] = ()
    """Functions that say what kube-apiserver would refuse of an object, or warn of."""
    dashboard: str = ""
    """What makes a dashboard of a `podium.run.dashboard.DashboardSource`."""


@cache
def packages() -> tuple[Package, ...]:
    """The records of our packages that are installed."""
    from podium.index import PACKAGES

    return tuple(package for package in PACKAGES if find_spec(package.name) is not None)


@cache
def commands() -> tuple[CommandEntry, ...]:
    """Every command, ours first."""
    ours = [command for package in packages() for command in package.commands]
    known = {command.words for command in ours}
    return (*ours, *(command for command in _commands_of_others() if command.words not in known))


def _commands_of_others() -> Iterator[CommandEntry]:
    for point in entry_points(group=COMMANDS):
        about = "" if point.dist is None else point.dist.metadata["Summary"] or f"from {point.dist.name}"
        yield CommandEntry(point.name, point.value, "", about)


@cache
def plugins() -> dict[str, ListedPlugin]:
    """Our plugins by name: kube-scheduler's in its order, then those that no profile has by itself."""
    return {plugin.name: plugin for package in packages() for plugin in package.plugins}


@cache
def agents() -> dict[str, str]:
    """The agents of `podium extender` by name, each where it is."""
    return {name: target for package in packages() for name, target in package.agents}


@cache
def controllers() -> dict[str, str]:
    """The controllers of `podium controller` by name, each where it is."""
    return {name: target for package in packages() for name, target in package.controllers}


def shadow_logs() -> list[str]:
    """Where the functions are that sum up logs of plugins with a shadow mode of their own."""
    return [target for package in packages() for target in package.shadow_logs]


def api_rules() -> list[str]:
    """Where the functions are that say what kube-apiserver would refuse."""
    return [target for package in packages() for target in package.api_rules]


def dashboard() -> str:
    """Where what makes a dashboard is; "" where no package brings one."""
    return next((package.dashboard for package in packages() if package.dashboard), "")


def version() -> str:
    """Podium's version: all packages of ours are installed as one."""
    return distribution("podium").version


def load(target: str) -> Any:
    """What is at `module:attribute`."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
