"""Prints what a command does (`podium help`), as its own `--help` does."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from podium.cli.commands import CommandGroup
from podium.cli.errors import InputError


def help_(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Such as simulate, or bench e2e.")
    ] = None,
) -> None:
    """Show what a command does; without one, list them all.

    Example: podium help explain
    """
    found: Any = context.parent
    for name in command or ():
        there = found.command.all_commands(found) if isinstance(found.command, CommandGroup) else {}
        if name not in there:
            close = difflib.get_close_matches(name, there, n=1)
            what = f"did you mean {close[0]}?" if close else f"there are {', '.join(there)}" if there else "it has none"
            raise InputError(f"{found.command_path} has no command {name}: {what}")
        found = there[name].context_class(there[name], info_name=name, parent=found)
    typer.echo(found.command.get_help(found))
