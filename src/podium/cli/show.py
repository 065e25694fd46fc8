"""Prints an explanation for people, or as data.

The verdict comes first: in a pipe in one line, so that it can be searched for, on a terminal wrapped between words.
Then the nodes that were rejected, grouped by reason, and the podium: the best three nodes with each plugin's share.
Names are shortened, numbers never are. Without a terminal there is no colour.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podium.cli.console import console, echo_data, print_table, say, table
from podium.cli.options import Output
from podium.engine.explain import Explanation, NodeAnswer, Outcome
from podium.engine.gangs.explain_gang import GangExplanation
from podium.engine.unblock import Remedy
from podium.framework.protocols import ModelAnswer
from podium.kube.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from podium.whatif.records import StateRecord

BEST = 3
NAMES_SHOWN = 4
NOT_LOOKED_AT = "not looked at: enough nodes had been found"


def show(explanation: Explanation, output: Output, state: "StateRecord | None" = None) -> None:
    """Print an explanation to standard output; as data with the `state` that it rests on."""
    if output is Output.TABLE:
        _show_tables(explanation, console())
    else:
        from podium.whatif.explain_document import explain_document

        echo_data(explain_document(explanation, state), output)


def text_of(explanation: Explanation, width: int) -> str:
    """What `show` prints on a terminal of that width, with its colours."""
    from io import StringIO

    from rich.console import Console

    out = Console(file=StringIO(), width=width, force_terminal=True, highlight=False, markup=False, emoji=False)
    _show_tables(explanation, out)
    return out.file.getvalue() if isinstance(out.file, StringIO) else ""


def verdict(explanation: Explanation) -> str:
    """The answer in one line."""
    nodes, pod = explanation.nodes, explanation.pod
    if explanation.outcome is Outcome.HELD:
        return f"{pod} is held back: {explanation.message}"
    if explanation.outcome is Outcome.WAITS:
        return f"{pod} waits at Permit: {explanation.message}"
    if explanation.outcome is Outcome.FAILED:
        return f"{pod} cannot be judged: {explanation.message}"
    if explanation.outcome is Outcome.GANG_WAITS:
        return f"{pod} would fit on {explanation.selected}, but waits for its gang"
    if explanation.selected is None:
        return f"{pod} fits nowhere: {explanation.message}"
    feasible = sum(node.feasible for node in nodes)
    if feasible == 1:
        return f"{pod} fits: goes to {explanation.selected} (the only feasible node out of {len(nodes)})"
    return f"{pod} fits: goes to {explanation.selected} (best of {feasible} feasible nodes out of {len(nodes)})"


def preemption(explanation: Explanation) -> str | None:
    """What preemption would do, in one line."""
    eviction = explanation.preemption
    if eviction is None:
        return None
    return f"Preemption would make room on {eviction.node} by evicting {_some(eviction.victims)}."


def device_lines(explanation: Explanation) -> list[str]:
    """The devices that the pod's claims have or would get on the selected node, a line for each request."""
    chosen = next((node for node in explanation.nodes if node.name == explanation.selected), None)
    given: dict[tuple[str, str], list[str]] = {}
    for each in (chosen and chosen.devices) or ():
        device = f"{each['driver']}/{each['pool']}/{each['device']}"
        given.setdefault((each["claim"], each["request"]), []).append(device)
    return [f"claim {claim}, request {request}: {', '.join(given[claim, request])}" for claim, request in given]


def model_line(answer: ModelAnswer) -> str:
    """Who decided where a plugin may ask a model, in one line.

    >>> model_line(ModelAnswer("ModelScore", "fallback", "timeout", 50.2))
    'ModelScore: the fallback decided (timeout), after 50.2 ms'
    """
    why = f" ({answer.reason})" if answer.reason else ""
    return f"{answer.plugin}: the {answer.decided_by} decided{why}, after {answer.milliseconds:.1f} ms"


def gang_line(gang: GangExplanation) -> str:
    """How the pod's gang stands, in one line."""
    standing = f"{gang.group}: {gang.members} of at least {gang.minimum} members are there, {gang.assigned} have a node"
    if gang.objection:
        return f"{standing}; none is tried now: {gang.objection}"
    waiting = sum(len(each.pods) for each in gang.obstacles) + gang.would_fit
    missing = max(0, gang.minimum - gang.assigned)
    if gang.starts:
        return f"{standing}; {gang.would_fit} of the other {waiting} fit: it starts"
    return f"{standing}; {gang.would_fit} of the other {waiting} would fit, {missing} must: none starts"


def podium(explanation: Explanation) -> list[NodeAnswer]:
    """The best scored nodes, the chosen one first."""
    scored = [node for node in explanation.nodes if node.total is not None]
    scored.sort(key=lambda node: (node.name != explanation.selected, -(node.total or 0)))
    return scored[:BEST]


