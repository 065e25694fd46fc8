from typing import Any

import msgspec
import pytest

from podium.config import Duration, FieldError, FieldPath
from podium.config.field import aggregate, quoted

PATH = FieldPath().child("profiles").index(0).child("pluginConfig").index(1).child("args", "weight")


def test_a_path_joins_names_with_dots_and_positions_in_brackets() -> None:
    assert str(PATH) == "profiles[0].pluginConfig[1].args.weight"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError.invalid(PATH, -1, "must be positive"), "Invalid value: -1: must be positive"),
        (FieldError.required(PATH), "Required value"),
        (FieldError.required(PATH, "can not be empty"), "Required value: can not be empty"),
        (FieldError.duplicate(PATH, "a"), 'Duplicate value: "a"'),
        (FieldError.not_supported(PATH, "x", ["a", "b"]), 'Unsupported value: "x": supported values: "a", "b"'),
        (FieldError.not_supported(PATH, "x", []), 'Unsupported value: "x"'),
        (FieldError.forbidden(PATH, "must be nil"), "Forbidden: must be nil"),
    ],
)
def test_each_kind_of_error_reads_as_in_kube_scheduler(error: FieldError, text: str) -> None:
    assert error.body == text
    assert str(error) == f"profiles[0].pluginConfig[1].args.weight: {text}"


class _Point(msgspec.Struct):
    utilization: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "true"),
        (0.5, "0.5"),
        (2.0, "2"),
        ("a", '"a"'),
        ('say "hi"\n', r'"say \"hi\"\n"'),
        ("back\\slash", r'"back\\slash"'),
        ("\x00\x7f\u200b", r'"\x00\x7f\u200b"'),
        ("grün", '"grün"'),
        (Duration.parse("90s"), '"1m30s"'),
        (None, "null"),
        ({"a": [1]}, '{"a":[1]}'),
        ([_Point(1)], '[{"utilization":1}]'),
    ],
)
def test_values_are_printed_as_go_prints_them(value: Any, text: str) -> None:
    assert quoted(value) == text


def test_several_errors_become_one_message_in_brackets_without_repetition() -> None:
    assert aggregate(["a"]) == "a"
    assert aggregate(["a", "b", "a"]) == "[a, b]"
    assert aggregate(["a", "a"]) == "a"
