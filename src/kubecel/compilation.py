"""Compiles the text of an expression as far as its types: reads it, checks it, and validates its constants.

Constants are durations, timestamps, patterns, format strings, and literals whose elements must be of one type.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubecel import format_clauses, types
from kubecel.builder import read
from kubecel.checker import Checked, Environment, check
from kubecel.conversions import to_duration, to_timestamp
from kubecel.expression import Call, ListLiteral, Literal, MapLiteral, Node, children
from kubecel.re2 import PatternError, compile_pattern
from kubecel.source import SourceText
from kubecel.types import CelType
from kubecel.values import CelError


class CompilationError(ValueError):
    """An expression that does not compile, with all its problems as cel-go shows them."""


def compile_expression(text: str, environment: Environment, *, bindings: bool) -> Checked:
    """The expression with its types; CompilationError where it has none. `bindings`: whether there is cel.bind."""
    source = SourceText(text)
    node = read(source, bindings=bindings)
    if node is not None:
        checked = check(node, environment, source)
        if not source.problems:
            validate(checked, source)
        if not source.problems:
            return checked
    raise CompilationError(f"compilation failed: {source.display()}")


def validate(checked: Checked, source: SourceText) -> None:
    """Report to the source what is wrong with the constants of an expression."""
    for node, formatted in _walk(checked.node):
        match node:
            case Call():
                _check_argument(node, source)
                format_clauses.validate(node, checked, source)
            case ListLiteral() if not formatted:
                _check_list(node, checked, source)
            case MapLiteral() if not formatted:
                _check_map(node, checked, source)


def _walk(node: Node) -> Iterator[tuple[Node, bool]]:
    """Every node, with whether it is inside the arguments of a format call, whose list may mix types."""
    left = [(node, False)]
    while left:
        node, formatted = left.pop()
        yield node, formatted
        inside = formatted or (isinstance(node, Call) and node.function == "format")
        left += [(child, inside) for child in reversed(list(children(node)))]


def _check_argument(node: Call, source: SourceText) -> None:
    if node.function not in ("duration", "timestamp", "matches") or not node.args:
        return
    argument = node.args[0]
    if isinstance(argument, Literal) and not _is_valid(node.function, argument.value):
        source.report(argument.offset, f"invalid {node.function} argument")


def _is_valid(function: str, value: object) -> bool:
    try:
        match function:
            case "duration":
                to_duration(value)
            case "timestamp":
                to_timestamp(value)
            case "matches" if isinstance(value, str):
                compile_pattern(value)
    except (CelError, PatternError):
        return False
    return True


def _check_list(node: ListLiteral, checked: Checked, source: SourceText) -> None:
    first: CelType | None = None
    for number, element in enumerate(node.elements):
        found = checked.types[element]
        if number in node.optional:
            found = found.parameters[0] if found.parameters else found
        if first is None:
            first = found
        elif not types.equivalent(first, found):
            _mismatch(element, first, found, source)
            break


def _check_map(node: MapLiteral, checked: Checked, source: SourceText) -> None:
    key: CelType | None = None
    value: CelType | None = None
    for entry in node.entries:
        found_key, found = checked.types[entry.key], checked.types[entry.value]
        if entry.optional and found.parameters:
            found = found.parameters[0]
        if key is None or value is None:
            key, value = found_key, found
            continue
        if not types.equivalent(key, found_key):
            _mismatch(entry.key, key, found_key, source)
        if not types.equivalent(value, found):
            _mismatch(entry.value, value, found, source)


def _mismatch(node: Node, expected: CelType, found: CelType, source: SourceText) -> None:
    source.report(node.offset, f"expected type '{expected.shown()}' but found '{found.shown()}'")
