"""Compiles a checked expression into nested functions that evaluate it.

Variables live in the slots of a list, one for each name that the expression binds, so looking one up is an index. The
first slot is the meter. Where no evaluation can cost more than the limit, the functions do without counting, and where
there are no loops either, without a meter. Constants are computed beforehand: one that has no value makes the whole
program fail, as in cel-go.

Where functions nest deep, some of them look whether to go on with a fresh stack. How deep they nest is counted from the
innermost ones on, so that ordinary expressions have none of these and do not pay for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubecel import operations
from kubecel.calls import CONVERSIONS, bound_call
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
from kubecel.folding import Fetch, bind, fold
from kubecel.library.amounts import is_quantity, read_quantity
from kubecel.limits import is_nearly_used, on_fresh_stack
from kubecel.metering import LIST_COST, MAP_COST, MESSAGE_COST, CancelledError, Meter, call_cost
from kubecel.operations import at_key, optional_at_key, present_at_key
from kubecel.re2 import PatternError, compile_pattern
from kubecel.types import TypeKind
from kubecel.values import CelError, MapValue, Optional, Uint, no_overload

Frame = list[Any]
Evaluate = Callable[[Frame], object]
_UNKNOWN: Final = object()
_SIMPLE: Final = (bool, int, Uint, float, str)
_ATTRIBUTES: Final = frozenset({"_[_]", "_[?_]", "_?._", "_?_:_"})
_SORTS: Final = frozenset({"sort", "distinct", "@sortByAssociatedKeys"})
_TOO_DEEP: Final = "internal error: values nest too deep"
_FRAMES: Final = 4
"""The most calls within calls that evaluating one node takes, without those of the nodes below it."""
_LOOKS_EVERY: Final = 200
"""After so many calls within calls there is one that looks whether the stack is nearly used."""
_UNHASHABLE: Final = {"SemverValue": "cel.Semver", "bytes": "types.Bytes"}


class ProgramError(Exception):
    """An expression that cannot be evaluated for any value of its variables."""


class Program:
    """A compiled expression."""

    def __init__(self, checked: Checked, variables: list[str], limit: int, *, metered: bool) -> None:
        compiler = _Compiler(checked, variables, metered=metered)
        self._evaluate = compiler.compiled(checked.node)
        self._slots = compiler.slots
        self._limit = limit
        self.is_metered = metered or compiler.loops
        """Whether it has to count: what it costs, or the rounds of its loops."""

    def run(self, values: list[object], meter: Meter | None = None) -> object:
        """The value for values of the variables; CelError where there is none, CancelledError beyond the limit."""
        if meter is None and self.is_metered:
            meter = Meter(self._limit)
        try:
            return self._evaluate([meter, *values, *[None] * (self._slots - len(values) - 1)])
        except RecursionError:
            return on_fresh_stack(self._run_again, values, meter)

    def _run_again(self, values: list[object], meter: Meter | None) -> object:
        """The value where the caller had too little of its stack left."""
        if meter is not None:
            meter.start_again()
        try:
            return self._evaluate([meter, *values, *[None] * (self._slots - len(values) - 1)])
        except RecursionError:
            raise CancelledError(_TOO_DEEP) from None

    def cost(self, values: list[object]) -> tuple[object, int]:
        """The value, or the error, and what it cost."""
        meter = Meter(self._limit)
        outcome: object
        try:
            outcome = self.run(values, meter)
        except (CelError, CancelledError) as error:
            outcome = error
        return outcome, meter.cost


class _Compiler:
    """Turns nodes into functions; knows the slots of the names in scope."""

    def __init__(self, checked: Checked, variables: list[str], *, metered: bool) -> None:
        self._checked = checked
        self._metered = metered
        self._scope: dict[str, Fetch] = {
            name: Fetch(number + 1, given=metered) for number, name in enumerate(variables)
        }
        self.slots = len(variables) + 1
        self.loops = False
        self._constants: dict[Node, object] = {}
        self._height = 0
        """How many calls nest in what was compiled so far of the node that is being compiled."""

    def compiled(self, node: Node) -> Evaluate:
        if is_nearly_used():
            return on_fresh_stack(self.compiled, node)
        around, self._height = self._height, 0
        evaluate = self._compiled(node)
        height = self._height + _FRAMES
        if height > _LOOKS_EVERY:
            evaluate, height = _looking_at_the_stack(evaluate), _FRAMES
        self._height = max(around, height)
        return evaluate

    def _compiled(self, node: Node) -> Evaluate:
        constant = self._constant(node)
        if constant is not _UNKNOWN:
            return lambda frame: constant
        match node:
            case Ident():
                variable = self._scope[self._checked.names[node]]
                self._height = variable.height
                return self._paid(variable.reader(), 1)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._paid(self._list(node), LIST_COST)
            case MapLiteral():
                return self._paid(self._map(node), MAP_COST)
            case Fold():
                return self._fold(node)
            case Message():
                return self._paid(self._message(node), MESSAGE_COST)
        raise ProgramError(f"unsupported expr: {type(node).__name__}")

    def _paid(self, evaluate: Evaluate, cost: int) -> Evaluate:
        """The function, counting a cost before each evaluation."""
        if not self._metered or not cost:
            return evaluate

        def counted(frame: Frame) -> object:
            frame[0].spend(cost)
            return evaluate(frame)

        return counted

    def _constant(self, node: Node) -> object:
        """The value of a node that has the same one always."""
        if node not in self._constants:
            work = self._computed
            self._constants[node] = on_fresh_stack(work, node) if is_nearly_used() else work(node)
        return self._constants[node]

    def _computed(self, node: Node) -> object:
        match node:
            case Literal():
                return node.value
            case Ident() | Select() if node in self._checked.names:
                found = self._checked.types[node]
                return found.parameters[0] if found.kind is TypeKind.TYPE and found.parameters else _UNKNOWN
            case ListLiteral() if not node.optional:
                values = [self._constant(each) for each in node.elements]
                return _UNKNOWN if any(value is _UNKNOWN for value in values) else values
            case MapLiteral():
                return self._constant_map(node)
            case Call() if node.function in CONVERSIONS and len(node.args) == 1 and node.target is None:
                value = self._constant(node.args[0])
                if value is _UNKNOWN:
                    return _UNKNOWN
                try:
                    return bound_call(node.function, self._checked.overloads[node])(value)
                except CelError as error:
                    raise ProgramError(str(error)) from None
            case Call() if self._checked.overloads.get(node) == ["in_list"] and self._constant(node.args[1]) == []:
                self.compiled(node.args[0])  # what is wrong with it is found, though its value does not matter
                return False
        return _UNKNOWN

    def _constant_map(self, node: MapLiteral) -> object:
        found = MapValue()
        for entry in node.entries:
            key, value = self._constant(entry.key), self._constant(entry.value)
            if key is _UNKNOWN or value is _UNKNOWN or entry.optional:
                return _UNKNOWN
            found.put(key, value)
        return found

    def _is_attribute(self, node: Node) -> bool:
        """Whether cel-go evaluates a node together with the fields that are taken of it, at one price."""
        return isinstance(node, (Ident, Select)) or (isinstance(node, Call) and node.function in _ATTRIBUTES)

    def _select(self, node: Select) -> Evaluate:
        operand, name = self.compiled(node.operand), node.field
        extra = 0 if self._is_attribute(node.operand) else 1
        if node.test:
            return self._paid(lambda frame: present_at_key(operand(frame), name), extra)
        return self._paid(lambda frame: at_key(operand(frame), name), 1 + extra)

    def _call(self, node: Call) -> Evaluate:
        match node.function:
            case "_&&_" | "_||_":
                return _logic(*map(self.compiled, node.args), decisive=node.function == "_||_")
            case "_?_:_":
                return self._conditional(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node)
            case "@not_strictly_false":
                return self._paid(_not_strictly_false(self.compiled(node.args[0])), 1)
            case "or" | "orValue":
                return self._first_present(node)
            case "@in" if self._checked.overloads[node] == ["in_list"]:
                elements = self._constant(node.args[1])
                if isinstance(elements, list) and all(type(each) in _SIMPLE for each in elements):
                    return _membership(self.compiled(node.args[0]), elements)
            case "_+_" if isinstance(node.args[0], Ident) and node.args[0].name == ACCUMULATOR:
                if self._scope[ACCUMULATOR].gathers:
                    return self._paid(_appended(*map(self.compiled, node.args)), 1)
            case "matches" | "find" | "findAll":
                return self._pattern_call(node)
        return self._plain_call(node)

    def _plain_call(self, node: Call) -> Evaluate:
        operands = [*([node.target] if node.target else []), *node.args]
        args = [self.compiled(each) for each in operands]
        overloads = self._checked.overloads[node]
        if overloads == ["string_to_quantity"] and not self._metered:
            amount = self._constant(node.args[0])
            if isinstance(amount, str) and is_quantity(amount):
                found = read_quantity(amount)
                return lambda frame: found
        if len(overloads) == 1 and node.function in _SORTS:
            args = [_broken_by_errors(arg) for arg in args]
        return self._applied(node, bound_call(node.function, overloads), args)

    def _applied(self, node: Call, call: Callable[..., object], args: list[Evaluate]) -> Evaluate:
        overloads = self._checked.overloads[node]
        if self._metered:
            return _counted_call(call, args, node.function, overloads[0] if len(overloads) == 1 else "")
        if len(args) == 1:
            only = args[0]
            return lambda frame: call(only(frame))
        if len(args) == 2:
            one, other = args
            return lambda frame: call(one(frame), other(frame))
        return lambda frame: call(*[arg(frame) for arg in args])

    def _conditional(self, node: Call) -> Evaluate:
        condition, first, second = map(self.compiled, node.args)
        refund = [-1 if self._is_attribute(each) and isinstance(each, (Ident, Select)) else 0 for each in node.args[1:]]
        first, second = self._paid(first, refund[0]), self._paid(second, refund[1])

        def chosen(frame: Frame) -> object:
            decided = condition(frame)
            if decided is True:
                return first(frame)
            if decided is False:
                return second(frame)
            raise no_overload()

        return chosen

    def _index(self, node: Call) -> Evaluate:
        operand, key = map(self.compiled, node.args)
        look_up = at_key if node.function == "_[_]" else optional_at_key
        extra = 0 if self._is_attribute(node.args[0]) else 1
        resolved = isinstance(node.args[1], (Ident, Select)) and self._constant(node.args[1]) is _UNKNOWN
        return self._paid(lambda frame: look_up(operand(frame), key(frame)), 1 + extra - resolved)

    def _first_present(self, node: Call) -> Evaluate:
        assert node.target is not None
        one, other, unwrap = self.compiled(node.target), self.compiled(node.args[0]), node.function == "orValue"

        def present(frame: Frame) -> object:
            found = one(frame)
            if not isinstance(found, Optional):
                return found
            if not found.present:
                return other(frame)
            return found.value if unwrap else found

        return present

    def _pattern_call(self, node: Call) -> Evaluate:
        """A constant pattern is compiled beforehand; a text of another type is then refused in fewer words."""
        operands = [*([node.target] if node.target else []), *node.args]
        pattern = self._constant(operands[1])
        if not isinstance(pattern, str):
            return self._plain_call(node)
        args = [self.compiled(each) for each in operands]
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise ProgramError(f"error parsing regexp: {error}") from None
        call = bound_call(node.function, self._checked.overloads[node])

        def of_text(text: object, *rest: object) -> object:
            if not isinstance(text, str):
                raise no_overload()
            return call(text, *rest)

        return self._applied(node, of_text, args)

    def _list(self, node: ListLiteral) -> Evaluate:
        parts = [(self.compiled(each), number in node.optional) for number, each in enumerate(node.elements)]

        def built(frame: Frame) -> object:
            found = []
            for part, optional in parts:
                value = part(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelError(f"cannot initialize optional list element from non-optional value {value}")
                    if not value.present:
                        continue
                    value = value.value
                found.append(value)
            return found

        return built

    def _map(self, node: MapLiteral) -> Evaluate:
        parts = [(self.compiled(each.key), self.compiled(each.value), each.optional) for each in node.entries]

        def built(frame: Frame) -> object:
            found = MapValue()
            for part, of_value, optional in parts:
                key, value = part(frame), of_value(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                    if not value.present:
                        found.remove(key)
                        continue
                    value = value.value
                found.put(key, value)
            return found

        return built

    def _message(self, node: Message) -> Evaluate:
        """No type of an environment can be made by an expression: its fields are evaluated, and then it is unknown."""
        parts = [self.compiled(each.value) for each in node.fields]
        name = self._checked.types[node].name

        def refused(frame: Frame) -> object:
            for part in parts:
                part(frame)
            raise CelError(f"unknown type '{name}'")

        return refused

    def _fold(self, node: Fold) -> Evaluate:
        around, self._height = self._height, 0
        init = self.compiled(node.init)
        height, self._height = self._height, max(around, self._height)
        ranged = self.compiled(node.range)
        outer = dict(self._scope)
        accumulator = Fetch(self._new_slot(), lazy=init, height=height, gathers=_is_empty(node.init))
        self._scope[node.accumulator] = accumulator
        if node.binds:
            result = self.compiled(node.result)
            self._scope = outer
            return self._paid(bind(accumulator, result), 0)
        self.loops = True
        first, second = self._new_slot(), self._new_slot()
        self._scope[node.variable] = Fetch(first)
        if node.second:
            self._scope[node.second] = Fetch(second)
        condition, step = self.compiled(node.condition), self.compiled(node.step)
        self._scope = outer | {node.accumulator: accumulator}
        result = self.compiled(node.result)
        self._scope = outer
        endless = isinstance(node.condition, Literal) and node.condition.value is True
        slots = (first, second if node.second else 0)
        return fold(accumulator, ranged, slots, None if endless else condition, step, result)

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1


def _looking_at_the_stack(evaluate: Evaluate) -> Evaluate:
    def looked(frame: Frame) -> object:
        return on_fresh_stack(evaluate, frame) if is_nearly_used() else evaluate(frame)

    return looked


def _is_empty(node: Node) -> bool:
    return (isinstance(node, ListLiteral) and not node.elements) or (isinstance(node, MapLiteral) and not node.entries)


def _logic(one: Evaluate, other: Evaluate, *, decisive: bool) -> Evaluate:
    """`||` where true decides, `&&` where false does; an error counts only where the other side does not decide."""

    def decided(frame: Frame) -> object:
        error: CelError | None = None
        for side in (one, other):
            try:
                value = side(frame)
            except CelError as raised:
                error = error or raised
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return decided


def _not_strictly_false(value: Evaluate) -> Evaluate:
    def answer(frame: Frame) -> object:
        try:
            found = value(frame)
        except CelError:
            return True
        return found if isinstance(found, bool) else True

    return answer


def _membership(value: Evaluate, elements: list[object]) -> Evaluate:
    """Whether a value is one of simple constants."""

    def answer(frame: Frame) -> object:
        found = value(frame)
        if type(found).__name__ in _UNHASHABLE:
            kind = _UNHASHABLE[type(found).__name__]
            raise CancelledError(f"internal error: runtime error: hash of unhashable type {kind}")
        return type(found) in _SIMPLE and operations.contains(elements, found)

    return answer


def _broken_by_errors(value: Evaluate) -> Evaluate:
    """The list that a sort compares. An error in its place breaks cel-go while it counts the cost."""

    def listed(frame: Frame) -> object:
        try:
            return value(frame)
        except CelError:
            message = "interface conversion: *types.Err is not traits.Lister: missing method Add"
            raise CancelledError(f"internal error: {message}") from None

    return listed


def _appended(gathered: Evaluate, more: Evaluate) -> Evaluate:
    """A list that a macro gathers, with elements added in place."""

    def longer(frame: Frame) -> object:
        elements, added = gathered(frame), more(frame)
        if not isinstance(elements, list) or not isinstance(added, list):
            raise no_overload()
        elements += added
        return elements

    return longer


def _counted_call(call: Callable[..., object], args: list[Evaluate], function: str, overload: str) -> Evaluate:
    def counted(frame: Frame) -> object:
        values = [arg(frame) for arg in args]
        result = call(*values)
        if function == "_+_" and isinstance(result, list):
            frame[0].copy(len(result))
        frame[0].spend(call_cost(function, overload, values, result))
        return result

    return counted
