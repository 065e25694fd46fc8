"""Measures what a plugin costs a decision (`podium bench cost`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.errors import InputError
from podium.cli.options import Output, OutputOption, PluginOption, chosen_output
from tools.cli.bench.measuring import ConfigOption, checked_config, failing, print_data, print_table


def cost(
    name: Annotated[str, typer.Argument(metavar="PLUGIN", help="A plugin that the configuration enables.")],
    config: ConfigOption = None,
    workload: Annotated[
        str, typer.Option("--workload", metavar="GLOB", help="The workload; the first that matches.")
    ] = "SchedulingBasic",
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes the cluster has.")] = 5000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often it is measured.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    output: OutputOption = Output.TABLE,
    plugin: PluginOption = None,
) -> None:
    """What a plugin costs a decision: the configuration with it against the same one without it.

    Processes run the same workload and take turns on one core, a hundred pods at a time, so that all are disturbed
    equally: with the plugin, without it, and, where a configuration is given, the bare default profile. Shown are the
    median times per pod and their ratios: of all rounds the median, the least and the most.
    Plugins that read measured load are given numbers for every node, those that read NUMA zones eight zones of each.

    Example: podium bench cost ImageLocality --nodes 500
    """
    from tools.bench.cost import measure_cost
    from tools.bench.processes import WorkloadFailedError, request_for
    from tools.bench.report import comparison_json, cost_table
    from tools.bench.suite import UnknownWorkloadError, select

    printed = chosen_output(output, json)
    try:
        chosen = select([workload])[0].at(nodes)
    except UnknownWorkloadError as error:
        raise InputError(str(error)) from None
    settings = checked_config(config, plugin, enables=name)
    request = request_for(chosen, settings, plugin or ())
    with failing(WorkloadFailedError), progress_bar(rounds, "rounds") as report:
        found = measure_cost(name, request, rounds, lambda number: report(name, number > 0))
    if printed is not Output.TABLE:
        print_data(comparison_json(found), printed)
    else:
        print_table(cost_table(found))
