"""Lists what there is to know about each plugin: its group, what it is for, its points, its arguments, where it comes
from."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium import packages
from podium.cli.console import table
from podium.config.defaults import DEFAULT_PLUGINS
from podium.config.durations import encode_hook
from podium.framework import Plugin
from podium.framework.extension_points import EXTENSION_POINTS
from podium.kube.printable import printable
from podium.plugins import installed_plugins

if TYPE_CHECKING:
    from rich.table import Table


GROUPS: Final = (
    "The queue and its order",
    "What a node must be",
    "Room on nodes",
    "Pods near or away from others",
    "Gangs and quotas",
    "Preemption",
    "Devices, NUMA and volumes",
    "Measured load",
    "Learning",
    "Binding",
)
"""In the order in which they are shown."""

OTHERS: Final = "Others"


def group_of(name: str) -> str:
    """
    >>> group_of("Coscheduling")
    'Gangs and quotas'
    """
    listed = packages.plugins().get(name)
    return OTHERS if listed is None else listed.group


def purpose_of(name: str, plugin: type[Plugin]) -> str:
    """What a plugin is for; of one that is not listed, the first sentence of its documentation."""
    listed = packages.plugins().get(name)
    if listed is not None:
        return listed.purpose
    written = plugin.__doc__ or getattr(sys.modules.get(plugin.__module__), "__doc__", None) or ""
    sentence = re.split(r"(?<=[.!?])\s|\n\s*\n", written.strip(), maxsplit=1)[0]
    return " ".join(sentence.split()).rstrip(".")


REQUIRED = "(required)"
_DEFAULT_WEIGHTS = {plugin.name: plugin.weight for plugin in DEFAULT_PLUGINS.multi_point.enabled}


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin of the catalogue; `weight` is None when it does not score."""

    name: str
    points: list[str]
    weight: int | None
    args: dict[str, Any]
    origin: str
    group: str
    purpose: str


def catalog(registry: Mapping[str, type[Plugin]]) -> list[CatalogEntry]:
    """Every plugin, in-tree ones in their running order, then the others."""
    distributions = installed_plugins()
    return [
        CatalogEntry(
            name=name,
            points=[point for point in EXTENSION_POINTS if point in plugin.points],
            weight=(_DEFAULT_WEIGHTS.get(name) or 1) if "score" in plugin.points else None,
            args=_defaults(plugin.Args),
            origin="in-tree" if name in packages.plugins() else distributions.get(plugin, "--plugin"),
            group=group_of(name),
            purpose=purpose_of(name, plugin),
        )
        for name, plugin in registry.items()
    ]


def grouped_table(entries: Sequence[CatalogEntry]) -> "Table":
    """The plugins in groups, each with one line on what it is for."""
    rows = table()
    rows.add_column("plugin", no_wrap=True)
    rows.add_column("what it is for", overflow="fold")
    for group in (*GROUPS, OTHERS):
        members = [entry for entry in entries if entry.group == group]
        if members:
            rows.add_row()
            rows.add_row(group, style="bold")
        for entry in members:
            rows.add_row(f"  {printable(entry.name)}", printable(entry.purpose))
    return rows


def catalog_table(entries: Sequence[CatalogEntry]) -> "Table":
    from rich.text import Text

    rows = table()
    rows.add_column("plugin", overflow="fold")
    rows.add_column("extension points", overflow="fold")
    rows.add_column("weight", justify="right")
    rows.add_column("arguments", overflow="fold")
    rows.add_column("from", overflow="fold")
    for entry in entries:
        weight = "" if entry.weight is None else str(entry.weight)
        rows.add_row(entry.name, ", ".join(entry.points), weight, Text(_shown(entry.args.items())), entry.origin)
    return rows


def _defaults(args: type[msgspec.Struct] | None) -> dict[str, Any]:
    """The arguments under their names in the configuration, each with its default."""
    if args is None:
        return {}
    return {field.encode_name: _default(field) for field in msgspec.structs.fields(args)}


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return REQUIRED
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return msgspec.to_builtins(value, enc_hook=encode_hook)


def _shown(args: Iterable[tuple[str, Any]]) -> str:
    return "\n".join(f"{printable(name)}: {value if value == REQUIRED else json.dumps(value)}" for name, value in args)
