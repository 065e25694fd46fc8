"""Measures what extenders cost kube-scheduler (`podium bench extender`)."""

from typing import Annotated

import typer

from podium.cli.console import echo, progress_bar
from podium.cli.options import Output, OutputOption, chosen_output
from tools.cli.bench.measuring import failing, print_data, print_table


def extender(
    nodes: Annotated[int, typer.Option("--nodes", min=2, help="How many nodes the cluster has.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=2, help="How many pods wait when a scheduler starts.")] = 5000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often each takes its turn.")] = 3,
    percentage: Annotated[
        int,
        typer.Option(
            "--percentage",
            min=0,
            max=100,
            help="percentageOfNodesToScore of every kube-scheduler, also of the one alone; 0 is its own choice.",
        ),
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of tables.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """What extenders cost kube-scheduler, on a real API server, in a source checkout.

    Races kube-scheduler alone, with an extender that does nothing, and with Podium's agents safe and congestion (names
    only), in turn; shows how long each kind of call took; then sends all nodes in full, 30 kB each, in one request.

    Example: podium bench extender --nodes 1000 --pods 1000 --rounds 1
    """
    from tools.bench.e2e import RaceError
    from tools.bench.extender import run_extender_bench
    from tools.bench.report import comparison_json, extender_tables
    from tools.testbed import TestbedUnavailable

    printed = chosen_output(output, json)
    with failing(RaceError, bad_input=TestbedUnavailable), progress_bar(4 * rounds, "races") as report:
        found = run_extender_bench(nodes, pods, rounds, percentage, report)
    if printed is not Output.TABLE:
        print_data(comparison_json(found), printed)
        return
    for table in extender_tables(found):
        print_table(table)
        echo()
