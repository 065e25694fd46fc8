"""Measures how fast pods are decided, in process and on a real API server (`podium bench`)."""

import typer

from podium.cli.bench.cost import cost
from podium.cli.bench.e2e import e2e
from podium.cli.bench.embedded import embedded
from podium.cli.bench.extender import extender
from podium.cli.bench.growth import growth
from podium.cli.bench.scheduler_perf import scheduler_perf
from podium.cli.bench.simulate import simulate
from podium.cli.commands import Commands

app = Commands(name="bench")


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Measure how fast pods are decided.

    Example: podium bench scheduler-perf --workload SchedulingBasic
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("scheduler-perf")(scheduler_perf)
for command in (growth, cost, e2e, embedded, extender, simulate):
    app.command()(command)
