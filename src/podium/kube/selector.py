"""Selectors made ready to match: label selectors and node selectors, checked once and compared many times.

A label selector that is absent matches nothing; one that is present but says nothing matches everything and is
`empty`. NotIn and DoesNotExist also match where the key is absent. Node selectors add Gt and Lt on 64-bit integers,
OR their terms, and may ask for the node's name; a term that says nothing, or that is malformed, matches no node.

Compiled selectors are hashable values with their requirements in one canonical order, so equal selectors of many pods
can share one evaluation, and their `requirements` can be evaluated on columns.

Also parses label selectors as they are written for kubectl and in URLs: `app=web,tier in (a, b),!old`.

The grammar and the complaints are the API's.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kubecel.names import child, invalid, joined, label_value_errors, not_supported, parse_int64, qualified_name_errors
from podium.kube.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from podium.kube.meta import LabelSelector

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"

LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
FIELD_OPERATORS: Final = (IN, NOT_IN)
NODE_NAME_FIELD: Final = "metadata.name"
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^\s=!(),<>]+")
"""A word; what stands between tokens is white space, which no alternative begins with, so that it is read once."""
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_COMPARISONS: Final = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT, "gt": GT, "lt": LT}
_END: Final = ""


class SelectorError(ValueError):
    """A selector that the API would not accept."""


class Requirement(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """One condition on one key."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                number, bound = parse_int64(value or ""), parse_int64(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator == GT else number < bound
        return False


