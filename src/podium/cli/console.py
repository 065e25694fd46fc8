"""Prints tables that look the same everywhere: plain, without frames, and wide enough in a pipe."""

import os
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 120


def console() -> "Console":
    """Standard output: as wide as the terminal, or as `COLUMNS` says, or wide enough for a table in a pipe."""
    from rich.console import Console

    out = Console(highlight=False, markup=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = PIPE_WIDTH
    return out


def print_table(out: "Console", rows: "Table") -> None:
    """Print a table without the blanks that would fill its lines up."""
    with out.capture() as captured:
        out.print(rows)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def table(title: str | None = None) -> "Table":
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
