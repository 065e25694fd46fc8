"""Rules of custom kinds: what they say of objects, and which ones a definition may have."""

from typing import Any

import pytest

from podium_cluster.apiserver.schema.correlation import Correlated
from podium_cluster.apiserver.schema.validation_rules import MAX_TEXT, rule_problems, rule_tree

Schema = dict[str, Any]
INT: Schema = {"type": "integer"}
TEXT: Schema = {"type": "string"}


def ruled(schema: Schema, *rules: str | Schema) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def struct(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def list_of(items: Schema, kind: str = "atomic", *keys: str) -> Schema:
    more = {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, "x-kubernetes-list-type": kind, **more}


def causes(schema: Schema, value: Any, old: Any = None) -> list[str]:
    """What is against a value, warnings in parentheses."""
    tree = rule_tree(schema, is_root=False)
    assert tree is not None
    before = None if old is None else Correlated(value, old, schema)
    found = [(f"{each.field}: {each.message}", each.ratcheted) for each in tree.causes(value, old, before)]
    return [f"({text})" if ratcheted else text for text, ratcheted in found]


TABLE: list[tuple[Schema, Any, list[str]]] = [
    (ruled(INT, "self > 3"), 4, []),
    (ruled(INT, "self > 3"), 3, ["<nil>: Invalid value: 3: failed rule: self > 3"]),
    (ruled(TEXT, "self != 'a'"), "a", ["<nil>: Invalid value: \"a\": failed rule: self != 'a'"]),
    (ruled({"type": "number"}, "self < 1.0"), 1e30, ["<nil>: Invalid value: 1e+30: failed rule: self < 1.0"]),
    (
        ruled(struct(a=INT), "self.a > 3"),
        {},
        ['<nil>: Invalid value: "object": no such key: a evaluating rule: self.a > 3'],
    ),
    (ruled(struct(a=INT), "has(self.a)"), {"a": None}, ["<nil>: Invalid value: failed rule: has(self.a)"]),
    (ruled(struct(a=INT), {"rule": "false", "message": " is wrong "}), {}, ["<nil>: Invalid value: is wrong"]),
    (
        ruled(struct(a=INT), {"rule": "false", "message": "m", "messageExpression": "'a is ' + string(self.a)"}),
        {"a": 7},
        ["<nil>: Invalid value: a is 7"],
    ),
    (
        ruled(struct(a=INT), {"rule": "false", "message": "m", "messageExpression": "string(self.a)"}),
        {},
        ["<nil>: Invalid value: m"],
    ),
    (ruled(struct(a=INT), {"rule": "false", "message": "m", "fieldPath": ".a"}), {}, ["a: Invalid value: m"]),
    (ruled(INT, {"rule": "false", "message": "m", "reason": "FieldValueForbidden"}), 1, ["<nil>: Forbidden: m"]),
    (ruled(INT, {"rule": "false", "message": "m", "reason": "FieldValueRequired"}), 1, ["<nil>: Required value: m"]),
    (ruled(INT, {"rule": "false", "message": "m", "reason": "FieldValueDuplicate"}), 1, ["<nil>: Duplicate value: 1"]),
    (struct(l=list_of(ruled(INT, "self > 1"))), {"l": [2, 1]}, ["l[1]: Invalid value: 1: failed rule: self > 1"]),
    (
        struct(m={"type": "object", "additionalProperties": ruled(INT, "self > 1")}),
        {"m": {"a.b": 1}},
        ["m[a.b]: Invalid value: 1: failed rule: self > 1"],
    ),
    (
        ruled(struct(**{"a-b": INT, "namespace": INT}), "self.a__dash__b == self.namespace"),
        {"a-b": 1, "namespace": 1},
        [],
    ),
    (
        ruled({"x-kubernetes-int-or-string": True}, "self + 1 == 2"),
        "1",
        ['<nil>: Invalid value: "": no such overload evaluating rule: self + 1 == 2'],
    ),
    (ruled({**TEXT, "format": "date-time"}, "self.getFullYear() == 2026"), "2026-05-01T00:00:00Z", []),
    (ruled({**TEXT, "format": "duration"}, "self == duration('60s')"), "1m", []),
    (ruled({**TEXT, "format": "byte"}, "self == b'a'"), "YQ==", []),
    (ruled(list_of(TEXT, "set"), "self == ['b', 'a']"), ["a", "b"], []),
    (ruled(list_of(TEXT), "self != ['b', 'a']"), ["a", "b"], []),
    (ruled(list_of(TEXT, "set"), "(self + ['a', 'c']).size() == 3"), ["a", "b"], []),
    (
        ruled(list_of({"type": "number"}, "set"), "self == [1.0]"),
        [1],
        ["<nil>: Invalid value: failed rule: self == [1.0]"],
    ),
    (ruled(INT, "self == oldSelf"), 1, []),
    (
        ruled(INT, {"rule": "oldSelf.hasValue()", "optionalOldSelf": True}),
        1,
        ["<nil>: Invalid value: 1: failed rule: oldSelf.hasValue()"],
    ),
]


@pytest.mark.parametrize(("schema", "value", "expected"), TABLE)
def test_rules_say_what_is_against_a_new_value(schema: Schema, value: Any, expected: list[str]) -> None:
    assert causes(schema, value) == expected


PARTS = list_of({**struct(name=TEXT, size=ruled(INT, "self >= oldSelf")), "required": ["name"]}, "map", "name")
CHANGES: list[tuple[Schema, Any, Any, list[str]]] = [
    (ruled(INT, "self >= oldSelf"), 1, 2, ["<nil>: Invalid value: 1: failed rule: self >= oldSelf"]),
    (struct(a=ruled(INT, "self >= oldSelf")), {"a": 1}, {}, []),
    (
        PARTS,
        [{"name": "b", "size": 1}, {"name": "a", "size": 1}],
        [{"name": "a", "size": 2}],
        ["[1].size: Invalid value: 1: failed rule: self >= oldSelf"],
    ),
    (ruled(PARTS, "self == oldSelf"), [{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}], []),
    (
        struct(a=ruled(INT, "self > 3"), b=INT),
        {"a": 1, "b": 2},
        {"a": 1, "b": 1},
        ["(a: Invalid value: 1: failed rule: self > 3)"],
    ),
    (
        struct(a=ruled(INT, "self > 3"), b=INT),
        {"a": 2, "b": 1},
        {"a": 1, "b": 1},
        ["a: Invalid value: 2: failed rule: self > 3"],
    ),
    (ruled(struct(a=INT), "self.a > 3"), {"a": 1}, {"a": 1}, ["(<nil>: Invalid value: failed rule: self.a > 3)"]),
    (
        struct(l=list_of(ruled(INT, "self > 3"))),
        {"l": [1]},
        {"l": [1]},
        ["(l[0]: Invalid value: 1: failed rule: self > 3)"],
    ),
    (
        struct(l=list_of(ruled(INT, "self > 3"))),
        {"l": [1, 4]},
        {"l": [1]},
        ["l[0]: Invalid value: 1: failed rule: self > 3"],
    ),
    (ruled(INT, {"rule": "oldSelf.value() == self", "optionalOldSelf": True}), 1, 1, []),
]


@pytest.mark.parametrize(("schema", "value", "old", "expected"), CHANGES)
def test_rules_say_what_is_against_a_change(schema: Schema, value: Any, old: Any, expected: list[str]) -> None:
    assert causes(schema, value, old) == expected


def test_an_optional_gives_out_the_old_value_without_its_schema() -> None:
    """cel-go unwraps an optional variable to plain JSON; a duration is text there."""
    times = struct(a={**TEXT, "format": "duration"})
    rule = {"rule": "oldSelf.value() == self", "optionalOldSelf": True}
    assert causes(ruled(times, rule), {"a": "1h"}, {"a": "1h"}) != []
    assert causes(ruled(times, "oldSelf == self"), {"a": "1h"}, {"a": "1h"}) == []


def test_one_evaluation_that_costs_too_much_is_refused() -> None:
    schema = ruled(list_of(INT), "self.all(x, self.all(y, x + y >= 0))", "false")
    first, second = causes(schema, list(range(600)))
    assert "actual cost limit exceeded" in first
    assert second.endswith("failed rule: false")


def test_comparing_what_costs_do_not_count_is_bounded() -> None:
    deep = struct(l=list_of(struct(a=INT)))
    schema = ruled(list_of(deep) | {"maxItems": 2}, " || ".join(["self[0] != self[1]"] * 30))
    value = [{"l": [{"a": number} for number in range(50_000)]} for _ in range(2)]
    assert "actual cost limit exceeded" in causes(schema, value)[0]


def test_joining_long_lists_again_and_again_is_bounded() -> None:
    schema = ruled(list_of(INT), f"size({' + '.join(['self'] * 60)}) > 0")
    assert "actual cost limit exceeded" in causes(schema, list(range(200_000)))[0]


AT = "s.properties[f].x-kubernetes-validations[0]"
WRITTEN: list[tuple[Schema, str]] = [
    (ruled(INT, "self > 1"), ""),
    (ruled(INT, "true ||\nfalse"), ""),
    (ruled(INT, {"rule": "true", "fieldPath": ".x", "reason": "No", "optionalOldSelf": True}), ""),
    (ruled(list_of(TEXT), "self.all(a, self.all(b, a != b))"), ""),
    (ruled(INT, " "), f"{AT}.rule: Required value: rule is not specified"),
    (ruled(INT, "self"), f'{AT}.rule: Invalid value: "self": must evaluate to a bool'),
    (
        ruled(INT, "self < x"),
        f'{AT}.rule: Invalid value: "self < x": compilation failed: ERROR: <input>:1:8: undeclared',
    ),
    (ruled(INT, "cel.bind(x, 1, x == 1)"), f'{AT}.rule: Invalid value: "cel.bind(x, 1, x == 1)": compilation failed'),
    (
        ruled(INT, {"rule": "true", "messageExpression": "self"}),
        f'{AT}.messageExpression: Invalid value: "self": must evaluate to a string',
    ),
    (ruled(INT, "self == 1" + " || self == 1" * (MAX_TEXT // 10)), "s: Forbidden: its rules have"),
]


@pytest.mark.parametrize(("schema", "refusal"), WRITTEN)
def test_a_rule_of_a_definition_must_compile(schema: Schema, refusal: str) -> None:
    found = [f"{each.field}: {each.message}" for each in rule_problems(struct(f=schema), "s")]
    assert len(found) == bool(refusal)
    assert not refusal or found[0].startswith(refusal)
