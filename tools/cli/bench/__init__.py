"""Measures how fast pods are decided, in process and on a real API server (`podium bench`)."""

import typer

from podium.cli.commands import Commands
from tools.cli.bench.cost import cost
from tools.cli.bench.e2e import e2e
from tools.cli.bench.embedded import embedded
from tools.cli.bench.environment import environment
from tools.cli.bench.extender import extender
from tools.cli.bench.growth import growth
from tools.cli.bench.model import model
from tools.cli.bench.scheduler_perf import scheduler_perf
from tools.cli.bench.simulate import simulate
from tools.cli.bench.whatif import whatif

app = Commands(name="bench")


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Measure how fast pods are decided.

    Example: podium bench scheduler-perf --workload SchedulingBasic
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("scheduler-perf")(scheduler_perf)
for command in (growth, cost, e2e, embedded, environment, extender, model, simulate, whatif):
    app.command()(command)
