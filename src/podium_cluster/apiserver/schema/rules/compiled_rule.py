"""Compiles one rule of a schema: its condition, what it can cost, and the expression of its message.

The fieldPath of a rule, `.spec.parts['a.b']`, is read against the schema at which the rule stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from kubecel import types
from kubecel.checker import Checked, Environment
from kubecel.compilation import CompilationError, compile_expression
from kubecel.cost_estimate import estimate_cost
from kubecel.evaluation import Program, ProgramError
from kubecel.limits import look_at_the_time
from kubecel.schema_types import MAX_REQUEST, DeclaredType, rule_environment, sizes_of
from kubecel.types import CelType
from podium.kube.json_object import JsonObject

MAX_CALL_COST: Final = 1_000_000
"""The most that one evaluation may cost."""
_KEPT: Final = 1000
_VARIABLES: Final = ["self", "oldSelf"]
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


@dataclass
class CompiledRule:
    """A rule as written, and what became of it: a program, or an error; likewise for its message."""

    rule: JsonObject
    program: Program | None = None
    error: str = ""
    uses_old: bool = False
    max_cost: int = 0
    message: Program | None = None
    message_error: str = ""
    message_max_cost: int = 0
    path: str = ""

    @property
    def shown(self) -> str:
        """The rule as messages about it name it."""
        return str(self.rule.get("message") or self.rule.get("rule", "")).strip()

    @property
    def optional_old(self) -> bool:
        return bool(self.rule.get("optionalOldSelf"))


_compiled_before: dict[bytes, list[CompiledRule]] = {}


def compile_rules(schema: JsonObject, declared: DeclaredType, *, is_root: bool) -> list[CompiledRule]:
    """The rules at a schema, without those below it. They are compiled once for all schemas that say the same."""
    rules = schema.get("x-kubernetes-validations") or ()
    if not rules:
        return []
    key = sha256(msgspec.json.encode((is_root, schema), order="sorted")).digest()
    found = _compiled_before.get(key)
    if found is None:
        environments = {
            optional: rule_environment(declared, optional_old=optional)
            for optional in {bool(rule.get("optionalOldSelf")) for rule in rules}
        }
        found = [_compiled(rule, schema, declared, environments[bool(rule.get("optionalOldSelf"))]) for rule in rules]
        if len(_compiled_before) >= _KEPT:
            _compiled_before.clear()
        _compiled_before[key] = found
    return found


def max_cardinality(declared: DeclaredType) -> int:
    """How often a part of this type can be in one request."""
    return MAX_REQUEST // (declared.least_bytes + 1)


def _compiled(rule: JsonObject, schema: JsonObject, declared: DeclaredType, environment: Environment) -> CompiledRule:
    look_at_the_time()
    found = CompiledRule(rule)
    if not rule.get("rule", "").strip():
        return found
    try:
        checked = _checked(rule["rule"], environment, types.BOOL, "cel expression must evaluate to a bool")
        found.uses_old = "oldSelf" in checked.names.values()
        found.program = _program(checked)
    except ProgramError as error:
        found.error = f"program instantiation failed: {error}"
        return found
    except CompilationError as error:
        found.error = str(error)
        return found
    found.max_cost = estimate_cost(checked, lambda path: sizes_of(declared, path)).most
    if rule.get("messageExpression"):
        _compile_message(found, declared, environment)
    if rule.get("fieldPath") and not found.message_error:
        try:
            found.path = field_path(rule["fieldPath"], schema)
        except FieldPathError:
            found.path = ""
    return found


def _compile_message(found: CompiledRule, declared: DeclaredType, environment: Environment) -> None:
    text = found.rule["messageExpression"]
    try:
        checked = _checked(text, environment, types.STRING, "must evaluate to a string")
        found.message = _program(checked)
        found.message_max_cost = estimate_cost(checked, lambda path: sizes_of(declared, path)).most
    except CompilationError as error:
        found.message_error = f"messageExpression {error}"
    except ProgramError as error:
        found.message_error = f"messageExpression instantiation failed: {error}"


def _checked(text: str, environment: Environment, wanted: CelType, otherwise: str) -> Checked:
    checked = compile_expression(text, environment, bindings=False)
    if checked.type != wanted:
        raise CompilationError(otherwise)
    return checked


def _program(checked: Checked) -> Program:
    return Program(checked, _VARIABLES, MAX_CALL_COST, metered=True)


class FieldPathError(ValueError):
    """A path that leads to no field."""


def field_path(text: str, schema: JsonObject) -> str:
    """The path as messages show it; FieldPathError where it leads nowhere.

    >>> field_path(".spec['size']", {"properties": {"spec": {"properties": {"size": {}}}}})
    'spec.size'
    """
    tokens = _tokens(text)
    shown = ""
    while tokens:
        opening = tokens.pop(0)
        if opening not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {opening}")
        if not tokens:
            raise FieldPathError("unexpected end of JSON path")
        name = tokens.pop(0)
        if opening == "[":
            name = _quoted(name)
        properties, rest = schema.get("properties"), schema.get("additionalProperties")
        if properties:
            if name not in properties:
                raise FieldPathError("does not refer to a valid field")
            schema = properties[name]
            shown += f".{name}" if shown else name
        elif isinstance(rest, dict):
            schema = rest
            shown += f"[{name}]"
        else:
            raise FieldPathError("does not refer to a valid field")
        if opening == "[":
            if not tokens:
                raise FieldPathError("unexpected end of JSON path")
            closing = tokens.pop(0)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return shown


def _tokens(text: str) -> list[str]:
    """The delimiters and what is between them; in quotes, delimiters are none."""
    found, at = [], 0
    while at < len(text):
        if text[at] == "'":
            end = at + 1
            while end < len(text) and not (text[end] == "'" and text[end - 1] != "\\"):
                end += 1
            end += 1
        elif text[at] in ".[]":
            end = at + 1
        else:
            end = next((n for n in range(at, len(text)) if text[n] in ".[]"), len(text))
        found.append(text[at:end])
        at = end
    return found


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", replaced, token[1:-1])
