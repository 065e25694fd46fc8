"""Reads a YAML (or JSON) document and remembers where every value stood.

The plain values go on to be decoded; the positions let every later message name the line. A
field stands where its key is written, a list item where it begins. What is not in the file (a default) is placed at
the nearest thing around it that is. Fields written twice in one mapping are kept aside: the last one wins, as in
kube-scheduler, and a warning says so. A field that YAML's `<<` copies in and that is given again counts as twice.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from podium.config.field import FieldPath, Step
from podium.kube.documents import SETTINGS, DocumentError
from podium.kube.yaml_nodes import compose, is_merge_key, key_text, line_of, merge_sources, merged_entries, scalar_value


class Position(NamedTuple):
    """Counted from one, as editors do."""

    line: int
    column: int


class MalformedConfigError(Exception):
    """The text is not a document at all. The message is one sentence."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Repeated(NamedTuple):
    """A key that its mapping already had."""

    path: FieldPath
    key: str
    position: Position
    value_line: int
    first_line: int


@dataclass
class ConfigDocument:
    """One parsed file."""

    value: Any = None
    json: bool = False
    positions: dict[tuple[Step, ...], Position] = field(default_factory=dict)
    repeated: list[Repeated] = field(default_factory=list)
    second_document: int | None = None  # the line on which another document begins, which is not read

    def position(self, path: FieldPath) -> Position:
        """Where a field stands, or the nearest field around it that is in the file."""
        steps = path.steps
        while steps not in self.positions and steps:
            steps = steps[:-1]
        return self.positions.get(steps, Position(0, 0))  # nothing was read: these are the defaults


def parse(text: str) -> ConfigDocument:
    """Reads the first document of a text, or raises MalformedConfigError."""
    document = ConfigDocument(json=text.lstrip().startswith("{"), positions={(): Position(1, 1)})
    try:
        nodes = compose(text, SETTINGS)
        node = next(nodes, None)
        if node is not None:
            second = next(nodes, None)
            document.second_document = None if second is None else line_of(second)
            document.value = _Builder(document).build(node, FieldPath(), _position(node))
    except DocumentError as error:
        problem = f"not valid YAML: {error.problem}" if error.language else error.problem
        raise MalformedConfigError(problem, error.line) from None
    return document


@dataclass
class _Builder:
    """Turns nodes into plain values, noting positions on the way."""

    document: ConfigDocument

    def build(self, node: yaml.Node, path: FieldPath, position: Position) -> Any:
        self.document.positions[path.steps] = position
        if isinstance(node, yaml.ScalarNode):
            try:
                return scalar_value(node, self.document.json)
            except ValueError as error:
                raise MalformedConfigError(f"not valid YAML: {error}", position.line) from None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        return [self.build(item, path.index(i), _position(item)) for i, item in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        first_lines: dict[str, int] = {}
        for key_node, value_node in merged_entries(node):
            position = _position(key_node)
            if is_merge_key(key_node):
                for source in merge_sources(value_node):
                    copied = self.build(source, path, self.document.positions[path.steps])
                    for key in copied.keys() & whole.keys():
                        self._repeated(path.child(key), key, position, position.line, first_lines[key])
                    whole = {**copied, **whole}
                    first_lines = {**dict.fromkeys(copied, position.line), **first_lines}
                continue
            key = _key(key_node)
            at = path.child(key)
            repeats = key in whole
            whole[key] = self.build(value_node, at, position)
            if repeats:
                self._repeated(at, key, position, _position(value_node).line, first_lines[key])
            first_lines.setdefault(key, position.line)
        # On its way to JSON kube-scheduler's YAML reader sorts the fields; its messages come in that order.
        return whole if self.document.json else dict(sorted(whole.items()))

    def _repeated(self, path: FieldPath, key: str, position: Position, value_line: int, first_line: int) -> None:
        self.document.repeated.append(Repeated(path, key, position, value_line, first_line))


def _key(node: yaml.Node) -> str:
    try:
        return key_text(node)
    except ValueError as error:
        raise MalformedConfigError(f"not valid YAML: {error}", line_of(node)) from None


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
