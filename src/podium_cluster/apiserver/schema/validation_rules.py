"""Compiles the rules of a custom kind's schema (`x-kubernetes-validations`) and evaluates them on objects.

Every part of an object is held to the rules at its place in the schema. A rule that reads oldSelf runs only where the
part was there before, unless it takes an optional. A rule that fails on a part that an update leaves as it was becomes
a warning. What bounds the rules of a request is time (validation/slow_checks.py); what one evaluation may count, join
and compare is bounded as well, because a single step could fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from kubecel import types
from kubecel.checker import Environment
from kubecel.compilation import CompilationError, compile_expression
from kubecel.evaluation import Program, ProgramError
from kubecel.limits import look_at_the_time
from kubecel.metering import CancelledError
from kubecel.schema_types import DeclaredType, Schema, declare, escaped, rule_environment, with_object_fields
from kubecel.strconv import go_float
from kubecel.structured_values import Work, structured, without_schema
from kubecel.types import CelType
from kubecel.values import NONE, CelError, some
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, invalid_value, required, shown
from podium_cluster.apiserver.schema.correlation import Correlated, entry_key, old_entries

MAX_TEXT: Final = 64 * 1024
"""The most characters that all rules of a schema may have together; kube-apiserver has no such limit."""
_MAX_CALL_COST: Final = 1_000_000
"""The most that one evaluation may cost."""
_MAX_WORK: Final = 2_000_000
"""The most elements that rules may compare for one object; kube-apiserver has no such limit."""
_KEPT: Final = 1000
_LONGEST_MESSAGE: Final = 5 * 1024
_RULES: Final = "x-kubernetes-validations"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_NO_OLD: Final = CelError("no such attribute(s): oldSelf")
_PREFIXES: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


class CompiledRule:
    """A rule as written, and what became of it: a program, or an error; likewise for its message."""

    def __init__(self, rule: JsonObject, environment: Environment) -> None:
        look_at_the_time()
        self.rule = rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        self.program: Program | None = None
        self.message: Program | None = None
        self.error = self.message_error = ""
        self.uses_old = False
        try:
            self.program, self.uses_old = _program(rule.get("rule", ""), environment, types.BOOL)
        except (CompilationError, ProgramError) as error:
            self.error = str(error)
        try:
            if rule.get("messageExpression"):
                self.message, _ = _program(rule["messageExpression"], environment, types.STRING)
        except (CompilationError, ProgramError) as error:
            self.message_error = str(error)

    @property
    def shown(self) -> str:
        """The rule as messages about it name it."""
        return str(self.rule.get("message") or self.rule.get("rule", "")).strip()


def _program(text: str, environment: Environment, wanted: CelType) -> tuple[Program, bool]:
    """The expression compiled, and whether it reads oldSelf."""
    checked = compile_expression(text, environment, bindings=False)
    if checked.type != wanted:
        raise CompilationError(f"must evaluate to a {wanted}")
    program = Program(checked, ["self", "oldSelf"], _MAX_CALL_COST, metered=True)
    return program, "oldSelf" in checked.names.values()


_compiled_before: dict[bytes, list[CompiledRule]] = {}


def _compiled(schema: JsonObject, declared: DeclaredType, *, is_root: bool) -> list[CompiledRule]:
    """The rules at a schema, without those below it. They are compiled once for all schemas that say the same."""
    rules = schema.get(_RULES) or ()
    if not rules:
        return []
    key = sha256(msgspec.json.encode((is_root, schema), order="sorted")).digest()
    found = _compiled_before.get(key)
    if found is None:
        environments = {
            optional: rule_environment(declared, optional_old=optional)
            for optional in {bool(rule.get("optionalOldSelf")) for rule in rules}
        }
        found = [CompiledRule(rule, environments[bool(rule.get("optionalOldSelf"))]) for rule in rules]
        if len(_compiled_before) >= _KEPT:
            _compiled_before.clear()
        _compiled_before[key] = found
    return found


@dataclass
class RuleTree:
    """The rules at a schema and below it, by the parts of an object that they are about."""

    schema: Schema
    rules: list[CompiledRule]
    properties: Mapping[str, RuleTree]
    rest: RuleTree | None
    items: RuleTree | None

    def causes(self, value: Any, old: Any = None, correlated: Correlated | None = None) -> list[Cause]:
        """What the rules have against a value."""
        run = _Run()
        run.visit(self, "", value, old, _Ratchet(correlated, None))
        return run.causes

    def problems(self, where: str) -> Iterator[Cause]:
        """What is wrong with the rules themselves; `where` is where their schema stands in the definition."""
        for at, rule in enumerate(self.rules):
            path = f"{where}.{_RULES}[{at}]"
            if not rule.rule.get("rule", "").strip():
                yield required(f"{path}.rule", "rule is not specified")
            elif rule.error:
                yield invalid_value(f"{path}.rule", rule.rule["rule"], rule.error)
            if rule.message_error:
                expression = rule.rule["messageExpression"]
                yield invalid_value(f"{path}.messageExpression", expression, rule.message_error)
        for name, below in self.properties.items():
            yield from below.problems(f"{where}.properties[{name}]")
        for word, part in (("additionalProperties", self.rest), ("items", self.items)):
            if part is not None:
                yield from part.problems(f"{where}.{word}")


def rule_tree(schema: JsonObject, *, is_root: bool = True) -> RuleTree | None:
    """The rules of a schema; None where it has none."""
    return _tree(schema, declare(schema, is_root=is_root), is_root=is_root) if _rule_text(schema) is not None else None


def rule_problems(schema: JsonObject, where: str) -> Iterator[Cause]:
    """What is wrong with the rules of a schema that is structural: they are too long, or do not compile."""
    length = _rule_text(schema) or 0
    if length > MAX_TEXT:
        message = f"its rules have {length} characters together; this server takes {MAX_TEXT} at most"
        yield field_forbidden(where, message)
    elif (tree := rule_tree(schema)) is not None:
        yield from tree.problems(where)


def _rule_text(schema: JsonObject) -> int | None:
    """How many characters the rules of a schema have together; None where it has none."""
    rules = schema.get(_RULES) or ()
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    lengths = [len(rule.get("rule", "")) + len(rule.get("messageExpression", "")) for rule in rules]
    lengths += [length for part in parts if isinstance(part, dict) and (length := _rule_text(part)) is not None]
    return sum(lengths) if lengths else None


def _tree(schema: JsonObject, declared: DeclaredType | None, *, is_root: bool) -> RuleTree | None:
    if declared is None:
        return None
    properties = {}
    for name, inner in (schema.get("properties") or {}).items():
        embedded = bool(inner.get(_EMBEDDED))
        identifier = escaped(name)
        of_field = declare(inner, is_root=embedded) if identifier is None else declared.fields.get(identifier)
        below = _tree(inner, of_field, is_root=embedded)
        if below is not None:
            properties[name] = below
    rest, items = (_element(schema.get(word), declared) for word in ("additionalProperties", "items"))
    rules = _compiled(schema, declared, is_root=is_root)
    if not (rules or properties or rest or items):
        return None
    return RuleTree(with_object_fields(schema) if is_root else schema, rules, properties, rest, items)


def _element(schema: Any, declared: DeclaredType) -> RuleTree | None:
    return _tree(schema, declared.element, is_root=bool(schema.get(_EMBEDDED))) if isinstance(schema, dict) else None


@dataclass(frozen=True)
class _Ratchet:
    """Where a part stood before: its own old value, or that of the nearest part around it that has one."""

    current: Correlated | None
    nearest: Correlated | None

    def key(self, name: str) -> _Ratchet:
        if self.current is None:
            return self
        if self.nearest is None and name in ("apiVersion", "kind"):
            return _Ratchet(None, None)
        return _Ratchet(self.current.key(name), self.current)

    def index(self, at: int) -> _Ratchet:
        return self if self.current is None else _Ratchet(self.current.index(at), self.current)

    @property
    def unchanged(self) -> bool:
        known = self.current or self.nearest
        return known is not None and known.unchanged


class _Run:
    """One evaluation of all rules for one object."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self._work = Work(_MAX_WORK)

    def visit(self, tree: RuleTree, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        if value is None:
            return
        if tree.rules:
            self._evaluate(tree, path, value, old, ratchet)
        if isinstance(value, list) and tree.items is not None:
            before = old_entries(old, tree.schema) or {}
            for at, entry in enumerate(value):
                old_entry = before.get(entry_key(entry, tree.schema)) if before else None
                self.visit(tree.items, f"{path}[{at}]", entry, old_entry, ratchet.index(at))
        elif isinstance(value, dict) and (tree.rest is not None or tree.properties):
            before = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                below = tree.rest or tree.properties.get(name)
                if below is not None:
                    where = f"{path}[{name}]" if tree.rest else _child(path, name)
                    self.visit(below, where, inner, before.get(name), ratchet.key(name))

    def _evaluate(self, tree: RuleTree, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        kind: str = tree.schema.get("type", "")
        own = self._read(value, tree.schema)
        uses_old = old is not None and any(rule.uses_old for rule in tree.rules)
        old_own = self._read(old, tree.schema) if uses_old else _NO_OLD
        for rule in tree.rules:
            if rule.program is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            look_at_the_time()
            seen = _as_optional(old_own) if rule.optional_old else old_own
            outcome, _ = rule.program.cost([own, seen])
            if isinstance(outcome, (CelError, CancelledError)):
                message = f"Invalid value: {shown(kind)}: {outcome} evaluating rule: {rule.shown}"
                self.causes.append(Cause("FieldValueInvalid", message, path or "<nil>"))
            elif outcome is not True:
                where = _child(path, rule.rule.get("fieldPath", "").removeprefix("."))
                detail = _message(rule, own, old_own)
                ratcheted = not rule.uses_old and ratchet.unchanged
                self.causes.append(_cause(where, value, kind, detail, rule.rule.get("reason"), ratcheted=ratcheted))

    def _read(self, raw: Any, schema: Schema) -> object:
        """The value, or the error that reading it ends in."""
        try:
            return structured(raw, schema, self._work)
        except CelError as error:
            return error


def _message(rule: CompiledRule, own: object, old: object) -> str:
    outcome = rule.message.cost([own, old])[0] if rule.message is not None else ""
    text = outcome.strip() if isinstance(outcome, str) else ""
    if text and "\n" not in text and len(text.encode(errors="replace")) <= _LONGEST_MESSAGE:
        return text
    return rule.shown if rule.rule.get("message") else f"failed rule: {rule.shown}"


def _as_optional(old: object) -> object:
    if isinstance(old, CelError):
        return NONE if old is _NO_OLD else old
    return some(without_schema(old))


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _cause(path: str, value: Any, kind: str, detail: str, reason: str | None, *, ratcheted: bool) -> Cause:
    reason = reason if reason in _PREFIXES else "FieldValueInvalid"
    parts = [_PREFIXES[reason]]
    if reason in ("FieldValueInvalid", "FieldValueDuplicate") and kind not in ("object", "array"):
        parts.append(go_float(value) if isinstance(value, float) else shown(value))
    if reason != "FieldValueDuplicate":
        parts.append(detail)
    return Cause(reason, ": ".join(parts), path or "<nil>", ratcheted)
