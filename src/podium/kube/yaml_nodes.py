"""Composes YAML text into nodes with their lines, within bounds, and nodes into plain values.

PyYAML's own composer overflows the stack on deep nesting and does not count what aliases stand for. This one reads the
parser's events one by one: no recursion, every level and every value counted as if aliases were written out. How much
of a document may come from aliases follows Kubernetes' reader: nearly all of a small one, a tenth of a large one.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml._yaml import CParser

from podium.kube.bounds import Bounds, DocumentError, too_deep
from podium.kube.yaml_scalars import LIST_TAG, MAP_TAG, TEXT_TAG, implicit_tag, is_merge_key, key_text, scalar_value

_MOST_TAG_DIRECTIVES: Final = 100  # the parser compares each with all the others
_EVENTS_BETWEEN_CLOCK_READINGS: Final = 4096
_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "str", "binary", "timestamp", "merge", "map", "seq")
)


def compose(text: str, bounds: Bounds) -> Iterator[yaml.Node]:
    """The root node of each document; raises DocumentError where the text is not YAML or out of bounds."""
    if text.count("%TAG") > _MOST_TAG_DIRECTIVES:
        raise DocumentError(f"more than {_MOST_TAG_DIRECTIVES} %TAG directives")
    try:
        yield from _Composer(bounds).documents(CParser(text))
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "it cannot be read"
        if "cannot start any token" in problem and at is not None and text.split("\n")[at.line][at.column] == "\t":
            problem = "a tab is not allowed here: indent with spaces"
        raise DocumentError(problem, at.line + 1 if at else 1, language="YAML") from None
    except yaml.reader.ReaderError as error:
        raise DocumentError(error.reason, text.count("\n", 0, error.position) + 1, language="YAML") from None


class _Anchored:
    """A node that an alias may name: how many values and bytes it stands for, and how many levels it has."""

    __slots__ = ("bytes", "height", "node", "values")

    def __init__(self, node: yaml.Node) -> None:
        self.node = node
        self.values = self.bytes = self.height = 0


@dataclass(slots=True)
class _Open:
    """A map or list whose end has not been read."""

    node: yaml.Node
    anchor: str | None
    values_before: int
    bytes_before: int
    height: int = 1
    key: yaml.Node | None = None


@dataclass
class _Composer:
    bounds: Bounds
    values: int = 0
    bytes: int = 0
    values_of_aliases: int = 0
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, _Anchored | None] = field(default_factory=dict)  # None: the node has not ended

    def documents(self, parser: Any) -> Iterator[yaml.Node]:
        deadline = time.thread_time() + self.bounds.seconds
        count = 0
        while (event := parser.get_event()) is not None:
            count += 1
            if count % _EVENTS_BETWEEN_CLOCK_READINGS == 0 and time.thread_time() > deadline:
                raise DocumentError(f"took more than {self.bounds.seconds:g} s to read", event.start_mark.line + 1)
            node, height = self._node(event)
            if node is not None and self._attach(node, height):
                yield node

    def _node(self, event: Any) -> tuple[yaml.Node | None, int]:
        """The node that the event completes, with its levels."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            return self._scalar(event), 0
        if kind is yaml.MappingStartEvent:
            self._open(yaml.MappingNode(_tag(event, MAP_TAG), [], event.start_mark, event.end_mark), event)
        elif kind is yaml.SequenceStartEvent:
            self._open(yaml.SequenceNode(_tag(event, LIST_TAG), [], event.start_mark, event.end_mark), event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            return self._close(event)
        elif kind is yaml.AliasEvent:
            return self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self.anchors.clear()
        return None, 0

    def _scalar(self, event: Any) -> yaml.Node:
        value: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            tag = implicit_tag(value) if event.implicit[0] else TEXT_TAG
        node = yaml.ScalarNode(tag, value, event.start_mark, event.end_mark)
        self._count(1, len(value), event)
        if event.anchor is not None:
            anchored = self.anchors[event.anchor] = _Anchored(node)
            anchored.values, anchored.bytes = 1, len(value)
        return node

    def _open(self, node: yaml.Node, event: Any) -> None:
        if len(self.stack) >= self.bounds.depth:
            raise too_deep(self.bounds, event.start_mark.line + 1)
        self.stack.append(_Open(node, event.anchor, self.values, self.bytes))
        self._count(1, 1, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None

    def _close(self, event: Any) -> tuple[yaml.Node, int]:
        closed = self.stack.pop()
        closed.node.end_mark = event.end_mark
        if closed.anchor is not None:
            anchored = self.anchors[closed.anchor] = _Anchored(closed.node)
            anchored.values, anchored.bytes = self.values - closed.values_before, self.bytes - closed.bytes_before
            anchored.height = closed.height
        return closed.node, closed.height

    def _alias(self, event: Any) -> tuple[yaml.Node, int]:
        line = event.start_mark.line + 1
        if event.anchor not in self.anchors:
            raise DocumentError("found undefined alias", line, language="YAML")
        found = self.anchors[event.anchor]
        if found is None:
            raise DocumentError("an anchor contains itself", line)
        if len(self.stack) + found.height > self.bounds.depth:
            raise too_deep(self.bounds, line)
        self.values_of_aliases += found.values
        self._count(found.values, found.bytes, event)
        if self.values_of_aliases > 100 and self.values_of_aliases > _allowed_aliases(self.values):
            raise DocumentError("document contains excessive aliasing", line)
        return found.node, found.height

    def _count(self, values: int, size: int, event: Any) -> None:
        self.values += values
        self.bytes += size
        if self.values > self.bounds.values:
            raise DocumentError(f"holds more than {self.bounds.values:,} values", event.start_mark.line + 1)
        if self.bytes > self.bounds.size:
            line = event.start_mark.line + 1
            raise DocumentError(f"larger than {self.bounds.size >> 20} MiB once its aliases are expanded", line)

    def _attach(self, node: yaml.Node, height: int) -> bool:
        """Put a finished node where it belongs; True for the root of a document."""
        if not self.stack:
            return True
        parent = self.stack[-1]
        parent.height = max(parent.height, height + 1)
        if isinstance(parent.node, yaml.SequenceNode):
            parent.node.value.append(node)
        elif parent.key is None:
            parent.key = node
        else:
            parent.node.value.append((parent.key, node))
            parent.key = None
        return False


def _tag(event: Any, usual: str) -> str:
    return usual if event.tag is None or event.tag == "!" else str(event.tag)


def _allowed_aliases(values: int) -> float:
    """How many of so many values may come from aliases: 99 % up to 400,000 values, falling to 10 % at 4,000,000."""
    if values <= 1000:
        return values
    share = min(max((values - 400_000) / (4_000_000 - 400_000), 0.0), 1.0)
    return values * (0.99 - (0.99 - 0.10) * share)


def merged_entries(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Entries of a map with those first that merge another map in."""
    return sorted(node.value, key=lambda entry: not is_merge_key(entry[0]))


def merge_sources(node: yaml.Node) -> list[yaml.MappingNode]:
    """The maps that `<<` names: one, or a list of them."""
    sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for source in sources:
        if not isinstance(source, yaml.MappingNode):
            problem = "map merge requires map or sequence of maps as the value"
            raise DocumentError(problem, line_of(node), language="YAML")
    return list(sources)


def line_of(node: yaml.Node) -> int:
    """The line on which a node begins, counted from one."""
    return int(node.start_mark.line) + 1


def plain(node: yaml.Node) -> Any:
    """The value of a node as JSON has it; of fields given twice the last counts."""
    if node.tag not in _TAGS:
        problem = f"could not determine a constructor for the tag {node.tag!r}"
        raise DocumentError(problem, line_of(node), language="YAML")
    if isinstance(node, yaml.SequenceNode):
        return [plain(item) for item in node.value]
    try:
        return scalar_value(node) if isinstance(node, yaml.ScalarNode) else _plain_map(node)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(str(error), line_of(node), language="YAML") from None


def _plain_map(node: yaml.Node) -> dict[str, Any]:
    if not any(key.tag.endswith(":merge") for key, _ in node.value):
        return {key_text(key): plain(value) for key, value in node.value}
    whole: dict[str, Any] = {}
    for key, value in merged_entries(node):
        if is_merge_key(key):
            for source in merge_sources(value):
                whole = {**_plain_map(source), **whole}
        else:
            whole[key_text(key)] = plain(value)
    return whole
