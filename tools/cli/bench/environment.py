"""Measures environments for learning (`podium bench environment`)."""

import os
from typing import Annotated

import msgspec
import typer

from podium.cli.console import progress_bar, table
from podium.cli.errors import InputError
from podium.cli.options import Output, OutputOption, chosen_output
from tools.cli.bench.measuring import print_data, print_table

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def environment(
    objective: Annotated[
        str, typer.Option("--objective", metavar="NAME", help="The objective, and whose heuristic decides.")
    ] = "least-allocated",
    clusters: Annotated[
        str, typer.Option("--clusters", metavar="A,B", help="How many clusters are stepped together.")
    ] = "16,64,256",
    cores: Annotated[int, typer.Option("--cores", min=0, help="Use so many cores; 0: all, or the GPU.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure decisions a second of the batched environment, with a heuristic and with the set scorer, at 64 nodes.

    Example: podium bench environment --clusters 16,64

    Example: podium bench environment --clusters 1024,4096 --cores 0
    """
    from podium_lab.learning.extra import LearningError
    from podium_lab.models.heuristics import OBJECTIVES

    printed = chosen_output(output, json)
    if objective not in OBJECTIVES:
        raise InputError(f'--objective: there is no objective "{objective}"; write one of {", ".join(OBJECTIVES)}')
    try:
        numbers = [int(each) for each in clusters.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise InputError(f'--clusters: expected numbers such as 16,64, got "{clusters}"')
    if cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        if cores == 1:
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
    try:
        from tools.bench.environments import measure_environments

        with progress_bar(2 * len(numbers) + 1, "compiling") as report:
            found = measure_environments(objective, numbers, report)
    except LearningError as error:
        raise InputError(str(error)) from None
    if printed is not Output.TABLE:
        print_data(msgspec.json.encode(found).decode(), printed)
        return
    rows = table()
    for heading in ("environment", "decided by", "nodes", "clusters", "decisions/s", "compiling"):
        rows.add_column(heading, justify="left" if heading in ("environment", "decided by") else "right")
    for each in found:
        compiling = f"{each.compile_s:.1f} s" if each.compile_s else ""
        cells = f"{each.nodes}", f"{each.clusters}", f"{each.decisions_per_s:,.0f}", compiling
        rows.add_row(each.environment, each.policy, *cells)
    print_table(rows)
