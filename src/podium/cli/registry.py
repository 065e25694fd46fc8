"""Loads the plugins a command can use: in-tree, installed, and those named on the command line."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.framework import Plugin
    from podium.plugins import PluginRegistry


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
