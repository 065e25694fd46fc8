"""Draws the live view: a plain function of the picture, of what the user looks at, and of the size of the terminal.

From top to bottom: the cluster in a line, the nodes, what waits and why, messages, what was placed last, and the keys.
Every part has at least a line where it has anything to show; the nodes get what the others leave, and the part with the
selected row gets more than the others. No line is longer than the terminal is wide, and no number is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from podium.framework.gang import GangCount
from podium.kube.printable import printable
from podium_cluster.up.live_view.browsing import Browsing
from podium_cluster.up.live_view.messages import TROUBLE, ViewMessage
from podium_cluster.up.live_view.nodes import MARK, columns_for, node_lines
from podium_cluster.up.live_view.rows import Page, Row, Rows, Section, SortBy, name_in, parts_in, sentence_in
from podium_cluster.up.picture import Picture, quota_line
from podium_cluster.up.pod_tracker import PodDecision, PodVerdict
from podium_cluster.up.screen import counted

PAGE_LINES: Final = 2
"""Lines around a page: its title and the keys."""
_TALL: Final = 18
"""Lines from which on the kubeconfig has one."""
_VERDICT: Final = len(PodVerdict.UNTRIED.value)
_COLOURS: Final = {
    PodVerdict.FAILED: "bold red",
    PodVerdict.HELD: "yellow",
    PodVerdict.REFUSED: "red",
    PodVerdict.GATED: "dim",
    PodVerdict.UNTRIED: "dim",
    PodVerdict.PLACED: "green",
}
_LEVELS: Final = {"critical": "bold red", "error": "bold red", "warning": "yellow"}
_STANDING: Final = {
    PodVerdict.FAILED: ("error", "errors"),
    PodVerdict.HELD: ("held at Permit", "held at Permit"),
    PodVerdict.REFUSED: ("fits nowhere", "fit nowhere"),
    PodVerdict.GATED: ("gated", "gated"),
    PodVerdict.UNTRIED: ("to be tried", "to be tried"),
}
"""For one pod, and for several."""


class Size(NamedTuple):
    """Of the terminal, in characters."""

    width: int
    height: int


def draw(picture: Picture, rows: Rows, browsing: Browsing, size: Size) -> list[Text]:
    """The lines of the terminal, from the top."""
    lines = _page(browsing.page, browsing.top, size) if browsing.page else _view(picture, rows, browsing, size)
    foot = _foot(browsing, size.width)
    return [*(lines + [Text()] * size.height)[: size.height - 1], foot]


def _page(page: Page, top: int, size: Size) -> list[Text]:
    body = size.height - PAGE_LINES
    lines = page.lines(size.width)
    top = max(0, min(top, len(lines) - body))
    shown = lines[top : top + body]
    place = f"lines {top + 1}–{top + len(shown)} of {len(lines)}" if len(lines) > body else ""
    return [_title(page.title, place, size.width), *shown]


def _view(picture: Picture, rows: Rows, browsing: Browsing, size: Size) -> list[Text]:
    browsing = browsing.settled(rows)
    head = _head(picture, size)
    between = [gang_line(picture.engine.gangs)] if picture.engine.gangs else []
    between += [quota_line(picture.quotas)] if picture.quotas else []
    sections = [section for section in Section if section is not Section.MESSAGES or rows.messages]
    room = size.height - len(head) - len(between) - len(sections) - 1
    columns = columns_for(len(rows.nodes), _node_lines(rows, sections, room, browsing.section), size.width)
    wanted = {section: len(rows.of(section)) for section in sections}
    wanted[Section.NODES] = -(-len(rows.nodes) // columns)
    heights = share_lines(wanted, room, browsing.section)
    lines = head
    for section in sections:
        found = rows.of(section)
        at = browsing.selected(found) if section is browsing.section and found else None
        capacity = heights[section] * (columns if section is Section.NODES else 1)
        first = max(0, min((at or 0) - capacity // 2, len(found) - capacity))
        shown = found[first : first + capacity]
        place = f"{first + 1}–{first + len(shown)} of {len(found)}" if 0 < len(shown) < len(found) else ""
        lines.append(_title(_heading(section, picture, rows, browsing), place, size.width))
        if section is Section.WAITING:
            lines += [Text(sentence_in(each, size.width)) for each in between]
        selected = None if at is None else at - first
        if section is Section.NODES:
            lines += node_lines(rows.nodes[first : first + capacity], columns, size.width, selected)
        else:
            lines += [_row(row, size.width, marked=place == selected) for place, row in enumerate(shown)]
    return lines


def _node_lines(rows: Rows, sections: Sequence[Section], room: int, focus: Section) -> int:
    """Lines that one column of nodes would get."""
    return share_lines({section: len(rows.of(section)) for section in sections}, room, focus)[Section.NODES]


def share_lines(wanted: dict[Section, int], room: int, focus: Section) -> dict[Section, int]:
    """How many lines each section gets of `room`.

    >>> share_lines({Section.NODES: 12, Section.WAITING: 1, Section.PLACED: 40}, 18, Section.NODES)
    {<Section.NODES: 'nodes'>: 12, <Section.WAITING: 'waiting'>: 1, <Section.PLACED: 'placed'>: 5}
    """
    got = dict.fromkeys(wanted, 0)
    fifth = max(1, room // 5)
    modest = {Section.WAITING: fifth, Section.MESSAGES: max(1, room // 7), Section.PLACED: max(1, room // 7)}
    if focus in modest:
        modest[focus] = max(1, room // 2)
    for limits in (dict.fromkeys(wanted, 1), modest, {Section.NODES: room}, dict.fromkeys(wanted, room)):
        for section, most in wanted.items():
            more = min(most, limits.get(section, 0)) - got[section]
            got[section] += max(0, min(more, room - sum(got.values())))
    return got


def _head(picture: Picture, size: Size) -> list[Text]:
    service, pods, engine = picture.service, picture.pods, picture.engine
    parts = [
        (0, "podium up"),
        (1, service.address),
        (4, clock(service.uptime)),
        (3, counted(len(engine.nodes), "node")),
        (2, counted(pods.total, "pod")),
        (5, f"{pods.running} running"),
        (6, f"{pods.succeeded} succeeded"),
        (7, f"{pods.placed} placed"),
    ]
    line = Text(parts_in(parts, size.width))
    line.stylize("bold", 0, len("podium up"))
    lines = [line]
    export = f"export KUBECONFIG={printable(service.kubeconfig)}"
    if engine.silent:
        silence = f"no answer from the scheduler for {round(engine.silent)} s: figures are from before"
        lines.append(Text(sentence_in(silence, size.width), "bold red"))
    elif size.height >= _TALL and cell_len(export) <= size.width:
        lines.append(Text(export, "dim"))
    return lines


def _heading(section: Section, picture: Picture, rows: Rows, browsing: Browsing) -> str:
    match section:
        case Section.NODES:
            filtered = f' of {rows.total}, filter "{browsing.needle}"' if browsing.needle else ""
            order = "" if browsing.sort is SortBy.NAME else f", by {browsing.sort.value}"
            return f"{counted(len(rows.nodes), 'node')}{filtered}{order}"
        case Section.WAITING:
            if not rows.waiting and picture.waiting:
                return f"waiting: none of {counted(len(picture.waiting), 'pod')}"
            backing_off = 0 if browsing.needle else picture.engine.queue.backoff
            return waiting_line(Counter(each.verdict for each in rows.waiting), backing_off)
        case Section.MESSAGES:
            return messages_line(rows.messages)
    return "last placed"


def _title(text: str, place: str, width: int) -> Text:
    """A rule with the text in it, and the place in the list at its end."""
    end = f" {place} ──" if place else ""
    start = f"── {sentence_in(text, max(1, width - 4 - cell_len(end)))} "
    title = Text("", "cyan")
    title.append(start).append("─" * max(0, width - cell_len(start) - cell_len(end))).append(end)
    title.truncate(width)
    return title


def _row(row: Row, width: int, *, marked: bool) -> Text:
    text = Text(MARK if marked else " ", no_wrap=True)
    style = "reverse" if marked else ""
    match row:
        case PodDecision(node="") as pod:
            name = name_in(pod.pod, max(12, width // 3))
            text.append(f"{pod.verdict.value:<{_VERDICT}} ", _COLOURS[pod.verdict]).append(name, style)
            text.append(f"  {sentence_in(pod.why, width - text.cell_len - 2)}", "dim")
        case PodDecision() as pod:
            node = name_in(pod.node, max(8, width // 3))
            name = name_in(pod.pod, max(8, width - len(f"{MARK}placed  on {node}")))
            text.append("placed ", _COLOURS[PodVerdict.PLACED]).append(name, style).append(" on ", "dim").append(node)
        case ViewMessage() as message:
            level = f"{message.level}: " if message.level else ""
            times = f" (×{message.times})" if message.times > 1 else ""
            text.append(level, _LEVELS.get(message.level, ""))
            text.append(sentence_in(message.headline, width - text.cell_len - len(times)), style).append(times, "dim")
    text.truncate(width)
    return text


def _foot(browsing: Browsing, width: int) -> Text:
    if browsing.typing:
        keys = parts_in([(1, "Enter keep"), (2, "Esc clear")], max(0, width // 2))
        typed = f"/{name_in(browsing.needle, max(1, width - cell_len(keys) - 5))}▏"
        return Text(f"{typed}  {keys}", "bold")
    if browsing.page is not None:
        shown = [(0, "Esc back"), (1, "↑↓ PgUp PgDn scroll"), (2, "Ctrl-C end")]
    else:
        shown = [
            (0, "q or Ctrl-C end"),
            (1, "? help"),
            (5, "↑↓ Tab select"),
            (2, "Enter explain"),
            (3, "/ filter"),
            (4, "s sort"),
        ]
    return Text(parts_in(shown, width), "reverse", end="")


def clock(seconds: float) -> str:
    """
    >>> clock(75.4), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def waiting_line(verdicts: Mapping[PodVerdict, int], backing_off: int = 0) -> str:
    """
    >>> waiting_line({PodVerdict.REFUSED: 1, PodVerdict.HELD: 2}), waiting_line({PodVerdict.REFUSED: 3}, 2)
    ('waiting: 2 held at Permit, 1 fits nowhere', 'waiting: 3 fit nowhere (2 backing off)')
    >>> waiting_line({})
    'waiting: no pods'
    """
    parts = [f"{number} {words[number > 1]}" for each, words in _STANDING.items() if (number := verdicts.get(each, 0))]
    retried = f" ({backing_off} backing off)" if parts and backing_off else ""
    return f"waiting: {', '.join(parts) or 'no pods'}{retried}"


def messages_line(messages: Iterable[ViewMessage]) -> str:
    """
    >>> messages_line([ViewMessage("error", "", ""), ViewMessage("warning", "", "", 3), ViewMessage("", "", "")])
    'messages: 1 error, 3 warnings'
    """
    levels: Counter[str] = Counter()
    for each in messages:
        levels[each.level] += each.times
    trouble = ", ".join(counted(levels[level], level) for level in TROUBLE if levels[level])
    return f"messages: {trouble}" if trouble else "messages"


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