class Selector(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Requirements that must all hold; `nothing` marks the selector of an absent field, which no labels match."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether this matches everything because it asks for nothing."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 (a loop is twice as fast as all() here)
            if not requirement.matches(labels):
                return False
        return True

    def and_also(self, requirements: Iterable[Requirement]) -> "Selector":
        """This selector narrowed by more requirements; nothing stays nothing."""
        return self if self.nothing else Selector(_canonical((*self.requirements, *requirements)))


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


class NodeTerm(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """One term of a node selector: labels and fields must both match; with `errors` it matches no node."""

    requirements: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.errors:
            return False
        if not all(requirement.matches(labels) for requirement in self.requirements):
            return False
        return not name or all(_field_matches(requirement, name) for requirement in self.fields)


class NodeTerms(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Terms of which one must match. A selector without usable terms matches no node."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def error(self) -> str:
        """What is malformed in the terms, "" when nothing is."""
        errors = [error for term in self.terms for error in term.errors]
        return joined(errors) if errors else ""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


class PreferredTerm(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A term that adds its weight to the score of the nodes it matches."""

    weight: int
    term: NodeTerm


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of a plain map (a pod's nodeSelector, a Service's selector), which is taken as it is, unchecked."""
    return Selector(_canonical(Requirement(key, IN, (value,)) for key, value in labels.items()))


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """The label selector ready to match; raises SelectorError for the first requirement that is malformed."""
    if selector is None:
        return NOTHING
    requirements = []
    for key, value in sorted(selector.match_labels.items()):
        requirements.append(_checked(_exact_requirement(key, value)))
    for expression in selector.match_expressions:
        if expression.operator not in LABEL_OPERATORS:
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(_checked(_requirement(expression.key, expression.operator, expression.values, "")))
    return Selector(_canonical(requirements)) if requirements else EVERYTHING


@lru_cache(maxsize=1 << 14)
def compile_node_selector(selector: NodeSelector, path: str = "") -> NodeTerms:
    """The node selector ready to match. Malformed terms stay, with their errors, and match nothing."""
    terms = []
    for index, term in enumerate(selector.node_selector_terms):
        if term.match_expressions or term.match_fields:
            terms.append(_term(term, f"{child(path, 'nodeSelectorTerms')}[{index}]"))
    return NodeTerms(tuple(terms))


def compile_strict_node_selector(selector: NodeSelector, path: str = "") -> NodeTerms:
    """As compile_node_selector, but raises SelectorError with all that is malformed."""
    compiled = compile_node_selector(selector, path)
    if compiled.error:
        raise SelectorError(compiled.error)
    return compiled


@lru_cache(maxsize=1 << 14)
def compile_preferred_terms(terms: tuple[PreferredSchedulingTerm, ...], path: str = "") -> tuple[PreferredTerm, ...]:
    """The preferred terms that count: those with weight 0 or without conditions do not, and are not checked either."""
    compiled: list[PreferredTerm] = []
    errors: list[str] = []
    for index, preferred in enumerate(terms):
        term = preferred.preference
        if preferred.weight == 0 or not (term.match_expressions or term.match_fields):
            continue
        compiled.append(PreferredTerm(preferred.weight, _term(term, f"{path}[{index}]")))
        errors += compiled[-1].term.errors
    if errors:
        raise SelectorError(joined(errors))
    return tuple(compiled)


_Parsed = tuple[Requirement, list[str]]


def _term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    labels = [_label_requirement(e, f"{path}.matchExpressions[{i}]") for i, e in enumerate(term.match_expressions)]
    fields = [_field_requirement(e, f"{path}.matchFields[{i}]") for i, e in enumerate(term.match_fields)]
    return NodeTerm(
        requirements=_canonical(requirement for requirement, _ in labels),
        fields=_canonical(requirement for requirement, _ in fields),
        errors=tuple(error for _, errors in labels + fields for error in errors),
    )


def _label_requirement(expression: NodeSelectorRequirement, path: str) -> _Parsed:
    if expression.operator not in NODE_OPERATORS:
        requirement = Requirement(expression.key, expression.operator, expression.values)
        return requirement, [not_supported(child(path, "operator"), expression.operator, NODE_OPERATORS)]
    return _requirement(expression.key, expression.operator, expression.values, path)


def _field_requirement(expression: NodeSelectorRequirement, path: str) -> _Parsed:
    requirement = Requirement(expression.key, expression.operator, expression.values)
    if expression.operator not in FIELD_OPERATORS:
        return requirement, [not_supported(child(path, "operator"), expression.operator, FIELD_OPERATORS)]
    if len(expression.values) != 1:
        return requirement, [invalid(child(path, "values"), expression.values, "must have one element")]
    return requirement, []


def _field_matches(requirement: Requirement, name: str) -> bool:
    """Fields other than the node's name do not exist and read as empty."""
    value = name if requirement.key == NODE_NAME_FIELD else ""
    return (value in requirement.values) == (requirement.operator == IN)


def _exact_requirement(key: str, value: str) -> _Parsed:
    return Requirement(key, IN, (value,)), _key_errors(key, "") + _value_errors(key, (value,), "")


def _requirement(key: str, operator: str, values: tuple[str, ...], path: str) -> _Parsed:
    errors = _key_errors(key, path)
    values_path = child(path, "values")
    if operator in (IN, NOT_IN):
        if not values:
            errors.append(invalid(values_path, values, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            errors.append(invalid(values_path, values, "values set must be empty for exists and does not exist"))
    else:
        if len(values) != 1:
            errors.append(invalid(values_path, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"{values_path}[{index}]", value, detail))
    return Requirement(key, operator, tuple(sorted(set(values)))), errors + _value_errors(key, values, path)


def _key_errors(key: str, path: str) -> list[str]:
    errors = qualified_name_errors(key)
    return [invalid(child(path, "key"), key, "; ".join(errors))] if errors else []


def _value_errors(key: str, values: tuple[str, ...], path: str) -> list[str]:
    return [
        invalid(f"{child(path, 'values')}[{index}][{key}]", value, "; ".join(errors))
        for index, value in enumerate(values)
        if (errors := label_value_errors(value))
    ]


def _checked(parsed: _Parsed) -> Requirement:
    requirement, errors = parsed
    if errors:
        raise SelectorError(joined(errors))
    return requirement


def _canonical(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements)))


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """The selector; SelectorError where the text is not one."""
    parser = _SelectorParser(_TOKEN.findall(text))
    requirements = parser.requirements()
    return EVERYTHING.and_also(requirements) if requirements else EVERYTHING


class _SelectorParser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            word = self._peek()
            if word == _END:
                return found
            if word != "!" and word in _SYMBOLS:
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            word = self._next()
            if word == _END:
                return found
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            following = self._peek()
            if following != "!" and (following == _END or following in _SYMBOLS):
                raise SelectorError(f"found '{following}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if key == _END or key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: identifier")
        if errors := qualified_name_errors(key):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(errors)}')
        if absent:
            return Requirement(key, DOES_NOT_EXIST)
        if self._peek() in (_END, ","):
            return Requirement(key, EXISTS)
        operator = self._next()
        if operator in ("in", "notin"):
            return _checked_text(key, IN if operator == "in" else NOT_IN, self._values())
        if operator not in _COMPARISONS:
            raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        return _checked_text(key, _COMPARISONS[operator], (self._value(),))

    def _value(self) -> str:
        """What stands after a comparison; nothing there is the empty value."""
        if self._peek() in (_END, ","):
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> tuple[str, ...]:
        opening = self._next()
        if opening != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        values: list[str] = []
        expects_value = True
        while True:
            word = self._next()
            if word == ")":
                if expects_value:
                    values.append("")
                return tuple(values)
            if word == ",":
                if expects_value:
                    values.append("")
                expects_value = True
            elif word == _END or word in _SYMBOLS or not expects_value:
                raise _unparsable(f"found '{word}', expected: ',', ')' or identifier")
            else:
                values.append(word)
                expects_value = False

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word


def _checked_text(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    for index, value in enumerate(values):
        if operator in (GT, LT) and parse_int64(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unparsable(f'values[{index}]: Invalid value: "{value}": {why}')
        if errors := label_value_errors(value):
            raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(errors)}')
    return Requirement(key, operator, tuple(sorted(set(values))))


def _unparsable(why: str) -> SelectorError:
    return SelectorError(f"unable to parse requirement: {why}")
