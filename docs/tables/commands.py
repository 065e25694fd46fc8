"""Lists every command with its usage, arguments and options, from the parser that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from docs.tables.markdown import code, plain, table
from podium.cli import app
from podium.cli.commands import CommandGroup, parameters


def page() -> str:
    return "\n".join(_command("podium", typer.main.get_command(app), None))


def _command(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = command.context_class(
        command, info_name=name if parent is None else name.rsplit(maxsplit=1)[-1], parent=parent
    )
    summary, *rest = (command.help or "").strip().split("\n\n")
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield f"## {name}\n\n{plain(' '.join(summary.split()))}\n"
    yield f"```text\n{usage}\n```\n"
    for paragraph in rest:
        before, example, line = paragraph.partition("Example: ")
        if before.strip():
            yield f"{plain(' '.join(before.split()))}\n"
        if example:
            yield f"```text\n{line.strip()}\n```\n"
    records = [[code(written), plain(meaning)] for _each, written, meaning in parameters(command, context)]
    if records:
        yield table(["argument or option", "meaning"], records)
    if isinstance(command, CommandGroup):
        for child_name, child in command.all_commands(context).items():
            yield from _command(f"{name} {child_name}", child, context)
