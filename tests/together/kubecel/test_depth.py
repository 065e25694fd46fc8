"""How deep expressions may nest: where the API server draws the line, and that nothing depends on Python's stack."""

import sys
from collections.abc import Callable
from threading import active_count

import pytest

from kubecel import DeviceSelector, DeviceSelectorError, selectable
from kubecel.limits import is_nearly_used, on_fresh_stack
from podium_cluster.apiserver.schema.validation_rules import rule_tree

DEVICE = selectable("drv.example.com", {"n": 3}, {})
RULES = "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
OPERATORS = "compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded"
LINES: list[tuple[str, str, str, int, str]] = [  # all of it was seen at the real API server
    ("(", "true", ")", 249, RULES),
    ("[", "true", "][0]", 249, RULES),
    ("{1: ", "true", "}[1]", 249, RULES),
    ("dyn(", "true", ") == true", 249, RULES),
    ("!(", "true", ")", 249, RULES),
    ("[1][", "0", "]", 249, RULES),
    ("true ? true : ", "false", "", 249, RULES),
    ("true ? (", "true", ") : false", 249, RULES),
    ("(", "true", " ? true : false)", 248, RULES),
    ("true && (", "true", ")", 249, RULES),
    ("true && (false || (", "true", "))", 124, RULES),
    ("true == (", "true", ")", 124, RULES),
    ("1 in [size([", "1", "])]", 62, RULES),
    ("[1].all(x, ", "true", ")", 249, RULES),
    ("[1].exists_one(x, ", "true", ")", 249, RULES),
    ("[1].filter(x, ", "true", ") != []", 125, OPERATORS),
    ("cel.bind(x, true, ", "x", ")", 249, RULES),
    ("cel.bind(x, ", "true", ", x)", 249, RULES),
    ("", "dyn(device)", ".a", 249, OPERATORS),
    ("", "true", " == true", 250, OPERATORS),
]


def written(opening: str, inside: str, closing: str, times: int) -> str:
    text = opening * times + inside + closing * times
    return text if text.startswith(("dyn(device)", "[1][")) is False else f"{text} == 1"


@pytest.mark.parametrize(("opening", "inside", "closing", "deepest", "words"), LINES)
def test_an_expression_may_nest_as_deep_as_at_the_api_server(
    opening: str, inside: str, closing: str, deepest: int, words: str
) -> None:
    DeviceSelector(written(opening, inside, closing, deepest))
    with pytest.raises(DeviceSelectorError) as error:
        DeviceSelector(written(opening, inside, closing, deepest + 1))
    assert str(error.value) == words


@pytest.mark.parametrize("times", ["!", "-"])
def test_operators_in_a_row_do_not_nest(times: str) -> None:
    DeviceSelector(f"{times * 1000}{'true' if times == '!' else 'size(device.driver) > 0'}")


def chained(names: int, lists: int) -> str:
    """Names that each stand for the one before in many lists: a value that nests as deep as both together."""
    values = (f"{'[' * lists}{f'v{number - 1}' if number else '1'}{']' * lists}" for number in range(names))
    binds = "".join(f"cel.bind(v{number}, {value}, " for number, value in enumerate(values))
    return f"{binds}v{names - 1} == v{names - 1}{')' * names}"


DEEP = [
    ("!(" * 249 + "true" + ")" * 249, False),
    ("[1].all(x, " * 249 + "true" + ")" * 249, True),
    ("[1].map(x, x > 0, " * 60 + "1" + ")" * 60 + ".size() == 1", True),
    ("cel.bind(x, [1], " * 100 + "!([1].exists(y, " * 70 + "true" + "))" * 70 + ")" * 100, True),
    (chained(40, 100), True),
    ("optional.of(1)" + ".optMap(x, x + 1)" * 6 + ".orValue(0) == 7", True),
]


@pytest.mark.parametrize(("expression", "expected"), DEEP)
def test_a_deep_expression_has_its_value_and_leaves_no_thread(expression: str, expected: bool) -> None:
    threads, limit = active_count(), sys.getrecursionlimit()
    assert DeviceSelector(expression).matches(DEVICE) is expected
    assert active_count() == threads
    assert sys.getrecursionlimit() == limit


def in_a_deep_call(work: Callable[[], object]) -> object:
    """What the work gives where the caller has used all of its stack but for some calls."""

    def down(left: int) -> object:
        return down(left - 1) if left else work()

    depth = 0
    frame = sys._getframe()
    while frame is not None and frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return down(sys.getrecursionlimit() - depth - 45)


@pytest.mark.parametrize(
    "expression", ["!(" * 8 + "true" + ")" * 8, "[1, 2].all(x, [x].exists(y, x == y))", DEEP[1][0]]
)
def test_an_expression_has_its_value_where_the_caller_is_deep_in_its_stack(expression: str) -> None:
    assert in_a_deep_call(lambda: DeviceSelector(expression).matches(DEVICE)) is True


def test_what_a_deep_expression_costs_is_counted_once_where_it_is_evaluated_again() -> None:
    selector = DeviceSelector("[1, 2].all(x, " + "!(" * 30 + "x > 0" + ")" * 30 + ")")
    assert in_a_deep_call(lambda: selector.cost(DEVICE)) == selector.cost(DEVICE)


def test_work_on_a_fresh_stack_returns_and_raises() -> None:
    assert on_fresh_stack(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        on_fresh_stack(divmod, 7, 0)
    assert in_a_deep_call(lambda: (is_nearly_used(), on_fresh_stack(is_nearly_used))) == (True, False)


@pytest.mark.long
def test_a_macro_that_repeats_its_target_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(DeviceSelectorError, match=r"optMap\(\) is applied to an expression too large to be repeated"):
        DeviceSelector("optional.of(1)" + ".optMap(x, x)" * 200 + ".hasValue()")


def test_rules_of_custom_kinds_may_nest_as_deep() -> None:
    def schema(depth: int) -> dict[str, object]:
        rule = "!(" * depth + "self > 3" + ")" * depth
        return {"type": "integer", "x-kubernetes-validations": [{"rule": rule, "message": "too small"}]}

    tree = rule_tree(schema(248), is_root=False)
    assert tree is not None
    assert tree.causes(4, None, None) == []
    assert [each.message for each in tree.causes(3, None, None)] == ["Invalid value: 3: too small"]


def test_of_very_many_problems_those_found_first_are_shown() -> None:
    with pytest.raises(DeviceSelectorError) as error:  # the innermost are found first
        DeviceSelector("duration(" * 120 + "true" + ") > duration('1s')" * 120)
    lines = str(error.value).splitlines()
    assert (
        lines[0]
        == "compilation failed: ERROR: <input>:1:189: found no matching overload for 'duration' applied to '(bool)'"
    )
    assert lines[-1] == "20 more errors were truncated"
