"""Prints every pod that waits for a node, with its verdict, its attempts and its next try."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from podium.cli.console import console, echo, echo_data, print_table, table
from podium.cli.options import Output
from podium.cli.show import verdict

if TYPE_CHECKING:
    from podium.engine.explain import Explanation

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
