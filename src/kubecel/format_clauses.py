"""Formats texts with clauses such as `%s` and `%.2f`, and checks the clauses of constant texts beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kubecel import types
from kubecel.checker import Checked
from kubecel.conversions import to_string
from kubecel.expression import Call, ListLiteral, Literal, MapLiteral, Node
from kubecel.source import SourceText
from kubecel.strconv import quoted
from kubecel.types import CelType, TypeKind
from kubecel.values import CelError, DurationValue, MapValue, TimestampValue, Uint, type_name

_WORDS: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
_TYPES: Final = {
    "d": (types.INT, types.UINT),
    "f": (types.DOUBLE, types.STRING),
    "e": (types.DOUBLE, types.STRING),
    "b": (types.INT, types.UINT, types.BOOL),
    "x": (types.INT, types.UINT, types.STRING, types.BYTES),
    "o": (types.INT, types.UINT),
}
_PLAIN: Final = (
    TypeKind.LIST,
    TypeKind.MAP,
    TypeKind.PRIMITIVE,
    TypeKind.TIME,
    TypeKind.TYPE,
    TypeKind.NULL,
    TypeKind.DYN,
)
_NUMBER_WORDS: Final = ("NaN", "Infinity", "-Infinity")
_DEFAULT_PRECISION: Final = 6


class _ClauseError(Exception):
    """A clause that cannot be formatted; `node` is the argument it is about."""

    def __init__(self, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.node = node


class _Clause(NamedTuple):
    letter: str
    upper: bool
    precision: int


def format_text(text: str, arguments: list[object]) -> str:
    """The text with its clauses replaced by the arguments."""
    try:
        return _formatted(text, len(arguments), lambda number, clause: _format(clause, arguments[number]))
    except _ClauseError as error:
        raise CelError(str(error)) from None


def validate(node: Call, checked: Checked, source: SourceText) -> None:
    """Report what is wrong with a constant text and a list of arguments, by the types of these."""
    text, arguments = node.target, node.args[0] if len(node.args) == 1 else None
    if node.function != "format" or not isinstance(text, Literal) or not isinstance(arguments, ListLiteral):
        return
    if not isinstance(text.value, str):
        return
    used = 0

    def check(number: int, clause: _Clause) -> str:
        _check(clause, arguments.elements[number], checked)
        return ""

    try:
        used = _count_clauses(text.value)
        _formatted(text.value, len(arguments.elements), check, lenient=True)
    except _ClauseError as error:
        source.report((error.node or node).offset, str(error))
        return
    if len(arguments.elements) > used:
        given = len(arguments.elements)
        message = f"too many arguments supplied to string.format (expected {used}, got {given})"
        source.report(node.offset, message)


def _count_clauses(text: str) -> int:
    return text.replace("%%", "").count("%")


def _formatted(text: str, count: int, replace: Callable[[int, _Clause], str], *, lenient: bool = False) -> str:
    built: list[str] = []
    at, number = 0, 0
    while at < len(text):
        if text[at] != "%":
            built.append(text[at])
            at += 1
            continue
        if text.startswith("%%", at):
            built.append("%")
            at += 2
            continue
        if number >= count and not lenient:
            raise _ClauseError(f"index {number} out of range")
        if at + 1 >= len(text):
            raise _ClauseError("unexpected end of string")
        if number >= count:
            raise _ClauseError(f"index {number} out of range")
        clause, at = _read_clause(text, at + 1)
        try:
            built.append(replace(number, clause))
        except _ClauseError as error:
            raise _ClauseError(f"error during formatting: {error}", error.node) from None
        number += 1
    return "".join(built)


def _read_clause(text: str, at: int) -> tuple[_Clause, int]:
    precision = _DEFAULT_PRECISION
    failed = "could not parse formatting clause: "
    if text[at] == ".":
        end = at + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise _ClauseError(f"{failed}error while parsing precision: could not find end of precision specifier")
        digits = text[at + 1 : end]
        if not digits:
            wrong = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise _ClauseError(f"{failed}error while parsing precision: {wrong}")
        precision, at = int(digits[:9]), end
    letter = text[at]
    if letter not in "sdfebxXo":
        raise _ClauseError(f'{failed}unrecognized formatting clause "{letter}"')
    return _Clause(letter.lower(), letter == "X", min(precision, 1000)), at + 1


def _check(clause: _Clause, node: Node, checked: Checked) -> None:
    if clause.letter == "s":
        for each in _plain_parts(node):
            found = checked.types[each]
            if found.kind not in _PLAIN:
                raise _ClauseError(_WORDS["s"].format(found.name), each)
        return
    found = checked.types[node]
    if found != types.DYN and found not in _TYPES[clause.letter]:
        raise _ClauseError(_WORDS[clause.letter].format(found.name), node)


def _plain_parts(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case ListLiteral():
            for element in node.elements:
                yield from _plain_parts(element)
        case MapLiteral():
            for entry in node.entries:
                yield from _plain_parts(entry.key)
                yield from _plain_parts(entry.value)


def _format(clause: _Clause, value: object) -> str:
    match clause.letter:
        case "s":
            return _as_string(value)
        case "d":
            return _whole(clause, value, str)
        case "o":
            return _whole(clause, value, lambda number: f"{number:o}")
        case "b":
            return ("1" if value else "0") if isinstance(value, bool) else _whole(clause, value, "{:b}".format)
        case "x":
            return _as_hex(clause, value)
    return _as_float(clause, value)


def _wrong(clause: _Clause, value: object) -> _ClauseError:
    return _ClauseError(_WORDS[clause.letter].format(type_name(value)))


def _whole(clause: _Clause, value: object, write: Callable[[int], str]) -> str:
    if type(value) not in (int, Uint):
        raise _wrong(clause, value)
    assert isinstance(value, int)
    return write(int(value))


def _as_hex(clause: _Clause, value: object) -> str:
    if isinstance(value, (str, bytes)):
        shown = (value.encode() if isinstance(value, str) else value).hex()
    else:
        shown = _whole(clause, value, "{:x}".format)
    return shown.upper() if clause.upper else shown


def _as_float(clause: _Clause, value: object) -> str:
    if isinstance(value, str) and value in _NUMBER_WORDS:
        value = float(value)
    if not isinstance(value, float):
        raise _wrong(clause, value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if clause.letter == "f":
        return f"{value:,.{clause.precision}f}"
    mantissa, _, exponent = f"{value:.{clause.precision}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{exponent[0].replace('-', '⁻').replace('+', '')}{_superscript(exponent[1:])}"


def _superscript(digits: str) -> str:
    return digits.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _as_string(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "[" + ", ".join(_inside(element) for element in value) + "]"
        case MapValue():
            pairs = sorted((_inside(key), _inside(each)) for key, each in value.items())
            return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"
        case bool() | int() | float() | str() | bytes() | TimestampValue() | CelType():
            return to_string(value)
    raise _ClauseError(_WORDS["s"].format(type_name(value)))


def _inside(value: object) -> str:
    """A value as it is written inside a list or map."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(value.decode(errors='replace'))}"
        case float():
            shown = f"{value:.{_DEFAULT_PRECISION}f}"
            return quoted(shown) if math.isinf(value) or math.isnan(value) else shown
        case DurationValue():
            return f"duration({quoted(to_string(value))})"
        case TimestampValue():
            return f"timestamp({quoted(to_string(value))})"
        case None | bool() | int() | list() | MapValue() | CelType():
            return _as_string(value)
    raise _ClauseError(f"no formatting function for {type_name(value)}")
