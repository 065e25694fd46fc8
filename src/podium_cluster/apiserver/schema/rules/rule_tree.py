"""Evaluates the rules of a schema on an object: every part against the rules at its place in the schema.

A rule that reads oldSelf runs only where the part was there before, unless it takes an optional. A rule that fails on
a part that an update leaves as it was becomes a warning. All rules of a request share one budget of cost; when it is
spent, no further rule runs and the object is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubecel.evaluation import Program
from kubecel.limits import look_at_the_time
from kubecel.metering import CancelledError
from kubecel.schema_types import DeclaredType, Schema, declare, escaped, with_object_fields
from kubecel.strconv import go_float
from kubecel.structured_values import Work, structured, without_schema
from kubecel.values import NONE, CelError, some
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, shown
from podium_cluster.apiserver.schema.rules.compiled_rule import CompiledRule, compile_rules
from podium_cluster.apiserver.schema.rules.correlation import Correlated, entry_key, old_entries

BUDGET: Final = 10_000_000
"""The most that all rules may cost for one object."""
MAX_WORK: Final = 2_000_000
"""The most elements that rules may compare for one object; kube-apiserver has no such limit."""
_LONGEST_MESSAGE: Final = 5 * 1024
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_NO_MESSAGE_BUDGET: Final = f"messageExpression evaluation {_NO_BUDGET.removeprefix('validation ')}"
_NO_OLD: Final = CelError("no such attribute(s): oldSelf")
_PREFIXES: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


@dataclass
class RuleTree:
    """The rules at a schema and below it, by the parts of an object that they are about."""

    schema: Schema
    rules: list[CompiledRule]
    properties: Mapping[str, RuleTree]
    rest: RuleTree | None
    items: RuleTree | None

    def __post_init__(self) -> None:
        self.uses_old = any(rule.uses_old for rule in self.rules)
        self.has_optional = any(rule.optional_old for rule in self.rules)
        self.type: str = self.schema.get("type", "")

    def causes(
        self, value: Any, old: Any = None, correlated: Correlated | None = None, path: str = "", budget: int = BUDGET
    ) -> tuple[list[Cause], int]:
        """What the rules have against a value, and what is left of the budget."""
        run = _Run(budget)
        try:
            run.visit(self, path, value, old, _Ratchet(correlated, None))
        except _OutOfBudgetError:
            run.budget = -1
        return run.causes, run.budget


def rule_tree(schema: JsonObject, *, is_root: bool = True) -> RuleTree | None:
    """The rules of a schema; None where it has none."""
    return _tree(schema, declare(schema, is_root=is_root), is_root=is_root) if _has_rules(schema) else None


def _has_rules(schema: JsonObject) -> bool:
    if schema.get("x-kubernetes-validations"):
        return True
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(isinstance(part, dict) and _has_rules(part) for part in parts)


def _tree(schema: JsonObject, declared: DeclaredType | None, *, is_root: bool) -> RuleTree | None:
    if declared is None:
        return None
    properties = {}
    for name, inner in (schema.get("properties") or {}).items():
        embedded = bool(inner.get("x-kubernetes-embedded-resource"))
        identifier = escaped(name)
        of_field = declare(inner, is_root=embedded) if identifier is None else declared.fields.get(identifier)
        below = _tree(inner, of_field, is_root=embedded)
        if below is not None:
            properties[name] = below
    rest, items = (_element(schema.get(word), declared) for word in ("additionalProperties", "items"))
    rules = compile_rules(schema, declared, is_root=is_root)
    if not (rules or properties or rest or items):
        return None
    return RuleTree(with_object_fields(schema) if is_root else schema, rules, properties, rest, items)


def _element(schema: Any, declared: DeclaredType) -> RuleTree | None:
    if not isinstance(schema, dict):
        return None
    return _tree(schema, declared.element, is_root=bool(schema.get("x-kubernetes-embedded-resource")))


class _OutOfBudgetError(Exception):
    """No further rule may run."""


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


class _Values(NamedTuple):
    """The values of one part: its JSON, `self`, the old value, and `oldSelf` as the rule sees it."""

    raw: Any
    own: object
    old: object
    seen: object


class _Run:
    """One evaluation of all rules for one object."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.causes: list[Cause] = []
        self._work = Work(MAX_WORK)

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
        kind = tree.type
        if self.budget <= 0:
            self._refuse(path, kind, _NO_BUDGET)
            raise _OutOfBudgetError
        own = _read(value, tree.schema, self._work)
        old_own: object = _NO_OLD
        if old is not None and tree.uses_old:
            old_own = _read(old, tree.schema, self._work)
        optional_old = _as_optional(old_own) if tree.has_optional else NONE
        for rule in tree.rules:
            if rule.error:
                self._refuse(path, kind, f"rule compile error: {rule.error}")
            elif rule.program is not None and not (rule.uses_old and old is None and not rule.optional_old):
                seen = optional_old if rule.optional_old else old_own
                self._apply(rule, rule.program, (path, kind), _Values(value, own, old_own, seen), ratchet)

    def _apply(
        self,
        rule: CompiledRule,
        program: Program,
        place: tuple[str, str],
        values: _Values,
        ratchet: _Ratchet,
    ) -> None:
        look_at_the_time()
        path, kind = place
        outcome, cost = program.cost([values.own, values.seen])
        if cost > self.budget:
            self._refuse(path, kind, _NO_BUDGET)
            raise _OutOfBudgetError
        self.budget -= cost
        if isinstance(outcome, (CelError, CancelledError)):
            self._failed(rule, str(outcome), path, kind)
        elif outcome is not True:
            where = _child(path, rule.path) if rule.path else path
            detail, spent = self._message(rule, values.own, values.old)
            ratcheted = not rule.uses_old and ratchet.unchanged
            if spent:
                self._refuse(where, kind, detail, ratcheted=ratcheted)
                raise _OutOfBudgetError
            detail = detail or (rule.shown if rule.rule.get("message") else f"failed rule: {rule.shown}")
            self.causes.append(_cause(where, values.raw, kind, detail, rule.rule.get("reason"), ratcheted=ratcheted))

    def _failed(self, rule: CompiledRule, error: str, path: str, kind: str) -> None:
        """Words an error of an evaluation; one about the cost ends them all."""
        if error.startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            self._refuse(path, kind, f"'{error}': {why}: {rule.shown}")
        elif error.startswith("operation cancelled: actual cost limit exceeded"):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._refuse(path, kind, f"'{error}': {why}: {rule.shown}")
            raise _OutOfBudgetError
        else:
            self._refuse(path, kind, f"{error} evaluating rule: {rule.shown}")

    def _message(self, rule: CompiledRule, own: object, old: object) -> tuple[str, bool]:
        """The text of the message's expression, empty where it has none; True where it is why no rule runs on."""
        if rule.message is None:
            return "", False
        outcome, cost = rule.message.cost([own, old])
        if cost > self.budget:
            return _NO_MESSAGE_BUDGET, True
        if str(outcome).startswith("operation cancelled: actual cost limit") and isinstance(outcome, Exception):
            why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            return f"{why}: {shown(rule.rule['messageExpression'])}", True
        self.budget -= cost
        text = outcome.strip() if isinstance(outcome, str) else ""
        return ("" if "\n" in text or len(text.encode(errors="replace")) > _LONGEST_MESSAGE else text), False

    def _refuse(self, path: str, kind: str, detail: str, *, ratcheted: bool = False) -> None:
        message = f"Invalid value: {shown(kind)}: {detail}"
        self.causes.append(Cause("FieldValueInvalid", message, path or "<nil>", ratcheted))


def _read(raw: Any, schema: Schema, work: Work) -> object:
    """The value, or the error that reading it ends in."""
    try:
        return structured(raw, schema, work)
    except CelError as error:
        return error


def _as_optional(old: object) -> object:
    if isinstance(old, CelError):
        return NONE if old is _NO_OLD else old
    return some(without_schema(old))


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _cause(path: str, value: Any, kind: str, detail: str, reason: str | None, *, ratcheted: bool) -> Cause:
    reason = reason if reason in _PREFIXES else "FieldValueInvalid"
    parts = [_PREFIXES[reason]]
    if reason in ("FieldValueInvalid", "FieldValueDuplicate") and kind not in ("object", "array"):
        parts.append(go_float(value) if isinstance(value, float) else shown(value))
    if reason != "FieldValueDuplicate":
        parts.append(detail)
    return Cause(reason, ": ".join(parts), path or "<nil>", ratcheted)
