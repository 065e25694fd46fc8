"""Composes YAML text into nodes with their lines, within bounds, and nodes into plain values.

PyYAML's own composer overflows the stack on deep nesting and does not count what aliases stand for. This one reads the
parser's events one by one: no recursion, every level and every value counted as if aliases were written out. How much
of a document may come from aliases follows Kubernetes' reader: nearly all of a small one, a tenth of a large one.

Also decides which YAML words are numbers, booleans or null, by the rules of the YAML reader inside Kubernetes.

PyYAML's own rules differ where it hurts: it reads `1:30` as 90 and `1e3` as a string, and does not know `y` and `n`.
Kubernetes turns YAML into JSON before it decodes, so there a whole number may also be written `16.0` or `1e3`. Dates,
`.inf` and `.nan` have no JSON form a field could take; they stay text, and so does a number too large for a float.
"""

import base64
import binascii
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml
from yaml._yaml import CParser

from podium.kube.bounds import Bounds, DocumentError, too_deep

_MOST_TAG_DIRECTIVES: Final = 100  # the parser compares each with all the others
_EVENTS_BETWEEN_CLOCK_READINGS: Final = 4096
_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "str", "binary", "timestamp", "merge", "map", "seq")
)
_TAG: Final = "tag:yaml.org,2002:"
MERGE_TAG: Final = f"{_TAG}merge"
MAP_TAG: Final = f"{_TAG}map"
LIST_TAG: Final = f"{_TAG}seq"
TEXT_TAG: Final = f"{_TAG}str"
_TRUE: Final = {form for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())}
_FALSE: Final = {form for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_INT: Final = re.compile(r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_MAY_BE_A_NUMBER: Final = frozenset("-+.0123456789")
_LONGEST_INTEGER: Final = 80  # -0b and 64 digits, with room for underscores


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


@lru_cache(maxsize=4096)
def implicit_tag(word: str) -> str:
    """The tag of a word without quotes and without a tag of its own."""
    if word in _NULL:
        return f"{_TAG}null"
    if word in _TRUE or word in _FALSE:
        return f"{_TAG}bool"
    if word == "<<":
        return MERGE_TAG
    if word[0] in _MAY_BE_A_NUMBER:
        if _INT.fullmatch(word) and _integer(word) is not None:
            return f"{_TAG}int"
        if _FLOAT.fullmatch(word) and _float(word) is not None:
            return f"{_TAG}float"
    return TEXT_TAG


def is_merge_key(node: yaml.Node) -> bool:
    """Whether a key is YAML's `<<`, which copies another mapping's fields in."""
    return bool(node.tag == MERGE_TAG)


def scalar_value(node: yaml.ScalarNode, json: bool = False) -> Any:
    """The value of one word, in YAML or in JSON; a ValueError says why its explicit tag does not fit it."""
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            if text not in _TRUE | _FALSE:
                raise ValueError(f"cannot decode `{text}` as a !!bool")
            return text in _TRUE
        case "int":
            number = _integer(text) if _INT.fullmatch(text) else None
            if number is None:
                raise ValueError(f"cannot decode `{text[:80]}` as a !!int")
            return number
        case "float":
            fraction = _float(text) if _FLOAT.fullmatch(text) else None
            if fraction is None:
                raise ValueError(f"cannot decode `{text[:80]}` as a !!float")
            return int(fraction) if fraction.is_integer() and abs(fraction) < 1e21 and not json else fraction
        case "binary":
            return _binary(text)
        case _:
            return text


def key_text(node: yaml.Node) -> str:
    """A field's name: `true` for `on:` and `y:`, `8` for `010:`, as Kubernetes makes of them; ValueError for a map."""
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("a field name must be a plain word")
    value = scalar_value(node)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(node.value) if value is None or isinstance(value, str) else str(value)


def _integer(text: str) -> int | None:
    """A whole number of at most 64 bits."""
    text = text.replace("_", "")
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    if len(digits) > _LONGEST_INTEGER:
        return None
    try:  # 010 is eight, as in Go and in YAML 1.1
        number = sign * int(digits, 8 if digits[0] == "0" and digits.isdigit() else 0)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**64 else None


def _float(text: str) -> float | None:
    number = float(text.replace("_", ""))
    return number if abs(number) != float("inf") else None


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, ValueError):
        raise ValueError("!!binary does not hold text in base64") from None
