"""Evaluations that end when the time is over, as cel-go's do: in loops, every hundred rounds."""

from collections.abc import Callable, Iterator

import pytest

from kubecel import DeviceSelector, DeviceSelectorError, SelectableDevice, selectable
from kubecel.metering import ROUNDS_BETWEEN_LOOKS
from kubecel.values import MapValue

DEVICE = selectable("drv.example.com", {"n": 3}, {})
LOOP = "lists.range(1000).all(i, i >= 0)"
MISSING = 'device.attributes["drv.example.com"].x == 1'


class Clock:
    """Says that the time is over after so many looks, and counts them."""

    def __init__(self, looks: int) -> None:
        self._left = looks
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        return self.looks > self._left


@pytest.mark.parametrize(
    ("expression", "looks"),
    [
        ("device.driver != ''", 0),
        ("lists.range(99).all(i, i >= 0)", 0),
        ("lists.range(100).all(i, i >= 0)", 1),
        (LOOP, 10),
        ("lists.range(60).all(i, i >= 0) && lists.range(60).all(i, i >= 0)", 1),
        ("lists.range(30).all(i, lists.range(10).all(j, i + j >= 0))", 3),
        ("cel.bind(x, lists.range(250), x.map(i, i) == x)", 2),
        ("lists.range(250).exists(i, i == 150)", 1),
    ],
)
def test_every_hundred_rounds_of_all_loops_it_is_asked_whether_the_time_is_over(expression: str, looks: int) -> None:
    clock = Clock(1000)
    assert DeviceSelector(expression).matches(DEVICE, clock)
    assert clock.looks == looks
    assert ROUNDS_BETWEEN_LOOKS == 100


@pytest.mark.parametrize(
    "expression",
    [
        LOOP,
        f"!({LOOP})",
        f"{LOOP} && {MISSING}",
        f"{LOOP} || true",
        f"false && {LOOP} || {LOOP}",
        "lists.range(1000).map(i, i).size() == 1000",
        "lists.range(1000).transformMap(i, v, v).size() == 1000",
        f"{{1: {LOOP}}}[1]",
        f"cel.bind(x, {LOOP}, x)",
        f"optional.of({LOOP}).orValue(true)",
    ],
)
def test_a_loop_ends_when_the_time_is_over(expression: str) -> None:
    with pytest.raises(TimeoutError):
        DeviceSelector(expression).matches(DEVICE, Clock(2))


class Drawn(list[int]):
    """A list that counts how many of its elements were drawn."""

    drawn = 0

    def __iter__(self) -> Iterator[int]:
        for each in super().__iter__():
            self.drawn += 1
            yield each


def test_loops_around_an_interrupted_one_end_too() -> None:
    outer = Drawn(range(99))
    device = SelectableDevice(MapValue({"attributes": MapValue({"d": MapValue({"outer": outer})})}))
    selector = DeviceSelector('dyn(device.attributes["d"].outer).all(i, lists.range(60).all(j, i + j >= 0))')
    with pytest.raises(TimeoutError):
        selector.matches(device, lambda: True)
    assert outer.drawn == 2


def test_an_error_before_the_interrupted_loop_is_the_one_that_is_raised() -> None:
    with pytest.raises(DeviceSelectorError, match=r"^no such key: x$") as error:
        DeviceSelector(f"{MISSING} || !({LOOP})").matches(DEVICE, Clock(0))
    assert error.value.interrupted


@pytest.mark.parametrize("expired", [None, lambda: False])
def test_an_evaluation_with_time_enough_is_not_interrupted(expired: Callable[[], bool] | None) -> None:
    assert DeviceSelector(LOOP).matches(DEVICE, expired)
    with pytest.raises(DeviceSelectorError, match="no such key: x") as error:
        DeviceSelector(f"{MISSING} || !({LOOP})").matches(DEVICE, expired)
    assert not error.value.interrupted
