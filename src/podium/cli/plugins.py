"""Lists plugins, and starts new ones (`podium plugins`)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo, echo_data
from podium.cli.options import Output, PluginOption


class ListOutput(StrEnum):
    """How the list is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


app = Commands(name="plugins")


@app.callback(invoke_without_command=True)
def plugins(
    context: typer.Context,
    plugin: PluginOption = None,
    output: Annotated[ListOutput, typer.Option("-o", "--output", help="How to print the list.")] = ListOutput.TABLE,
) -> None:
    """List the plugins a profile can enable, in groups and with what each is for, or start a new one.

    With -o wide: extension points, weight and arguments of each, in running order.

    Example: podium plugins -o json
    """
    if context.invoked_subcommand is not None:
        return
    from podium.cli.catalog import catalog, catalog_table, grouped_table
    from podium.cli.configuration import registry_with
    from podium.cli.console import console, print_table

    entries = catalog(registry_with(plugin))
    if output in (ListOutput.JSON, ListOutput.YAML):
        echo_data(entries, Output(output))
    else:
        wide = output is ListOutput.WIDE
        print_table(console(), catalog_table(entries) if wide else grouped_table(entries))


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: QuietNodes, quiet-nodes, quiet_nodes …")],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="FOLDER", help="Where to put the package's folder.")
    ] = Path(),
    agent: Annotated[
        bool,
        typer.Option(
            "--agent", help="A plugin for podium extender too: it filters, scores and is set up by variables."
        ),
    ] = False,
) -> None:
    """Start a plugin: a small package with the plugin, its test and a configuration that enables it.

    Example: podium plugins new QuietNodes
    """
    from podium.cli.new_plugin import class_name, next_steps, write_package

    plugin = class_name(name)
    echo(next_steps(write_package(plugin, folder, agent=agent), plugin, agent=agent))
