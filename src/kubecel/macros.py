"""Expands macros: calls such as `list.exists(x, x > 1)` and `has(a.b)` that are written like functions but become
other expressions while the text is parsed.

A macro is found by its name, the number of its arguments and whether it has a target. Nodes that a macro adds carry the
offset of the macro's call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubecel.expression import (
    ACCUMULATOR,
    UNUSED,
    Broken,
    Call,
    FieldValue,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Node,
    Select,
    children,
)
from kubecel.limits import is_nearly_used, on_fresh_stack

_OLD_ACCUMULATOR: Final = "__result__"
_SORT_INPUT: Final = "@__sortBy_input__"
_MOST_REPEATED: Final = 30_000
_SORTABLE: Final = (ListLiteral, Select, Ident, Fold, Call)


class MacroError(Exception):
    """Arguments that a macro cannot take."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


Expander = Callable[[int, "Node | None", "list[Node]"], "Node | None"]


def expand(offset: int, function: str, target: Node | None, args: list[Node], *, bindings: bool) -> Node | None:
    """The expression that the call stands for, or None where it is no macro; `bindings`: whether there is cel.bind."""
    macro = _MACROS.get((function, len(args), target is not None))
    if macro is _bind and not bindings:
        return None
    return macro(offset, target, args) if macro else None


def _accumulated(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


def _call(at: int, function: str, *args: Node) -> Call:
    return Call(at, function, None, list(args))


def _loop_variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, message)
    if node.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _two_variables(args: list[Node]) -> tuple[str, str]:
    names = []
    for arg in args[:2]:
        if not isinstance(arg, Ident):
            raise MacroError(arg.offset, "argument must be a simple name")
        names.append(arg.name)
    if names[0] == names[1]:
        raise MacroError(args[1].offset, f"duplicate variable name: {names[0]}")
    for arg in args[:2]:
        _loop_variable(arg, "")
    return names[0], names[1]


def _has(at: int, target: Node | None, args: list[Node]) -> Node:
    field = args[0]
    if not isinstance(field, Select):
        raise MacroError(field.offset, "invalid argument to has() macro")
    return Select(at, field.operand, field.field, test=True)


def _variables(args: list[Node]) -> tuple[str, str, Node]:
    """The loop variables and the argument after them."""
    if len(args) == 2:
        return _loop_variable(args[0], "argument must be a simple name"), "", args[1]
    first, second = _two_variables(args)
    return first, second, args[2]


