"""Checks the types of an expression, with cel-go's words for what does not fit.

Every node gets a type, and every call the overloads that its arguments allow: several where a type is only known at run
time. Names of functions and types are resolved: `ip.isCanonical(x)` becomes a call without a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubecel import types
from kubecel.declarations import FUNCTIONS, TYPES, Overload
from kubecel.expression import (
    Call,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Node,
    Select,
    qualified_name,
)
from kubecel.limits import is_nearly_used, on_fresh_stack
from kubecel.source import SourceText
from kubecel.types import Bindings, CelType, TypeKind
from kubecel.values import Uint


@dataclass(frozen=True)
class Environment:
    """What an expression may name: variables by type, and the fields of object types."""

    variables: Mapping[str, CelType]
    fields: Mapping[str, Mapping[str, CelType]]
    without: frozenset[str] = frozenset()
    """The overloads that it does not know."""


@dataclass
class Checked:
    """An expression with the types of its nodes, the names that nodes turned out to be, and the overloads of calls."""

    node: Node
    types: dict[Node, CelType] = field(default_factory=dict)
    names: dict[Node, str] = field(default_factory=dict)
    overloads: dict[Node, list[str]] = field(default_factory=dict)

    @property
    def type(self) -> CelType:
        return self.types[self.node]


def check(node: Node, environment: Environment, source: SourceText) -> Checked:
    """The expression with its types; what does not fit is reported to the source."""
    checker = _Checker(environment, source)
    checker.checked.node = node
    checker.check(node)
    resolved = checker.checked.types
    for each, found in resolved.items():
        resolved[each] = checker.bindings.resolve(found, free_as_dyn=True)
    return checker.checked


def type_of_literal(value: object) -> CelType:
    match value:
        case bool():
            return types.BOOL
        case Uint():
            return types.UINT
        case int():
            return types.INT
        case float():
            return types.DOUBLE
        case str():
            return types.STRING
        case bytes():
            return types.BYTES
    return types.NULL


class _Checker:
    """The state of one check."""

    def __init__(self, environment: Environment, source: SourceText) -> None:
        self._environment = environment
        self._source = source
        self._scopes: list[dict[str, CelType]] = [dict(environment.variables)]
        self._variables = 0
        self.bindings = Bindings()
        self.checked = Checked(Literal(0, None))

    def check(self, node: Node) -> None:
        if is_nearly_used():
            on_fresh_stack(self.check, node)
            return
        match node:
            case Literal():
                self._set(node, type_of_literal(node.value))
            case Ident():
                self._check_ident(node)
            case Select():
                self._check_select(node)
            case Call():
                self._check_call(node)
            case ListLiteral():
                self._check_list(node)
            case MapLiteral():
                self._check_map(node)
            case Message():
                self._check_message(node)
            case Fold():
                self._check_fold(node)

    def _set(self, node: Node, found: CelType) -> None:
        self.checked.types[node] = found

    def _type(self, node: Node) -> CelType:
        return self.checked.types.get(node, types.ERROR)

    def _report(self, node: Node, message: str) -> None:
        self._source.report(node.offset, message)

    def _undeclared(self, node: Node, name: str) -> None:
        self._report(node, f"undeclared reference to '{name}' (in container '')")
        self._set(node, types.ERROR)

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> None:
        self._report(node, f"expected type '{expected.shown()}' but found '{found.shown()}'")

    def _new_variable(self) -> CelType:
        self._variables += 1
        return types.parameter(f"_var{self._variables - 1}")

    def _look_up(self, name: str) -> CelType | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if name in self._environment.fields:
            return types.type_of(types.object_type(name))
        return TYPES.get(name)

    def _check_ident(self, node: Ident) -> None:
        found = self._look_up(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        self.checked.names[node] = node.name.removeprefix(".")
        self._set(node, found)

    def _check_select(self, node: Select) -> None:
        name = qualified_name(node)
        found = self._look_up(name) if name else None
        if name and found is not None:
            self.checked.names[node] = name.removeprefix(".")
            self._set(node, found)
            return
        result = self._select(node, node.operand, node.field, optional=False)
        self._set(node, self.bindings.resolve(types.BOOL if node.test else result))

    def _select(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        self.check(operand)
        target, was_optional = types.unwrapped(self.bindings.resolve(self._type(operand)))
        result = types.ERROR
        match target.kind:
            case TypeKind.MAP:
                result = target.parameters[1]
            case TypeKind.OBJECT:
                result = self._field(node, target.name, name)
            case TypeKind.PARAMETER:
                self.bindings.assign(types.DYN, target)
                result = types.DYN
            case _:
                if not target.is_dynamic and target.kind is not TypeKind.ERROR:
                    self._report(node, f"type '{target.shown()}' does not support field selection")
                result = types.DYN
        return types.optional_of(result) if was_optional or optional else result

    def _field(self, node: Node, type_name: str, name: str) -> CelType:
        fields = self._environment.fields.get(type_name)
        if fields is None:
            self._report(node, f"unexpected failed resolution of '{type_name}'")
            return types.ERROR
        if name not in fields:
            self._report(node, f"undefined field '{name}'")
            return types.ERROR
        return fields[name]

    def _check_call(self, node: Call) -> None:
        if node.function == "_?._":
            field_name = node.args[1]
            assert isinstance(field_name, Literal)
            assert isinstance(field_name.value, str)
            result = self._select(node, node.args[0], field_name.value, optional=True)
            self._set(field_name, types.STRING)
            self._set(node, self.bindings.resolve(result))
            self.checked.overloads[node] = ["select_optional_field"]
            return
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            self._check_function(node, node.function)
            return
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix}.{node.function}".removeprefix(".") in FUNCTIONS:
            node.function, node.target = f"{prefix}.{node.function}".removeprefix("."), None
            self._check_function(node, node.function)
            return
        self.check(node.target)
        self._check_function(node, node.function)

    def _check_function(self, node: Call, name: str) -> None:
        overloads = FUNCTIONS.get(name if node.target else name.removeprefix("."))
        if overloads is None:
            self._undeclared(node, name)
            return
        node.function = name.removeprefix(".")
        found = self._resolve(node, overloads)
        self._set(node, found or types.ERROR)

    def _resolve(self, node: Call, overloads: tuple[Overload, ...]) -> CelType | None:
        """The type of the call, from the overloads that its arguments allow."""
        operands = [*([node.target] if node.target else []), *node.args]
        given = tuple(self._type(operand) for operand in operands)
        if node.function in ("_&&_", "_||_"):
            return self._resolve_logic(node, operands, overloads[0])
        result: CelType | None = None
        matched: list[str] = []
        for overload in overloads:
            if overload.member != (node.target is not None) or overload.id in self._environment.without:
                continue
            wanted, outcome = self._instance(overload)
            if not self.bindings.assign_all(given, wanted):
                continue
            matched.append(overload.id)
            outcome = self.bindings.resolve(outcome)
            if result is None:
                result = outcome
            elif not result.is_dynamic and outcome != result:
                result = types.DYN
        if result is None:
            shown = [self.bindings.resolve(each, free_as_dyn=True).shown() for each in given]
            target = f"{shown.pop(0)}." if node.target else ""
            signature = f"{target}({', '.join(shown)})"
            self._report(node, f"found no matching overload for '{node.function}' applied to '{signature}'")
            return None
        self.checked.overloads[node] = matched
        return result

    def _resolve_logic(self, node: Call, operands: list[Node], overload: Overload) -> CelType | None:
        fits = True
        for operand in operands:
            if not self.bindings.assign(self._type(operand), types.BOOL):
                self._mismatch(operand, types.BOOL, self._type(operand))
                fits = False
        self.checked.overloads[node] = [overload.id]
        return types.BOOL if fits else None

    def _instance(self, overload: Overload) -> tuple[tuple[CelType, ...], CelType]:
        """The overload's types with variables of their own."""
        if not overload.variables:
            return overload.arguments, overload.result
        own = Bindings({variable: self._new_variable() for variable in overload.variables})
        return tuple(own.resolve(each) for each in overload.arguments), own.resolve(overload.result)

    def _joined(self, before: CelType | None, found: CelType) -> CelType:
        """The type of elements of one list or map, with one more of them."""
        if before is None:
            return found
        if self.bindings.assign(before, found):
            return types.most_general(before, found)
        return types.DYN

    def _unwrap(self, node: Node, found: CelType) -> CelType:
        """The type of the value of an element written with a question mark."""
        value, is_optional = types.unwrapped(found)
        if not is_optional and not value.is_dynamic:
            self._mismatch(node, types.optional_of(value), value)
        return value

    def _check_list(self, node: ListLiteral) -> None:
        element: CelType | None = None
        for number, each in enumerate(node.elements):
            self.check(each)
            found = self._type(each)
            if number in node.optional:
                found = self._unwrap(each, found)
            element = self._joined(element, found)
        self._set(node, types.list_of(element or self._new_variable()))

    def _check_map(self, node: MapLiteral) -> None:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            self.check(entry.key)
            key = self._joined(key, self._type(entry.key))
            self.check(entry.value)
            found = self._type(entry.value)
            if entry.optional:
                found = self._unwrap(entry.value, found)
            value = self._joined(value, found)
        if key is None or value is None:
            key, value = self._new_variable(), self._new_variable()
        self._set(node, types.map_of(key, value))

    def _check_message(self, node: Message) -> None:
        found = self._look_up(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        result = types.ERROR
        if found.kind is not TypeKind.TYPE:
            self._report(node, f"'{found.name}' is not a type")
        elif found.parameters and found.parameters[0].kind is TypeKind.OBJECT:
            result = found.parameters[0]
        else:
            described = found.parameters[0].name if found.parameters else found.name
            self._report(node, f"'{described}' is not a message type")
        self._set(node, result)
        for each in node.fields:
            self.check(each.value)
            given = self._type(each.value)
            if each.optional:
                given = self._unwrap(each.value, given)
            wanted = self._message_field(
                each.offset, result.name if result.kind is TypeKind.OBJECT else node.name, each.name
            )
            if not self.bindings.assign(wanted, given):
                message = f"expected type of field '{each.name}' is '{wanted.shown()}' but provided type is"
                self._source.report(each.offset, f"{message} '{given.shown()}'")

    def _message_field(self, offset: int, type_name: str, name: str) -> CelType:
        return self._field(Literal(offset, None), type_name, name)

    def _check_fold(self, node: Fold) -> None:
        self.check(node.range)
        self.check(node.init)
        ranged = self.bindings.resolve(self._type(node.range))
        accumulated = self._type(node.init)
        first, second = self._loop_types(node, ranged)
        self._scopes += [{node.accumulator: accumulated}, {node.variable: first}]
        if node.second:
            self._scopes[-1][node.second] = second
        self.check(node.condition)
        self._assert(node.condition, types.BOOL)
        self.check(node.step)
        self._assert(node.step, accumulated)
        self._scopes.pop()
        self.check(node.result)
        self._scopes.pop()
        self._set(node, self.bindings.resolve(self._type(node.result)))

    def _loop_types(self, node: Fold, ranged: CelType) -> tuple[CelType, CelType]:
        match ranged.kind:
            case TypeKind.LIST:
                element = ranged.parameters[0]
                return (types.INT, element) if node.second else (element, element)
            case TypeKind.MAP:
                return ranged.parameters[0], ranged.parameters[1]
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAMETER:
                self.bindings.assign(types.DYN, ranged)
                return types.DYN, types.DYN
        message = f"expression of type '{ranged.shown()}' cannot be range of a comprehension"
        self._report(node.range, f"{message} (must be list, map, or dynamic)")
        return types.ERROR, types.ERROR

    def _assert(self, node: Node, wanted: CelType) -> None:
        if not self.bindings.assign(wanted, self._type(node)):
            self._mismatch(node, wanted, self._type(node))
