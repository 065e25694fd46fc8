"""Measures how fast simulations run (`podium bench simulate`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.options import Output, OutputOption, chosen_output
from tools.cli.bench.measuring import failing, print_data, print_table
from tools.cli.parts import MeasuringWorkersOption, UnitsOption, part_of


def simulate(
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A scenario to run; without one, generated pods.")
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Nodes for generated pods.")] = 1000,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods are generated.")] = 100_000,
    profiles: Annotated[
        str | None, typer.Option("--profiles", metavar="A,B", help="Only these profiles of the scenario.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="A-B,C", help="Other seeds than the scenario's: 7, 42-51 or 1,5."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR", help="Where the files are that the scenario names.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the scenario. Repeatable."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    output: OutputOption = Output.TABLE,
    workers: MeasuringWorkersOption = 1,
    units: UnitsOption = None,
) -> None:
    """Measure simulations: seconds, placements per second of CPU time, and memory, of each run in its own process.

    Example: podium bench simulate --nodes 1000 --pods 20000
    """
    from podium_lab.simulator import ScenarioError
    from podium_lab.simulator.sweep import load, plan
    from tools.bench.report import simulation_table, to_json
    from tools.bench.simulation import SimulationFailedError, measure_generated, measure_scenario

    printed = chosen_output(output, json)
    with failing(SimulationFailedError, bad_input=ScenarioError):
        if scenario is None:
            with progress_bar(2, "runs") as report:
                found = measure_generated(nodes, pods, report)
        else:
            chosen = None if profiles is None else profiles.split(",")
            jobs = plan(load(scenario, data, sets or ()), chosen, seeds).jobs
            runs = part_of([(job.contender.name, job.seed) for job in jobs], units)
            with progress_bar(len(runs), "runs") as report:
                found = measure_scenario(scenario, data, sets or (), runs, report, workers)
    if printed is not Output.TABLE:
        print_data(to_json(found, None), printed)
    else:
        print_table(simulation_table(found))
