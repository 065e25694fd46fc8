"""Turns the tree of the grammar's rules into an expression: operators become calls, macros are expanded.

Chains of `&&` and of `||` become balanced trees, as in cel-go. Where the text had an error, the tree may lack parts;
what is there is still looked at, so that all errors come out at once.
"""

from __future__ import annotations

from typing import Final

from kubecel import tokens as literals
from kubecel.expression import (
    Broken,
    Call,
    FieldValue,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Node,
    Select,
)
from kubecel.limits import is_nearly_used, on_fresh_stack
from kubecel.macros import MacroError, expand
from kubecel.source import MISSING, NOWHERE, SourceText
from kubecel.strconv import words
from kubecel.syntax import MOST_NESTED, Tree, parse
from kubecel.tokens import LiteralError, Token

_COUNTED: Final = frozenset(words("expr relation calc member"))
"""The rules that count towards how deep an expression nests; of lists, calls and `&&` the parser limits the depth."""
_RESERVED: Final = frozenset(
    words(
        "as break const continue else false for function if import in let loop package namespace null return true var "
        "void while"
    )
)
_TOO_DEEP: Final = "max recursion depth exceeded"
_LONGEST: Final = 100_000


class _TooDeepError(Exception):
    """An expression that nests too deep."""


def read(source: SourceText, *, bindings: bool = True) -> Node | None:
    """The expression; None where the text has errors, which are reported to the source. `bindings`: with cel.bind."""
    if len(source.text) > _LONGEST:
        size = f"size: {len(source.text)}, limit {_LONGEST}"
        source.report(NOWHERE, f"expression code point size exceeds limit: {size}")
        return None
    tree = parse(source)
    if tree is None:
        return None
    try:
        node = _Builder(source, bindings=bindings).visit(tree.tree("e"))
    except _TooDeepError:
        source.report(NOWHERE, _TOO_DEEP)
        return None
    return None if source.problems else node


