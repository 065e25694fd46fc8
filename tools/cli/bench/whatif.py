"""Measures the questions of `podium whatif` and `podium capacity` (`podium bench whatif`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.options import Output, OutputOption
from tools.cli.bench.measuring import print_data, print_table


def whatif(
    nodes: Annotated[int, typer.Option("--nodes", min=10, help="Nodes of the cluster.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=10, help="Pods that run on them.")] = 50_000,
    replicas: Annotated[int, typer.Option("--replicas", min=1, help="How far capacity counts.")] = 50_000,
    output: OutputOption = Output.TABLE,
) -> None:
    """How long questions about a large cluster take once it is read: one pod, a drain, capacity, another configuration,
    nodes to buy.

    Example: podium bench whatif --nodes 1000 --pods 10000 --replicas 10000
    """
    import msgspec

    from podium.cli.console import table
    from tools.bench.whatif import measure_questions

    with progress_bar(7, "questions") as report:
        found = measure_questions(nodes, pods, replicas, lambda question: report(question, True))
    if output is not Output.TABLE:
        print_data(msgspec.json.encode(found).decode(), output)
        return
    rows = table()
    for heading in ("question", "seconds", "CPU, s", "goal, s", "answer"):
        rows.add_column(heading, justify="left" if heading in ("question", "answer") else "right")
    for each in found:
        goal = "" if each.budget_s is None else f"{each.budget_s:g}"
        rows.add_row(each.question, f"{each.seconds:.2f}", f"{each.cpu_s:.2f}", goal, each.answer)
    print_table(rows)
