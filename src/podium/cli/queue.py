"""Prints the pods that wait for a scheduler: in which order, since when, until when, and what would wake them."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.console import console, echo, echo_data, print_table, table
from podium.cli.errors import InputError
from podium.cli.options import ContextOption, KubeconfigOption, Output, OutputOption, SchedulerOption

if TYPE_CHECKING:
    from podium.client import Access

SHOWN = 100


def queue(
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", metavar="NAME", help="Only pods of this namespace.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Pods at most.")] = SHOWN,
    scheduler: SchedulerOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the pods that wait for a scheduler, first those that are tried next.

    Says how often each was tried, since when it waits, when it is tried again at the latest, and which plugins keep it
    waiting for which events. podium up answers by itself; any other scheduler needs --scheduler.

    Example: podium queue -n shop

    Example: podium queue --scheduler https://127.0.0.1:10259 -o json
    """
    from podium.cli.in_charge import NoAnswerError
    from podium.cli.live_cluster import cluster_access, scheduler_access
    from podium.client import ClientError

    at = scheduler_access(kubeconfig, context, scheduler) if scheduler else cluster_access(kubeconfig, context)
    try:
        page = ask_queue(at, namespace or "", limit)
    except (NoAnswerError, ClientError) as error:
        raise InputError(f"no scheduler shows its queue: {error}{'' if scheduler else _HOW}") from None
    if output is not Output.TABLE:
        echo_data(page, output)
    else:
        _show(page)


_HOW = (
    "; for podium run, forward its port (kubectl -n kube-system port-forward deploy/podium 10259) and give "
    "--scheduler https://127.0.0.1:10259"
)


def ask_queue(at: "Access", namespace: str, limit: int) -> dict[str, Any]:
    """The page /queuez; raises NoAnswerError or ClientError."""
    from podium.cli.in_charge import NoAnswerError, ask

    page = ask(at, "/queuez", {"limit": str(limit), **({"namespace": namespace} if namespace else {})})
    if not isinstance(page, dict) or not isinstance(page.get("pods"), list):
        raise NoAnswerError(f"{at.server}/queuez is no page of a scheduler")
    return page


def _show(page: Mapping[str, Any]) -> None:
    from podium.cli.waiting_table import UNKNOWN, in_words, span

    now, counts, pods = datetime.fromisoformat(page["time"]), page["counts"], page["pods"]
    if not page["leads"]:
        echo("this scheduler does not lead: it watches, and another one tries the pods", err=True)
    echo(
        ", ".join(f"{count} {_STATES.get(state, state)}" for state, count in counts.items() if count) or "no pod waits"
    )
    if not pods:
        if sum(counts.values()):
            echo("none of them in this namespace")
        return
    rows = table()
    rows.add_column("#", justify="right", no_wrap=True)
    rows.add_column("pod", overflow="fold")
    rows.add_column("queue", no_wrap=True)
    rows.add_column("tries", justify="right", no_wrap=True)
    rows.add_column("waits", justify="right", no_wrap=True)
    rows.add_column("next try", no_wrap=True)
    rows.add_column("kept out by", overflow="fold")
    for each in pods:
        waited = max(0.0, (now - datetime.fromisoformat(each["since"])).total_seconds())
        rows.add_row(
            str(each["position"] or ""),
            each["pod"],
            each["queue"],
            UNKNOWN if each["attempts"] is None else str(each["attempts"]),
            span(waited),
            in_words(each["nextTry"], now),
            ", ".join(cause["plugin"] for cause in each["waitsFor"]),
        )
    echo()
    print_table(console(), rows)
    _show_events(pods)
    left = sum(counts.values()) - len(pods)
    if left > 0 and len(pods) >= SHOWN:
        echo(f"{left} more; --limit shows more of them")


_STATES = {
    "active": "to be tried",
    "backoff": "backing off",
    "unschedulable": "waiting for an event",
    "gated": "gated",
    "permit": "held at Permit",
}


def _show_events(pods: list[dict[str, Any]]) -> None:
    """What has to happen before a plugin is asked again: the same for all its pods."""
    events = {cause["plugin"]: cause["events"] for each in pods for cause in each["waitsFor"] if cause["events"]}
    if not events:
        return
    rows = table("What would wake them")
    rows.add_column("plugin", overflow="fold")
    rows.add_column("when this happens", overflow="fold")
    for plugin in sorted(events):
        rows.add_row(plugin, "; ".join(events[plugin]))
    echo()
    print_table(console(), rows)
