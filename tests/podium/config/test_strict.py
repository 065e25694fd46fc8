from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from podium.config import Duration
from podium.config.strict import decode


class Inner(msgspec.Struct, rename="camel"):
    some_name: str = ""
    weight: int = 1


class Choice(msgspec.Struct, tag="choice", tag_field="type"):
    value: int = 0


class Outer(msgspec.Struct, rename="camel"):
    count: Annotated[int, Meta(ge=0, le=10)] = 0
    ratio: float = 0.0
    flag: bool = False
    mode: Literal["Fast", "Slow"] = "Fast"
    inner: Inner | None = None
    items: list[Inner] = msgspec.field(default_factory=list)
    names: tuple[str, ...] = ()
    by_name: dict[str, Inner] = msgspec.field(default_factory=dict)
    timeout: Duration = Duration(0)
    maybe_timeout: Duration | None = None
    choice: Choice | None = None
    anything: Any = None


class Needy(msgspec.Struct):
    name: str
    weight: int = 1

    def __post_init__(self) -> None:
        if self.weight == 13:
            raise ValueError("13 brings bad luck")


def test_values_that_fit_decode_without_a_mistake() -> None:
    decoded, mistakes = decode(
        {
            "count": 10,
            "ratio": 1,
            "inner": {"someName": "a"},
            "items": [{"weight": 2}, None],
            "names": ["x", None],
            "byName": {"k": {"someName": "b"}},
            "timeout": "1m30s",
            "choice": {"type": "choice", "value": 3},
            "anything": {"free": [None]},
        },
        Outer,
    )
    assert mistakes == []
    assert decoded == Outer(
        count=10,
        ratio=1.0,
        inner=Inner("a"),
        items=[Inner(weight=2), Inner()],
        names=("x", ""),
        by_name={"k": Inner("b")},
        timeout=Duration(90 * 10**9),
        choice=Choice(3),
        anything={"free": [None]},
    )


def test_null_means_not_set() -> None:
    nulls = {"count": None, "inner": None, "items": None, "maybeTimeout": None, "flag": None}
    assert decode(nulls, Outer) == (Outer(), [])


def test_unknown_fields_are_all_found_and_the_rest_still_decodes() -> None:
    decoded, mistakes = decode(
        {"Count": 3, "count": 4, "inner": {"someNme": "x"}, "items": [{}, {"wait": 1}], "byName": {"k": {"zzz": 1}}},
        Outer,
    )
    assert [mistake.message for mistake in mistakes] == [
        'unknown field "Count"',
        'unknown field "inner.someNme"',
        'unknown field "items[1].wait"',
        'unknown field "byName.k.zzz"',
    ]
    assert [mistake.hint for mistake in mistakes[:2]] == ["did you mean count?", "did you mean someName?"]
    assert decoded is not None
    assert decoded.count == 4


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"count": "x"}, "count", 'Invalid value: "x": expected an integer'),
        ({"count": 1.5}, "count", "Invalid value: 1.5: expected an integer"),
        ({"count": True}, "count", "Invalid value: true: expected an integer"),
        ({"count": 11}, "count", "Invalid value: 11: expected an integer <= 10"),
        ({"ratio": "x"}, "ratio", 'Invalid value: "x": expected a number'),
        ({"flag": "yes please"}, "flag", 'Invalid value: "yes please": expected true or false'),
        ({"mode": "Medium"}, "mode", 'Invalid value: "Medium": expected one of Fast, Slow'),
        ({"names": "x"}, "names", 'Invalid value: "x": expected a list'),
        ({"names": ["a", 3]}, "names[1]", "Invalid value: 3: expected a string"),
        ({"inner": [1]}, "inner", "Invalid value: [1]: expected a mapping"),
        ({"items": [{"weight": "x"}]}, "items[0].weight", 'Invalid value: "x": expected an integer'),
        ({"byName": {"k": 3}}, "byName.k", "Invalid value: 3: expected a mapping"),
        ({"timeout": 15}, "timeout", 'Invalid value: 15: expected a duration with a unit such as "15s"'),
        ({"timeout": "15"}, "timeout", 'Invalid value: "15": time: missing unit in duration "15"'),
        ({"timeout": None}, "timeout", 'Invalid value: "": time: invalid duration ""'),
        ({"maybeTimeout": "1d"}, "maybeTimeout", 'Invalid value: "1d": time: unknown unit "d" in duration "1d"'),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_was_expected(
    value: dict[str, Any], path: str, message: str
) -> None:
    _, mistakes = decode(value, Outer)
    assert [(str(mistake.path), mistake.message) for mistake in mistakes] == [(path, message)]


def test_all_wrong_values_are_found_at_once() -> None:
    _, mistakes = decode({"count": "x", "items": [{"weight": []}, {"weight": {}}], "nope": 1}, Outer)
    assert [str(mistake.path) for mistake in mistakes] == ["count", "items[0].weight", "items[1].weight", "nope"]


def test_a_hint_says_what_to_write_where_that_is_clear() -> None:
    _, mistakes = decode({"timeout": 15, "count": "7"}, Outer)
    assert [mistake.hint for mistake in mistakes] == ['write "15s" for 15 seconds', "write the number without quotes"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "Object missing required field `name`"),
        ({"name": "a", "weight": 13}, "13 brings bad luck"),
    ],
)
def test_what_the_struct_itself_objects_to_is_a_mistake(value: dict[str, Any], message: str) -> None:
    decoded, mistakes = decode(value, Needy)
    assert decoded is None
    assert [mistake.message for mistake in mistakes] == [message]


def test_a_required_field_of_the_wrong_kind_is_one_mistake_not_two() -> None:
    _, mistakes = decode({"name": 3}, Needy)
    assert [mistake.message for mistake in mistakes] == ["Invalid value: 3: expected a string"]
