"""Reads, shows and prints what all benchmarks have in common: configuration, progress, tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo, echo_data
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output

if TYPE_CHECKING:
    from rich.table import Table

PIPE_WIDTH = 160

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; without it, the default profile."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print data instead of a table, for --compare or a program.")]
CompareOption = Annotated[
    str | None,
    typer.Option("--compare", metavar="FILE", help="Also print what has changed since a run saved with --json."),
]


def checked_config(file: str | None, plugins: list[str] | None, enables: str | None = None) -> tuple[str, str] | None:
    """The text of the configuration and its name, known to be right, and to enable a plugin."""
    from podium.cli.configuration import registry_with
    from podium.cli.files import read_text
    from podium.config import default_config, load_config

    registry = registry_with(plugins)
    settings = None if file is None else read_text(file)
    config = default_config(registry) if settings is None else load_config(*settings, registry).config
    if enables is not None and not any(enables in names for p in config.profiles for names in p.plugins.values()):
        if enables not in registry:
            raise InputError(f'there is no plugin "{enables}"; podium plugins lists those there are')
        where = file or "the default profile, so name a --config that does"
        raise InputError(f'plugin "{enables}" is not enabled in {where}')
    return settings


@contextmanager
def failing(*failures: type[Exception], bad_input: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Ends a measurement that failed with one sentence."""
    try:
        yield
    except bad_input as error:
        raise InputError(str(error)) from None
    except failures as error:
        echo(str(error), err=True)
        raise typer.Exit(ANSWER_IS_NO) from None


def print_data(text: str, output: Output) -> None:
    """Print what was measured, given as JSON, in the form that was asked for."""
    import msgspec

    echo_data(msgspec.json.decode(text), output)


def print_table(table: "Table", title: str | None = None) -> None:
    from podium.cli.console import console
    from podium.cli.console import print_table as fit_and_print

    out = console(PIPE_WIDTH)
    if title:
        out.print()
        out.print(title, style="bold")
    if table.row_count:
        fit_and_print(out, table)