def rejections(nodes: Iterable[NodeAnswer], nominated: str = "") -> list[tuple[str, str, list[str]]]:
    """(plugin, reason, node names) of the nodes rejected, the most frequent first."""
    unseen = f"not looked at: {nominated} is set aside for the pod and takes it" if nominated else NOT_LOOKED_AT
    groups: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if not node.feasible:
            reason = ", ".join(node.reasons) or unseen
            groups.setdefault((node.plugin or "-", reason), []).append(node.name)
    found = [(plugin, reason, sorted(names)) for (plugin, reason), names in groups.items()]
    return sorted(found, key=lambda group: -len(group[2]))


def _show_tables(explanation: Explanation, out: "Console") -> None:
    answer = verdict(explanation)
    for line in (
        answer.splitlines() if explanation.outcome is Outcome.FAILED else (answer,)
    ):  # an error may show a source
        say(out, line, "bold green" if explanation.outcome is Outcome.FITS else "bold red")
    for warning in explanation.warnings:
        say(out, f"warning: {warning}", "yellow")
    for line in device_lines(explanation):
        say(out, line, "green")
    for line in map(model_line, explanation.models):
        say(out, line, "yellow" if "fallback" in line else "green")
    for note in explanation.notes:
        say(out, note, "yellow")
    making_room = preemption(explanation)
    if making_room:
        say(out, making_room, "yellow")
    gang = explanation.gang
    if gang is not None:
        say(out, gang_line(gang), "green" if gang.starts else "yellow")
        if gang.obstacles:
            out.print()
            print_table(out, _obstacle_table(gang))
        if gang.remedies and not explanation.remedies:
            out.print()
            print_table(out, _remedy_table(gang.remedies))
    rejected = rejections(explanation.nodes, explanation.nominated)
    if rejected:
        out.print()
        print_table(out, _rejection_table(rejected))
    if explanation.remedies:
        out.print()
        print_table(out, _remedy_table(explanation.remedies))
    best = podium(explanation)
    if best:
        out.print()
        print_table(out, _podium_table(best, out.width))


def _rejection_table(groups: Sequence[tuple[str, str, list[str]]]) -> "Table":
    rows = table("Rejected")
    rows.add_column("nodes", justify="right", no_wrap=True)
    rows.add_column("plugin", overflow="fold")
    rows.add_column("reason", overflow="fold")
    rows.add_column("which", overflow="fold", style="dim")
    for plugin, reason, names in groups:
        rows.add_row(str(len(names)), plugin, reason, _some(names))
    return rows


def _obstacle_table(gang: GangExplanation) -> "Table":
    rows = table("Members that get no node")
    rows.add_column("pods", justify="right", no_wrap=True)
    rows.add_column("reason", overflow="fold")
    rows.add_column("which", overflow="fold", style="dim")
    for obstacle in gang.obstacles:
        rows.add_row(str(len(obstacle.pods)), obstacle.message, _some(obstacle.pods))
    return rows


def _remedy_table(remedies: Sequence[Remedy]) -> "Table":
    rows = table("What would unblock it")
    rows.add_column("node", overflow="fold")
    rows.add_column("would take it with", overflow="fold")
    for remedy in remedies:
        rows.add_row(remedy.node, "; ".join(remedy.changes))
    return rows


def _podium_table(best: Sequence[NodeAnswer], width: int) -> "Table":
    """A node per row when there is room for all plugins beside each other, else a node per column."""
    plugins = [plugin for plugin in best[0].scores if any(node.scores[plugin] for node in best)]
    by_row = _nodes_as_rows(best, plugins)
    return by_row if width >= _natural_width(by_row) else _nodes_as_columns(best, plugins)


def _nodes_as_rows(best: Sequence[NodeAnswer], plugins: Sequence[str]) -> "Table":
    from rich.text import Text

    rows = table("Best nodes")
    rows.add_column("", justify="right", no_wrap=True)
    rows.add_column("node", no_wrap=True)
    for plugin in plugins:
        rows.add_column(Text(_stacked(plugin)), justify="right", no_wrap=True)
    rows.add_column("total", justify="right", no_wrap=True, style="bold")
    for rank, node in enumerate(best, start=1):
        shares = [str(node.scores[plugin]) for plugin in plugins]
        rows.add_row(_rank(rank), node.name, *shares, str(node.total), style="green" if rank == 1 else "")
    return rows


def _nodes_as_columns(best: Sequence[NodeAnswer], plugins: Sequence[str]) -> "Table":
    rows = table("Best nodes")
    rows.add_column("plugin", overflow="fold")
    for rank, node in enumerate(best, start=1):
        style = "green" if rank == 1 else ""
        rows.add_column(f"{_rank(rank)} {node.name}", justify="right", overflow="fold", style=style, min_width=6)
    for plugin in plugins:
        rows.add_row(plugin, *(str(node.scores[plugin]) for node in best))
    rows.add_row("total", *(str(node.total) for node in best), style="bold")
    return rows


def _rank(rank: int) -> str:
    return f"*{rank}" if rank == 1 else f" {rank}"


def _natural_width(rows: "Table") -> int:
    from rich.console import Console
    from rich.measure import Measurement

    unbounded = Console(width=10_000)
    return Measurement.get(unbounded, unbounded.options, rows).maximum


def _stacked(plugin: str) -> str:
    """A plugin's name with one word per line, so that its column is no wider than its longest word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "\n", printable(plugin))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else shown
