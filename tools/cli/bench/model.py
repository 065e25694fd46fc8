"""Measures what asking a model costs a decision (`podium bench model`)."""

from typing import Annotated

import typer

from podium.cli.console import progress_bar
from podium.cli.errors import InputError
from podium.cli.options import Output, OutputOption
from tools.cli.bench.measuring import failing, print_data, print_table


def model(
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="N,M", help="Sizes of clusters, each with all nodes feasible.")
    ] = "1000,5000",
    decisions: Annotated[int, typer.Option("--decisions", min=10, help="How many decisions are measured.")] = 300,
    output: OutputOption = Output.TABLE,
) -> None:
    """What a decision with ModelScore costs beyond the model server's own time.

    A server that does nothing speaks the Open Inference Protocol on loopback. JSON, bytes and no question at all take
    turns in one process.

    Example: podium bench model --nodes 1000,5000
    """
    import msgspec

    from podium.cli.console import table
    from tools.bench.model import ModelBenchError, measure_model

    try:
        sizes = [int(each) for each in nodes.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 2:
        raise InputError(f'--nodes {nodes}: must be sizes from 2 on, such as "1000,5000"')
    with failing(ModelBenchError), progress_bar(len(sizes) * (decisions + 10), "decisions") as report:
        found = measure_model(sizes, decisions, lambda size: report(size, True))
    if output is not Output.TABLE:
        print_data(msgspec.json.encode(found).decode(), output)
        return
    rows = table()
    for heading in ("nodes", "form", "p50, ms", "p99, ms", "server p50, ms"):
        rows.add_column(heading, justify="left" if heading == "form" else "right")
    for each in found:
        rows.add_row(
            f"{each.nodes:,}", each.form, f"{each.p50_ms:.2f}", f"{each.p99_ms:.2f}", f"{each.server_p50_ms:.3f}"
        )
    print_table(rows)
