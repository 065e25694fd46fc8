"""Shows what the sources of measured load report for each node, and how old that is (`podium telemetry show`)."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo, echo_data
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import ContextOption, KubeconfigOption, Output, PluginOption

if TYPE_CHECKING:
    from podium.config import Registry, SchedulerConfig
    from podium.load.sources import Followed, Telemetry

app = Commands(name="telemetry", help="Measured load of nodes.", no_args_is_help=True)


@app.callback()
def telemetry() -> None:
    """Measured load of nodes: what plugins that score by it have to go by."""


@app.command()
def show(
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The KubeSchedulerConfiguration whose plugins measure load."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the nodes from a dump instead of the live cluster. Repeatable.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    plugin: PluginOption = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")] = Output.TABLE,
) -> None:
    """Ask every source once that the configuration's plugins follow, and show what it says per node.

    Exits 0 when all answered, 1 when one did not or said nothing about any node, 2 on bad input.

    Example: podium telemetry show --config scheduler.yaml
    """
    import asyncio

    from podium.cli.configuration import read_config
    from podium.framework.clock import SystemClock

    if cluster and (kubeconfig or context):
        raise InputError("--from is a dump and --kubeconfig a live cluster: give one of them")
    settings, registry = read_config(config, plugin)
    kubeconfig = kubeconfig or settings.client_connection.kubeconfig or None
    measured = asyncio.run(_measure(settings, registry, cluster, kubeconfig, context))
    if not measured.followed:
        raise InputError("no plugin of the configuration follows measured load: name one that has such plugins")
    now = SystemClock().now()
    if output is Output.TABLE:
        _print_table(measured.followed, now)
    else:
        echo_data([_plain(each, now) for each in measured.followed], output)
    for series, problem in measured.problems.items():
        echo(f"{series.query}: {problem}", err=True)
    if measured.problems:
        raise typer.Exit(ANSWER_IS_NO)


async def _measure(
    config: "SchedulerConfig",
    registry: "Registry",
    dump: list[str] | None,
    kubeconfig: str | None,
    context: str | None,
) -> "Telemetry":
    from podium.cli.files import read_objects
    from podium.client import Client, load_access
    from podium.kube import Node
    from podium.run.snapshot import fetch_nodes, measure

    if dump:
        nodes = [each for each in read_objects(dump)[0] if isinstance(each, Node)]
        return await measure(config, registry, nodes, None)
    async with Client(load_access(kubeconfig, context=context)) as client:
        return await measure(config, registry, await fetch_nodes(client), client)


def _print_table(followed: "list[Followed]", now: float) -> None:
    from podium.cli.console import console, print_table, say, table

    out = console()
    for each in followed:
        readings = each.readings
        say(out, str(each.series), "bold")  # as a title it would be as narrow as its table
        rows = table()
        for heading in ("node", "value", "age"):
            rows.add_column(heading, overflow="fold", justify="left" if heading == "node" else "right")
        for name in sorted(readings.values):
            rows.add_row(name, f"{readings.values[name]:.6g}", _age(now - readings.time_of(name)))
        print_table(out, rows)
        echo(f"{_summary(each)}\n")


def _summary(each: "Followed") -> str:
    """How many nodes have a value, and what became of samples that gave none."""
    count = len(each.readings.values)
    words = {"unmatched": "of no known node", "duplicate": "more for a node that had one", "not_finite": "no numbers"}
    ends = each.last.outcomes()
    rest = [f"{ends[outcome]} samples {text}" for outcome, text in words.items() if ends[outcome]]
    return ", ".join([f"{count} {'node' if count == 1 else 'nodes'}", *rest])


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    return f"{seconds:.0f}s" if seconds < 120 else f"{seconds / 60:.0f}m"


def _plain(each: "Followed", now: float) -> dict[str, Any]:
    readings, source = each.readings, each.series.source
    nodes = {
        name: {"value": value, "ageSeconds": round(max(0.0, now - readings.time_of(name)), 3)}
        for name, value in sorted(readings.values.items())
    }
    return {
        "source": source.kind,
        "address": source.address or None,
        "query": each.series.query,
        "problem": readings.problem,
        "samples": each.last.outcomes(),
        "nodes": nodes,
    }
