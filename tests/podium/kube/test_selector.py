"""Label and node selectors against the rules, and against an oracle that knows nothing of compilation."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.kube import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.kube.selector import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
    compile_preferred_terms,
    compile_strict_node_selector,
    selector_from_labels,
)


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def node_expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def node_selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def test_an_absent_selector_matches_nothing_and_is_not_empty() -> None:
    selector = compile_label_selector(None)
    assert selector == NOTHING
    assert not selector.matches({})
    assert not selector.empty


def test_a_selector_that_says_nothing_matches_everything_and_is_empty() -> None:
    selector = compile_label_selector(LabelSelector())
    assert selector == EVERYTHING
    assert selector.matches({"a": "b"})
    assert selector.empty


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ("1", "2"), {"a": "2"}, True),
        ("In", ("1", "2"), {"a": "3"}, False),
        ("In", ("1",), {}, False),
        ("In", ("",), {"a": ""}, True),
        ("NotIn", ("1",), {"a": "2"}, True),
        ("NotIn", ("1",), {"a": "1"}, False),
        ("NotIn", ("1",), {}, True),
        ("Exists", (), {"a": ""}, True),
        ("Exists", (), {"b": ""}, False),
        ("DoesNotExist", (), {"a": ""}, False),
        ("DoesNotExist", (), {}, True),
    ],
)
def test_label_operators(operator: str, values: tuple[str, ...], labels: dict[str, str], matches: bool) -> None:
    selector = compile_label_selector(LabelSelector(match_expressions=(expression("a", operator, *values),)))
    assert selector.matches(labels) is matches


@pytest.mark.parametrize(
    ("operator", "bound", "label", "matches"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Gt", "5", "+6", True),
        ("Gt", "5", "006", True),
        ("Gt", "5", "-6", False),
        ("Gt", "5", "six", False),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "5", "", False),
        ("Lt", "5", "1_0", False),
    ],
)
def test_gt_and_lt_compare_64_bit_integers(operator: str, bound: str, label: str, matches: bool) -> None:
    compiled = compile_node_selector(node_selector(term(node_expression("a", operator, bound))))
    assert compiled.error == ""
    assert compiled.matches({"a": label}, "n") is matches
    assert not compiled.matches({}, "n")


def test_all_requirements_of_a_selector_must_hold() -> None:
    selector = compile_label_selector(
        LabelSelector(match_labels={"app": "web"}, match_expressions=(expression("tier", "Exists"),))
    )
    assert selector.matches({"app": "web", "tier": "x"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"tier": "x"})


def test_equal_selectors_compile_to_equal_hashable_values() -> None:
    one = compile_label_selector(
        LabelSelector(match_expressions=(expression("b", "In", "2", "1", "1"), expression("a", "Exists")))
    )
    other = compile_label_selector(
        LabelSelector(match_expressions=(expression("a", "Exists"), expression("b", "In", "1", "2")))
    )
    assert one == other
    assert len({one, other}) == 1
    assert one.requirements == (Requirement("a", "Exists"), Requirement("b", "In", ("1", "2")))
    assert compile_label_selector(LabelSelector(match_labels={"a": "b"})) == selector_from_labels({"a": "b"})


def test_narrowing_a_selector_adds_requirements_but_nothing_stays_nothing() -> None:
    more = [Requirement("b", "In", ("1",))]
    assert EVERYTHING.and_also(more) == selector_from_labels({"b": "1"})
    assert selector_from_labels({"a": "1"}).and_also(more) == selector_from_labels({"a": "1", "b": "1"})
    assert NOTHING.and_also(more) == NOTHING


def test_a_plain_map_is_taken_unchecked() -> None:
    assert selector_from_labels({"not a key!": "not a value!"}).matches({"not a key!": "not a value!"})
    assert selector_from_labels({}).empty


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (
            LabelSelector(match_expressions=(expression("a", "In"),)),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            LabelSelector(match_expressions=(expression("a", "Exists", "1"),)),
            'values: Invalid value: ["1"]: values set must be empty for exists and does not exist',
        ),
        (
            LabelSelector(match_expressions=(expression("a", "Gt", "1"),)),
            '"Gt" is not a valid label selector operator',
        ),
        (LabelSelector(match_labels={"a b": "1"}), 'key: Invalid value: "a b": name part must consist of'),
        (LabelSelector(match_labels={"a": "b c"}), 'values[0][a]: Invalid value: "b c": a valid label must be'),
    ],
)
def test_a_malformed_label_selector_is_refused(selector: LabelSelector, problem: str) -> None:
    with pytest.raises(SelectorError) as raised:
        compile_label_selector(selector)
    assert str(raised.value).startswith(problem)


def test_terms_are_alternatives_and_their_conditions_are_not() -> None:
    compiled = compile_node_selector(
        node_selector(
            term(node_expression("zone", "In", "a"), node_expression("disk", "Exists")),
            term(node_expression("gpu", "Exists")),
        )
    )
    assert compiled.matches({"zone": "a", "disk": ""}, "n")
    assert compiled.matches({"gpu": "1"}, "n")
    assert not compiled.matches({"zone": "a"}, "n")


def test_no_terms_and_empty_terms_match_no_node() -> None:
    assert not compile_node_selector(node_selector()).matches({}, "n")
    assert not compile_node_selector(node_selector(term())).matches({}, "n")


@pytest.mark.parametrize(
    ("field", "name", "matches"),
    [
        (node_expression("metadata.name", "In", "n1"), "n1", True),
        (node_expression("metadata.name", "In", "n1"), "n2", False),
        (node_expression("metadata.name", "NotIn", "n1"), "n2", True),
        (node_expression("metadata.name", "NotIn", "n1"), "n1", False),
        (node_expression("spec.other", "In", "n1"), "n1", False),
        (node_expression("spec.other", "NotIn", "n1"), "n1", True),
        (node_expression("metadata.name", "In", "n1"), "", True),
    ],
)
def test_fields_know_the_name_of_the_node(field: NodeSelectorRequirement, name: str, matches: bool) -> None:
    assert compile_node_selector(node_selector(term(fields=(field,)))).matches({}, name) is matches


MALFORMED = term(node_expression("a", "Near", "1"), fields=(node_expression("metadata.name", "In", "x", "y"),))
MALFORMED_ERROR = (
    '[nodeSelectorTerms[1].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn",'
    ' "Exists", "DoesNotExist", "Gt", "Lt", nodeSelectorTerms[1].matchFields[0].values: Invalid value: ["x","y"]: must'
    " have one element]"
)


def test_a_malformed_term_matches_nothing_and_the_others_still_count() -> None:
    compiled = compile_node_selector(node_selector(term(node_expression("a", "Exists")), MALFORMED))
    assert compiled.matches({"a": "1"}, "x")
    assert not compiled.matches({}, "x")
    assert compiled.error == MALFORMED_ERROR


def test_a_malformed_term_does_not_match_even_where_its_conditions_would_hold() -> None:
    compiled = compile_node_selector(node_selector(term(node_expression("a", "Exists", "1"))))
    assert compiled.error
    assert not compiled.matches({"a": "1"}, "n")


def test_strict_compilation_refuses_a_malformed_term() -> None:
    selector = node_selector(term(node_expression("a", "Exists")), MALFORMED)
    with pytest.raises(SelectorError) as raised:
        compile_strict_node_selector(selector, "args.required")
    assert str(raised.value).startswith("[args.required.nodeSelectorTerms[1].matchExpressions[0].operator: ")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (node_expression("a", "Gt"), "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is"),
        (
            node_expression("a", "Lt", "x"),
            "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value",
        ),
        (node_expression("a", "Gt", "-1"), 'values[0][a]: Invalid value: "-1": a valid label must be'),
    ],
)
def test_gt_and_lt_take_exactly_one_integer_that_is_a_label_value(bad: NodeSelectorRequirement, problem: str) -> None:
    error = compile_node_selector(node_selector(term(bad))).error
    assert error.startswith(f"nodeSelectorTerms[0].matchExpressions[0].{problem}")


def test_preferred_terms_without_weight_or_conditions_are_ignored_even_if_malformed() -> None:
    good = PreferredSchedulingTerm(weight=7, preference=term(node_expression("a", "Exists")))
    compiled = compile_preferred_terms(
        (PreferredSchedulingTerm(weight=0, preference=MALFORMED), PreferredSchedulingTerm(weight=5), good)
    )
    assert [(kept.weight, kept.term.matches({"a": ""}, "n")) for kept in compiled] == [(7, True)]


def test_a_malformed_preferred_term_is_an_error() -> None:
    with pytest.raises(SelectorError) as raised:
        compile_preferred_terms((PreferredSchedulingTerm(weight=1, preference=MALFORMED),))
    assert str(raised.value).startswith('[[0].matchExpressions[0].operator: Unsupported value: "Near"')


keys = st.sampled_from(["a", "b", "example.com/c"])
values = st.sampled_from(["", "0", "1", "2", "10", "x"])
labels = st.dictionaries(keys, values)
some_values = st.lists(values, min_size=1, max_size=3)
Condition = tuple[str, str, list[str]]
label_expressions: st.SearchStrategy[Condition] = st.one_of(
    st.tuples(keys, st.sampled_from(["In", "NotIn"]), some_values),
    st.tuples(keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
)
node_expressions: st.SearchStrategy[Condition] = st.one_of(
    label_expressions, st.tuples(keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from([["0"], ["1"], ["2"]]))
)


def holds(condition: Condition, labels: Mapping[str, str]) -> bool:
    key, operator, values = condition
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "NotIn":
        return labels.get(key) not in values
    if key not in labels:
        return False
    if operator == "In":
        return labels[key] in values
    if not labels[key].isdigit():
        return False
    return int(labels[key]) > int(values[0]) if operator == "Gt" else int(labels[key]) < int(values[0])


@given(labels, st.lists(label_expressions, max_size=3), labels)
def test_a_label_selector_agrees_with_the_oracle(
    exact: dict[str, str], conditions: list[Condition], given_labels: dict[str, str]
) -> None:
    selector = compile_label_selector(
        LabelSelector(
            match_labels=exact,
            match_expressions=tuple(expression(key, op, *wanted) for key, op, wanted in conditions),
        )
    )
    expected = all(given_labels.get(key) == value for key, value in exact.items())
    assert selector.matches(given_labels) is (expected and all(holds(c, given_labels) for c in conditions))
    assert selector.empty is (not exact and not conditions)


@given(st.lists(st.lists(node_expressions, max_size=3), max_size=3), labels)
def test_a_node_selector_agrees_with_the_oracle(terms: list[list[Condition]], given_labels: dict[str, str]) -> None:
    compiled = compile_strict_node_selector(
        node_selector(*(term(*(node_expression(key, op, *wanted) for key, op, wanted in t)) for t in terms))
    )
    expected = any(t and all(holds(condition, given_labels) for condition in t) for t in terms)
    assert compiled.matches(given_labels, "n") is expected


@given(st.lists(label_expressions, max_size=3), st.randoms())
def test_the_order_in_which_conditions_are_written_does_not_matter(conditions: list[Condition], random: Random) -> None:
    def compiled() -> Selector:
        written = tuple(expression(key, op, *wanted) for key, op, wanted in conditions)
        return compile_label_selector(LabelSelector(match_expressions=written))

    before = compiled()
    random.shuffle(conditions)
    assert compiled() == before
    assert hash(compiled()) == hash(before)
