"""Settings from the environment: the configuration wins, then the variable, and a bad variable says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
import pytest

from podium.config.field import FieldError, FieldPath
from podium.framework import PluginError
from podium.framework.environment import filled

VARIABLES = {"least_share": "LEAST", "colour": "COLOUR", "title": "TITLE", "loud": "LOUD"}


class Settings(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    least_share: int | None = None
    colour: Literal["red", "green"] | None = None
    title: str | None = None
    loud: bool | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.least_share is not None and self.least_share > 100:
            yield FieldError.invalid(path.child("leastShare"), self.least_share, "must be at most 100")


def test_variables_fill_what_is_left_open() -> None:
    given = {"LEAST": "7", "COLOUR": "green", "TITLE": "any text", "LOUD": "true"}
    expected = Settings(least_share=7, colour="green", title="any text", loud=True)
    assert filled(Settings(), VARIABLES, given) == expected
    assert filled(Settings(), VARIABLES, {"LOUD": "false"}) == Settings(loud=False)


def test_what_the_configuration_says_wins_even_if_it_says_zero() -> None:
    assert filled(Settings(least_share=0), VARIABLES, {"LEAST": "7"}) == Settings(least_share=0)


def test_a_variable_that_is_empty_or_missing_leaves_the_field_open() -> None:
    assert filled(Settings(), VARIABLES, {"LEAST": ""}) == Settings()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"LEAST": "many"}, 'environment variable LEAST: "many" cannot be used: write a whole number'),
        ({"LEAST": "7.5"}, 'environment variable LEAST: "7.5" cannot be used: write a whole number'),
        ({"LEAST": "101"}, "environment variable LEAST: Invalid value: 101: must be at most 100"),
        ({"LOUD": "1"}, 'environment variable LOUD: "1" cannot be used: write true or false'),
        ({"COLOUR": "Red"}, 'environment variable COLOUR: "Red" cannot be used: write one of red, green'),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(PluginError) as caught:
        filled(Settings(), VARIABLES, given)
    assert str(caught.value) == message


def test_the_process_environment_is_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAST", "9")
    assert filled(Settings(), VARIABLES) == Settings(least_share=9)
