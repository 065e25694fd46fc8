"""Lists the rows of the live view, section by section: sorted, and those that the filter lets through."""

import enum
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

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
