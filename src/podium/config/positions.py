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
from podium.config.scalars import ConfigLoader, is_merge_key, scalar_value

# Real configurations are a few hundred values, nested less than ten deep. Aliases can make a short file expand to
# billions of values, and the C parser overflows its stack on very deep nesting.
MAX_DEPTH = 100
MAX_VALUES = 100_000


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
        _refuse_deep_nesting(text)
        loader = ConfigLoader(text)
        try:
            node = loader.get_node() if loader.check_node() else None
            if node is not None and loader.check_node():
                document.second_document = loader.get_node().start_mark.line + 1
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        raise MalformedConfigError(
            f"not valid YAML: {error.problem or error.context}", at.line + 1 if at else 1
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise MalformedConfigError(f"not valid YAML: {error.reason}", line) from None
    if node is not None:
        document.value = _Builder(document).build(node, FieldPath(), _position(node))
    return document


def _refuse_deep_nesting(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=ConfigLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise MalformedConfigError(f"nested more than {MAX_DEPTH} levels deep", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@dataclass
class _Builder:
    """Turns nodes into plain values, noting positions on the way."""

    document: ConfigDocument
    values: int = 0
    inside: set[int] = field(default_factory=set)

    def build(self, node: yaml.Node, path: FieldPath, position: Position) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise MalformedConfigError("document contains excessive aliasing", position.line)
        self.document.positions[path.steps] = position
        if isinstance(node, yaml.ScalarNode):
            try:
                return scalar_value(node, self.document.json)
            except ValueError as error:
                raise MalformedConfigError(f"not valid YAML: {error}", position.line) from None
        if id(node) in self.inside:
            raise MalformedConfigError("an anchor contains itself", position.line)
        self.inside.add(id(node))
        value: Any
        if isinstance(node, yaml.MappingNode):
            value = self.mapping(node, path)
        else:
            value = [self.build(item, path.index(i), _position(item)) for i, item in enumerate(node.value)]
        self.inside.discard(id(node))
        return value

    def mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        first_lines: dict[str, int] = {}
        for key_node, value_node in _merges_first(node):
            position = _position(key_node)
            if is_merge_key(key_node):
                for source in _merge_sources(value_node):
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


def _merges_first(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return sorted(node.value, key=lambda pair: not is_merge_key(pair[0]))


def _merge_sources(node: yaml.Node) -> list[yaml.MappingNode]:
    sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for source in sources:
        if not isinstance(source, yaml.MappingNode):
            raise MalformedConfigError(
                "not valid YAML: map merge requires map or sequence of maps as the value", _position(node).line
            )
    return list(sources)


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise MalformedConfigError("not valid YAML: a field name must be a plain word", _position(node).line)
    value = scalar_value(node)
    if isinstance(value, bool):
        return "true" if value else "false"  # what kube-scheduler's YAML reader makes of `on:` or `y:`
    return node.value if value is None or isinstance(value, str) else str(value)


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
