"""Races Podium against kube-scheduler on a real API server (`podium bench e2e`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.options import Output, OutputOption, chosen_output
from tools.cli.bench.measuring import failing, print_data, print_table


def e2e(
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes the cluster has.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=2, help="How many pods wait when a scheduler starts.")] = 10000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often both take their turn.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Race Podium against kube-scheduler on the same real API server, in a source checkout.

    Starts the test bed's etcd and API server, creates nodes and pods, runs kube-scheduler until all pods are bound,
    deletes them, does the same with Podium, and so on. Pods per second are counted from the first binding to the last;
    CPU seconds are those of the scheduler from the first binding until its last Event is written. Medians are shown.

    Example: podium bench e2e --nodes 1000 --pods 2000 --rounds 1
    """
    from tools.bench.e2e import RaceError, run_e2e
    from tools.bench.report import comparison_json, comparison_table
    from tools.testbed import TestbedUnavailable

    printed = chosen_output(output, json)
    with failing(RaceError, bad_input=TestbedUnavailable), progress_bar(2 * rounds, "races") as report:
        found = run_e2e(nodes, pods, rounds, report)
    if printed is not Output.TABLE:
        print_data(comparison_json(found), printed)
    else:
        print_table(comparison_table(found))
