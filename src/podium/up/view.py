"""Draws the live view: every node as two bars, what waits, and the last decisions, as much as fits the terminal."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podium.framework.gang import GangCount
from podium.kube.printable import printable
from podium.up.picture import NodeBar, Picture
from podium.up.pod_tracker import PodDecision
from podium.up.quotas import quota_line

BAR: Final = 20
_FULL, _EMPTY = "█", "░"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_DECISIONS: Final = 8
_EACH_REFUSED: Final = 10
_AROUND: Final = 7
"""Lines that are neither nodes nor decisions."""
_WARM, _HOT = 0.6, 0.9


def draw(picture: Picture, height: int) -> RenderableType:
    """The picture for a terminal of that many lines."""
    decisions = picture.decisions[: min(_DECISIONS, max(3, height // 4))]
    refused = picture.refused[: max(1, height // _EACH_REFUSED)]
    lines = [gang_line(picture.gangs)] if picture.gangs else []
    lines += [quota_line(picture.quotas)] if picture.quotas else []
    room = max(3, height - _AROUND - len(decisions) - len(refused) - len(lines))
    parts: list[RenderableType] = [
        _headline(picture),
        Text(),
        _nodes(picture.nodes, room),
        Text(),
        _queue(picture),
        *(Text(each, no_wrap=True, overflow="ellipsis") for each in lines),
        *map(_decision, refused),
    ]
    return Group(*parts, Text(), *map(_decision, decisions))


def _headline(picture: Picture) -> Text:
    return Text.assemble(
        ("podium up", "bold"),
        f"  {picture.address}  {clock(picture.uptime)}  ",
        f"{len(picture.nodes)} nodes  {picture.pods} pods  {picture.running} running  ",
        f"{picture.succeeded} succeeded  {picture.placed} placed",
        no_wrap=True,
        overflow="ellipsis",
    )


def _nodes(bars: list[NodeBar], room: int) -> Table:
    """As many nodes as there is room for, in two columns where one is not enough."""
    grid = Table.grid(padding=(0, 2))
    columns = 2 if len(bars) > room else 1
    for _ in range(columns):
        grid.add_column(no_wrap=True)
    shown = bars[: room * columns - (len(bars) > room * columns)]
    lines = [_node(bar) for bar in shown]
    if len(shown) < len(bars):
        lines.append(Text(f"… and {len(bars) - len(shown)} more nodes", style="dim"))
    half = -(-len(lines) // columns)
    for position in range(half):
        row = lines[position::half]
        grid.add_row(*row, *[Text()] * (columns - len(row)))
    return grid


def _node(node: NodeBar) -> Text:
    return Text.assemble(
        (f"{printable(node.name):<10.10} {printable(node.zone):<7.7} ", "dim" if node.cordoned else ""),
        "cpu ",
        (bar(node.cpu), _colour(node.cpu)),
        f" {percent(node.cpu)}  mem ",
        (bar(node.memory), _colour(node.memory)),
        f" {percent(node.memory)}  {node.pods:>3} pods",
        (" cordoned" if node.cordoned else "", "yellow"),
    )


def bar(share: float) -> str:
    """A bar of fixed width, exact to an eighth of a character.

    >>> bar(0.5)
    '██████████░░░░░░░░░░'
    """
    eighths = round(min(1.0, max(0.0, share)) * BAR * 8)
    full, rest = divmod(eighths, 8)
    return (_FULL * full + (_EIGHTHS[rest] if rest else "")).ljust(BAR, _EMPTY)


def percent(share: float) -> str:
    return f"{round(share * 100):>3}%"


def clock(seconds: float) -> str:
    """
    >>> clock(75.4)
    '1:15'
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _colour(share: float) -> str:
    return "green" if share < _WARM else "yellow" if share < _HOT else "red"


def _queue(picture: Picture) -> Text:
    waiting = picture.queue
    parts = {
        "to be tried": waiting.active,
        "backing off": waiting.backoff,
        "fit nowhere": waiting.unschedulable,
        "gated": waiting.gated,
    }
    counts = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    return Text(f"waiting: {counts or 'no pods'}", style="bold")


def gang_line(gangs: Sequence[GangCount]) -> str:
    """How many groups have started, and how those that wait stand.

    >>> gang_line([GangCount("default/b", 5, 4, 0), GangCount("default/a", 3, 3, 3)])
    'gangs: 1 started, 1 waits: default/b (0 of 5 have a node, 4 are there)'
    """
    waiting = [gang for gang in gangs if gang.assigned < gang.minimum]
    standing = ", ".join(
        f"{printable(gang.key)} ({gang.assigned} of {gang.minimum} have a node, {gang.members} are there)"
        for gang in waiting
    )
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"gangs: {len(gangs) - len(waiting)} started" + (f", {len(waiting)} {verb}: {standing}" if waiting else "")


def _decision(decision: PodDecision) -> Text:
    """One line, cut where the terminal ends."""
    if decision.node:
        return Text.assemble(
            ("placed ", "green"), printable(decision.pod), (" on ", "dim"), printable(decision.node), no_wrap=True
        )
    return Text.assemble(
        ("no node ", "red"),
        printable(decision.pod),
        (f"  {printable(decision.why)}", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )


def line(decision: PodDecision) -> str:
    """A decision where there is no terminal.

    >>> line(PodDecision(0.0, "shop/web", "node-1"))
    'placed shop/web on node-1'
    """
    return (
        f"placed {decision.pod} on {decision.node}" if decision.node else f"no node for {decision.pod}: {decision.why}"
    )