class _Builder:
    """Walks the tree of one text."""

    def __init__(self, source: SourceText, *, bindings: bool) -> None:
        self._source = source
        self._bindings = bindings
        self._nested = 0

    def visit(self, tree: Tree | None) -> Node:
        tree = _innermost(tree)
        if tree is None:
            return Broken(MISSING)
        counted = tree.rule in _COUNTED
        self._nested += counted
        if self._nested > MOST_NESTED:
            raise _TooDeepError
        node = on_fresh_stack(self._visit, tree) if is_nearly_used() else self._visit(tree)
        self._nested -= counted
        return node

    def _visit(self, tree: Tree) -> Node:
        match tree.rule:
            case "expr":
                op = _required(tree.token("op"))
                parts = [self.visit(tree.tree(label)) for label in ("e", "e1", "e2")]
                return self._call(op, "_?_:_", *parts)
            case "conditionalOr":
                return self._logic(tree, "_||_")
            case "conditionalAnd":
                return self._logic(tree, "_&&_")
            case "relation" | "calc":
                return self._binary(tree)
            case "unary":
                return self._unary(tree)
            case "member":
                return self._member(tree)
            case "primary":
                return self._primary(tree)
            case "literal":
                return self._literal(tree)
        return Broken(MISSING)

    def _report(self, offset: int, message: str) -> Node:
        self._source.report(offset, message)
        return Broken(offset)

    def _call(self, op: Token, function: str, *args: Node, target: Node | None = None) -> Node:
        try:
            expanded = expand(op.start, function, target, list(args), bindings=self._bindings)
        except MacroError as error:
            return self._report(error.offset, str(error))
        return expanded if expanded is not None else Call(op.start, function, target, list(args))

    def _logic(self, tree: Tree, function: str) -> Node:
        terms = [self.visit(tree.tree("e"))]
        ops = tree.tokens("ops")
        rest = tree.trees("e1")
        for number in range(len(ops)):
            if number >= len(rest):
                return self._report(tree.start.start, f"unexpected character, wanted '{function.strip('_')}'")
            terms.append(self.visit(rest[number]))
        return _balanced(function, terms, ops, 0, len(ops) - 1)

    def _binary(self, tree: Tree) -> Node:
        op = tree.token("op")
        if op is None or op.text.startswith("<missing"):
            return self._report(tree.start.start, "operator not found")
        left = self.visit(tree.tree("operand"))
        right = self.visit(tree.tree("right"))
        return self._call(op, "@in" if op.text == "in" else f"_{op.text}_", left, right)

    def _unary(self, tree: Tree) -> Node:
        ops = tree.tokens("ops")
        if not ops:
            return Literal(tree.start.start, "<<error>>")
        member = self.visit(tree.tree("member"))
        if len(ops) % 2 == 0:
            return member
        return self._call(ops[0], "!_" if tree.alternative == "LogicalNot" else "-_", member)

    def _member(self, tree: Tree) -> Node:
        operand = self.visit(tree.tree("operand"))
        op = tree.token("op")
        match tree.alternative:
            case "Select":
                return self._select(tree, operand, op)
            case "Call":
                name, opening = tree.token("id"), tree.token("open")
                if name is None or opening is None:
                    return Broken(tree.start.start)
                return self._call(opening, name.text, *self._arguments(tree), target=operand)
        if op is None:
            return Broken(tree.start.start)
        index = self.visit(tree.tree("index"))
        return self._call(op, "_[?_]" if tree.token("opt") else "_[_]", operand, index)

    def _select(self, tree: Tree, operand: Node, op: Token | None) -> Node:
        name = tree.tree("id")
        if name is None or op is None:
            return Broken(tree.start.start)
        field = self._field_name(name, name.start.start)
        if tree.token("opt"):
            return Call(op.start, "_?._", None, [operand, Literal(name.start.start, field)])
        return Select(op.start, operand, field)

    def _field_name(self, name: Tree, offset: int) -> str:
        token = name.token("id")
        if token is None or not name.alternative:
            self._report(offset, "unsupported ident kind")
            return ""
        if name.alternative == "Escaped":
            self._report(offset, "unsupported syntax: '`'")
            return ""
        return token.text

    def _arguments(self, tree: Tree) -> list[Node]:
        listed = tree.tree("args")
        return [self.visit(each) for each in listed.trees("e")] if listed else []

    def _primary(self, tree: Tree) -> Node:
        match tree.alternative:
            case "Ident" | "GlobalCall":
                return self._named(tree)
            case "CreateList":
                return self._list(tree)
            case "CreateMap":
                return self._map(tree)
            case "CreateMessage":
                return self._message(tree)
        return Broken(MISSING)

    def _named(self, tree: Tree) -> Node:
        name = tree.token("id")
        if name is None:
            return Broken(tree.start.start)
        if name.text in _RESERVED:
            return self._report(tree.start.start, f"reserved identifier: {name.text}")
        dot = "." if tree.token("leading dot") else ""
        if tree.alternative == "Ident":
            return Ident(name.start, dot + name.text)
        op = tree.token("op")
        return self._call(op or name, dot + name.text, *self._arguments(tree))

    def _list(self, tree: Tree) -> Node:
        op = _required(tree.token("op"))
        listed = tree.tree("elems")
        elements = listed.trees("e") if listed else []
        nodes = [self.visit(each.tree("e")) for each in elements]
        optional = frozenset(number for number, each in enumerate(elements) if each.token("opt"))
        return ListLiteral(op.start, nodes, optional)

    def _map(self, tree: Tree) -> Node:
        op = _required(tree.token("op"))
        listed = tree.tree("entries")
        if listed is None:
            return MapLiteral(op.start, [])
        keys, columns, values = listed.trees("keys"), listed.tokens("cols"), listed.trees("values")
        entries = []
        for key, column, value in zip(keys, columns, values, strict=False):
            name = self.visit(key.tree("e"))
            entries.append(MapEntry(column.start, name, self.visit(value), bool(key.token("opt"))))
        return MapLiteral(op.start, entries)

    def _message(self, tree: Tree) -> Node:
        op = tree.token("op")
        name = ("." if tree.token("leading dot") else "") + ".".join(part.text for part in tree.tokens("ids"))
        listed = tree.tree("entries")
        fields = []
        if listed is not None:
            names, columns, values = listed.trees("fields"), listed.tokens("cols"), listed.trees("values")
            for each, column, value in zip(names, columns, values, strict=False):
                ident = each.tree("id")
                field = self._field_name(ident, listed.start.start) if ident else ""
                fields.append(FieldValue(column.start, field, self.visit(value), bool(each.token("opt"))))
        return Message((op or tree.start).start, name, fields)

    def _literal(self, tree: Tree) -> Node:
        token, at = tree.token("tok"), tree.start.start
        if token is None:
            return Broken(MISSING)
        sign = "-" if tree.token("sign") else ""
        try:
            return Literal(at, _constant(tree.alternative, token.text, sign))
        except LiteralError as error:
            return self._report(at, str(error))


def _constant(kind: str, text: str, sign: str) -> object:
    match kind:
        case "Int":
            return literals.read_int(text, sign)
        case "Uint":
            return literals.read_uint(text)
        case "Double":
            return literals.read_double(text, sign)
        case "String":
            return literals.read_string(text)
        case "Bytes":
            return literals.read_bytes(text)
    return {"True": True, "False": False, "Null": None}[kind]


def _innermost(tree: Tree | None) -> Tree | None:
    """The first tree below that is more than a way to another one: parentheses and rules without operators."""
    while tree is not None:
        if tree.rule in ("expr", "conditionalOr", "conditionalAnd"):
            if tree.parts.get("op") or tree.parts.get("ops"):
                return tree
            tree = tree.tree("e")
        elif tree.rule in ("relation", "calc"):
            if "op" in tree.parts or "operand" in tree.parts:
                return tree
            tree = tree.tree("left")
        elif tree.rule == "unary" and tree.alternative == "MemberExpr":
            tree = tree.tree("member")
        elif tree.rule == "member" and not tree.alternative:
            tree = tree.tree("primary")
        elif tree.rule == "primary" and tree.alternative == "Nested":
            tree = tree.tree("e")
        elif tree.rule == "primary" and tree.alternative == "Literal":
            tree = tree.tree("literal")
        else:
            return tree
    return None


def _balanced(function: str, terms: list[Node], ops: list[Token], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, ops, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, ops, middle + 1, high)
    return Call(ops[middle].start, function, None, [left, right])


def _required(token: Token | None) -> Token:
    assert token is not None
    return token
