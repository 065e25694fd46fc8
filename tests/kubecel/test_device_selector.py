"""Selectors of devices: the vectors, what they cost, and what they say where they are wrong."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel import DeviceSelector, DeviceSelectorError, compile_selector, selectable, version
from kubecel.device_selector import MAX_COST
from kubecel.quantity import parse
from tests.kubecel.generated import expressions

DRIVER = "drv.example.com"
DEVICE = selectable(
    DRIVER,
    {"model": "a100", "n": 3, "ok": True, "ver": version("1.2.3"), "other.example.com/name": "x"},
    {"memory": parse("40Gi"), "other.example.com/bw": parse("10")},
)
A = f'device.attributes["{DRIVER}"]'
NO_BOOL = (
    "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'"
)
NO_INT = "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool"
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
RESULTS: list[tuple[str, bool | str]] = [
    (f'{A}.model == "a100" && device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("10Gi"))', True),  # C1
    ('device.attributes["none"].x == 1', "no such key: x"),  # C2
    ('device.attributes["none"].x == 1 || true', True),
    ('device.attributes["none"].x == 1 && false', False),
    ('"none" in device.attributes', False),  # C3
    ("has(device.attributes.none)", True),
    ('has(device.attributes["none"].x)', False),
    ('device.attributes[?"x"].hasValue()', True),
    (f"{A}.model", NO_BOOL),  # C4
    (f"{A}.n", NO_INT),
    (f"{A}.ok", True),
    (f'{A}.n == "3"', False),  # C5
    (f"{A}.n == 3.0", True),
    (f"{A}.n < 3.5", True),
    (f'{A}.n > "3"', "no such overload"),
    (f'{A}.ver == "1.2.3"', "no such overload"),  # C6
    (f'{A}.ver == semver("1.2.3")', True),
    (f'cel.bind(d, {A}, d.model == "a100" && d.n == 3)', True),  # C7
    (f'{A}.?zzz.orValue("q") == "q"', True),
    (f'{A}.all(k, v, k != "zzz")', True),
    (f"{A}.n / 0 == 1", "division by zero"),  # C9
    ('quantity("x") == quantity("1")', NO_QUANTITY),
    (f'{A}.model.isGreaterThan(quantity("1"))', "no such overload: isGreaterThan(string, kubernetes.Quantity)"),
    (f"{A}.ok + 1 == 2", "no such overload: _+_"),
    ("1 + 9223372036854775807 > 0", "integer overflow"),
    ("[1, 2, 3].exists(x, x / (x - 1) == 2)", True),
    ("[1, 2].all(x, x / (x - 1) == 7)", False),
    ('quantity("1").add(1) == quantity("2")', True),
    ('quantity("2") == quantity("1").add(1)', "no such overload"),
    ('quantity("1000m").isInteger()', False),
    ('"aab".find("a+") == "aa" && "aab".findAll("a|b") == ["a", "a", "b"] && "xay".find("a*?") == ""', True),
    ("[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && [1, 1, 2].distinct() == [1, 2]", True),
    ("[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4}", True),
    ('cidr("10.0.0.0/8").containsIP("10.1.2.3") && !isIP("1.2.3.400")', True),
    ('"%s is %d".format(["x", 3]) == "x is 3"', True),
    ('timestamp("2026-01-01T01:00:00+02:00").getFullYear() == 2025', True),
    ("string(1e21) == '1e+21' && string(0.1) == '0.1' && string(duration('90s')) == '90s'", True),
    ('url("https://example.com:80/p?k=a").getPort() == "80"', True),
    ("device.allowMultipleAllocations", False),
]
REFUSALS = [
    ("1", "must evaluate to bool or the unknown type, not int"),  # C8
    ("device.foo", "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^"),
    (
        "math.greatest(1,2) == 2",
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'math' (in container '')\n"
        " | math.greatest(1,2) == 2\n | ^\n"
        "ERROR: <input>:1:14: undeclared reference to 'greatest' (in container '')\n"
        " | math.greatest(1,2) == 2\n | .............^",
    ),
    ("int('x') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
    ("string(int('x')) in []", "program instantiation failed: type conversion error from 'string' to 'int'"),
    ("[1, dyn('a')] == []", None),
    ("'a'.matches('[')", None),
    ("duration('x') == duration('1s')", None),
    ("'%d'.format(['a']) == ''", None),
    ("(", None),
    ("a.true", None),
    (f"{A}.model.all(x, true)", None),
    ("device.driver == 'a' && devce.x", None),
]


@pytest.mark.parametrize(("expression", "expected"), RESULTS)
def test_a_selector_gives_its_value_or_its_error(expression: str, expected: bool | str) -> None:
    selector = compile_selector(expression)
    if isinstance(expected, bool):
        assert selector.matches(DEVICE) is expected
    else:
        with pytest.raises(DeviceSelectorError) as error:
            selector.matches(DEVICE)
        assert str(error.value) == expected


@pytest.mark.parametrize(("expression", "message"), REFUSALS)
def test_a_wrong_selector_is_refused_in_the_words_of_the_api_server(expression: str, message: str | None) -> None:
    with pytest.raises(DeviceSelectorError) as error:
        compile_selector(expression)
    assert message is None or str(error.value) == message


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ('device.driver == "x"', 3),
        (f'{A}.model == "a100"', 5),
        ("device.attributes.all(k, device.attributes[k].all(i, i == 'a'))", 5379),
        (f'{A}.model.matches("^[a-z]+$")', 18),
        (f'matches({A}.model, "^[a-z]+$")', 18),
        ("lists.range(1000).all(i, lists.range(1000).all(j, i != j))", 7_016_012),
    ],
)
def test_the_estimated_cost_is_the_api_servers(expression: str, cost: int) -> None:
    selector = DeviceSelector(expression)
    assert selector.max_cost == cost
    assert selector.is_too_complex == (cost > MAX_COST)


def test_what_costs_too_much_ends_in_bounded_time() -> None:
    selector = DeviceSelector("lists.range(100000).all(i, lists.range(100000).all(j, i + j >= 0))")
    began = time.process_time()
    with pytest.raises(DeviceSelectorError, match="operation cancelled: actual cost limit exceeded"):
        selector.matches(DEVICE)
    assert time.process_time() - began < 60


@pytest.mark.parametrize("expression", ["(" * 300, "[" * 300, "a" + ".a" * 3000, "1+" * 4000 + "1"])
def test_deep_expressions_are_refused(expression: str) -> None:
    with pytest.raises(DeviceSelectorError):
        DeviceSelector(expression)


@given(st.text(alphabet="ab.()[]{}?:!-+*/%<>=&|,'\"\\ 01xdevice\n\t`r#é", max_size=40))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    with contextlib.suppress(DeviceSelectorError):
        DeviceSelector(text)


@pytest.mark.long
def test_generated_selectors_evaluate_or_say_why_not() -> None:
    outcomes = {"refused": 0, "error": 0, "value": 0}
    for expression in expressions(7, 400):
        try:
            selector = DeviceSelector(expression)
        except DeviceSelectorError:
            outcomes["refused"] += 1
            continue
        try:
            selector.matches(DEVICE)
            outcomes["value"] += 1
        except DeviceSelectorError:
            outcomes["error"] += 1
        cost = selector.cost(DEVICE)
        assert cost <= max(selector.max_cost, MAX_COST)
    assert min(outcomes.values()) > 20


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"parse semantic version: No Major\.Minor\.Patch elements found"):
        version("1.2")


def test_a_pattern_on_a_text_of_unknown_length_is_too_complex_however_it_is_written() -> None:
    assert DeviceSelector("""matches(string(duration("90ms")), ".")""").is_too_complex
    assert DeviceSelector("""string(duration("90ms")).matches(".")""").is_too_complex


def test_whole_numbers_are_durations_before_1_37_only() -> None:
    expression = "duration(1) > duration('1s')"
    with pytest.raises(DeviceSelectorError, match=r"no matching overload for 'duration' applied to '\(int\)'"):
        compile_selector(expression)
    assert isinstance(compile_selector(expression, durations_of_int=True), DeviceSelector)
