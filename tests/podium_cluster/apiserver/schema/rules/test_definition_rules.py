"""Rules as a definition is written: what is refused, and what they may cost."""

from typing import Any

import pytest

from podium_cluster.apiserver.schema.rules.definition_rules import MAX_TEXT, rule_problems
from tests.podium_cluster.apiserver.schema.rules.test_rule_tree import INT, TEXT, Schema, list_of, ruled, struct

ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def problems(schema: Schema) -> list[str]:
    return [f"{each.field}: {each.message}" for each in rule_problems(schema, "s")]


def rule_of(field: Schema, rule: str | Schema) -> Schema:
    return struct(f=ruled(field, rule))


AT = "s.properties[f].x-kubernetes-validations[0]"
SHOWN = '{"Rule":"%s","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
LESS = "self \\u003c x"
TABLE: list[tuple[Schema, list[str]]] = [
    (rule_of(INT, "self > 1"), []),
    (rule_of(INT, ""), [f"{AT}.rule: Required value: rule is not specified"]),
    (
        rule_of(INT, {"rule": "true", "message": " "}),
        [f'{AT}.message: Invalid value: " ": must be non-empty if specified'],
    ),
    (
        rule_of(INT, {"rule": "true", "message": "a\nb"}),
        [f'{AT}.message: Invalid value: "a\\nb": must not contain line breaks'],
    ),
    (rule_of(INT, "true\n"), []),
    (
        rule_of(INT, "true ||\nfalse"),
        [f"{AT}.message: Required value: message must be specified if rule contains line breaks"],
    ),
    (rule_of(INT, {"rule": "true", "fieldPath": ".x"}), [f'{AT}.fieldPath: Invalid value: ".x": must be a valid path']),
    (
        rule_of(INT, {"rule": "true", "reason": "No"}),
        [
            f'{AT}.reason: Unsupported value: "No": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
            '"FieldValueInvalid", "FieldValueRequired"'
        ],
    ),
    (rule_of(INT, "self"), [f"{AT}.rule: Invalid value: {SHOWN % 'self'}: cel expression must evaluate to a bool"]),
    (
        rule_of(INT, "self < x"),
        [
            f"{AT}.rule: Invalid value: {SHOWN % LESS}: "
            "compilation failed: ERROR: <input>:1:8: undeclared reference to 'x' (in container '')\n"
            " | self < x\n | .......^"
        ],
    ),
    (
        rule_of(INT, {"rule": "true", "optionalOldSelf": True}),
        [f"{AT}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"],
    ),
    (
        struct(f=list_of(ruled(INT, "self == oldSelf")) | {"maxItems": 3}),
        [
            's.properties[f].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot '
            "be used on the uncorrelatable portion of the schema within s.properties[f]"
        ],
    ),
    (
        rule_of(list_of(TEXT), "self.all(a, self.all(b, a != b))"),
        [
            f"{AT}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}",
            f"{AT}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire "
            "OpenAPIv3 schema",
            "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
            f"budget by factor of more than 100x {ADVICE}",
        ],
    ),
]


@pytest.mark.parametrize(("schema", "expected"), TABLE)
def test_definitions_are_refused_for_their_rules(schema: Schema, expected: list[str]) -> None:
    assert problems(schema) == expected


def test_rules_have_no_bindings() -> None:
    (problem,) = problems(rule_of(INT, "cel.bind(x, 1, x == 1)"))
    assert "undeclared reference to 'cel'" in problem


def test_a_default_must_satisfy_the_rules() -> None:
    size: dict[str, Any] = {**ruled(INT, "self > 3"), "default": 2}
    assert problems(struct(f=size)) == ["s.properties[f].default: Invalid value: 2: failed rule: self > 3"]
    assert problems(struct(f={**size, "default": 4})) == []


def test_rules_are_not_compiled_beside_a_wrong_default() -> None:
    rules = ruled(INT, {"rule": "self > 3", "fieldPath": ".x"}, "nonsense")
    found = problems(struct(f={**rules, "default": 2}, g=ruled(INT, "nonsense")))
    assert [each.split(":")[0] for each in found] == ["s.properties[f].default"] * 2 + [f"{AT}.fieldPath"]


def test_limits_on_lists_bound_what_a_rule_costs() -> None:
    rule = "self.all(a, self.exists_one(b, a == b))"
    texts = list_of({**TEXT, "maxLength": 10}) | {"maxItems": 20}
    assert problems(rule_of(texts, rule)) == []


def test_a_schema_with_too_much_text_in_its_rules_is_refused_at_once() -> None:
    (problem,) = problems(rule_of(INT, "self == 1" + " || self == 1" * (MAX_TEXT // 10)))
    assert "this server takes 65536 at most" in problem
