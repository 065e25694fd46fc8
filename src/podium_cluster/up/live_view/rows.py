"""Lists the rows of the live view, section by section: sorted, and those that the filter lets through.
It shortens text to a width without breaking a number in two: names in the middle, sentences at the end of a word.

A page is text that covers the view until it is left: an explanation, a node, a message, the help.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from io import StringIO
from typing import Final, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from podium.kube.printable import printable, printable_lines
from podium_cluster.up.live_view.messages import ViewMessage
from podium_cluster.up.picture import NodeBar, Picture
from podium_cluster.up.pod_tracker import PodDecision


class Section(enum.Enum):
    """The lists of the view, from top to bottom."""

    NODES = "nodes"
    WAITING = "waiting"
    MESSAGES = "messages"
    PLACED = "placed"


class SortBy(enum.Enum):
    """What nodes are sorted by: by name, else the fullest first."""

    NAME = "name"
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"


R = TypeVar("R")
Row = NodeBar | PodDecision | ViewMessage
_AMOUNTS: Final[dict[SortBy, Callable[[NodeBar], float | None]]] = {
    SortBy.CPU: lambda node: node.cpu,
    SortBy.MEMORY: lambda node: node.memory,
    SortBy.PODS: lambda node: node.pods,
}


class Rows(NamedTuple):
    """What there is to select; `total` counts the nodes without the filter."""

    nodes: list[NodeBar]
    waiting: list[PodDecision]
    messages: list[ViewMessage]
    placed: list[PodDecision]
    total: int

    def of(self, section: Section) -> Sequence[Row]:
        found: dict[Section, Sequence[Row]] = {
            Section.NODES: self.nodes,
            Section.WAITING: self.waiting,
            Section.MESSAGES: self.messages,
            Section.PLACED: self.placed,
        }
        return found[section]


def rows_of(picture: Picture, messages: list[ViewMessage], sort: SortBy, needle: str) -> Rows:
    """`needle` is looked for in everything that a row says; capitals do not count."""
    nodes = picture.engine.nodes
    if amount := _AMOUNTS.get(sort):
        nodes = sorted(nodes, key=lambda node: -(amount(node) or 0))
    wanted = needle.casefold()
    return Rows(
        _with(wanted, nodes, lambda node: (node.name, node.zone)),
        _with(wanted, picture.waiting, lambda pod: (pod.pod, pod.verdict.value, pod.why)),
        _with(wanted, messages, lambda message: (message.level, message.text)),
        _with(wanted, picture.placed, lambda pod: (pod.pod, pod.node)),
        len(nodes),
    )


def name_of(row: Row) -> str:
    """What a row is known by when the lists change."""
    match row:
        case NodeBar():
            return row.name
        case PodDecision():
            return row.pod
        case ViewMessage():
            return row.headline


def _with(wanted: str, rows: list[R], texts: Callable[[R], tuple[str, ...]]) -> list[R]:
    if not wanted:
        return rows
    return [row for row in rows if any(wanted in text.casefold() for text in texts(row))]


CUT: Final = "…"
_DIGITS: Final = "0123456789.,%"


def name_in(text: str, width: int) -> str:
    """The name in at most that many columns; its end, where names differ, stays.

    >>> name_in("shop/web-6d5f8c9b7-x2x7q", 16), name_in("worker-100", 9), name_in("gpu-0", 9)
    ('shop/we…b7-x2x7q', 'work…-100', 'gpu-0')
    """
    text = printable(text)
    if cell_len(text) <= width:
        return text
    if cell_len(text) != len(text):
        return set_cell_size(text, max(0, width - 1)).rstrip() + CUT[:width]
    head, tail = text[: max(0, (width - 1) // 2)], text[len(text) - max(0, width - 1 - (width - 1) // 2) :]
    if _breaks_number(text, len(head)):
        head = head.rstrip(_DIGITS)
    if _breaks_number(text, len(text) - len(tail)):
        tail = tail.lstrip(_DIGITS)
    return f"{head}{CUT}{tail}" if width > 0 else ""


def sentence_in(text: str, width: int) -> str:
    """The sentence in at most that many columns, cut between two words.

    >>> sentence_in("0/12 nodes are available: 12 Insufficient cpu", 30)
    '0/12 nodes are available: 12 …'
    """
    text = printable(text)
    if cell_len(text) <= width:
        return text
    left = set_cell_size(text, max(0, width - 1)).rstrip("\0")
    if text[len(left) : len(left) + 1] != " " and " " in left:
        left = left[: left.rindex(" ") + 1]
    elif _breaks_number(text, len(left)):
        left = left.rstrip(_DIGITS)
    return f"{left}{CUT}"[: max(0, width)] if width > 0 else ""


def parts_in(parts: Sequence[tuple[int, str]], width: int, between: str = "  ") -> str:
    """The parts beside each other, less those of the highest numbers where they do not all fit.

    >>> parts_in([(0, "podium up"), (2, "4 placed"), (1, "3 nodes")], 20)
    'podium up  3 nodes'
    """
    left = list(parts)
    while left and cell_len(between.join(text for _, text in left)) > width:
        left.remove(max(left, key=lambda part: part[0]))
    return between.join(text for _, text in left)


def _breaks_number(text: str, position: int) -> bool:
    return 0 < position < len(text) and text[position - 1] in _DIGITS and text[position] in _DIGITS


_WRAPPING: Final = Console(file=StringIO(), width=80)


class Page(NamedTuple):
    """`lines` makes its lines for a width: none is longer."""

    title: str
    lines: Callable[[int], list[Text]]


def text_page(title: str, text: str) -> Page:
    """Of text from anywhere."""
    return _page(title, lambda _width: map(Text, printable_lines(text).splitlines()))


def rendered_page(title: str, render: Callable[[int], str]) -> Page:
    """Of text that Podium makes for a width, in which escape sequences are colours."""
    return _page(title, lambda width: map(Text.from_ansi, render(width).splitlines()))


def _page(title: str, lines: Callable[[int], Iterable[Text]]) -> Page:
    @lru_cache(maxsize=1)
    def wrapped(width: int) -> list[Text]:
        found: list[Text] = []
        for line in lines(width):
            found += line.wrap(_WRAPPING, max(1, width), overflow="fold", tab_size=4) or [Text()]
        return found

    return Page(title, wrapped)
