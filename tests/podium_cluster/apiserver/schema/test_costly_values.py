"""Patterns and formats are checked in linear time, whatever the definition and the value."""

import time

import pytest

from podium_cluster.apiserver.schema.custom_values import problems_of


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 50 + "!"),
        ({"pattern": "(x+x+)+y"}, "x" * 100_000),
        ({"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}, "a" * 50_000),
        ({"format": "hostname"}, "a" * 50 + "!"),
        ({"format": "hostname"}, "a." * 50_000 + "!"),
        ({"format": "email"}, "@" * 100_000),
        ({"format": "duration"}, "1" * 100_000),
        ({"format": "byte"}, "A" * 100_001),
    ],
)
def test_a_value_that_does_not_match_is_refused_at_once(schema: dict[str, str], value: str) -> None:
    began = time.process_time()
    assert list(problems_of(value, {"type": "string", **schema}, "spec.name"))
    assert time.process_time() - began < 5.0


def test_a_value_that_cannot_be_matched_in_time_is_refused() -> None:
    value = "".join("ax"[hash((number, 1)) % 2] for number in range(200_000))
    (cause,) = problems_of(value, {"type": "string", "pattern": "x.{900}y$"}, "spec.name")
    assert "is too long for its pattern" in cause.message
    assert len(cause.message) < 500