def _all(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second, predicate = _variables(args)
    condition = _call(at, "@not_strictly_false", _accumulated(at))
    step = _call(at, "_&&_", _accumulated(at), predicate)
    return _fold(at, target, first, second, Literal(at, True), condition, step, _accumulated(at))


def _exists(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second, predicate = _variables(args)
    condition = _call(at, "@not_strictly_false", _call(at, "!_", _accumulated(at)))
    step = _call(at, "_||_", _accumulated(at), predicate)
    return _fold(at, target, first, second, Literal(at, False), condition, step, _accumulated(at))


def _exists_one(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second, predicate = _variables(args)
    one_more = _call(at, "_+_", _accumulated(at), Literal(at, 1))
    step = _call(at, "_?_:_", predicate, one_more, _accumulated(at))
    result = _call(at, "_==_", _accumulated(at), Literal(at, 1))
    return _fold(at, target, first, second, Literal(at, 0), Literal(at, True), step, result)


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _loop_variable(args[0], "argument is not an identifier")
    return _gather(at, target, name, "", args[1] if len(args) == 3 else None, args[-1])


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _loop_variable(args[0], "argument is not an identifier")
    return _gather(at, target, name, "", args[1], args[0])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second = _two_variables(args)
    return _gather(at, target, first, second, args[2] if len(args) == 4 else None, args[-1])


def _gather(at: int, target: Node | None, first: str, second: str, condition: Node | None, element: Node) -> Node:
    step: Node = _call(at, "_+_", _accumulated(at), ListLiteral(at, [element]))
    return _collect(at, target, first, second, ListLiteral(at, []), condition, step)


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second = _two_variables(args)
    step = _call(at, "cel.@mapInsert", _accumulated(at), Ident(at, first), args[-1])
    return _collect(at, target, first, second, MapLiteral(at, []), args[2] if len(args) == 4 else None, step)


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node:
    first, second = _two_variables(args)
    step = _call(at, "cel.@mapInsert", _accumulated(at), args[-1])
    return _collect(at, target, first, second, MapLiteral(at, []), args[2] if len(args) == 4 else None, step)


def _collect(
    at: int, target: Node | None, first: str, second: str, init: Node, condition: Node | None, step: Node
) -> Node:
    if condition is not None:
        step = _call(at, "_?_:_", condition, step, _accumulated(at))
    return _fold(at, target, first, second, init, Literal(at, True), step, _accumulated(at))


def _fold(
    at: int, target: Node | None, first: str, second: str, init: Node, condition: Node, step: Node, result: Node
) -> Node:
    assert target is not None
    return Fold(at, target, first, second, ACCUMULATOR, init, condition, step, result)


def _bound(at: int, name: str, value: Node, result: Node) -> Node:
    return Fold(at, ListLiteral(at, []), UNUSED, "", name, value, Literal(at, False), Ident(at, name), result)


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return _bound(at, args[0].name, args[1], args[2])


def _opt_map(at: int, target: Node | None, args: list[Node]) -> Node:
    return _when_present(at, target, args, "optMap", lambda value: _call(at, "optional.of", value))


def _opt_flat_map(at: int, target: Node | None, args: list[Node]) -> Node:
    return _when_present(at, target, args, "optFlatMap", lambda value: value)


def _when_present(at: int, target: Node | None, args: list[Node], macro: str, finish: Callable[[Node], Node]) -> Node:
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].offset, f"{macro}() variable name must be a simple identifier")
    assert target is not None
    if _is_large(target):
        raise MacroError(at, f"{macro}() is applied to an expression too large to be repeated")
    value = Call(at, "value", copied(target), [])
    present = Call(at, "hasValue", target, [])
    return _call(at, "_?_:_", present, finish(_bound(at, args[0].name, value, args[1])), _call(at, "optional.none"))


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    if not isinstance(target, _SORTABLE):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, message)
    keys = _map(at, Ident(at, _SORT_INPUT), args)
    by_keys = Call(at, "@sortByAssociatedKeys", Ident(at, _SORT_INPUT), [keys])
    return _bound(at, _SORT_INPUT, target, by_keys)


def _is_large(node: Node) -> bool:
    """Whether a node is too large for a macro that has it twice. A dozen such macros in a row would have it 4,096
    times; kube-apiserver has no limit, and gives up after half a minute."""
    left, seen = [node], 0
    while left and seen <= _MOST_REPEATED:
        left += children(left.pop())
        seen += 1
    return seen > _MOST_REPEATED


def copied(node: Node) -> Node:
    """The node again, all of it new."""
    if is_nearly_used():
        return on_fresh_stack(copied, node)
    match node:
        case Select():
            return Select(node.offset, copied(node.operand), node.field, node.test)
        case Call():
            target = None if node.target is None else copied(node.target)
            return Call(node.offset, node.function, target, [copied(arg) for arg in node.args])
        case ListLiteral():
            return ListLiteral(node.offset, [copied(each) for each in node.elements], node.optional)
        case MapLiteral():
            entries = [MapEntry(e.offset, copied(e.key), copied(e.value), e.optional) for e in node.entries]
            return MapLiteral(node.offset, entries)
        case Message():
            fields = [FieldValue(f.offset, f.name, copied(f.value), f.optional) for f in node.fields]
            return Message(node.offset, node.name, fields)
        case Fold():
            parts = [copied(part) for part in (node.range, node.init, node.condition, node.step, node.result)]
            names = (node.variable, node.second, node.accumulator)
            return Fold(node.offset, parts[0], *names, *parts[1:])
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Broken():
            return Broken(node.offset)


_MACROS: Final[dict[tuple[str, int, bool], Expander]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all,
    ("all", 3, True): _all,
    ("exists", 2, True): _exists,
    ("exists", 3, True): _exists,
    ("exists_one", 2, True): _exists_one,
    ("exists_one", 3, True): _exists_one,
    ("existsOne", 3, True): _exists_one,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("sortBy", 2, True): _sort_by,
    ("bind", 3, True): _bind,
}
