"""Measures how the time per decision grows with the cluster (`podium bench growth`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.errors import InputError
from podium.cli.options import Output, OutputOption, PluginOption, chosen_output
from tools.cli.bench.measuring import (
    CompareOption,
    ConfigOption,
    JsonOption,
    checked_config,
    failing,
    print_data,
    print_table,
)


def growth(
    nodes: Annotated[
        list[str] | None,
        typer.Option("--nodes", metavar="N,M", help="Sizes of clusters. Repeatable.  [default: 1000,5000,20000]"),
    ] = None,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods are decided in each cluster.")] = 2000,
    config: ConfigOption = None,
    json: JsonOption = False,
    output: OutputOption = Output.TABLE,
    compare: CompareOption = None,
    plugin: PluginOption = None,
) -> None:
    """How the time per decision grows with the cluster: time = a × nodes^exponent.

    Example: podium bench growth --nodes 500,1000,2000
    """
    from podium.cli.files import read_text
    from tools.bench.growth import CASES, NODES, measure_growth
    from tools.bench.processes import WorkloadFailedError
    from tools.bench.report import (
        NotARunError,
        SavedGrowth,
        change_table,
        compare_growth,
        growth_table,
        load_growth,
        to_json,
    )

    printed = chosen_output(output, json)
    sizes = sorted(set(_sizes(nodes) if nodes else NODES))
    if len(sizes) < 2:
        raise InputError("an exponent needs at least two sizes of cluster: write --nodes 1000,5000")
    try:
        before = None if compare is None else load_growth(*read_text(compare))
    except NotARunError as error:
        raise InputError(str(error)) from None
    settings = checked_config(config, plugin)
    with failing(WorkloadFailedError), progress_bar(len(CASES) * len(sizes), "clusters") as report:
        found = [
            measure_growth(
                case,
                sizes,
                pods,
                config=settings,
                plugins=plugin or (),
                on_point=lambda size, case=case: report(f"{case}: {size:,} nodes", True),  # type: ignore[misc]
            )
            for case in CASES
        ]
    changes = None if before is None else compare_growth(before, SavedGrowth(found))
    if printed is not Output.TABLE:
        print_data(to_json(found, changes), printed)
        return
    print_table(growth_table(found))
    if changes is not None:
        print_table(
            change_table(changes), "Since the saved run" if changes else "The saved run has none of these sizes"
        )


def _sizes(given: list[str]) -> list[int]:
    """
    >>> _sizes(["500", "1000,2000"])
    [500, 1000, 2000]
    """
    found = [each for text in given for each in text.split(",")]
    for each in found:
        if not (each.isdecimal() and len(each) < 8 and int(each)):
            raise InputError(f'--nodes "{each}": write a number of nodes from 1 on, or several as 1000,5000')
    return [int(each) for each in found]
