"""Holds an expression as a tree of nodes, each with the offset at which errors about it point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ACCUMULATOR = "@result"
"""The variable in which a macro gathers its result; no expression can name it."""
UNUSED = "#unused"


@dataclass(eq=False, slots=True)
class Literal:
    """A constant."""

    offset: int
    value: object


@dataclass(eq=False, slots=True)
class Ident:
    """A variable or a type by its name."""

    offset: int
    name: str


@dataclass(eq=False, slots=True)
class Select:
    """A field of an operand; `test` asks whether it is there."""

    offset: int
    operand: Node
    field: str
    test: bool = False


@dataclass(eq=False, slots=True)
class Call:
    """A function applied to arguments; a member call has a target before them."""

    offset: int
    function: str
    target: Node | None
    args: list[Node]


@dataclass(eq=False, slots=True)
class ListLiteral:
    """A list; elements at optional indices are left out where they have no value."""

    offset: int
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class MapEntry:
    """A key with its value."""

    offset: int
    key: Node
    value: Node
    optional: bool = False


@dataclass(eq=False, slots=True)
class MapLiteral:
    """A map."""

    offset: int
    entries: list[MapEntry]


@dataclass(eq=False, slots=True)
class FieldValue:
    """A field of a message with its value."""

    offset: int
    name: str
    value: Node
    optional: bool = False


@dataclass(eq=False, slots=True)
class Message:
    """An object of a named type."""

    offset: int
    name: str
    fields: list[FieldValue]


@dataclass(eq=False, slots=True)
class Fold:
    """What a macro over a list or map becomes: `accumulator` starts as `init` and is replaced by `step` for each
    element while `condition` holds; then comes `result`. With two variables, the first is the index or key."""

    offset: int
    range: Node
    variable: str
    second: str
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node

    @property
    def binds(self) -> bool:
        """Whether it is no loop: cel.bind and its like give a name to a value."""
        return (
            isinstance(self.range, ListLiteral)
            and not self.range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
        )


@dataclass(eq=False, slots=True)
class Broken:
    """A place where the text had an error."""

    offset: int
    message: str = field(default="")


Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Message | Fold | Broken


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order in which they are written."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListLiteral():
            yield from node.elements
        case MapLiteral():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case Message():
            for each in node.fields:
                yield each.value
        case Fold():
            yield from (node.range, node.init, node.condition, node.step, node.result)


def qualified_name(node: Node) -> str | None:
    """The dotted name that a chain of fields after a name reads as."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.test:
            return None
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)])
