"""Measures the embedded API over HTTP (`podium bench embedded`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.options import Output, OutputOption, chosen_output
from tools.cli.bench.measuring import failing, print_data, print_table


def embedded(
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes are created.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods are created and bound.")] = 50000,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the embedded Kubernetes API over HTTP: writes per second, memory, a whole list, and watches.

    Starts a server of its own in another process and creates nodes and pods, binds the pods, lists them, and changes
    some while ten watchers listen. CPU is that of the server.

    Example: podium bench embedded --nodes 500 --pods 5000
    """
    from tools.bench.embedded import ServerFailedError, run_embedded
    from tools.bench.report import embedded_json, embedded_table
    from tools.bench.requests import RefusedError

    printed = chosen_output(output, json)
    with failing(ServerFailedError, RefusedError), progress_bar(5, "phases") as report:
        found = run_embedded(nodes, pods, report)
    if printed is not Output.TABLE:
        print_data(embedded_json(found), printed)
    else:
        print_table(embedded_table(found))
