"""Lists every plugin in its group: what it is for, where it takes part, and its arguments."""

from __future__ import annotations

from collections.abc import Iterator

from docs.tables.fields import Field, fields_of
from docs.tables.markdown import code, plain, table, value
from podium import packages
from podium.cli.catalog import GROUPS, CatalogEntry, catalog
from podium.framework import Plugin
from podium.plugins import load_registry


def page() -> str:
    registry = {name: plugin for name, plugin in load_registry().items() if name in packages.plugins()}
    entries = {entry.name: entry for entry in catalog(registry)}
    return "\n".join(
        part
        for group in GROUPS
        for part in (
            f"## {group}\n",
            *(
                part
                for entry in entries.values()
                if entry.group == group
                for part in _plugin(entry, registry[entry.name])
            ),
        )
    )


def _plugin(entry: CatalogEntry, plugin: type[Plugin]) -> Iterator[str]:
    yield f"### {entry.name}\n\n{plain(entry.purpose[0].upper() + entry.purpose[1:])}.\n"
    weight = "" if entry.weight is None else f" Weight {entry.weight} unless the profile says otherwise."
    yield f"Extension points: {', '.join(entry.points)}.{weight}\n"
    fields = [] if plugin.Args is None else list(fields_of(plugin.Args))
    yield argument_table(fields) if fields else "It has no arguments.\n"


def argument_table(fields: list[Field]) -> str:
    if any(field.meaning for field in fields):
        return table(
            ["argument", "type", "default", "meaning"], [[*_row(field), plain(field.meaning)] for field in fields]
        )
    return table(["argument", "type", "default"], map(_row, fields))


def _row(field: Field) -> list[str]:
    default = "must be given" if field.default is None else value(*field.default)
    return [code(field.name), plain(field.type), "" if field.type == "object" else default]
