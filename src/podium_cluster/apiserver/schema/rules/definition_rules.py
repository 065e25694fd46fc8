"""Checks the rules in the schema of a definition before it is stored, in the words of kube-apiserver.

A rule must compile, its path must lead to a field, oldSelf needs parts that correspond to old ones, and what evaluating
it can cost at most, times how often its part can be in one object, must stay below a limit; so must the sum of all
rules. Defaults must satisfy the rules themselves.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from kubecel.schema_types import DeclaredType, declare, escaped
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.schema.rules.compiled_rule import (
    CompiledRule,
    FieldPathError,
    compile_rules,
    field_path,
    max_cardinality,
)
from podium_cluster.apiserver.schema.rules.rule_tree import BUDGET, rule_tree

MAX_RULE_COST: Final = 10_000_000
MAX_TOTAL_COST: Final = 100_000_000
MAX_TEXT: Final = 64 * 1024
"""The most characters that all rules of a schema may have together; kube-apiserver has no such limit."""
_MOST: Final = 2**64 - 1
_RULES: Final = "x-kubernetes-validations"
_REASONS: Final = tuple(f"FieldValue{word}" for word in ("Duplicate", "Forbidden", "Invalid", "Required"))
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def rule_problems(schema: JsonObject, where: str, *, structural: bool = True) -> list[Cause]:
    """What is wrong with the rules of a schema; `where` is where it stands in the definition. They are compiled only
    where the schema is structural and its defaults are fine."""
    length = _text_length(schema)
    if length > MAX_TEXT:
        message = f"its rules have {length} characters together; this server takes {MAX_TEXT} at most"
        return [field_forbidden(where, message)]
    wrong_defaults = _default_problems(schema, where, is_root=True, budget=BUDGET)[0] if structural else []
    survey = _Survey(compiles=structural and not wrong_defaults)
    survey.visit(schema, _Place(where, None, is_root=True))
    return [*wrong_defaults, *survey.written_wrong, *survey.refused, *_total_problems(survey, where)]


def _text_length(schema: JsonObject) -> int:
    own = sum(len(rule.get("rule", "")) + len(rule.get("messageExpression", "")) for rule in schema.get(_RULES) or ())
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return own + sum(_text_length(part) for part in parts if isinstance(part, dict))


def _default_problems(schema: JsonObject, where: str, *, is_root: bool, budget: int) -> tuple[list[Cause], int]:
    """What the rules have against the defaults, and what is left of the budget for evaluating them."""
    causes: list[Cause] = []
    default = schema.get("default")
    tree = rule_tree(schema, is_root=is_root) if default is not None else None
    if tree is not None:
        causes, left = tree.causes(default, default, None, f"{where}.default", budget)
        if not causes:
            causes, other = tree.causes(default, None, None, f"{where}.default", budget)
            left = min(left, other)
        budget = left
    parts = {f"{where}.items": schema.get("items")}
    parts |= {f"{where}.properties[{name}]": inner for name, inner in (schema.get("properties") or {}).items()}
    for path, inner in parts.items():
        if budget >= 0 and isinstance(inner, dict):
            embedded = bool(inner.get("x-kubernetes-embedded-resource"))
            found, budget = _default_problems(inner, path, is_root=embedded, budget=budget)
            causes += found
    return causes, budget


@dataclass(frozen=True)
class _Place:
    """A place in a schema: its path, its type where a part around it has rules, and how often it can be there (None:
    no limit). `unrelated` is the path of a list around it whose entries correspond to no old ones."""

    path: str
    declared: DeclaredType | None
    cardinality: int | None = 1
    unrelated: str = ""
    is_root: bool = False


@dataclass
class _Survey:
    """What was found in a schema: rules that are written wrong, rules that are refused, and costs by path."""

    compiles: bool
    written_wrong: list[Cause] = field(default_factory=list)
    refused: list[Cause] = field(default_factory=list)
    costs: list[tuple[int, str]] = field(default_factory=list)
    total: int = 0

    def visit(self, schema: JsonObject, place: _Place) -> None:
        before = len(self.written_wrong)
        declared = place.declared
        if declared is None and schema.get(_RULES):
            declared = declare(schema, is_root=place.is_root)
        count = _times(place.cardinality, _most_elements(schema))
        self._visit_parts(schema, place, declared, count)
        rules = schema.get(_RULES) or ()
        for at, rule in enumerate(rules):
            self.written_wrong += _writing_problems(rule, schema, f"{place.path}.{_RULES}[{at}]")
        if rules and self.compiles and len(self.written_wrong) == before:
            self._check_rules(schema, place, declared)

    def _visit_parts(self, schema: JsonObject, place: _Place, declared: DeclaredType | None, count: int | None) -> None:
        element = declared.element if declared is not None else None
        rest, items = schema.get("additionalProperties"), schema.get("items")
        if isinstance(rest, dict):
            path = f"{place.path}.additionalProperties"
            self.visit(rest, _Place(path, element, count, place.unrelated, _is_embedded(rest)))
        for name, inner in (schema.get("properties") or {}).items():
            path = f"{place.path}.properties[{name}]"
            of_field = _field_type(declared, name)
            self.visit(inner, _Place(path, of_field, count, place.unrelated, _is_embedded(inner)))
        if isinstance(items, dict):
            unrelated = place.unrelated
            if schema.get("x-kubernetes-list-type") != "map":
                unrelated = unrelated or place.path
            self.visit(items, _Place(f"{place.path}.items", element, count, unrelated, _is_embedded(items)))

    def _check_rules(self, schema: JsonObject, place: _Place, declared: DeclaredType | None) -> None:
        if declared is None:
            why = "internal error: failed to construct type information for x-kubernetes-validations rules"
            why += ": unable to convert structural schema to CEL declarations"
            self.refused.append(Cause("InternalError", f"Internal error: {why}", f"{place.path}.{_RULES}"))
            return
        for at, rule in enumerate(compile_rules(schema, declared, is_root=place.is_root)):
            self._check_rule(rule, f"{place.path}.{_RULES}[{at}]", place, declared)

    def _check_rule(self, rule: CompiledRule, path: str, place: _Place, declared: DeclaredType) -> None:
        often = max_cardinality(declared) if place.cardinality is None else place.cardinality
        cost = min(_MOST, rule.max_cost * often)
        self._check_cost(cost, f"{path}.rule", "estimated rule cost")
        if rule.error:
            self.refused.append(_about(rule, f"{path}.rule", rule.error))
        if rule.message_error:
            self.refused.append(_about(rule, f"{path}.messageExpression", rule.message_error))
        elif rule.message is not None:
            self._check_cost(rule.message_max_cost, f"{path}.messageExpression", "estimated messageExpression cost")
        if rule.uses_old:
            if place.unrelated:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.unrelated}"
                self.refused.append(invalid_value(f"{path}.rule", rule.rule["rule"], why))
        elif rule.rule.get("optionalOldSelf") is not None:
            why = "may not be set if oldSelf is not used in rule"
            self.refused.append(invalid_value(f"{path}.optionalOldSelf", rule.rule["optionalOldSelf"], why))

    def _check_cost(self, cost: int, path: str, name: str) -> None:
        if cost > MAX_RULE_COST:
            self.refused.append(field_forbidden(path, _too_much(name, cost, MAX_RULE_COST)))
        self.total = min(_MOST, self.total + cost)
        if cost >= MAX_TOTAL_COST // 100:
            self.costs.append((cost, path))


def _field_type(declared: DeclaredType | None, name: str) -> DeclaredType | None:
    identifier = escaped(name)
    return declared.fields.get(identifier) if declared is not None and identifier is not None else None


def _is_embedded(schema: JsonObject) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def _most_elements(schema: JsonObject) -> int | None:
    """How many of each part one of these can have; None: no limit."""
    limit: int | None
    match schema.get("type"):
        case "object" if schema.get("additionalProperties") is not None:
            limit = schema.get("maxProperties")
        case "array":
            limit = schema.get("maxItems")
        case _:
            return 1
    return None if limit is None else max(0, int(limit))


def _times(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(_MOST, one * other)


def _writing_problems(rule: JsonObject, schema: JsonObject, path: str) -> list[Cause]:
    """What can be seen without compiling the rule."""
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    found = []
    if not text:
        found.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        found.append(invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif _LINE_BREAK.search(message.strip()):
        found.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
    elif _LINE_BREAK.search(text) and not message.strip():
        found.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        found.append(required(f"{path}.messageExpression", why))
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        found.append(not_supported(f"{path}.reason", rule["reason"], _REASONS))
    return found + _path_problems(rule.get("fieldPath", ""), schema, f"{path}.fieldPath")


def _path_problems(text: str, schema: JsonObject, path: str) -> list[Cause]:
    found = []
    if text and not text.strip():
        found.append(invalid_value(path, text, "must be non-empty if specified"))
    if _LINE_BREAK.search(text):
        found.append(invalid_value(path, text, "must not contain line breaks"))
    if text:
        try:
            field_path(text, schema)
        except FieldPathError:
            found.append(invalid_value(path, text, "must be a valid path"))
    return found


def _about(rule: CompiledRule, path: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown_rule(rule.rule)}: {why}", path)


def _shown_rule(rule: JsonObject) -> str:
    """A rule as the API server shows it, with the names and escapes of its language."""
    fields = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _too_much(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    times = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {times} {_ADVICE}"


def _total_problems(survey: _Survey, where: str) -> list[Cause]:
    if survey.total <= MAX_TOTAL_COST:
        return []
    name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    expensive = sorted(survey.costs, key=lambda each: -each[0])[:4]
    return [
        *(field_forbidden(path, why) for _, path in expensive),
        field_forbidden(where, _too_much(name, survey.total, MAX_TOTAL_COST)),
    ]
