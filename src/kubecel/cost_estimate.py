"""Estimates what evaluating an expression can cost at most, before any value is known.

The API server refuses expressions whose estimate is too high. Sizes come from constants, from what the types say, and
from the limits on what variables hold: these are found by the path from a variable, such as device → attributes →
@values → model.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubecel.call_estimates import CallEstimator, Operand, SizeOfPath, standard_estimate
from kubecel.checker import Checked
from kubecel.expression import (
    ACCUMULATOR,
    Call,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Node,
    Select,
)
from kubecel.limits import is_nearly_used, on_fresh_stack
from kubecel.metering import (
    ANYTHING,
    FREE,
    LIST_COST,
    MAP_COST,
    MESSAGE_COST,
    MOST,
    ONE,
    CallEstimate,
    EntrySizes,
    Span,
    fixed,
)
from kubecel.types import CelType, TypeKind


def estimate_cost(checked: Checked, size_of_path: SizeOfPath) -> Span:
    """The least and the most that an evaluation can cost."""
    return _Coster(checked, size_of_path).cost(checked.node)


@dataclass
class _Variable:
    """A name that a macro binds: where its value comes from and how large it can be."""

    path: tuple[str, ...]
    size: Span | None
    entries: EntrySizes | None


class _Coster:
    """The sizes found so far for the nodes of one expression."""

    def __init__(self, checked: Checked, size_of_path: SizeOfPath) -> None:
        self._checked = checked
        self._size_of_path = size_of_path
        self._calls = CallEstimator(size_of_path)
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._sizes: dict[Node, Span] = {}
        self._entries: dict[Node, EntrySizes] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, node: Node) -> Span:
        if is_nearly_used():
            return on_fresh_stack(self.cost, node)
        match node:
            case Ident():
                return self._ident(node, node.name)
            case Select():
                if node in self._checked.names:
                    return self._ident(node, self._checked.names[node])
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Message():
                return self._sum(each.value for each in node.fields).plus(fixed(MESSAGE_COST))
            case Fold():
                return self._bind(node) if node.binds and node.accumulator != "__result__" else self._fold(node)
        return FREE

    def _sum(self, nodes: object) -> Span:
        total = FREE
        for node in nodes:  # type: ignore[attr-defined]
            total = total.plus(self.cost(node))
        return total

    def _type(self, node: Node) -> CelType:
        return self._checked.types[node]

    def _variable(self, name: str) -> _Variable | None:
        bound = self._variables.get(name)
        return bound[-1] if bound else None

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _path(self, node: Node) -> tuple[str, ...]:
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.path if variable else self._paths.get(node, ())

    def _ident(self, node: Node, name: str) -> Span:
        variable = self._variable(name)
        self._paths[node] = variable.path if variable else (name.removeprefix("."),)
        return ONE

    def _select(self, node: Select) -> Span:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if self._type(node.operand).kind in (TypeKind.MAP, TypeKind.OBJECT, TypeKind.PARAMETER):
            cost = cost.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return cost

    def _size(self, node: Node) -> Span | None:
        if node in self._sizes:
            return self._sizes[node]
        written = _written_size(node)
        if written is not None:
            return written
        path = self._path(node)
        found = self._size_of_path(path) if path else None
        if found is not None:
            self._sizes[node] = found
            return found
        if _is_scalar(self._type(node)):
            return ONE
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.size if variable else None

    def _entry_sizes(self, node: Node) -> EntrySizes | None:
        if node in self._entries:
            return self._entries[node]
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.entries if variable else None

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return Operand(path, self._type(node), node, self._size(node))

    def _call(self, node: Call) -> Span:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._copy_sizes(node, node.args[0])
            return ONE.plus(cost)
        costs = []
        operands = []
        for arg in node.args:
            costs.append(self.cost(arg))
            operands.append(self._operand(arg))
        overloads = self._checked.overloads.get(node, [])
        if not overloads:
            return FREE
        total, target = FREE, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        cost = Span(MOST, 0)
        size: Span | None = None
        for overload in overloads:
            found = self._overload(node, overload, target, operands, costs)
            cost = cost.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload in ("index_list", "index_map"):
                entries = self._entry_sizes(node.args[0])
                size = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[node] = (*self._path(node.args[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node] = size
        return total.plus(cost)

    def _overload(
        self, node: Call, overload: str, target: Operand | None, args: list[Operand], costs: list[Span]
    ) -> CallEstimate:
        arguments = FREE
        for cost in costs:
            arguments = arguments.plus(cost)
        special = self._calls.estimate(node.function, overload, target, args)
        if special is not None:
            return CallEstimate(special.cost.plus(arguments), special.size)
        match overload:
            case "logical_or" | "logical_and":
                return CallEstimate(Span(costs[0].least, costs[0].plus(costs[1]).most))
            case "conditional":
                entries = self._united(node.args[1], node.args[2])
                if entries is not None:
                    self._entries[node] = entries
                size = _or_anything(args[1].size).union(_or_anything(args[2].size))
                return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)
            case "add_string" | "add_bytes" | "add_list":
                size = _or_anything(args[0].size).plus(_or_anything(args[1].size))
                entries = self._united(node.args[0], node.args[1])
                if entries is not None:
                    self._entries[node] = entries
                cost = ONE if overload == "add_list" else size.scaled(0.1)
                return CallEstimate(cost.plus(arguments), size)
        return standard_estimate(overload, target, args, lambda each: _or_anything(each.size), arguments)

    def _united(self, one: Node, other: Node) -> EntrySizes | None:
        first, second = self._entry_sizes(one), self._entry_sizes(other)
        return first.union(second) if first and second else None

    def _copy_sizes(self, node: Node, source: Node) -> None:
        size, entries = self._size(source), self._entry_sizes(source)
        if size is not None:
            self._sizes[node] = size
        if entries is not None:
            self._entries[node] = entries

    def _list(self, node: ListLiteral) -> Span:
        total = FREE
        element = Span(MOST if node.elements else 0, 0)
        for each in node.elements:
            total = total.plus(self.cost(each))
            element = element.union(_or_anything(self._size(each)))
        self._entries[node] = EntrySizes(True, ONE, element)
        return total.plus(fixed(LIST_COST))

    def _map(self, node: MapLiteral) -> Span:
        total = FREE
        key = value = Span(MOST if node.entries else 0, 0)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(_or_anything(self._size(entry.key)))
            value = value.union(_or_anything(self._size(entry.value)))
        self._entries[node] = EntrySizes(False, key, value)
        return total.plus(fixed(MAP_COST))

    def _push_accumulator(self, node: Fold) -> None:
        path, size = self._path(node.init), self._size(node.init)
        self._push(node.accumulator, _Variable(path, size, self._entry_sizes(node.init)))

    def _push_loop_variables(self, node: Fold) -> None:
        entries, path = self._entry_sizes(node.range), self._path(node.range)
        is_list = entries.is_list if entries else self._type(node.range).kind is TypeKind.LIST
        key, value = (entries.key, entries.value) if entries else (None, None)
        if node.second:
            self._push(node.variable, _Variable((*path, "@indices" if is_list else "@keys"), key, None))
            self._push(node.second, _Variable((*path, "@items" if is_list else "@values"), value, None))
        else:
            step, size = ("@items", value) if is_list else ("@keys", key)
            self._push(node.variable, _Variable((*path, step), size, None))

    def _fold(self, node: Fold) -> Span:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push_accumulator(node)
        self._push_loop_variables(node)
        each = self.cost(node.condition)
        each = self.cost(node.step).plus(each)
        for name in (node.variable, node.second):
            if name:
                self._variables[name].pop()
        total = total.plus(self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = _or_anything(self._size(node.range))
        if isinstance(node.init, Literal):
            size = self._size(node.init)
            if size is not None:
                self._sizes[node] = size
        elif isinstance(node.init, (ListLiteral, MapLiteral)):
            self._sizes[node] = count
            entries = self._entry_sizes(node.step)
            if entries is not None:
                self._entries[node] = entries
        return total.plus(count.times(each))

    def _bind(self, node: Fold) -> Span:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push_accumulator(node)
        total = total.plus(self.cost(node.result))
        self._variables[node.accumulator].pop()
        self._copy_sizes(node, node.result)
        return total


def _or_anything(size: Span | None) -> Span:
    return ANYTHING if size is None else size


def _written_size(node: Node) -> Span | None:
    """The size of what is written out in the expression."""
    match node:
        case Literal():
            return fixed(len(node.value)) if isinstance(node.value, (str, bytes)) else ONE
        case ListLiteral():
            return fixed(len(node.elements))
        case MapLiteral():
            return fixed(len(node.entries))
    return None


def _is_scalar(found: CelType) -> bool:
    while found.is_optional:
        found = found.parameters[0]
    return found.kind is TypeKind.TIME or (found.kind is TypeKind.PRIMITIVE and found.name not in ("string", "bytes"))
