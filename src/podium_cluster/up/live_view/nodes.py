"""Draws nodes, each as a line with its name and zone, bars and percent for cpu and memory, and its pods.

Figures are never cut. Where a line gets narrow, first the bars shrink, then the zone goes, then bars go, and names are
shortened; where it is wide enough for two nodes or more beside each other, and one column does not hold all, they are.

The page of one node says what is on it, from the API's store: its resources, its taints, and its pods with what they
ask for.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from kubecel.quantity import NANO, QuantityError, format_nano, milli, parse
from podium.kube import Node, Pod, decode_json
from podium.kube.printable import printable
from podium.kube.requests import CPU, PODS, pod_requests
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.up.live_view.rows import name_in
from podium_cluster.up.picture import NodeBar
from podium_cluster.up.screen import counted

LONGEST_BAR, SHORTEST_BAR = 20, 4
MARK: Final = "▸"
NARROWEST: Final = 74
"""Columns that a node gets at least where several are beside each other."""
_GAP: Final = 2
_FULL, _EMPTY = "█", "░"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LONGEST_NAME, _SHORTEST_NAME, _LONGEST_ZONE = 40, 8, 14
_WARM, _HOT = 0.6, 0.9


class _Widths(NamedTuple):
    name: int
    zone: int
    bar: int
    share: int
    pods: int
    cordoned: bool


def columns_for(count: int, lines: int, width: int) -> int:
    """How many nodes beside each other show the most of them, no more than need be."""
    wanted = -(-count // max(1, lines))
    return max(1, min(wanted, (width + _GAP) // (NARROWEST + _GAP)))


def node_lines(bars: Sequence[NodeBar], columns: int, width: int, selected: int | None) -> list[Text]:
    """The nodes from top to bottom, then from left to right; `selected` is the place of one of them."""
    each = (width - _GAP * (columns - 1)) // columns
    widths = _widths(bars, each)
    lines = [_line(bar, widths, each, marked=place == selected) for place, bar in enumerate(bars)]
    height = -(-len(lines) // columns)
    gap = Text(" " * _GAP)
    return [gap.join(lines[row::height]) for row in range(height)]


def bar(share: float, width: int) -> str:
    """A bar of that width, exact to an eighth of a character.

    >>> bar(0.5, 8), bar(0.3, 8)
    ('████░░░░', '██▍░░░░░')
    """
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return (_FULL * full + (_EIGHTHS[rest] if rest else "")).ljust(width, _EMPTY)


def percent(share: float | None) -> str:
    """
    >>> percent(0.518), percent(None)
    ('52%', '?')
    """
    return "?" if share is None else f"{round(share * 100)}%"


def _widths(bars: Sequence[NodeBar], width: int) -> _Widths:
    shares = [percent(share) for node in bars for share in (node.cpu, node.memory)]
    share = max(4, *map(len, shares)) if shares else 4
    pods = max(3, *(len(_pods(node)) for node in bars)) if bars else 3
    names = max((cell_len(printable(node.name)) for node in bars), default=0)
    zones = min(_LONGEST_ZONE, max((cell_len(printable(node.zone)) for node in bars), default=0))
    cordoned = any(node.cordoned for node in bars)

    def spare(name: int, zone: int, bar: int) -> int:
        """Columns left beside all of this."""
        fixed = len(f"{MARK}  cpu ") + len("  mem ") + 2 * share + 1 + pods + len(" pods")
        return width - fixed - name - (zone + 1 if zone else 0) - 2 * (bar + 1 if bar else 0) - cordoned * 9

    name = min(names, max(_SHORTEST_NAME, width // 4))
    for zone, bar in ((zones, SHORTEST_BAR * 2), (0, SHORTEST_BAR), (0, 0)):
        if spare(name, zone, bar) >= 0:
            break
    else:
        return _Widths(max(1, name + spare(name, 0, 0)), 0, 0, share, pods, cordoned)
    if bar:
        bar = min(LONGEST_BAR, bar + spare(name, zone, bar) // 2)
    name = min(names, _LONGEST_NAME, name + spare(name, zone, bar))
    return _Widths(name, zone, bar, share, pods, cordoned)


def _line(node: NodeBar, widths: _Widths, width: int, *, marked: bool) -> Text:
    text = Text(no_wrap=True, end="")
    text.append(MARK if marked else " ", "bold")
    name = name_in(node.name, widths.name)
    text.append(name, "reverse" if marked else "dim" if node.cordoned else "")
    text.append(" " * (widths.name - cell_len(name)))
    if widths.zone:
        zone = name_in(node.zone, widths.zone)
        text.append(f" {zone}{' ' * (widths.zone - cell_len(zone))}", "dim")
    text.append(" cpu ")
    _append_share(text, node.cpu, widths)
    text.append("  mem ")
    _append_share(text, node.memory, widths)
    text.append(f" {_pods(node):>{widths.pods}} {'pod ' if node.pods == 1 else 'pods'}")
    if node.cordoned:
        text.append(" cordoned", "yellow")
    text.append(" " * max(0, width - text.cell_len))
    text.truncate(width)
    return text


def _append_share(text: Text, share: float | None, widths: _Widths) -> None:
    if widths.bar:
        text.append(f"{bar(share or 0.0, widths.bar)} ", _colour(share or 0.0))
    text.append(percent(share).rjust(widths.share))


def _pods(node: NodeBar) -> str:
    return "?" if node.pods is None else str(node.pods)


def _colour(share: float) -> str:
    return "green" if share < _WARM else "yellow" if share < _HOT else "red"


_NODE_NAME: Final = POD.fields.names.index("spec.nodeName")
_BINARY: Final = ("memory", "ephemeral-storage")


def describe_node(api: EmbeddedApi, name: str) -> str:
    """The text of the node's page."""
    stored = api.store.get(NODE, None, name)
    if stored is None:
        return f"node {name} is gone"
    node = decode_json(Node, stored.raw)
    pods = [decode_json(Pod, each.raw) for each in api.store.items(POD) if each.fields[_NODE_NAME] == name]
    pods = [pod for pod in pods if not pod.finished]
    requested = {pod.key: pod_requests(pod) for pod in pods}
    used: Counter[str] = Counter()
    for requests in requested.values():
        used.update(requests)
    used[PODS] = len(pods)
    lines = [*_facts(node), ""]
    for resource, amount in node.status.allocatable.items():
        lines.append(_resource(resource, used[resource], str(amount)))
    lines += ["", counted(len(pods), "pod")]
    for pod in sorted(pods, key=lambda pod: pod.key):
        amounts = ", ".join(
            f"{resource} {_amount(resource, each)}" for resource, each in requested[pod.key].items() if each
        )
        lines.append(f"  {pod.key}  {pod.status.phase}  {amounts or 'asks for nothing'}")
    return "\n".join(map(printable, lines))


def _facts(node: Node) -> list[str]:
    facts = [f"{key.rpartition('/')[2]}: {value}" for key, value in sorted(node.metadata.labels.items())]
    facts += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints]
    if node.spec.unschedulable:
        facts.append("cordoned")
    return facts


def _resource(name: str, used: int, allocatable: str) -> str:
    try:
        whole = milli(allocatable) if name == CPU else parse(allocatable) // NANO
    except QuantityError:
        whole = 0
    share = f"  {percent(used / whole)}" if whole > 0 else ""
    return f"{name}: {_amount(name, used)} of {allocatable} asked for{share}"


def _amount(resource: str, amount: int) -> str:
    nano = amount * (NANO // 1000 if resource == CPU else NANO)
    return format_nano(nano, binary=resource in _BINARY or resource.startswith("hugepages-"))
