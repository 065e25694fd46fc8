"""The table of extension points is whole: what else names them agrees with it."""

from __future__ import annotations

import inspect

import pytest

from podium.config.points import Point
from podium.framework import plugin, protocols
from podium.framework.extension_points import EXTENSION_POINTS, METHODS
from podium.framework.timer import Step

CLASSES = [each for each in vars(protocols).values() if inspect.isclass(each)]
NOT_OF_A_POINT = {"grants", "devices_on", "explain", "answer_key", "model_answer"}
"""Methods that other methods' protocols have, called beside the extension points."""


def test_every_extension_point_is_in_the_table() -> None:
    assert set(EXTENSION_POINTS) == set(Point)
    assert all(any(method.takes_part for method in methods) for methods in EXTENSION_POINTS.values())


def test_every_step_of_an_extension_point_is_in_the_table() -> None:
    beside = {Step.QUEUEING_HINT, Step.OBSERVE, Step.LEARN}
    assert {method.step for methods in EXTENSION_POINTS.values() for method in methods} - {None} == set(Step) - beside


def test_every_method_has_one_protocol_and_every_protocol_a_method() -> None:
    methods = [
        name
        for each in CLASSES
        if each.__module__ == protocols.__name__ and getattr(each, "_is_protocol", False)
        for name, value in vars(each).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert sorted(methods) == sorted({*METHODS, *NOT_OF_A_POINT})


@pytest.mark.parametrize("method", METHODS)
def test_the_contract_explains_every_method(method: str) -> None:
    assert method in (plugin.__doc__ or "")
