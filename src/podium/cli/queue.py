"""Prints the pods that wait for a scheduler: in which order, since when, until when, and what would wake them.

`podium explain -A` prints them here, too: each with its verdict, its attempts and its next try.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from podium.cli.console import console, echo, echo_data, print_table, table
from podium.cli.errors import InputError
from podium.cli.options import ContextOption, KubeconfigOption, Output, OutputOption, SchedulerOption
from podium.cli.show import verdict

if TYPE_CHECKING:
    from podium.client import Access
    from podium.engine.explain import Explanation


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

    page: dict[str, Any] = ask(at, "/queuez", {"limit": str(limit), **({"namespace": namespace} if namespace else {})})
    try:
        msgspec.convert(page, _Page)
    except msgspec.ValidationError:
        raise NoAnswerError(f"{at.server}/queuez is no page of a scheduler") from None
    return page


_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Cause(msgspec.Struct):
    plugin: str
    events: list[str]


class _Waiting(msgspec.Struct, rename="camel"):
    pod: str
    queue: str
    position: int | None
    attempts: int | None
    since: _Time
    next_try: _Time | None
    waits_for: list[_Cause]


class _Page(msgspec.Struct):
    """What is read of /queuez: whatever answers at an address of --scheduler is checked against it."""

    time: _Time
    leads: bool
    counts: dict[str, int]
    pods: list[_Waiting]


def _show(page: Mapping[str, Any]) -> None:
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


UNKNOWN = "–"


def show_waiting(
    explanations: "Sequence[Explanation]", standing: Mapping[str, Mapping[str, Any]], output: Output
) -> None:
    """`standing` has what is known of pods from their scheduler's queue."""
    if output is not Output.TABLE:
        echo_data([_data(each, standing.get(each.pod, {})) for each in explanations], output)
        return
    if not explanations:
        echo("no pod waits for a node")
        return
    warnings = dict.fromkeys(warning for each in explanations for warning in each.warnings)
    for warning in warnings:
        echo(f"warning: {warning}")
    rows = table()
    rows.add_column("pod", overflow="fold")
    rows.add_column("verdict", overflow="fold")
    rows.add_column("attempts", justify="right")
    rows.add_column("next try", no_wrap=True)
    for each in explanations:
        known = standing.get(each.pod, {})
        attempts = known.get("attempts")
        words = verdict(each).removeprefix(f"{each.pod} ")
        rows.add_row(each.pod, words, UNKNOWN if attempts is None else str(attempts), in_words(known.get("nextTry")))
    print_table(console(), rows)


def _data(explanation: "Explanation", known: Mapping[str, Any]) -> dict[str, Any]:
    data = explanation.to_data()
    return {
        **{name: data[name] for name in ("pod", "profile", "selected", "message", "preemption", "kubernetesVersion")},
        "verdict": verdict(explanation),
        **{name: known.get(name) for name in ("position", "queue", "attempts", "since", "nextTry")},
        **({"warnings": data["warnings"]} if "warnings" in data else {}),
    }


def in_words(time: str | None, now: datetime | None = None) -> str:
    """How far away a time is.

    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [in_words(f"2026-01-01T0{time}Z", now) for time in ("0:00:00", "0:00:12.5", "0:05:00", "2:10:00")]
    ['now', 'in 13s', 'in 5m0s', 'in 2h10m']
    """
    if time is None:
        return UNKNOWN
    seconds = (datetime.fromisoformat(time) - (now or datetime.now(UTC))).total_seconds()
    return "now" if seconds <= 0 else f"in {span(seconds)}"


def span(seconds: float) -> str:
    """
    >>> span(0.2), span(90), span(7200)
    ('1s', '1m30s', '2h0m')
    """
    whole = max(1, round(seconds + 0.499))
    if whole < 60:
        return f"{whole}s"
    minutes, left = divmod(whole, 60)
    return f"{minutes}m{left}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60}m"
