"""Estimates what calls of functions cost, from the sizes that their arguments can have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kubecel import types
from kubecel.expression import Literal, Node
from kubecel.metering import (
    ANYTHING,
    LIST_COST,
    MOST,
    ONE,
    PER_CHARACTER,
    PER_PATTERN_CHARACTER,
    CallEstimate,
    Span,
    fixed,
)
from kubecel.strconv import words
from kubecel.types import CelType, TypeKind

_FIXED: Final = frozenset(
    words(
        "serviceAccount path group resource subresource namespace name allowed reason error errored masked "
        "prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast sign "
        "format.named "
        "asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme "
        "getHostname getHost getPort getEscapedPath getQuery"
    )
)
_AUTHORIZATION: Final = fixed(350_000)
_ADDRESS: Final = Span(4, 16)
_LONGEST_PATTERN: Final = 128
_LONGEST_FORMAT: Final = 64
_CHEAP_TYPES: Final = frozenset(
    words("net.IP net.CIDR kubernetes.Quantity kubernetes.Semver")
    + tuple(
        f"kubernetes.authorization.{name}" for name in words("Authorizer PathCheck GroupCheck ResourceCheck Decision")
    )
)


@dataclass(frozen=True)
class Operand:
    """An argument of a call: where it comes from, its type, and its size where the expression tells it."""

    path: tuple[str, ...]
    type: CelType
    node: Node | None
    size: Span | None


SizeOfPath = Callable[[tuple[str, ...]], "Span | None"]


def _literal_int(operand: Operand) -> int | None:
    node = operand.node
    if isinstance(node, Literal) and type(node.value) is int:
        return max(0, node.value)
    return None


class CallEstimator:
    """Knows what calls cost, given the sizes of what variables hold."""

    def __init__(self, size_of_path: SizeOfPath) -> None:
        self._size_of_path = size_of_path

    def size(self, operand: Operand) -> Span:
        found = operand.size or (self._size_of_path(operand.path) if operand.path else None)
        return found or ANYTHING

    def estimate(
        self, function: str, overload: str, target: Operand | None, args: Sequence[Operand]
    ) -> CallEstimate | None:
        """The estimate of Kubernetes' libraries; None where cel-go's own holds."""
        found = self._of_lists(overload, target, args)
        if found is not None:
            return found
        if function in _FIXED or overload == "cidr_ip":
            return CallEstimate(ONE)
        if function == "check":
            return CallEstimate(_AUTHORIZATION)
        if target is not None:
            found = self._of_target(function, target, args)
        if found is None and args:
            found = self._of_argument(function, overload, args)
        return found

    def _of_lists(self, overload: str, target: Operand | None, args: Sequence[Operand]) -> CallEstimate | None:
        if overload.startswith("list_sets_"):
            times = 2 if "equivalent" in overload else 1
            return CallEstimate(self.size(args[0]).times(self.size(args[1])).scaled(times).plus(ONE))
        if overload == "lists_range":
            count = _literal_int(args[0])
            return _new_list(1, fixed(MOST if count is None else count))
        if target is None:
            return None
        size = self.size(target)
        match overload:
            case "list_slice":
                start, end = _literal_int(args[0]), _literal_int(args[1])
                count = (size.most if end is None else end) - (start or 0)
                return _new_list(1, fixed(count % (MOST + 1)))
            case "list_reverse":
                return _new_list(1, size)
            case "list_flatten" | "list_flatten_int":
                depth = _literal_int(args[0]) if args else 1
                return _new_list(float(MOST if depth is None else depth), size)
            case "list_distinct":
                return _new_list(2, size.times(size))
        for ending, sorted_by in (("_sort", target), ("_sortByAssociatedKeys", args[0] if args else target)):
            if overload.endswith(ending):
                factor = 2 + (PER_CHARACTER if overload.startswith(("list_string_", "list_bytes_")) else 0)
                size = self.size(sorted_by)
                return _new_list(factor, size.times(size))
        return None

    def _of_target(self, function: str, target: Operand, args: Sequence[Operand]) -> CallEstimate | None:
        size = self.size(target)
        match function:
            case "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf":
                return self._traversal(target)
            case "lowerAscii" | "upperAscii" | "substring" | "trim":
                return CallEstimate(size.scaled(PER_CHARACTER), size)
            case "replace" if len(args) >= 2:
                return CallEstimate(size.scaled(2 * PER_CHARACTER), _replaced(size, *map(self.size, args[:2])))
            case "split":
                most = size.most
                if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
                    most = args[1].node.value % (MOST + 1)
                return CallEstimate(size.scaled(2 * PER_CHARACTER), Span(0, most))
            case "join":
                joined = self._joined(target, args)
                return CallEstimate(joined.scaled(PER_CHARACTER), joined)
            case "find" | "findAll" if args:
                cost = size.plus(ONE).scaled(PER_CHARACTER)
                return CallEstimate(cost.times(self.size(args[0]).scaled(PER_PATTERN_CHARACTER)), Span(0, size.most))
            case "fieldSelector" | "labelSelector" if len(args) == 1:
                length = self.size(args[0])
                return CallEstimate(
                    fixed(LIST_COST).plus(length.scaled(PER_CHARACTER)).plus(length.scaled(0.5).scaled(50.0))
                )
        return None

    def _of_argument(self, function: str, overload: str, args: Sequence[Operand]) -> CallEstimate | None:
        size = self.size(args[0])
        match function:
            case "url":
                return CallEstimate(size.scaled(PER_CHARACTER), size)
            case "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver":
                return CallEstimate(size.scaled(PER_CHARACTER))
            case "ip.isCanonical":
                return CallEstimate(size.scaled(2 * PER_CHARACTER))
            case "containsIP" | "containsCIDR":
                cost = _ADDRESS.plus(_ADDRESS).scaled(PER_CHARACTER)
                if function == "containsCIDR":
                    cost = cost.plus(_ADDRESS.scaled(PER_CHARACTER)).plus(ONE)
                if overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
                    cost = cost.plus(size.scaled(PER_CHARACTER))
                return CallEstimate(cost)
            case "validate":
                return CallEstimate(size.scaled(PER_CHARACTER).scaled(_LONGEST_PATTERN * PER_PATTERN_CHARACTER))
            case "_==_" if len(args) == 2:
                return self._equality(args[0], args[1])
        return None

    def _equality(self, one: Operand, other: Operand) -> CallEstimate | None:
        if one.type.name != other.type.name or one.type.kind not in (TypeKind.OPAQUE, TypeKind.OBJECT):
            return None
        if one.type.name in _CHEAP_TYPES:
            return CallEstimate(ONE)
        if one.type.name == "kubernetes.NamedFormat":
            return CallEstimate(Span(1, _LONGEST_FORMAT).scaled(PER_CHARACTER))
        if one.type.name == "kubernetes.URL":
            most = other.size.most if other.size else 1
            return CallEstimate(Span(1, most).scaled(PER_CHARACTER))
        return None

    def _element(self, elements: Operand) -> Operand | None:
        if not elements.type.parameters:
            return None
        path = (*elements.path, "@items") if elements.path else ()
        return Operand(path, elements.type.parameters[0], None, None)

    def _traversal(self, target: Operand) -> CallEstimate:
        element = self._element(target)
        if element is None:
            return CallEstimate(self.size(target).scaled(PER_CHARACTER))
        cost = ONE
        if element.type in (types.STRING, types.BYTES):
            cost = cost.plus(self.size(element).scaled(PER_CHARACTER))
        return CallEstimate(self.size(target).times(cost))

    def _joined(self, target: Operand, args: Sequence[Operand]) -> Span:
        listed = self.size(target)
        element = self._element(target)
        size = listed.times(self.size(element)) if element else Span(0, 0)
        if args:
            separators = Span(max(0, listed.least - 1), max(0, listed.most - 1))
            size = size.plus(self.size(args[0]).times(separators))
        return size


def _new_list(factor: float, size: Span) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(ONE).plus(fixed(LIST_COST)), size)


def _replaced(size: Span, old: Span, new: Span) -> Span:
    """The size of a text after replacing parts of it."""
    if old.least == 0:
        most = min(MOST, (min(MOST, size.most + 1)) * new.most + size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = min(MOST, math.ceil(float(size.most) / float(old.least)) * new.most)
    if old.most == 0:
        least = min(MOST, (size.least + 1) * new.least + size.least)
    elif old.most <= new.least:
        least = size.least
    else:
        least = math.ceil(float(size.least) / float(old.most)) * new.least
    return Span(least, most)


def standard_estimate(
    overload: str,
    target: Operand | None,
    args: Sequence[Operand],
    sizes: Callable[[Operand], Span],
    arguments: Span,
) -> CallEstimate:
    """cel-go's own estimate; `arguments` is what evaluating the arguments costs."""
    match overload:
        case "string_format" if target is not None:
            return CallEstimate(sizes(target).scaled(PER_CHARACTER).plus(arguments))
        case "string_to_bytes" | "bytes_to_string" | "strings_quote" if len(args) == 1:
            size = sizes(args[0])
            result = {
                "string_to_bytes": Span(size.least, size.most * 4 % (MOST + 1)),
                "bytes_to_string": Span(size.least // 4, size.most),
                "strings_quote": Span((size.least + 2) % (MOST + 1), (size.most * 2 + 2) % (MOST + 1)),
            }[overload]
            return CallEstimate(size.scaled(PER_CHARACTER).plus(arguments), result)
        case "starts_with_string" | "ends_with_string" if len(args) == 1:
            return CallEstimate(sizes(args[0]).scaled(PER_CHARACTER).plus(arguments))
        case "in_list" if len(args) == 2:
            return CallEstimate(sizes(args[1]).scaled(1).plus(arguments))
        case "matches" | "matches_string" if len(operands := [*([target] if target else []), *args]) == 2:
            text, pattern = map(sizes, operands)
            cost = text.plus(ONE).scaled(PER_CHARACTER)
            return CallEstimate(cost.times(pattern.scaled(PER_PATTERN_CHARACTER)).plus(arguments))
        case "contains_string" if target is not None and len(args) == 1:
            cost = sizes(target).scaled(PER_CHARACTER).times(sizes(args[0]).scaled(PER_CHARACTER))
            return CallEstimate(cost.plus(arguments))
        case "equals" | "not_equals":
            return _comparison(sizes(args[0]), sizes(args[1]), arguments)
    if overload.startswith(("less_", "greater_")) and overload.endswith(("_string", "_bytes")):
        return _comparison(sizes(args[0]), sizes(args[1]), arguments)
    return CallEstimate(ONE.plus(arguments))


def _comparison(one: Span, other: Span, arguments: Span) -> CallEstimate:
    most = min(one.most, other.most)
    return CallEstimate(Span(int(most > 0), most).scaled(PER_CHARACTER).plus(arguments))
