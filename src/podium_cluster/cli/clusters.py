"""Lists the clusters of `podium up` on this machine (`podium status`) and ends them (`podium down`)."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from podium.cli.console import echo
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, OutputOption

if TYPE_CHECKING:
    from podium_cluster.up.running_clusters import RunningCluster

ANSWERS_WITHIN: Final = 5.0
ENDS_WITHIN: Final = 60.0
LARGEST: Final = 1 << 20
NOTHING: Final = "no podium up runs here; podium up -d starts one"


def status(output: OutputOption = Output.TABLE) -> None:
    """List the clusters that podium up runs on this machine: port, process, nodes, pods, and where their files lie.

    Ends with 1 where there is none.

    Example: podium status -o json
    """
    import asyncio

    from podium.cli.console import console, echo_data, print_table, table
    from podium_cluster.up.running_clusters import running_clusters

    found = asyncio.run(_with_all_counts(running_clusters()))
    if output is not Output.TABLE:
        echo_data(found, output)
    elif not found:
        echo(NOTHING, err=True)
    else:
        rows = table()
        for heading in found[0]:
            rows.add_column("KUBECONFIG" if heading == "kubeconfig" else heading, overflow="fold")
        for each in found:
            rows.add_row(*("no answer" if value is None else str(value) or "–" for value in each.values()))
        print_table(console(), rows, turn=True)
    if not found:
        raise typer.Exit(ANSWER_IS_NO)


def down(
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", help="Which one, where several run.", min=1, max=65535)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """End a cluster that podium up runs on this machine, in the background or not.

    Waits until it has ended. Ends with 1 where none runs, or where one goes on for longer than a minute.

    Example: podium down --port 7070
    """
    from podium_cluster.up.running_clusters import end, running_clusters

    if everything and port is not None:
        raise InputError("--all and --port contradict each other; write one of them")
    going_on = False
    for each in _chosen(running_clusters(), port, everything):
        if end(each, ENDS_WITHIN):
            echo(f"ended podium up on port {each.port} (process {each.pid})")
        else:
            going_on = True
            echo(f"process {each.pid} still finishes what is under way; kill -9 {each.pid} ends it at once", err=True)
    if going_on:
        raise typer.Exit(ANSWER_IS_NO)


def _chosen(running: "list[RunningCluster]", port: int | None, everything: bool) -> "list[RunningCluster]":
    if not running:
        echo(NOTHING, err=True)
        raise typer.Exit(ANSWER_IS_NO)
    ports = ", ".join(str(each.port) for each in running)
    if port is None and not everything and len(running) > 1:
        raise InputError(f"podium up runs on the ports {ports}: name one with --port, or write --all")
    chosen = [each for each in running if port in (None, each.port)]
    if not chosen:
        raise InputError(f"--port {port}: no podium up runs there; one runs on {ports}")
    return chosen


async def _with_all_counts(running: "list[RunningCluster]") -> list[dict[str, Any]]:
    """Each with how many nodes and pods it has; None where it does not answer."""
    import asyncio

    return await asyncio.gather(*map(_with_counts, running))


async def _with_counts(cluster: "RunningCluster") -> dict[str, Any]:
    import asyncio

    nodes, pods = await asyncio.gather(*(_count(f"{cluster.url}/api/v1/{kind}?limit=1") for kind in ("nodes", "pods")))
    return {
        "port": cluster.port,
        "pid": cluster.pid,
        "since": cluster.since,
        "nodes": nodes,
        "pods": pods,
        "kubeconfig": cluster.kubeconfig,
        "log": cluster.log,
    }


async def _count(url: str) -> int | None:
    from podium.cli.fetching import FetchError, fetched
    from podium.kube.documents import FILE, DocumentError, read_json

    try:
        page = read_json(await fetched(url, "application/json", seconds=ANSWERS_WITHIN, most=LARGEST), bounds=FILE)
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))
    except (FetchError, DocumentError, KeyError, TypeError):
        return None
